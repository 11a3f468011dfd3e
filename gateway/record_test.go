package gateway

import (
	"fmt"
	"io"
	"net/http"
	"testing"
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
