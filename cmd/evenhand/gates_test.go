package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// From a gate that another process opened to the answer of a person, through the real process, over a kill.
func TestGatesEndToEnd(t *testing.T) {
	dir := t.TempDir()
	set := []string{"--set", "gates.approvers=true", "--set", "auth.mode=required"}
	u := startUp(t, dir, set...)
	token := func(tenant, role, subject string) string {
		return "EVENHAND_TOKEN=" + strings.TrimSpace(must(t, "", "token", "--data-dir", dir, "--tenant", tenant, "--role", role, "--subject", subject))
	}
	ann, eve, svc := token("acme", "approver", "ann"), token("beta", "approver", "eve"), token("acme", "service", "svc")
	run := func(env string, args ...string) result {
		return evenhandEnv(t, "", []string{env}, append([]string{"gates"}, append(args, "--data-dir", dir)...)...)
	}
	first, second := openGate(t, dir, u.Kafka), openGate(t, dir, u.Kafka)

	if r := run(ann, "list"); r.code != 0 || strings.Count(r.out, "financial") != 2 || !strings.Contains(r.out, `"transfer $5,000"`) {
		t.Errorf("%+v", r)
	}
	if r := run(eve, "list", "--state", "all"); r.code != 0 || strings.Contains(r.out, "financial") {
		t.Errorf("another tenant: %+v", r)
	}
	if r := run(eve, "approve", first.String()); r.code != 1 || !strings.Contains(r.err, "no such gate") {
		t.Errorf("another tenant: %+v", r)
	}
	if r := run(svc, "approve", first.String()); r.code != 1 || !strings.Contains(r.err, "approve") {
		t.Errorf("without the permission: %+v", r)
	}
	var g gates.Gate
	if r := run(ann, "approve", first.String(), "--note", "checked", "--json"); r.code != 0 || json.Unmarshal([]byte(r.out), &g) != nil || !g.Decision.Approved || g.Decision.Detail != "checked" || g.Decision.By != "ann" {
		t.Errorf("%+v", r)
	}
	if r := run(ann, "deny", first.String()); r.code != 3 || !strings.Contains(r.out, "approved") || !strings.Contains(r.err, "first") {
		t.Errorf("a second answer: %+v", r)
	}
	if r := run(ann, "show", first.String()); r.code != 0 || !strings.Contains(r.out, "checked") || !strings.Contains(r.out, "Financial transaction") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "decisions", "list", "--kind", "gate", "--data-dir", dir); r.code == 0 && strings.Contains(r.out, "checked") {
		t.Errorf("the decisions hold words: %s", r.out)
	}
	status, answer := u.send("/graphql", strings.TrimPrefix(ann, "EVENHAND_TOKEN="), fmt.Sprintf(`{"query":"mutation { decideGate(id: \"%s\", decision: DENY, note: \"no\") { state decision { reason detail decidedBy } request { matchedText } interaction { id } } }"}`, second), "Content-Type", "application/json")
	if want := `{"state":"DENIED","decision":{"reason":"denied","detail":"no","decidedBy":"ann"},"request":{"matchedText":"transfer $5,000"},"interaction":null}`; status != 200 || !strings.Contains(answer, want) {
		t.Errorf("%d %s", status, answer)
	}

	u.kill()
	u = startUp(t, dir, set...)
	for id, want := range map[audit.ID]string{first: `"approved":true`, second: `"approved":false`} {
		if status, got := u.ask(http.MethodGet, "/v1/gates/"+id.String()+"/wait", strings.TrimPrefix(svc, "EVENHAND_TOKEN=")); status != 200 || !strings.Contains(got, want) || !strings.Contains(got, `"hitlGateTriggered":true`) {
			t.Errorf("after the kill: %d %s", status, got)
		}
	}
	if r := evenhand(t, "", "jobs", "run", jobGates, "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, "gates: done") {
		t.Errorf("%+v", r)
	}
	third := openGate(t, dir, u.Kafka)
	if line := u.firstEvent("/v1/gates/events", strings.TrimPrefix(ann, "EVENHAND_TOKEN=")); !strings.Contains(line, third.String()) {
		t.Errorf("the stream: %s", line)
	}
	if out := u.log.String(); strings.Contains(out, "$5,000") || strings.Contains(out, "checked") {
		t.Error("the log holds words")
	}
}

// openGate opens a gate as another process on the same broker and store would.
func openGate(t *testing.T, dir, brokers string) audit.ID {
	t.Helper()
	p, err := engine.Running(filepath.Join(dir, "store"), engine.Writer)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := chconn.Open(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	rules, err := decisionRules()
	if err != nil {
		t.Fatal(err)
	}
	a, err := arbiter.Open(t.Context(), brokertest.ConnTo(brokers), arbiter.Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close(t.Context()) }()
	cfg := gates.DefaultConfig()
	cfg.Approvers = true
	s, err := gates.New(cfg, gates.Parts{Store: store.New(conn, engine.Database), Rows: clickhouse.New(conn, engine.Database, clickhouse.Options{}), Log: a})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id, err := s.Open(t.Context(), gates.Request{Tenant: "acme", Rule: gates.Rule{ID: "financial", Description: "Financial transaction"}, MatchedText: "transfer $5,000", Provider: "openai", Requester: "svc"})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// ask sends a request without a body.
func (u *up) ask(method, path, token string) (int, string) {
	u.t.Helper()
	req, err := http.NewRequestWithContext(u.t.Context(), method, u.HTTP+path, nil)
	if err != nil {
		u.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		u.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var b strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		b.WriteString(lines.Text())
		if strings.HasPrefix(lines.Text(), "data: ") { // of a stream the first is enough
			break
		}
	}
	return res.StatusCode, b.String()
}

func (u *up) firstEvent(path, token string) string {
	u.t.Helper()
	_, text := u.ask(http.MethodGet, path, token)
	return text
}

func TestGatesFaults(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"not an id", []string{"gates", "approve", "x"}, 2, "not a UUID"},
		{"nothing runs", []string{"gates", "list", "--data-dir", t.TempDir()}, 1, "--url"},
		{"nobody there", []string{"gates", "list", "--url", "http://127.0.0.1:1"}, 1, "127.0.0.1:1"},
		{"a time that is none", []string{"config", "--set", "gates.timeout=1ms"}, 2, "gates.timeout"},
		{"a webhook in the clear", []string{"config", "--set", "gates.webhook.url=http://example.com", "--set", "gates.webhook.secret=0123456789abcdef"}, 2, "gates.webhook.url: must be https, unless gates.webhook.allow"},
		{"a webhook without a secret", []string{"config", "--set", "gates.webhook.url=https://example.com"}, 2, "gates.webhook.secret"},
	} {
		if r := evenhand(t, "", tc.args...); r.code != tc.code || !strings.Contains(r.err, tc.want) {
			t.Errorf("%s: %d %s", tc.name, r.code, r.err)
		}
	}
	out := must(t, "", "config", "--set", "gates.webhook.url=https://example.com/abcdefgh", "--set", "gates.webhook.secret=0123456789abcdef")
	if strings.Contains(out, "abcdef") || !strings.Contains(out, "gates.webhook.secret") {
		t.Error("config shows a secret, or not the key")
	}
	if d := defaultGates(); d.Timeout != 5*time.Minute || d.Approvers {
		t.Errorf("%+v", d)
	}
}

// The watcher prints events and knows where it was when the stream breaks off.
func TestGatesWatchFollows(t *testing.T) {
	const gate = `{"id":"019aa7f2-51c3-7cc1-8c36-6f2b4cf1d7a0","state":"open","request":{"rule":{"id":"financial"},"matchedText":"pay"},"decision":null,"openedAt":"2026-11-22T10:41:03Z","expiresAt":"2026-11-22T10:46:03Z"}`
	stream := ": open\n\nid: 1-open-a\nevent: gate.opened\ndata: " + gate + "\n\n: alive\n\nid: 2-open-b\nevent: gate.opened\ndata: {\"id\":\"cut"
	var out strings.Builder
	cmd := gatesWatchCmd{}
	if last, err := cmd.follow(strings.NewReader(stream), &out, ""); last != "1-open-a" || !errors.Is(err, errStream) {
		t.Errorf("%q %v", last, err)
	}
	if s := out.String(); !strings.Contains(s, "financial") || !strings.Contains(s, `"pay"`) || strings.Count(s, "\n") != 1 {
		t.Errorf("%q", s)
	}
	out.Reset()
	cmd.JSON = true
	if last, err := cmd.follow(strings.NewReader(stream[:strings.Index(stream, "id: 2")]), &out, "0"); last != "1-open-a" || !errors.Is(err, errStream) || !json.Valid([]byte(out.String())) {
		t.Errorf("%q %v %q", last, err, out.String())
	}
	out.Reset()
	refused := "id: 3-open-c\nevent: gate.opened\ndata: " + gate + "\n\nevent: error\ndata: {\"error\":{\"code\":\"UNAUTHORIZED\",\"message\":\"the API key k was revoked\",\"details\":{\"reason\":\"key_revoked\"}}}\n\n"
	if last, err := cmd.follow(strings.NewReader(refused), &out, ""); last != "3-open-c" || err == nil || errors.Is(err, errStream) || !strings.Contains(err.Error(), "key_revoked") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("sent away: %q %v %q", last, err, out.String())
	}
}
