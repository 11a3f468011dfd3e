package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/sources"
)

// recorded gives what the event of a call says of the gateway.
func recorded(e map[string]any) map[string]any {
	meta, _ := e["metadata"].(map[string]any)
	own, _ := meta["gateway"].(map[string]any)
	return own
}

// The record says how the model was to answer, why it stopped, and of which conversation the call is.
func TestRecordOfTheModel(t *testing.T) {
	chunks := pieces(clean)
	for name, tc := range map[string]struct {
		serve            http.HandlerFunc
		path, body       string
		finish, settings string
		conversation     any
	}{
		"chat": {says(clean), PathChat, prompt("hi", `,"temperature":0.25,"seed":7,"max_tokens":20,"reasoning_effort":"low","stop":["a text"],"top_p":null`),
			"[stop]", "map[max_tokens:20 reasoning_effort:low seed:7 temperature:0.25]", nil},
		"chat streamed": {streams("\n", chunks...), PathChat, prompt("hi", `,"stream":true`), "[stop]", "<nil>", nil},
		"responses": {respond(false, clean), PathResponses, `{"model":"gpt-x","input":"hi","conversation":"conv_1","reasoning":{"effort":"high","summary":"auto"},"max_output_tokens":9}`,
			"[completed]", "map[max_output_tokens:9 reasoning.effort:high]", "conv_1"},
		"responses streamed": {respond(true, clean), PathResponses, `{"model":"gpt-x","input":"hi","stream":true,"conversation":{"id":"conv_2"}}`, "[completed]", "<nil>", "conv_2"},
		"two choices": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"Paris."},"finish_reason":"stop"},{"index":1,"message":{"content":"It is"},"finish_reason":"length"}]}`)
		}, PathChat, prompt("hi", `,"n":2`), "[stop length]", "map[n:2]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, newProvider(t, tc.serve).URL, nil)
			s.do(tc.path, tc.body)
			e := s.event()
			if own := recorded(e); fmt.Sprint(own["finish_reasons"]) != tc.finish || fmt.Sprint(own["parameters"]) != tc.settings || e["conversation_id"] != tc.conversation || e["status"] != "success" {
				t.Errorf("%v, conversation %v, status %v", own, e["conversation_id"], e["status"])
			}
		})
	}
}

// An answer that is none is an error on record, though it passes as it came where nothing may be stopped.
func TestAnswerThatIsNone(t *testing.T) {
	for name, body := range map[string]string{"broken off": completion(clean)[:60], "no JSON": "<html>welcome</html>", "another API": `{"object":"list","data":[]}`} {
		t.Run(name, func(t *testing.T) {
			s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }).URL, nil)
			if got := s.do(PathChat, prompt("hi", "")); got.status != 200 || got.body != body {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if e := s.event(); e["status"] != "error" || e["error_message"] == nil {
				t.Errorf("status %v, %v", e["status"], e["error_message"])
			}
		})
	}
}

// Numbers are on record as they were said: whole ones of twenty digits, and those that no float64 holds, with which no event could be made.
// A caller's own member "gateway" has another name there.
func TestRecordOfNumbers(t *testing.T) {
	s := start(t, newProvider(t, says(clean)).URL, nil)
	got := s.do(PathChat, prompt("hi", `,"seed":1e999,"top_k":98765432109876543210,"metadata":{"order":98765432109876543210,"price":1.10,"budget":-1e400,"gateway":"edge-3","deep":{"n":1e999,"n":2e999}}`))
	if got.status != http.StatusOK || got.header.Get("X-Evenhand-Action") != "allow" {
		t.Fatalf("%d %s %s", got.status, got.header, got.body)
	}
	s.close()
	if len(s.ledger.ms) != 1 {
		t.Fatalf("%d events", len(s.ledger.ms))
	}
	value := string(s.ledger.ms[0].Value)
	for _, want := range []string{`"seed":1e999`, `"top_k":98765432109876543210`, `"order":98765432109876543210`, `"price":1.10`, `"budget":-1e400`, `"gateway_given":"edge-3"`, `"deep":{"n":2e999}`, `"action":"allow"`} {
		if !strings.Contains(value, want) {
			t.Errorf("%s is not in %s", want, value)
		}
	}
	in, rej := ingest.NewDecoder(ingest.Options{}).Decode(sources.Record{Value: s.ledger.ms[0].Value, Headers: s.ledger.ms[0].Headers, Time: time.Now()}, audit.Origin{BrokerTime: time.Now()})
	if rej != nil || !strings.Contains(in.Metadata, `"price":1.10`) {
		t.Errorf("%+v %+v", in, rej)
	}
}

// Names in headers that are no UTF-8 stay different names.
func TestNamesInHeadersOfLatin1(t *testing.T) {
	s := start(t, newProvider(t, says(clean)).URL, nil)
	for _, name := range []string{"B\xfcro", "B\xe4ro", "Büro"} {
		s.do(PathChat, prompt("hi", ""), "X-Evenhand-Application", name)
	}
	var got []any
	for _, e := range s.events() {
		got = append(got, e["application"])
	}
	if fmt.Sprint(got) != "[Büro Bäro Büro]" {
		t.Error(got)
	}
}

// A piece of arguments is text, though it is all letters and long.
func TestLongPiecesOfArguments(t *testing.T) {
	long := strings.Repeat("A", 2000)
	for name, arguments := range map[string]string{"function": "arguments", "custom": "input"} {
		piece := func(more, s string) string {
			return calling(`{"index":0,` + more + `"` + name + `":{"` + arguments + `":` + string(quoted(s)) + `}}`)
		}
		s := start(t, newProvider(t, streams("\n", piece(`"id":"t1","type":"`+name+`",`, `{"file":"`), piece("", long), piece("", `END"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")).URL, nil)
		s.do(PathChat, prompt("hi", `,"stream":true`))
		if in := s.recorded(); !strings.Contains(in.Response, long+"END") {
			t.Errorf("%s: %d bytes of the arguments are on record: %.60s", name, len(in.Response), in.Response)
		}
	}
}
