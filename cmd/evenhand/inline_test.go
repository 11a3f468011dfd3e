package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/gates"
)

// A text that a person has to approve: who asks waits at the guard's door, a person answers by the command line, and
// the text may go; one that nobody answers in time may not.
func TestGuardAsksPeople(t *testing.T) {
	dir := t.TempDir()
	u := startUp(t, dir, "--set", "gates.approvers=true", "--set", "auth.mode=required")
	token := func(role, subject string) string {
		return strings.TrimSpace(must(t, "", "token", "--data-dir", dir, "--tenant", "acme", "--role", role, "--subject", subject))
	}
	svc, ann := token("service", "svc"), "EVENHAND_TOKEN="+token("approver", "ann")
	guarded := func(timeoutMS int) string {
		status, body := u.send("/v1/guard", svc, fmt.Sprintf(`{"response":"I will transfer $5,000 to account 7.","wait":20,"options":{"hitlGate":true,"hitlGateTimeoutMs":%d}}`, timeoutMS), "Content-Type", "application/json")
		return fmt.Sprint(status, body)
	}
	answer := make(chan string)
	go func() { answer <- guarded(300_000) }()
	var g gates.Gate
	eventually(t, "the question", func() error {
		r := evenhandEnv(t, "", []string{ann}, "gates", "list", "--json", "--data-dir", dir)
		if json.Unmarshal([]byte(r.out), &g) != nil {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	if g.Requester != "svc" || g.Request.Method != "guard" || g.Interaction == nil || g.Request.MatchedText == nil {
		t.Errorf("%+v", g)
	}
	if r := evenhandEnv(t, "", []string{ann}, "gates", "approve", g.ID.String(), "--data-dir", dir); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if got := <-answer; !strings.HasPrefix(got, "200") || !strings.Contains(got, `"action":"allow"`) || !strings.Contains(got, `"hitlGateTriggered":true`) {
		t.Error(got)
	}
	if got := guarded(200); !strings.Contains(got, `"action":"block"`) || !strings.Contains(got, `"HumanGateDeniedError"`) || !strings.Contains(got, `"timeout"`) {
		t.Error(got)
	}
	u.arrived(2)
}

// What captured clients sent, through every door of one process: each call of a model is one interaction, also where a
// guard, a logger and a trace tell of it.
func TestEveryDoor(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(detectortest.Shared(t, "data", "events", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	u := startUp(t, t.TempDir(), "--set", "join.window=3s")
	send := func(path, kind, body string, want int) {
		t.Helper()
		if status, answer := u.post(path, kind, body); status != want {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	var asked []struct {
		Path string
		Body json.RawMessage
	}
	if err := json.Unmarshal([]byte(read("litellm-proxy-1.106.2-generic_guardrail_api.json")), &asked); err != nil || len(asked) != 14 {
		t.Fatal(err, len(asked))
	}
	for _, a := range asked {
		send(a.Path, "application/json", string(a.Body), http.StatusOK)
	}
	send("/v1/litellm", "application/json", read("litellm-proxy-1.106.2-generic_api.json"), http.StatusAccepted) // the same seven calls
	send("/v1/traces", "application/x-protobuf", read("otel-openai-v2-2.4b0-span.traces.bin"), http.StatusOK)    // seven
	send("/v1/traces", "application/x-protobuf", read("otel-openai-v2-2.4b0-event.traces.bin"), http.StatusOK)   // seven
	send("/v1/logs", "application/x-protobuf", read("otel-openai-v2-2.4b0-event.logs.bin"), http.StatusOK)       // of the same
	send("/api/public/otel/v1/traces", "application/x-protobuf", read("langfuse-python-5.0.4-observe.traces.bin"), http.StatusOK)
	send("/v1/cloudevents", "application/cloudevents-batch+json", `[{"specversion":"1.0","id":"1","source":"/a","type":"t","data":{"response":"a"}}]`, http.StatusAccepted)
	if status, _ := u.send("/v1/traces", "", "", "X-Long", strings.Repeat("x", 128<<10)); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a huge header: %d", status)
	}
	u.arrived(29)
	for query, want := range map[string]int{
		"SELECT uniqExact(event_id) AS n FROM interactions FINAL":                                                              29,
		"SELECT count() AS n FROM interactions FINAL WHERE status = 'blocked'":                                                 2,
		"SELECT count() AS n FROM interactions FINAL WHERE response_tokens > 0 AND cost_micro_usd > 0 AND status != 'blocked'": 5, // the logger's figures beside the guard's texts
		"SELECT uniqExact(event_id) AS n FROM interaction_texts FINAL WHERE kind = 'response'":                                 29,
	} {
		if got := u.count(query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	u.checked()
}
