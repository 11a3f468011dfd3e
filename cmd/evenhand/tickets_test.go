package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/sinks/linear/lineartest"
)

// From a breach to an issue, from the closed issue back to the breach, through the real process.
func TestTicketsEndToEnd(t *testing.T) {
	stub := lineartest.Start(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(lineartest.Key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const secret = "lin_wh_end_to_end"
	set := []string{"--set", "linear.api_key=" + lineartest.Key, "--set", "linear.team=" + lineartest.Team, "--set", "linear.endpoint=" + stub.URL,
		"--set", "linear.webhook_secret=" + secret, "--set", "linear.links.grafana=https://grafana.example.com/d/bias?from={from_ms}&to={to_ms}"}
	// The breach below is of no policy that is in force: an evaluation would resolve it.
	set = append(set, "--set", "jobs.alarms.schedule=off")
	dir := t.TempDir()
	u := startUp(t, dir, set...)
	stub.Hook(t, u.HTTP+linearDoor, secret)

	b := sampleBreach(time.Now())
	b.Tenant = "acme"
	conn := brokertest.ConnTo(u.Kafka)
	rules, err := decisionRules()
	if err != nil {
		t.Fatal(err)
	}
	a, err := arbiter.Open(t.Context(), conn, arbiter.Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close(t.Context()) }()
	value, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	d, err := a.Decide(t.Context(), arbiter.Key{Kind: "breach", ID: b.ID.String()}, value)
	if err != nil {
		t.Fatal(err)
	}
	p, err := engine.Running(filepath.Join(dir, "store"), engine.Writer)
	if err != nil {
		t.Fatal(err)
	}
	store, err := chconn.Open(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	row := fmt.Sprintf(`INSERT INTO breaches (tenant_id, breach_id, seq, version, state, reason, policy, tier, domain, kind, generation, opened_at, changed_at, window_from, window_to, n, k, rate, severity)
		VALUES ('acme', '%s', 1, 1, 'open', 'breached', 'example', 'ticket', 'hr', 'charter.age', 1, now64(3), fromUnixTimestamp64Milli(%d), now() - 86400, now(), 2000, 82, 0.041, 3)`, b.ID, d.Time.UnixMilli())
	if err := store.Exec(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--data-dir", dir}, set...)
	if out := must(t, "", append([]string{"jobs", "run", "remediation"}, args...)...); !strings.Contains(out, "remediation: done") {
		t.Error(out)
	}
	eventually(t, "the issue", func() error {
		if out := must(t, "", "tickets", "list", "--data-dir", dir); !strings.Contains(out, "BIAS-1") || strings.Contains(out, "pending") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	if s := stub.State(t); len(s.Issues) != 1 || len(s.Attachments) != 1 || s.Issues[0].Title != "Age findings in hr: 4.10 %" {
		t.Errorf("%+v", s.Issues)
	}
	if out := must(t, "", "tickets", "show", b.ID.String(), "--data-dir", dir); !strings.Contains(out, "sent as BIAS-1") || !strings.Contains(out, "82 of 2,000") {
		t.Error(out)
	}
	stub.Move(t, "BIAS-1", "completed")
	eventually(t, "mitigated", func() error {
		if out := must(t, "", "sql", "--data-dir", dir, "SELECT state, reason, changed_at > opened_at FROM current_breaches"); !strings.Contains(out, "mitigated\tcompleted\t1") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	res, err := http.Post(u.HTTP+linearDoor, "application/json", strings.NewReader("{}"))
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("an unsigned delivery: %v %v", res, err)
	} else {
		_ = res.Body.Close()
	}
	if out := must(t, "", "ready", u.HTTP); !strings.Contains(out, `"remediation":{"status":"ok"`) {
		t.Error(out)
	}
	if r := evenhand(t, "", append([]string{"doctor"}, args...)...); r.code != 0 || !strings.Contains(r.out, "Linear's team BIAS answers") {
		t.Errorf("%d %s%s", r.code, r.out, r.err)
	}
	if out := must(t, "", append([]string{"config"}, set...)...); strings.Contains(out, lineartest.Key) || strings.Contains(out, secret) {
		t.Error("config shows a secret")
	}
	if log := u.log.String(); strings.Contains(log, lineartest.Key) || strings.Contains(log, secret) {
		t.Error("the log shows a secret")
	}
	out := must(t, "", append([]string{"tickets", "test"}, set...)...)
	if n := len(stub.State(t).Issues); !strings.Contains(out, "linear took the issue BIAS-2") || n != 2 {
		t.Errorf("%d issues: %s", n, out)
	}
	if r := evenhandEnv(t, "", []string{"EVENHAND_LINEAR_API_KEY_FILE=" + key}, "tickets", "test", "--set", "linear.team=NOBODY", "--set", "linear.endpoint="+stub.URL); r.code != 1 || !strings.Contains(r.err, "linear.team") {
		t.Errorf("%d %s", r.code, r.err)
	}
}

func TestTicketsWithoutATracker(t *testing.T) {
	out := must(t, "", "tickets", "test", "--dry-run", "--set", "linear.links.review=https://e.example.com/r?d={domain}")
	dec := json.NewDecoder(strings.NewReader(out))
	var kinds []string
	for dec.More() {
		var k struct{ Action, Title, URL string }
		if err := dec.Decode(&k); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, k.Action+" "+k.Title+" "+k.URL)
	}
	if got := strings.Join(kinds, "; "); got != "issue Age findings in hr: 4.10 % against 1.20 % ; attachment Review the interactions https://e.example.com/r?d=hr" {
		t.Error(got)
	}
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing to send to", []string{"tickets", "test"}, "linear.api_key"},
		{"retry what", []string{"tickets", "retry"}, "--all"},
		{"not an id", []string{"tickets", "show", "x"}, "not a UUID"},
		{"a key without a team", []string{"config", "--set", "linear.api_key=lin_api_x"}, "linear.team"},
		{"a secret without a key", []string{"config", "--set", "linear.webhook_secret=x"}, "linear.webhook_secret"},
		{"a link that goes nowhere", []string{"config", "--set", "linear.links.grafana=https://x/{nosuch}"}, "linear.links.grafana"},
		{"asked too often", []string{"config", "--set", "linear.api_key=lin_api_x", "--set", "linear.team=BIAS", "--set", "linear.poll=5s"}, "linear.poll"},
		{"a day that never comes", []string{"config", "--set", "linear.due_days.high=-1"}, "linear.due_days.high"},
		{"a webhook in the clear", []string{"config", "--set", "webhook.url=http://example.com", "--set", "webhook.secret=0123456789abcdef"}, "webhook.url"},
	} {
		if r := evenhand(t, "", tc.args...); r.code != 2 || !strings.Contains(r.err, tc.want) {
			t.Errorf("%s: %d %s", tc.name, r.code, r.err)
		}
	}
}
