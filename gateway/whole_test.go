package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// What is allowed passes byte for byte, in both directions, and leaves one event.
func TestAllowedPassesAsItCame(t *testing.T) {
	p := newProvider(t, says(clean))
	s := start(t, p.URL, nil)
	body := prompt("What is the capital of France?", `, "x_unknown" : {"deep": [1.50, 1e2]},"user":"u-7","metadata":{"conversation_id":"c-1","team":"blue"}`)
	got := s.do(PathChat, body, "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "Openai-Organization", "org-1", "Cookie", "a=b")
	if got.status != 200 || got.body != completion(clean) {
		t.Fatalf("%d %s", got.status, got.body)
	}
	asked, sent := p.last()
	if sent != body || asked.URL.Path != "/v1/chat/completions" {
		t.Errorf("the provider got %s %s", asked.URL.Path, sent)
	}
	for name, want := range map[string]string{"Authorization": "Bearer sk-theirs", "Openai-Organization": "org-1", "Cookie": "", "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "X-Evenhand-Key": ""} {
		if v := asked.Header.Get(name); v != want {
			t.Errorf("the provider got %s: %q, want %q", name, v, want)
		}
	}
	for name, want := range map[string]string{"X-Evenhand-Action": "allow", "X-Evenhand-Trace-Id": "4bf92f3577b34da6a3ce929d0e0e4736", "X-Ratelimit-Remaining-Requests": "99", "X-Evenhand-Scores": "bias=0, safety=0"} {
		if v := got.header.Get(name); v != want {
			t.Errorf("the caller got %s: %q, want %q", name, v, want)
		}
	}
	e := s.event()
	for name, want := range map[string]any{"id": got.header.Get("X-Evenhand-Id"), "response": clean, "model": "gpt-x-2026", "provider": "127.0.0.1", "status": "success", "user_id": "u-7",
		"conversation_id": "c-1", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7", "prompt_tokens": 12.0, "response_tokens": 34.0} {
		if e[name] != want {
			t.Errorf("event: %s is %v, want %v", name, e[name], want)
		}
	}
	if s.figures.calls[0] != "default 200 allow" || s.figures.events["sent"] != 1 {
		t.Errorf("counted %v %v", s.figures.calls, s.figures.events)
	}
}

func TestWarnMarksTheAnswer(t *testing.T) {
	s := start(t, newProvider(t, says(biased)).URL, nil)
	got := s.do(PathChat, prompt("Who should lead?", ""))
	if got.status != 200 || got.header.Get("X-Evenhand-Action") != "warn" {
		t.Fatalf("%d %v", got.status, got.header)
	}
	mark := gjson.Get(got.body, "evenhand")
	if mark.Get("action").String() != "warn" || mark.Get("id").String() != got.header.Get("X-Evenhand-Id") || mark.Get("findings.0.evidence").String() == "" || mark.Get("reasons.0").String() != "bias" {
		t.Errorf("marked with %s", mark.Raw)
	}
	if rest := strings.Replace(got.body, `,"evenhand":`+mark.Raw, "", 1); rest != completion(biased) {
		t.Errorf("the rest changed: %s", rest)
	}
}

func blocks(c *Config, _ *Deps) { c.Guard.BiasAction = "block" }

func TestBlockIsAnErrorWithEvidence(t *testing.T) {
	s := start(t, newProvider(t, says(biased)).URL, blocks)
	got := s.do(PathChat, prompt("Who should lead?", ""))
	e := gjson.Get(got.body, "error")
	if got.status != 400 || e.Get("code").String() != "evenhand_blocked" || e.Get("type").String() != "policy_violation" || e.Get("param").Raw != "null" ||
		e.Get("evenhand.error.name").String() != "BiasDetectedError" || e.Get("evenhand.findings.0.evidence").String() == "" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if strings.Contains(got.body, "That is what they say") {
		t.Error("the blocked text went out")
	}
	if v := s.event(); v["status"] != "blocked" || v["response"] != biased {
		t.Errorf("event %v", v)
	}
}

func TestBlockAsRefusal(t *testing.T) {
	s := start(t, newProvider(t, says(biased)).URL, func(c *Config, d *Deps) { blocks(c, d); c.Block = BlockRefusal })
	got := s.do(PathChat, prompt("Who should lead?", ""))
	if got.status != 200 || gjson.Get(got.body, "choices.0.message.content").String() != "I cannot answer that." || gjson.Get(got.body, "choices.0.finish_reason").String() != "content_filter" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if v := s.event(); v["status"] != "blocked" || v["response"] != biased {
		t.Errorf("event %v", v)
	}
}

// A prompt that is blocked never leaves.
func TestPromptIsCheckedFirst(t *testing.T) {
	p := newProvider(t, says(clean))
	s := start(t, p.URL, func(c *Config, d *Deps) { blocks(c, d); c.Guard.Check = "both" })
	got := s.do(PathChat, prompt(biased, ""))
	if got.status != 400 || p.calls() != 0 || !strings.Contains(got.body, "the prompt was blocked") {
		t.Fatalf("%d %s, %d calls", got.status, got.body, p.calls())
	}
	if v := s.event(); v["status"] != "blocked" || v["response"] != nil {
		t.Errorf("event %v", v)
	}
}

// What a tool is asked to do is judged too.
func TestToolCallsAreJudged(t *testing.T) {
	answer := `{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Sure.","tool_calls":[{"id":"t1","type":"function","function":{"name":"post","arguments":"{\"text\":\"Women are too emotional to be good executives.\"}"}}]},"finish_reason":"tool_calls"}]}`
	s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}).URL, blocks)
	got := s.do(PathChat, prompt("post it", ""), "X-Evenhand-Bias-Threshold", "0.05")
	if got.status != 400 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	r, _ := s.event()["response"].([]any)
	if len(r) != 1 {
		t.Fatalf("response %v", r)
	}
}

// Errors of the provider pass as they are.
func TestProvidersErrorsPass(t *testing.T) {
	for status, body := range map[int]string{400: `{"error":{"message":"bad","type":"invalid_request_error","param":"x","code":null}}`, 401: `{"error":{"message":"no key"}}`, 429: `{"error":{"message":"slow down"}}`, 500: `oops`, 503: ``} {
		p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("X-Request-Id", "req_theirs")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
		s := start(t, p.URL, blocks)
		got := s.do(PathChat, prompt("hi", ""))
		if got.status != status || got.body != body || got.header.Get("Retry-After") != "7" || got.header.Get("X-Request-Id") != "req_theirs" {
			t.Errorf("%d: %d %q %v", status, got.status, got.body, got.header)
		}
		if e := s.event(); e["status"] != "error" || e["error_message"] == "" {
			t.Errorf("%d: event %v", status, e)
		}
	}
}
