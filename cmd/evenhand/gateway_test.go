package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/evenhand/evenhand/internal/llm/llmtest"
)

// The gateway end to end: calls go through to a provider, one is blocked, and both are on record.
func TestGateway(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		said := "The capital of France is Paris."
		if strings.Contains(string(b), "[EMAIL_1]") {
			said = "Dear [EMAIL_1]."
		}
		if strings.Contains(string(b), "lead") {
			said = "Women are too emotional to be good executives."
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"c","model":"gpt-x","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}`, said)
	}))
	t.Cleanup(provider.Close)
	u := startUp(t, t.TempDir(), "--set", "gateway.enabled=true", "--set", "gateway.base_url="+provider.URL+"/v1", "--set", "gateway.guard.domain=hr", "--set", "gateway.guard.bias_action=block", "--set", "gateway.overrides=mask", "--set", "gateway.unmask=true")
	if _, page := get(t, u.HTTP+"/metrics"); !strings.Contains(page, `evenhand_gateway_unchecked_total{upstream="default"} 0`) {
		t.Error("no upstream in the metrics before its first call")
	}
	for _, tc := range []struct {
		ask, want string
		status    int
	}{{"Where is Paris?", `"content":"The capital of France is Paris."`, 200}, {"Who should lead?", `"code":"evenhand_blocked"`, 400}} {
		status, body := u.post("/v1/chat/completions", "application/json", `{"model":"gpt-x","messages":[{"role":"user","content":"`+tc.ask+`"}]}`)
		if status != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d %s", tc.ask, status, body)
		}
	}
	for _, ask := range []string{"POST /v1/embeddings", "POST /v1/completions", "POST /v1/moderations", "GET /v1/responses/resp_1", "GET /v1/files", "POST /v1/audio/speech",
		"POST /openai/deployments/gpt-x/chat/completions", "POST /v1/openai/deployments/gpt-x/chat/completions", "POST /v1/deployments/gpt-x/chat/completions", "POST /v1/messages", "POST /v1/messages/count_tokens", "POST /v1beta/models/gemini:generateContent",
		"POST /chat/completions", "POST /responses", "GET /models", "POST /v1/v1/chat/completions"} {
		method, path, _ := strings.Cut(ask, " ")
		if status, body := u.ask(method, path, ""); status != http.StatusNotFound || !strings.Contains(body, `"code":"evenhand_not_served"`) || !strings.Contains(body, "POST /v1/chat/completions") || !strings.Contains(body, "base URL ends in /v1 (docs/gateway.md)") || !strings.Contains(body, "the provider's own base_url") {
			t.Errorf("%s: %d %s", ask, status, body)
		}
	}
	if status, body := u.ask(http.MethodGet, "/v1/nothing", ""); status != http.StatusNotFound || strings.Contains(body, "evenhand_not_served") {
		t.Errorf("a path of nobody's: %d %s", status, body)
	}
	if status, body := u.post("/v1/chat/completions", "application/json", `{"model":"gpt-x","messages":[{"role":"user","content":"I am lena@hafen.example."}],"metadata":{"evenhand_mask":"request"}}`); status != 200 || !strings.Contains(body, `"content":"Dear lena@hafen.example."`) {
		t.Errorf("masked: %d %s", status, body)
	}
	if _, page := get(t, u.HTTP+"/metrics"); !strings.Contains(page, `evenhand_gateway_masked_total{entity="EMAIL",side="request"} 1`) {
		t.Error("what was masked is not counted")
	}
	u.arrived(3)
	if n := u.count("SELECT count() AS n FROM interaction_texts FINAL WHERE kind = 'response' AND text = 'Dear [EMAIL_1].' OR kind = 'prompt' AND text LIKE '%lena@hafen.example%' OR kind = 'metadata' AND JSONExtractInt(text, 'gateway', 'mask', 'request', 'EMAIL') = 1"); n != 3 {
		t.Errorf("%d texts on record of three: as they were said, and what was masked", n)
	}
	if n := u.count("SELECT count() AS n FROM interactions FINAL WHERE provider = '127.0.0.1' AND status = 'blocked' AND response_tokens = 7"); n != 1 {
		t.Errorf("%d blocked calls on record", n)
	}
}

// With replays on, an answer that does not pass is asked for again before it goes out, in one piece and held as a stream; every round is on
// record and counted.
func TestGatewayReplays(t *testing.T) {
	var asked atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		b, _ := io.ReadAll(r.Body)
		said := "Bob is too old."
		if strings.Contains(string(b), "age says nothing") { // what the validator found in the first
			said = "Ask the team."
		}
		if strings.Contains(string(b), `"stream":true`) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: {\"id\":\"c\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", said)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"c","model":"gpt-x","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}`, said)
	}))
	t.Cleanup(provider.Close)
	judge := scripted(t, func(llmtest.Asked) llmtest.Reply { return llmtest.Fail(http.StatusTeapot) }) // the provider answers again, not the judge's server
	dir := t.TempDir()
	u := startUp(t, dir, "--set", "judge.base_url="+judge, "--set", "judge.select.random_percent=0", "--set", "judge.select.band=0",
		"--set", "gateway.enabled=true", "--set", "gateway.base_url="+provider.URL+"/v1", "--set", "gateway.replay.rounds=2", "--set", "gateway.stream=hold")
	for form, want := range map[string]string{"": `"message":{"role":"assistant","content":"Ask the team."}`, `,"stream":true`: `"delta":{"content":"Ask the team.","role":"assistant"}`} {
		status, body := u.post("/v1/chat/completions", "application/json", `{"model":"gpt-x","messages":[{"role":"user","content":"Who should lead?"}]`+form+`}`)
		if status != http.StatusOK || !strings.Contains(body, want) || strings.Contains(body, "old") || form != "" && !strings.Contains(body, `"replay":{"rounds":1,"kept":1,"stop":"passed"`) {
			t.Errorf("%s: %d %s", form, status, body)
		}
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("the provider was asked %d times", n)
	}
	u.arrived(4)
	for what, want := range map[string]int{
		"NOT startsWith(given_id, 'replay/') AND status = 'blocked'": 2, // nobody got them
		"startsWith(given_id, 'replay/') AND status = 'success'":     2,
		"provider = '127.0.0.1' AND model = 'gpt-x'":                 4,
	} {
		if n := u.count("SELECT count() AS n FROM interactions FINAL WHERE " + what); n != want {
			t.Errorf("%d rows with %s, want %d", n, what, want)
		}
	}
	if r := evenhand(t, "", "replay", "stats", "--data-dir", dir); r.code != 0 || !strings.HasPrefix(r.out, "2 calls replayed in 2 rounds") || !strings.Contains(r.out, "2 mended") {
		t.Errorf("%+v", r)
	}
	u.checked()
}
