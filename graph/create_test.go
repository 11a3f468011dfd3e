package graph

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
)

// topic is a Producer that keeps what it took.
type topic struct {
	mu  sync.Mutex
	ms  []ingest.Message
	err error
}

func (l *topic) Produce(_ context.Context, ms []ingest.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.ms = append(l.ms, ms...)
	}
	return l.err
}

const (
	created  = `mutation($i:JSON!){createLlmInteractionAudit(input:$i){id tenantId originalQuery llmResponse llmProvider status biasAnalysisStatus biasType biasDetected textState userEmail traceId domain}}`
	traceOne = "4bf92f3577b34da6a3ce929d0e0e4736"
)

func TestCreate(t *testing.T) {
	l := &topic{}
	e := newEdge(DefaultConfig(), Parts{Intake: &Intake{Decoder: ingest.NewDecoder(ingest.Options{}), Producer: l}})
	id := audit.DeriveID("create").String()
	w := e.post(operation(created, map[string]any{"i": map[string]any{"id": id, "prompt": "Who <should> lead?", "response": "She & he.", "domain": "hr", "user_email": "u@example.org", "prompt_tokens": 12}}),
		"Traceparent", "00-"+traceOne+"-00f067aa0ba902b7-01")
	want := `{"data":{"createLlmInteractionAudit":{"id":"` + id + `","tenantId":"a","originalQuery":"Who <should> lead?","llmResponse":"She & he.","llmProvider":"unknown","status":"success","biasAnalysisStatus":"pending","biasType":null,"biasDetected":false,"textState":"present","userEmail":"u@example.org","traceId":"` + traceOne + `","domain":"hr"}}}`
	var got, wanted any
	if json.Unmarshal(w.Body.Bytes(), &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil || w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if a, b := marshal(got), marshal(wanted); a != b {
		t.Errorf("%s\nwant %s", a, b)
	}
	if len(l.ms) != 1 || string(l.ms[0].Key) != id || !strings.Contains(string(l.ms[0].Value), `"prompt":"Who <should> lead?"`) {
		t.Fatalf("%s", l.ms)
	}
	headers := map[string]string{}
	for _, h := range l.ms[0].Headers {
		headers[h.Key] = string(h.Value)
	}
	if headers[ingest.HeaderTenant] != "a" || headers[ingest.HeaderEventTime] == "" || headers[ingest.HeaderTraceparent] != "00-"+traceOne+"-00f067aa0ba902b7-01" {
		t.Errorf("%v", headers)
	}
	// As a literal, without an id.
	w = e.post(`{"query":"mutation{createLlmInteractionAudit(input:{response:\"b\",estimated_cost_usd:0.25,messages:[{role:\"user\",content:\"c\"}]}){id originalQuery estimatedCostUsd}}"}`)
	if codeOf(w) != "" || !strings.Contains(w.Body.String(), `"originalQuery":"c","estimatedCostUsd":0.25`) || len(l.ms) != 2 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func marshal(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func TestCreateRefused(t *testing.T) {
	l := &topic{}
	e := newEdge(DefaultConfig(), Parts{Intake: &Intake{Decoder: ingest.NewDecoder(ingest.Options{}), Producer: l, Limit: 4000}})
	for _, tc := range []struct {
		name, input, code string
		want              []string
	}{
		{"every field at fault", `{"respose":"SECRET","status":"SECRET","prompt_tokens":"SECRET"}`, "BAD_USER_INPUT", []string{`"field":"respose"`, `"field":"status"`, `"field":"prompt_tokens"`, `did you mean response?`}},
		{"an array", `[{"response":"a"}]`, "BAD_USER_INPUT", []string{"input"}},
		{"a string", `"SECRET"`, "BAD_USER_INPUT", nil},
		{"another tenant", `{"tenant_id":"b","response":"a"}`, "FORBIDDEN", []string{"the tenant is not yours"}},
		{"too large", `{"response":"` + strings.Repeat("x", 5000) + `"}`, "BAD_USER_INPUT", []string{"at most 4000 are taken"}},
		{"an old time", `{"response":"a","timestamp":"1970-01-01T00:00:00Z"}`, "BAD_USER_INPUT", []string{"timestamp"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := e.post(`{"query":"` + created + `","variables":{"i":` + tc.input + `}}`)
			if w.Code != 200 || codeOf(w) != tc.code || len(l.ms) != 0 || strings.Contains(w.Body.String(), "SECRET") {
				t.Errorf("%d %s, %d produced", w.Code, w.Body, len(l.ms))
			}
			for _, want := range tc.want {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("does not say %s: %s", want, w.Body)
				}
			}
		})
	}
	body := operation(created, map[string]any{"i": map[string]any{"response": "a"}})
	for kind, code := range map[audit.Kind]string{audit.KindOverloaded: "OVERLOADED", audit.KindUnavailable: "UNAVAILABLE", audit.KindInvalid: "BAD_USER_INPUT", audit.KindInternal: "INTERNAL"} {
		l.err = audit.E("test", kind, errors.New("SECRET"))
		w := e.post(body)
		if codeOf(w) != code || strings.Contains(w.Body.String(), "SECRET") || (code == "OVERLOADED") && !strings.Contains(w.Body.String(), `"id":`) {
			t.Errorf("%s: %s", kind, w.Body)
		}
	}
	for _, r := range []auth.Role{auth.Viewer, auth.Reviewer} {
		if w := e.as(principal("a", r), "POST", body); codeOf(w) != "FORBIDDEN" {
			t.Errorf("%s: %s", r, w.Body)
		}
	}
	if w := newEdge(DefaultConfig(), Parts{}).post(body); codeOf(w) != "UNAVAILABLE" {
		t.Errorf("without an intake: %s", w.Body)
	}
}
