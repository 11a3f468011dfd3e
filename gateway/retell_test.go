package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	oairesponses "github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/guard"
)

// onePiece stands before a provider that answers a stream's request in one piece, after the stream began: a person approves what the prompt asks.
func onePiece(t *testing.T, body string, change func(*Config, *Deps)) (*stand, func(path, ask string) string) {
	who := &person{answer: make(chan guard.GateDecision)}
	s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }).URL, func(c *Config, d *Deps) {
		gated(who)(c, d)
		if c.Guard.Check, c.Fail = "prompt", FailOpen; change != nil {
			change(c, d)
		}
	})
	return s, func(path, ask string) string {
		return s.afterComment(path, ask, func() { who.answer <- guard.GateDecision{Approved: true} })
	}
}

// A chat's answer in one piece is told as the stream that was asked for, every choice and call of it; OpenAI's client reads it.
func TestOnePieceAsAStream(t *testing.T) {
	call := `"tool_calls":[{"id":"t1","type":"function","function":{"name":"find","arguments":"{\"q\":1}"}},{"id":"t2","type":"function","function":{"name":"stop","arguments":"{}"}}]`
	s, ask := onePiece(t, `{"id":"c","object":"chat.completion","created":1,"model":"m",
	"choices":[{"index":0,"message":{"role":"assistant","content":"Bonjour",`+call+`},"finish_reason":"tool_calls"},{"index":1,"message":{"role":"assistant","content":"Guten Tag"},"finish_reason":"stop"},{"text":"Hi","finish_reason":"length"}],
	"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`, nil)
	stream := ask(PathChat, prompt(wire, streamed))
	acc := openai.ChatCompletionAccumulator{}
	for _, d := range datas(stream) {
		var chunk openai.ChatCompletionChunk
		if d == ":" || d == "[DONE]" {
			continue
		}
		if err := chunk.UnmarshalJSON([]byte(d)); err != nil || !acc.AddChunk(chunk) {
			t.Errorf("%v: %s", err, d)
		}
	}
	var told []string
	for _, c := range acc.Choices {
		told = append(told, c.Message.Content+" "+c.FinishReason)
		for _, call := range c.Message.ToolCalls {
			told = append(told, call.ID+" "+call.Function.Name+" "+call.Function.Arguments)
		}
	}
	if got := strings.Join(told, ", "); got != `Bonjour tool_calls, t1 find {"q":1}, t2 stop {}, Guten Tag stop, Hi length` || acc.Usage.TotalTokens != 3 || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
		t.Errorf("%s of %s", got, stream)
	}
	if n := strings.Count(stream, `"hitlGateTriggered":true`); n != 1 {
		t.Errorf("reported %d times in %s", n, stream)
	}
	if e := s.event(); e["status"] != "success" {
		t.Errorf("%v", e)
	}
}

func TestOnePieceOfResponses(t *testing.T) {
	s, ask := onePiece(t, `{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Paris."}]},
		{"type":"function_call","id":"f1","call_id":"c1","name":"find","arguments":"{\"q\":1}","status":"completed"},{"type":"custom_tool_call","id":"f2","call_id":"c2","name":"run","input":"ls"},{"type":"message","role":"assistant","content":"plain"}]}`, nil)
	stream := ask(PathResponses, `{"model":"m","stream":true,"input":`+string(quoted(wire))+`}`)
	said := map[string]string{}
	n := int64(0)
	for _, d := range datas(stream) {
		if d == ":" {
			continue
		}
		var e oairesponses.ResponseStreamEventUnion
		if err := e.UnmarshalJSON([]byte(d)); err != nil || e.SequenceNumber != n {
			t.Errorf("%v, number %d: %s", err, n, d)
		}
		n++
		if strings.HasSuffix(e.Type, ".delta") {
			said[e.Type] += gjson.Get(d, "delta").String()
		}
		if item := gjson.Get(d, "item"); e.Type == "response.output_item.added" && item.Get("arguments").String()+item.Get("input").String() != "" {
			t.Errorf("told before its pieces: %s", d)
		}
	}
	if got := fmt.Sprint(said); got != `map[response.custom_tool_call_input.delta:ls response.function_call_arguments.delta:{"q":1} response.output_text.delta:Paris.]` {
		t.Errorf("%s of %s", got, stream)
	}
	if e := s.event(); e["status"] != "success" {
		t.Errorf("%v", e)
	}
}

// What cannot be told as a stream, and errors of the provider, end it as errors.
func TestOnePieceThatIsNone(t *testing.T) {
	for name, tc := range map[string]struct{ path, body, says, status string }{
		"an error":               {PathChat, `{"error":{"message":"No endpoints found","code":404}}`, "No endpoints found", "error"},
		"an error of responses":  {PathResponses, `{"error":{"message":"No endpoints found"}}`, "No endpoints found", "error"},
		"no JSON":                {PathChat, `<html>`, "it is no JSON", "error"},
		"another API":            {PathChat, `{"a":1}`, "not as /chat/completions answers", "error"},
		"an error of a choice":   {PathChat, `{"choices":[{"error":{"message":"cut off"},"message":{"content":"All is"},"finish_reason":"error"}]}`, "cut off", "error"},
		"an error beside choice": {PathChat, `{"error":{"message":"cut off"},"choices":[{"message":{"content":"All is"}}]}`, "cut off", "error"},
		"no choices":             {PathChat, `{"choices":[]}`, "", "success"},
	} {
		s, ask := onePiece(t, tc.body, nil)
		body := prompt(wire, streamed)
		if tc.path == PathResponses {
			body = `{"model":"m","stream":true,"input":` + string(quoted(wire)) + `}`
		}
		stream := ask(tc.path, body)
		said := ""
		for _, d := range datas(stream) {
			said += gjson.Get(d, "error.message").String() + gjson.Get(d, "choices.0.error.message").String()
		}
		if !strings.Contains(said, tc.says) || tc.path == PathChat && !strings.HasSuffix(stream, "data: [DONE]\n\n") {
			t.Errorf("%s: %s", name, stream)
		}
		if e := s.event(); e["status"] != tc.status || tc.status == "error" && !strings.Contains(fmt.Sprint(e["error_message"]), tc.says) {
			t.Errorf("%s: %v", name, e)
		}
	}
}
