package litellm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/litellm"
	"github.com/evenhand/evenhand/sources"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func captured(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(detectortest.Shared(tb, "data", "events", name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// told are the seven interactions as the capture of our own form has them, by trace id.
func told(t *testing.T) map[string]map[string]string {
	var all []struct {
		Body struct{ Data map[string]string }
	}
	var raw []struct{ Body map[string]json.RawMessage }
	b := captured(t, "cloudevents-python-2.2.0-http.json")
	_ = json.Unmarshal(b, &all)
	if err := json.Unmarshal(b, &raw); err != nil {
		t.Fatal(err)
	}
	by := map[string]map[string]string{}
	for i, e := range all {
		data := e.Body.Data
		if data == nil { // binary: the body is the event
			data = map[string]string{}
			for k, v := range raw[i].Body {
				var s string
				_ = json.Unmarshal(v, &s)
				data[k] = s
			}
		}
		by[data["trace_id"]] = data
	}
	if len(by) != 7 {
		t.Fatalf("%d interactions", len(by))
	}
	return by
}

func decode(t *testing.T, p call.Part) *audit.Interaction {
	t.Helper()
	value, err := p.Event(p.Claimed)
	if err != nil {
		t.Fatal(err)
	}
	in, faults := ingest.NewDecoder(ingest.Options{DefaultTenant: "default"}).Check(sources.Record{Value: value, Time: noon}, audit.Origin{BrokerTime: noon})
	if len(faults) > 0 {
		t.Fatalf("%v\n%s", faults, value)
	}
	return in
}

// What the SDK and the proxy sent is the seven interactions, each once, and nothing else.
func TestCaptures(t *testing.T) {
	want := told(t)
	for _, tc := range []struct{ file, blocked string }{
		{"litellm-sdk-1.106.2-generic_api.json", ""},
		{"litellm-proxy-1.106.2-generic_api.json", "36 38"}, // ends of the trace ids of calls that the guard blocked
	} {
		t.Run(tc.file, func(t *testing.T) {
			body := captured(t, tc.file)
			parts, ignored, err := litellm.Read(call.Payload{Body: body, Received: noon})
			if err != nil || len(ignored) > 0 {
				t.Fatal(err, ignored)
			}
			seen := map[string]bool{}
			ids := map[audit.ID]bool{}
			for _, p := range parts {
				in := decode(t, p)
				if in.ID != call.ID(p.Claimed, p.Group, p.Key) || p.Group != p.Key || ids[in.ID] || !bytes.Contains(body, []byte(`"litellm_call_id": "`+p.Group+`"`)) {
					t.Errorf("id %s", in.ID)
				}
				ids[in.ID] = true
				w, ok := want[p.TraceID]
				if !ok { // the SDK's capture ends with a call that the provider refused; its trace id is none
					if p.Status != "error" || p.Done || in.ErrorMessage != "litellm.RateLimitError: slow down" || in.Response != "" || p.Tokens[0] != nil {
						t.Errorf("%+v", p)
					}
					continue
				}
				if seen[p.TraceID] {
					t.Errorf("%s twice", p.TraceID)
				}
				seen[p.TraceID] = true
				wantResponse, status := w["response"], "success"
				if strings.Contains(tc.blocked, p.TraceID[30:]) && tc.blocked != "" {
					wantResponse, status = "", "blocked"
				}
				if p.Done != (tc.blocked == "") || in.ErrorMessage != "" != (status == "blocked") {
					t.Errorf("%s: done %v, error %q", w["id"], p.Done, in.ErrorMessage)
				}
				got := map[string]string{
					"tenant": in.Tenant, "domain": string(in.Domain), "user": in.UserID, "model": in.Model, "provider": in.Provider, "trace": in.TraceID,
					"prompt": in.Prompt, "query": in.Query, "response": in.Response, "status": in.Status,
				}
				if d := gocmp.Diff(map[string]string{
					"tenant": w["tenant_id"], "domain": w["domain"], "user": w["user_id"], "model": w["model"], "provider": w["provider"], "trace": w["trace_id"],
					"prompt": w["system"] + "\n\n" + w["prompt"], "query": w["prompt"], "response": wantResponse, "status": status,
				}, got); d != "" {
					t.Errorf("%s: %s", w["id"], d)
				}
				if in.CostMicroUSD <= 0 || in.Time.Year() != 2026 || in.TimeAssumed || (in.PromptTokens < 10) != (status == "blocked") || in.LatencyMS < 0 {
					t.Errorf("%s: cost %d, time %s, tokens %d, latency %d", w["id"], in.CostMicroUSD, in.Time, in.PromptTokens, in.LatencyMS)
				}
				if strings.Contains(in.Metadata, "stainless") || strings.Contains(in.Metadata, "127.0.0.1") || strings.Contains(in.Metadata, "master_key") {
					t.Errorf("kept %s", in.Metadata)
				}
			}
			if len(seen) != 7 {
				t.Errorf("%d interactions", len(seen))
			}
		})
	}
}

// The three forms of a body, the untouched first event among them, are the same calls.
func TestForms(t *testing.T) {
	line := captured(t, "litellm-sdk-1.106.2-generic_api.raw-first-event.ndjson")
	var array []json.RawMessage
	if err := json.Unmarshal(captured(t, "litellm-sdk-1.106.2-generic_api.json"), &array); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{"one": line, "two lines": append(slices.Clone(line), line...), "an array": []byte("[" + string(line) + "," + string(line) + "]")} {
		parts, _, err := litellm.Read(call.Payload{Body: body})
		if err != nil || len(parts) == 0 || len(parts[0].Answers) != 1 {
			t.Fatalf("%s: %v %+v", name, err, parts)
		}
		if parts[0].Model != "gpt-4o-mini" || parts[0].Provider != "openai" || parts[0].UserID != "u-17" || parts[0].Claimed != "acme-hr" {
			t.Errorf("%s: %+v", name, parts[0])
		}
		for _, p := range parts[1:] {
			if d := gocmp.Diff(parts[0], p); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
	parts, _, err := litellm.Read(call.Payload{Body: fmt.Appendf(nil, frame, "completion", `"messages":"NaN \" NaN","response":"Infinity","cost":[NaN,Infinity,-Infinity]`)})
	if err != nil || string(parts[0].Messages[0].Content) != `"NaN \" NaN"` || string(parts[0].Answers[0].Content) != `"Infinity"` {
		t.Errorf("numbers of Python's: %v", err)
	}
	for body, want := range map[string]int{"[]": 0, "[ ]\n": 0} {
		if parts, _, err := litellm.Read(call.Payload{Body: []byte(body)}); err != nil || len(parts) != want {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// The latency of a stream is that of its end.
func TestLatency(t *testing.T) {
	for rest, want := range map[string]time.Duration{ // they end at 1795251195.4
		`"response_time":1.5,"startTime":1795251115.4,"stream":true`: 80 * time.Second,
		`"response_time":1.5,"startTime":1795251115.4`:               1500 * time.Millisecond,
		`"response_time":1.5,"startTime":null,"stream":true`:         1500 * time.Millisecond,
		`"response_time":1.5,"startTime":1795251200,"stream":true`:   1500 * time.Millisecond,
		`"startTime":1,"stream":true`:                                0,
	} {
		parts, _, err := litellm.Read(call.Payload{Body: fmt.Appendf(nil, frame, "completion", `"messages":"hello","response":"hi",`+rest)})
		if err != nil || parts[0].Latency.Round(time.Millisecond) != want {
			t.Errorf("%s: %v %v", rest, parts, err)
		}
	}
}

// What a tool gave says which call it answers, in the event too.
func TestToolCallID(t *testing.T) {
	for _, messages := range []string{
		`[{"role":"user","content":"hi"},{"role":"tool","tool_call_id":"call_7","content":"12C"}]`,
		`[{"role":"user","content":"hi"},{"type":"function_call_output","call_id":"call_7","output":"12C"}]`,
	} {
		parts, _, err := litellm.Read(call.Payload{Body: fmt.Appendf(nil, frame, "completion", `"response":"hi","messages":`+messages)})
		if err != nil {
			t.Fatal(err)
		}
		if in := decode(t, parts[0]); in.Query != "hi" || !strings.Contains(in.Messages, `"tool_call_id":"call_7"`) || strings.Count(in.Messages, "tool_call_id") != 1 {
			t.Error(in.Query, in.Messages)
		}
	}
}

// A stream whose provider told no usage was not free and did not take no tokens: nobody knows.
func TestNobodyCounted(t *testing.T) {
	for rest, want := range map[string]string{
		`"prompt_tokens":0,"completion_tokens":0,"response_cost":0.0`:                                           "- - -",
		`"prompt_tokens":5,"completion_tokens":0,"response_cost":0.0`:                                           "5 0 0",
		`"prompt_tokens":0,"completion_tokens":0,"response_cost":0.0,"cost_breakdown":{"total_cost":0.5}`:       "- - 0.5",
		`"prompt_tokens":-1,"completion_tokens":1e300,"response_cost":-1,"status":"failure","error_str":"oops"`: "- - -",
	} {
		parts, _, err := litellm.Read(call.Payload{Body: fmt.Appendf(nil, frame, "completion", `"messages":"hi",`+rest)})
		if err != nil {
			t.Fatal(err)
		}
		p, got := parts[0], ""
		for _, n := range p.Tokens {
			if n == nil {
				got += "- "
			} else {
				got += fmt.Sprint(*n, " ")
			}
		}
		if p.CostUSD == nil {
			got += "-"
		} else {
			got += fmt.Sprint(*p.CostUSD)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", rest, got, want)
		}
	}
}

// A blocked call joins what the guard saw of it.
func TestBlockedCallJoins(t *testing.T) {
	parts, _, _ := litellm.Read(call.Payload{Body: captured(t, "litellm-proxy-1.106.2-generic_api.json")})
	guard := call.Part{Kind: call.Content, Group: parts[0].Group, Key: parts[0].Key, Answers: []call.Message{call.Text("assistant", "what was blocked")}}
	for _, p := range []call.Part{call.Merge(parts[0], guard), call.Merge(guard, parts[0])} {
		if in := decode(t, p); in.Status != "blocked" || in.Response != "what was blocked" || in.Query == "" || in.ErrorMessage == "" || in.ID != call.ID("acme-hr", guard.Group, guard.Key) {
			t.Errorf("%+v", in)
		}
	}
}

// An attempt that failed and the one that was answered are one call, in either order.
func TestAttempts(t *testing.T) {
	failed := call.Part{Group: "g", Key: "g", Kind: call.Model, Status: "error", Error: "slow down", Messages: []call.Message{call.Text("user", "hi")}}
	answered := call.Part{Group: "g", Key: "g", Kind: call.Model, Status: "success", Done: true, Answers: []call.Message{call.Text("assistant", "hello")}}
	for _, p := range []call.Part{call.Merge(failed, answered), call.Merge(answered, failed)} {
		if in := decode(t, p); in.Status != "success" || in.ErrorMessage != "" || in.Response != "hello" || !p.Done {
			t.Errorf("%+v", in)
		}
	}
}

const frame = `{"call_type":%q,"litellm_call_id":"c","endTime":1795251195.4,%s}`

func TestShapes(t *testing.T) {
	deep := strings.Repeat("[", 200) + `"hidden"` + strings.Repeat("]", 200)
	for _, tc := range []struct{ name, kind, rest, want string }{ // want: prompt | response | flags
		{"chat", "acompletion", `"messages":[{"role":"user","content":"hi"}],"response":{"choices":[{"message":{"role":"assistant","content":"yes"}}]}`, "hi|yes|done"},
		{"a stream is told as a whole", "acompletion", `"stream":true,"messages":"hi","response":{"choices":[{"message":{"content":"yes"}}]}`, "hi|yes|done"},
		{"parts with an image", "completion", `"messages":[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"u"}}]}],"response":{"choices":[{"message":{"content":"yes"}}]}`, "look|yes|done"},
		{"text completion", "atext_completion", `"messages":["one","two"],"response":{"choices":[{"text":"yes"},{"text":"no"}]}`, "one\n\ntwo|yes\nno|done"},
		{"tool calls", "acompletion", `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"tool","content":"x"}],"response":{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"deed"}}]}}]}`, "hi\n\nx|f deed|done"},
		{"reasoning", "acompletion", `"messages":"hi","response":{"choices":[{"message":{"content":"yes","reasoning_content":"hm"}}]}`, "hi|yes\nhm|done"},
		{"reasoning alone", "acompletion", `"messages":"hi","response":{"choices":[{"message":{"content":null,"reasoning_content":"hm"}}]}`, "hi|hm|done"},
		{"reasoning in prompts is none of the answer's", "acompletion", `"messages":[{"role":"assistant","content":"hi","reasoning_content":"hm"}],"response":{"choices":[{"message":{"content":"yes","reasoning_content":"redacted-by-litellm"}}]}`, "hi|yes|done"},
		{"responses, reasoning", "aresponses", `"messages":"hi","response":{"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"yes"}]}]}`, "hi|yes\nhm|done"},
		{"a refusal", "acompletion", `"messages":"hi","response":{"choices":[{"message":{"content":null,"refusal":"never"}}]}`, "hi|never|done"},
		{"a refusal beside texts", "acompletion", `"messages":"hi","response":{"choices":[{"message":{"content":"","refusal":"never"}},{"message":{"content":"yes","refusal":"no"}},{"message":{"content":[{"type":"text","text":"a"}],"refusal":"b"}}]}`, "hi|never\nyes\nno\na\nb|done"},
		{"a voice", "acompletion", `"messages":"hi","response":{"choices":[{"message":{"content":null,"audio":{"id":"a","data":"QUJD","transcript":"yes"}}}]}`, "hi|yes|done"},
		{"thoughts in parts", "acompletion", `"messages":"hi","response":{"choices":[{"message":{"content":"yes","reasoning_details":[{"text":"hm"}],"thinking_blocks":[{"thinking":"hm"},{"thinking":"so"}]}}]}`, "hi|yes\nhm\nso|done"},
		{"what a tool gave", "aresponses", `"messages":"hi","response":{"output":[{"type":"mcp_call","name":"roll","arguments":"{}","output":"bad"},{"type":"message","content":[{"type":"output_text","text":"yes"}]}]}`, "hi|yes\nroll|done"},
		{"responses", "aresponses", `"messages":"hi","model_parameters":{"instructions":"be kind"},"response":{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"yes","annotations":[]}]}]}`, "be kind\n\nhi|yes|done"},
		{"items of responses", "responses", `"messages":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"function_call","name":"f"},{"type":"function_call_output","output":"x"}],"response":{"output":[{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}]}`, "hi\n\nx|a\nb|done"},
		{"Anthropic", "anthropic_messages", `"messages":[{"role":"user","content":"hi"}],"response":{"type":"message","role":"assistant","content":[{"type":"text","text":"yes"}]}`, "hi|yes|done"},
		{"Gemini", "agenerate_content", `"messages":{"contents":[{"role":"user","parts":[{"text":"hi"}]}]},"response":{"candidates":[{"content":{"role":"model","parts":[{"text":"yes"}]}}]}`, "hi|yes|done"},
		{"a provider's own route", "pass_through_endpoint", `"messages":[{"role":"user","content":"hi"}],"response":{"choices":[{"message":{"content":"yes"}}]}`, "hi|yes|done"},
		{"an answer of no known shape", "acompletion", `"messages":"hi","response":{"verdict":{"words":"yes"}}`, "hi|yes|done"},
		{"an answer that is a string", "acompletion", `"messages":"hi","response":"yes"`, "hi|yes|done"},
		{"no answer", "acompletion", `"messages":"hi","response":{}`, "hi||done"},
		{"withheld", "acompletion", `"messages":[{"role":"user","content":"redacted-by-litellm"}],"response":{"choices":[{"message":{"content":"redacted-by-litellm"}}]}`, "||withheld"},
		{"withheld, earlier form", "acompletion", `"messages":"redacted-by-litellm","response":{"text":"redacted-by-litellm"}`, "||withheld"},
		{"a text with the mark in it is a text", "acompletion", `"messages":"hi","response":{"choices":[{"message":{"content":[{"type":"text","text":"redacted-by-litellm"},{"type":"text","text":"bad"}]}}]}`, "hi|redacted-by-litellm\nbad|done"},
		{"no prompt", "acompletion", `"messages":"default-message-value","response":{"choices":[{"message":{"content":"yes"}}]}`, "|yes|done"},
		{"a text deep inside", "acompletion", `"messages":"hi","response":{"choices":[{"message":{"content":` + deep + `}}]}`, "hi|" + deep + "|done"},
		{"other types than they were", "acompletion", `"messages":[7,{"role":3,"content":{"text":9}},null],"response":{"choices":[{"message":{"content":5}}]},"model":{},"end_user":7,"startTime":"x","metadata":[],"prompt_tokens":"x"`, "7\n\n{\"text\":9}|5|done"},
		{"an embedding", "aembedding", `"messages":["a"],"response":{"object":"list","data":[{"embedding":[0.1]}]}`, "embedding"},
		{"an image", "aimage_generation", `"messages":"a cat","response":{"data":[{"url":"u"}]}`, "image"},
		{"speech", "aspeech", `"messages":"a","response":null`, "audio"},
		{"a moderation", "amoderation", `"messages":"a","response":{"results":[]}`, "moderation"},
		{"a rerank", "arerank", `"messages":"a","response":{"results":[]}`, "rerank"},
		{"a type that is not known", "acreate_skill", `"messages":[],"response":{"id":"x"}`, "other"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parts, ignored, err := litellm.Read(call.Payload{Body: fmt.Appendf(nil, frame, tc.kind, tc.rest), Received: noon})
			if err != nil {
				t.Fatal(err)
			}
			if len(parts) == 0 {
				if len(ignored) != 1 || ignored[tc.want] != 1 {
					t.Errorf("ignored %v", ignored)
				}
				return
			}
			in := decode(t, parts[0])
			got := in.Prompt + "|" + in.Response + "|"
			if parts[0].Done {
				got += "done"
			}
			if parts[0].Withheld {
				got += "withheld"
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestPeople(t *testing.T) {
	for _, tc := range []struct{ name, rest, want string }{ // want: tenant domain user email service session
		{"the caller's own", `"end_user":"u","session_id":"s","metadata":{"requester_metadata":{"tenant_id":"a","domain":"hr","application":"desk","team":"x"},"user_api_key_user_email":"e","user_api_key_alias":"k"}`, "a hr u  desk s"},
		{"a header", `"metadata":{"requester_custom_headers":{"X-Tenant":"a"}}`, "a     "},
		{"the owner of the key", `"metadata":{"user_api_key_user_id":"o","user_api_key_user_email":"e","user_api_key_alias":"k"}`, "  o e k "},
		{"the SDK's user", `"model_parameters":{"user":"u"}`, "  u   "},
	} {
		parts, _, err := litellm.Read(call.Payload{Tenant: "credential", Body: fmt.Appendf(nil, frame, "completion", `"messages":"hi",`+tc.rest)})
		if err != nil {
			t.Fatal(err)
		}
		p := parts[0]
		if got := strings.Join([]string{p.Claimed, p.Domain, p.UserID, p.UserEmail, p.Service, p.Session}, " "); got != tc.want || p.Tenant != "credential" {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestRefused(t *testing.T) {
	good := fmt.Sprintf(frame, "completion", `"messages":"hi"`)
	for _, tc := range []struct{ name, body, want string }{
		{"empty", " \n", "the body is empty"},
		{"no JSON", `{"call_type":"SECRET`, "no JSON at byte"},
		{"an array that breaks off", "[" + good + ",", "no JSON at byte"},
		{"more behind the array", "[" + good + "] SECRET", "behind the array"},
		{"a native event", good + "\n" + `{"id":"SECRET","messages":[]}`, "payload 2: is no StandardLoggingPayload"},
		{"no object", `["SECRET"]`, "payload 1: wants a JSON object"},
		{"null", `[null]`, "payload 1: wants a JSON object"},
		{"a name twice", `{"call_type":"completion","id":"c","messages":"SECRET","messages":"x"}`, "has a name twice"},
		{"not UTF-8", "{\"SECRET\":\"\xff\"}", "not UTF-8"},
		{"deeper than can be read", strings.Repeat("[", 20_000), "no JSON at byte"},
	} {
		_, _, err := litellm.Read(call.Payload{Body: []byte(tc.body)})
		if err == nil || audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// FuzzRead: whatever comes in is refused as invalid, or gives parts whose events are taken, but for their tenants,
// times and sizes.
func FuzzRead(f *testing.F) {
	// Small seeds: a capture takes the fuzzer longer to shorten than it has.
	for _, rest := range []string{`"messages":[{"role":"user","content":"hi"}],"response":{"choices":[{"message":{"content":"yes","tool_calls":[{"id":"1"}]}}]},"metadata":{"requester_metadata":{"tenant":"a","k":[1]}}`,
		`"messages":[{"content":[{"type":"text"}]}]`, `"response":{"output":[{"type":"message","content":"x"}]}`, `"messages":{"messages":[[]]},"response":[]`, `"status":"failure","response":{}`, `"messages":[{"tool_calls":[1]}]`} {
		f.Add(fmt.Appendf(nil, frame, "completion", rest))
	}
	d := ingest.NewDecoder(ingest.Options{DefaultTenant: "default", Limits: ingest.Limits{Message: 1 << 24}})
	f.Fuzz(func(t *testing.T, body []byte) {
		parts, _, err := litellm.Read(call.Payload{Body: body, Received: noon})
		if err != nil {
			if audit.KindOf(err) != audit.KindInvalid || len(parts) > 0 || errors.Unwrap(err) == nil {
				t.Fatal(err)
			}
			return
		}
		for _, p := range parts {
			value, err := p.Event("acme")
			if err != nil {
				t.Fatal(err)
			}
			_, faults := d.Check(sources.Record{Value: value, Time: noon}, audit.Origin{BrokerTime: noon})
			for _, f := range faults {
				switch f.Code {
				case ingest.EventTime, ingest.BadValue, ingest.DuplicateKey: // a time, a long name or number, a name twice inside a part
				default:
					t.Fatalf("%v\n%s", f, value)
				}
			}
		}
	})
}
