package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// What the provider keeps need not stand in the request: a stored prompt's texts and model, a conversation's texts.
func TestStoredPrompts(t *testing.T) {
	const prompt = `"prompt":{"id":"pmpt_1","version":"2","variables":{"name":"Ole"}}`
	for name, tc := range map[string]struct {
		body     string
		status   int
		messages string
	}{
		"a prompt and a model":       {`{"model":"gpt-5",` + prompt + `}`, 200, "[map[content:Ole role:system]]"},
		"a prompt alone":             {`{` + prompt + `}`, 200, "[map[content:Ole role:system]]"},
		"a prompt without variables": {`{"model":null,"prompt":{"id":"pmpt_1"}}`, 200, "<nil>"},
		"a conversation":             {`{"model":"gpt-5","conversation":"conv_1"}`, 200, "<nil>"},
		"a conversation's object":    {`{"model":"gpt-5","conversation":{"id":"conv_1"}}`, 200, "<nil>"},
		"a prompt that is a text":    {`{"model":"gpt-5","prompt":"hi"}`, 400, ""},
		"the answer before":          {`{"model":"gpt-5","previous_response_id":"resp_0"}`, 200, "<nil>"},
		"no model of a conversation": {`{"conversation":"conv_1","input":"hi"}`, 400, ""},
		"a model of another type":    {`{"model":5,` + prompt + `}`, 400, ""},
		"nothing":                    {`{"model":"gpt-5"}`, 400, ""},
		"nothing but null":           {`{"model":"gpt-5","prompt":null,"conversation":null,"previous_response_id":null}`, 400, ""},
	} {
		p := newProvider(t, respond(false, clean))
		s := start(t, p.URL, func(c *Config, _ *Deps) { c.Guard.Check = "both" })
		got := s.do(PathResponses, tc.body)
		if got.status != tc.status || got.status != http.StatusOK && p.calls() != 0 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
			continue
		}
		if got.status != http.StatusOK {
			continue
		}
		if _, sent := p.last(); sent != tc.body {
			t.Errorf("%s: the provider got %s", name, sent)
		}
		if e := s.event(); fmt.Sprint(e["messages"]) != tc.messages || e["model"] != "gpt-x-2026" || e["status"] != "success" || e["response"] != clean || got.header.Get("X-Evenhand-Action") != "allow" {
			t.Errorf("%s: event %v", name, e)
		}
	}
	// Chat completions have nothing of the kind.
	s := start(t, newProvider(t, says(clean)).URL, nil)
	if got := s.do(PathChat, `{"model":"m","conversation":"conv_1"}`); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A variable of a stored prompt is judged and masked as other texts are; who names no model goes to the default, or nowhere.
func TestStoredPromptsAreLookedAt(t *testing.T) {
	p := newProvider(t, respond(false, clean))
	s := start(t, p.URL, func(c *Config, d *Deps) { blocks(c, d); c.Guard.Check, c.Mask = "both", MaskBoth })
	if got := s.do(PathResponses, `{"prompt":{"id":"p","variables":{"claim":`+string(quoted(biased))+`}}}`); got.status != 400 || p.calls() != 0 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do(PathResponses, `{"prompt":{"id":"p","variables":{"to":"ole@reederei.example"}}}`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if _, sent := p.last(); gjson.Get(sent, "prompt.variables.to").String() != "[EMAIL_1]" {
		t.Errorf("the provider got %s", sent)
	}
	s = start(t, p.URL, func(c *Config, _ *Deps) {
		c.Upstreams, c.BaseURL = []Upstream{{Name: "local", BaseURL: c.BaseURL, Models: []string{"gpt-"}}}, ""
	})
	if got := s.do(PathResponses, `{"prompt":{"id":"p"}}`); got.status != 404 || !strings.Contains(got.body, "gateway.default") || !strings.Contains(got.body, "model_not_found") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Asked for again, what the answer lacks becomes the input.
func TestStoredPromptIsReplayed(t *testing.T) {
	bodies := []string{"bad", "fine"}
	p := newProvider(t, nil)
	p.serve = func(w http.ResponseWriter, r *http.Request) { respond(false, bodies[p.calls()-1])(w, r) }
	s := start(t, p.URL, func(c *Config, d *Deps) { c.Replay.Rounds, d.Validate = 1, marksOut })
	got := s.do(PathResponses, `{"prompt":{"id":"p"}}`)
	_, sent := p.last()
	if gjson.Get(got.body, "output.0.content.0.text").String() != "fine" || !strings.Contains(gjson.Get(sent, "input.0.content").String(), "bad") || gjson.Get(sent, "prompt.id").String() != "p" {
		t.Errorf("%s after %s", got.body, sent)
	}
}
