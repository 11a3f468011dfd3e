package ingest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

const uuid7 = "01a1fdb3-bfcb-7b1e-9d55-0c1f2a3b4c5d"

var origin = audit.Origin{Topic: "llm.interactions", Partition: 3, Offset: 7, BrokerTime: brokerTime}

func decodeWith(o Options, event string, headers ...string) (*audit.Interaction, *audit.Rejected) {
	rec := sources.Record{Offset: 7, Time: brokerTime, Key: []byte("k"), Value: []byte(event)}
	for i := 0; i+1 < len(headers); i += 2 {
		rec.Headers = append(rec.Headers, audit.Header{Key: headers[i], Value: []byte(headers[i+1])})
	}
	return NewDecoder(o).Decode(rec, origin)
}

func accepted(t *testing.T, event string, headers ...string) *audit.Interaction {
	t.Helper()
	in, rej := decodeWith(Options{DefaultTenant: "default"}, event, headers...)
	if rej != nil {
		t.Fatalf("rejected: %s: %s", rej.Reason, rej.Detail)
	}
	return in
}

func TestIdentity(t *testing.T) {
	derived := audit.DeriveID("llm.interactions", "3", "7", fmt.Sprint(brokerTime.UnixMilli())).String()
	for _, tc := range []struct{ name, event, header, id, given, flags string }{
		{"a UUID stays", `{"id":"` + uuid7 + `"}`, "", uuid7, "", ""},
		{"a UUID in capitals is the same", `{"id":"` + strings.ToUpper(uuid7) + `"}`, "", uuid7, "", ""},
		{"another id is derived with the tenant", `{"id":"o-1","tenant_id":"acme"}`, "", audit.DeriveID("acme", "o-1").String(), "o-1", "time"},
		{"no id", `{}`, "", derived, "", "id time"},
		{"no id but a header", `{}`, uuid7, uuid7, "", ""},
		{"the event's id stands above the header", `{"id":"o-1"}`, uuid7, audit.DeriveID("default", "o-1").String(), "o-1", "time"},
		{"a time of its own", `{"timestamp":"2026-11-21T10:43:00Z"}`, "", derived, "", "id"},
		{"a time far from the broker's", `{"timestamp":"2026-11-21T10:48:00.001Z"}`, "", derived, "", "id suspect"},
		{"five minutes are near", `{"timestamp":"2026-11-21T10:38:00Z"}`, "", derived, "", "id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var headers []string
			if tc.header != "" {
				headers = []string{HeaderEventID, tc.header}
			}
			in := accepted(t, tc.event, headers...)
			var flags []string
			for _, f := range []struct {
				on   bool
				name string
			}{{in.IDAssumed, "id"}, {in.TimeAssumed, "time"}, {in.TimeSuspect, "suspect"}} {
				if f.on {
					flags = append(flags, f.name)
				}
			}
			if got := strings.Join(flags, " "); in.ID.String() != tc.id || in.GivenID != tc.given || got != tc.flags {
				t.Errorf("id %s given %q flags %q", in.ID, in.GivenID, got)
			}
		})
	}
	id, _ := audit.ParseID(uuid7)
	want, _ := id.Time()
	if in := accepted(t, `{"id":"`+uuid7+`"}`); !in.Time.Equal(want) {
		t.Errorf("time %s, want that of the id, %s", in.Time, want)
	}
	for given, want := range map[string]string{
		"2026-11-21t05:00:00z":           "2026-11-21T05:00:00Z",
		"2026-11-20T23:59:60Z":           "2026-11-20T23:59:59.999Z",
		"2026-11-20T23:59:60.9Z":         "2026-11-20T23:59:59.999Z",
		"2026-11-20t15:59:60.123-08:00":  "2026-11-20T23:59:59.999Z",
		"2026-11-21T05:00:00.123456789Z": "2026-11-21T05:00:00.123Z",
	} {
		if in := accepted(t, `{"timestamp":"`+given+`"}`); in.Time.Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %s", given, in.Time)
		}
	}
	if in := accepted(t, `{"timestamp":"2026-11-21T12:43:00.1239+02:00"}`); !in.Time.Equal(brokerTime.Add(123 * time.Millisecond)) {
		t.Errorf("time %s is not in whole milliseconds", in.Time)
	}
	if _, rej := decodeWith(Options{DefaultTenant: "default"}, `{}`, HeaderEventID, "x"); rej == nil || rej.Reason != BadValue {
		t.Errorf("a bad id header was taken")
	}
}

// A replay carries the broker time of the first delivery: it stands in for the broker's own time, and
// only there.
func TestTheTimeOfAReplay(t *testing.T) {
	const first = "2026-11-19T23:59:59.250Z"
	want, _ := time.Parse(time.RFC3339, first)
	if in := accepted(t, `{}`, HeaderEventTime, first); !in.Time.Equal(want) || !in.TimeAssumed || in.TimeSuspect {
		t.Errorf("time %s, assumed %t, suspect %t", in.Time, in.TimeAssumed, in.TimeSuspect)
	}
	if in := accepted(t, `{"timestamp":"2026-11-21T10:43:00Z"}`, HeaderEventTime, first); in.Time.Equal(want) || in.TimeAssumed {
		t.Errorf("the header stands above the event's own time")
	}
	plain, again := accepted(t, `{"response":"x"}`), accepted(t, `{"response":"x"}`, HeaderEventTime, first)
	if plain.Digest != again.Digest {
		t.Errorf("the header changes the content's digest")
	}
	for bad, reason := range map[string]string{"yesterday": BadValue, "2026-11-19T3:00:00Z": BadValue, "1999-12-31T00:00:00Z": EventTime, "2027-01-01T00:00:00Z": EventTime} {
		if _, rej := decodeWith(Options{DefaultTenant: "default"}, `{}`, HeaderEventTime, bad); rej == nil || rej.Reason != reason {
			t.Errorf("%s: %+v, want %s", bad, rej, reason)
		}
	}
}

// A mark of its encoding before an event of a file is passed over.
func TestByteOrderMark(t *testing.T) {
	if in, rej := decodeWith(Options{DefaultTenant: "d"}, "\xef\xbb\xbf"+`{"response":"x"}`); rej != nil || in.Response != "x" {
		t.Errorf("%+v", rej)
	}
	if _, rej := decodeWith(Options{DefaultTenant: "d"}, "\xef\xbb\xbf\xef\xbb\xbf"+`{"response":"x"}`); rej == nil || rej.Reason != BadJSON {
		t.Errorf("two: %+v", rej)
	}
}

func TestTenant(t *testing.T) {
	for _, tc := range []struct{ name, def, bound, header, payload, want string }{
		{"header", "d", "", "h", "", "h"},
		{"header equal to payload", "d", "", "h", "h", "h"},
		{"header differs from payload", "d", "", "h", "p", "tenant_mismatch h"},
		{"payload", "d", "", "", "p", "p"},
		{"default", "d", "", "", "", "d"},
		{"none", "", "", "", "", "tenant_missing "},
		{"bad header", "d", "", "a b", "p", "bad_value "},
		{"bad payload under a header", "d", "", "h", "a b", "bad_value h"},
		{"bound", "d", "b", "", "", "b"},
		{"bound, header and payload agree", "d", "b", "b", "b", "b"},
		{"bound, header differs", "d", "b", "h", "", "tenant_mismatch b"},
		{"bound, payload differs", "d", "b", "", "p", "tenant_mismatch b"},
		{"bound, both differ", "", "b", "h", "h", "tenant_mismatch b"},
		{"bound, bad header", "d", "b", "a b", "", "bad_value b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var headers []string
			if tc.header != "" {
				headers = []string{HeaderTenant, tc.header}
			}
			in, rej := decodeWith(Options{DefaultTenant: tc.def, Tenant: tc.bound}, `{"tenant_id":"`+tc.payload+`"}`, headers...)
			got := ""
			if in != nil {
				got = in.Tenant
			} else {
				got = rej.Reason + " " + rej.Tenant
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if _, rej := decodeWith(Options{}, `{}`, HeaderTenant, "a", HeaderTenant, "b"); rej == nil || rej.Reason != TenantMismatch {
		t.Errorf("two tenants in headers: %+v", rej)
	}
	if in, rej := decodeWith(Options{}, `{}`, HeaderTenant, "a", HeaderTenant, "a"); rej != nil || in.Tenant != "a" {
		t.Errorf("one tenant twice: %+v", rej)
	}
	_, rej := decodeWith(Options{}, `{`, HeaderTenant, "acme")
	if rej == nil || rej.Tenant != "acme" {
		t.Error("a broken event is not counted for the header's tenant")
	}
}

func TestTrace(t *testing.T) {
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const other = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01"
	const parent = "00-" + traceID + "-" + spanID + "-01"
	for _, tc := range []struct{ name, event, header, trace, span string }{
		{"given", `{"trace_id":"` + traceID + `","span_id":"` + spanID + `"}`, other, traceID, spanID},
		{"as a UUID", `{"trace_id":"4BF92F35-77B3-4DA6-A3CE-929D0E0E4736"}`, "", traceID, ""},
		{"traceparent of the event", `{"traceparent":"` + parent + `"}`, other, traceID, spanID},
		{"traceparent header", `{}`, parent, traceID, spanID},
		{"span of another trace is not taken", `{"trace_id":"` + traceID + `"}`, other, traceID, ""},
		{"broken header", `{"id":"` + uuid7 + `"}`, "zz", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := accepted(t, tc.event, HeaderTraceparent, tc.header)
			if tc.trace != "" && in.TraceID != tc.trace || in.SpanID != tc.span || !audit.ValidTraceID(in.TraceID) {
				t.Errorf("trace %s span %s", in.TraceID, in.SpanID)
			}
		})
	}
	if a, b := accepted(t, `{"id":"`+uuid7+`"}`), accepted(t, `{"id":"`+uuid7+`","model":"m"}`); a.TraceID != b.TraceID {
		t.Error("two deliveries of one id have different traces")
	}
}

func TestTexts(t *testing.T) {
	for _, tc := range []struct{ name, event, prompt, query, response string }{
		{"plain", `{"prompt":"p","response":"r"}`, "p", "p", "r"},
		{"seed names", `{"original_query":"p","llm_response":"r"}`, "p", "p", "r"},
		{"messages", `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"tool","content":"d"}]}`, "s\n\na\n\nb\n\nc\n\nd", "c", ""},
		{"no user", `{"messages":[{"role":"system","content":"s"}]}`, "s", "", ""},
		{"empty contents leave no blank lines", `{"messages":[{"role":"user","content":""},{"role":"assistant","content":null},{"role":"user","content":"c"},{"role":"user","content":""}]}`, "c", "", ""},
		{"parts", `{"messages":[{"role":"user","content":["a",{"type":"image_url","image_url":{"url":"u"}},{"type":"input_text","text":"b"}]}]}`, "a\nb", "a\nb", ""},
		{"query beside messages", `{"original_query":"q","messages":[{"role":"user","content":"context and q"}]}`, "context and q", "q", ""},
		{"chat completion", `{"response":{"id":"x","model":"m","choices":[{"message":{"role":"assistant","content":"a"}},{"message":{"content":"b"}}]}}`, "", "", "a\n\nb"},
		{"completion", `{"response":{"choices":[{"text":"a"}]}}`, "", "", "a"},
		{"refusal", `{"response":{"choices":[{"message":{"content":null,"refusal":"no"}}]}}`, "", "", "no"},
		{"responses API", `{"response":{"output":[{"type":"reasoning","summary":[]},{"type":"message","content":[{"type":"output_text","text":"a"}]}]}}`, "", "", "a"},
		{"responses API text", `{"response":{"output_text":"a","text":{"format":{"type":"text"}}}}`, "", "", "a"},
		{"Anthropic", `{"response":{"type":"message","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`, "", "", "a\nb"},
		{"Gemini", `{"response":{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"}}]}}`, "", "", "a"},
		{"content", `{"response":{"content":"a"}}`, "", "", "a"},
		{"message", `{"response":{"message":{"content":"a"}}}`, "", "", "a"},
		{"output", `{"response":{"output":"a"}}`, "", "", "a"},
		{"parts as an array", `{"response":[{"type":"text","text":"a"},"b"]}`, "", "", "a\nb"},
		{"a tool call", `{"response":{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}}`, "", "", "f"},
		{"a tool call beside text", `{"response":{"choices":[{"message":{"content":"Let me check.","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"r\":\"J\\u00fcrgen\",\"n\":[5000,true,null]}"}},{"id":"d","type":"custom","custom":{"name":"g","input":"x {"}}]}},{"message":{"content":"b"}}]}}`, "", "", "Let me check.\n\nb\nf r Jürgen n 5000 true\ng x {"},
		{"a function call", `{"response":{"role":"assistant","content":"a","function_call":{"arguments":{"r":"x"},"name":"f"}}}`, "", "", "a\nf r x"},
		{"Anthropic, tools", `{"response":{"type":"message","content":[{"type":"tool_use","id":"c","name":"f","input":{"r":"x"}},{"type":"text","text":"a"}]}}`, "", "", "a\nf r x"},
		{"Anthropic, tools alone", `{"response":{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"r":"x"}}]}}`, "", "", "f r x"},
		{"responses API, tools", `{"response":{"output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"r\":\"x\"}"},{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"code_interpreter_call","id":"i","code":"print(1)"},{"type":"computer_call","id":"i","actions":["y"]}],"tools":[{"type":"function","name":"f","parameters":{"r":"z"}}]}}`, "", "", "a\nf r x\ncode_interpreter_call print(1)\ncomputer_call y"},
		{"responses API text, tools", `{"response":{"output_text":"a","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","name":"f","arguments":"{}"}]}}`, "", "", "a\nf"},
		{"Gemini, tools", `{"response":{"candidates":[{"content":{"parts":[{"text":"a"},{"functionCall":{"name":"f","args":{"r":"x"}}}],"role":"model"}}]}}`, "", "", "a\nf r x"},
		{"OpenTelemetry, tools", `{"response":[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_call","id":"7","name":"f","arguments":{"r":"x"}}]}]}`, "", "", "a\nf r x"},
		{"a call within a call", `{"response":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"tool\":\"sh\",\"arguments\":\"{\\\"cmd\\\":\\\"cd /tmp\\\\nrm -rf /\\\"}\"}"}}]}}`, "", "", "f tool sh arguments cmd cd /tmp\nrm -rf /"},
		{"arguments that are no JSON", `{"response":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":\"b\\nc \\u00fc \\ud83d\\ude00\",}"}}]}}`, "", "", "f a b c ü 😀"},
		{"thoughts in parts", `{"response":{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}],"reasoning_details":[{"type":"reasoning.text","text":"so"},{"type":"reasoning.summary","summary":"then"}],"thinking_blocks":[{"type":"thinking","thinking":"well"}]}}]}}`, "", "", "a\nso\nthen\nwell\nhm"},
		{"calls that were cut", `{"response":[{"role":"assistant","content":"a","tool_calls":["[{\"function\":{\"name\":\"f"]}]}`, "", "", "a\n[{\"function\":{\"name\":\"f"},
		{"calls of no known shape", `{"response":{"content":"a","tool_calls":[{"id":"7","tool":"f","with":"x"},7]}}`, "", "", "a\nf x\n7"},
		{"a part of no known shape beside a tool call", `{"response":{"content":[{"type":"json","json":{"r":"y"}},{"type":"tool_use","name":"f","input":{"r":"x"}}]}}`, "", "", "json\ny\nf r x"},
		{"reasoning", `{"response":{"choices":[{"message":{"content":"a","reasoning":"hm","reasoning_content":"hm","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}},{"message":{"reasoning_content":"hm","content":"b"}}]}}`, "", "", "a\n\nb\nhm\nhm\nf"},
		{"reasoning alone", `{"response":{"choices":[{"message":{"role":"assistant","content":null,"reasoning_content":"hm"}}]}}`, "", "", "hm"},
		{"Anthropic, reasoning", `{"response":{"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"}]}}`, "", "", "a\nhm"},
		{"Anthropic, reasoning and tools", `{"response":{"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","name":"f","input":{}}]}}`, "", "", "hm\nf"},
		{"responses API, reasoning", `{"response":{"reasoning":{"effort":"low","summary":"auto"},"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}]},{"type":"message","content":[{"type":"output_text","text":"a"}]}]}}`, "", "", "a\nhm\nso"},
		{"OpenTelemetry, reasoning", `{"response":[{"role":"assistant","content":[{"type":"reasoning","reasoning":"hm"},{"type":"text","text":"a"}]}]}`, "", "", "a\nhm"},
		{"a refusal beside a text", `{"response":{"choices":[{"message":{"content":"Hi","refusal":"no"}}]}}`, "", "", "Hi\nno"},
		{"a voice beside a text", `{"response":{"choices":[{"message":{"content":"Hi","audio":{"id":"a","transcript":"no"}}},{"message":{"content":"Hi","audio":{"transcript":"Hi"}}}]}}`, "", "", "Hi\nno\n\nHi"},
		{"a member of one's own beside a text", `{"response":{"choices":[{"message":{"role":"assistant","content":"Hi","musings":["hm",{"text":"so"}],"name":"x","images":[{"title":"y"}]}}]}}`, "", "", "Hi\nhm\nso"},
		{"what a tool gave", `{"response":{"object":"response","output":[{"type":"mcp_call","name":"roll","arguments":"{\"d\":1}","output":"a"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}]}}`, "", "", "Hi\nroll d 1"},
		{"a stream of a text and a refusal", `{"response":[{"choices":[{"delta":{"content":"H"}}]},{"choices":[{"delta":{"content":"i"}}]},{"choices":[{"delta":{"refusal":"n"}}]},{"choices":[{"delta":{"refusal":"o","musings":"hm"}}]}]}`, "", "", "Hi\nno\nhm"},
		{"another shape", `{"response":{"answer":{"de":"a"},"n":1,"also":["b",""]}}`, "", "", "a\nb"},
		{"escapes", `{"prompt":"\u00e9\ud83d\ude00\/\b\f\n\r\t\"\\","response":"\ud800x\udc00\ud800\u0041"}`, "é😀/\b\f\n\r\t\"\\", "é😀/\b\f\n\r\t\"\\", "\ufffdx\ufffd\ufffdA"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := accepted(t, tc.event)
			if in.Prompt != tc.prompt || in.Query != tc.query || in.Response != tc.response {
				t.Errorf("prompt %q query %q response %q", in.Prompt, in.Query, in.Response)
			}
			if in.WithoutContent != (tc.prompt == "" && tc.response == "") {
				t.Error("without content is wrong")
			}
		})
	}
	in := accepted(t, `{"metadata":{"b":[1.50, -0, 1e2],"a":"<\u000b\/é>"},"messages":[{"role":"user","content":"x"}],"response":{"z":1,"text":"t"}}`)
	if in.Metadata != `{"a":"<\u000b/é>","b":[1.50,-0,1e2]}` || in.Messages != `[{"content":"x","role":"user"}]` || in.ResponseJSON != `{"text":"t","z":1}` {
		t.Errorf("not canonical: %s %s %s", in.Metadata, in.Messages, in.ResponseJSON)
	}
}

func TestLimits(t *testing.T) {
	o := Options{DefaultTenant: "d", Limits: Limits{Message: 4096, Text: 64, Depth: 4}}
	in, rej := decodeWith(o, `{"response":"`+strings.Repeat("é", 40)+`","metadata":{"a":"`+strings.Repeat("b", 70)+`"}}`)
	if rej != nil || !in.Truncated || in.Stored(in.Response) != strings.Repeat("é", 32) || in.Response != strings.Repeat("é", 40) || in.ResponseChars != 40 || in.Metadata != `{"truncated":true,"bytes":78}` {
		t.Errorf("cut wrongly: %+v %+v", in, rej)
	}
	if in, rej = decodeWith(o, `{"response":"a`+strings.Repeat("é", 40)+`"}`); rej != nil || in.Stored(in.Response) != "a"+strings.Repeat("é", 31) {
		t.Errorf("cut inside a code point")
	}
	whole, _ := decodeWith(Options{DefaultTenant: "d"}, `{"response":"a`+strings.Repeat("é", 40)+`"}`)
	if whole.Digest != in.Digest || whole.Truncated {
		t.Error("the digest is not of the whole text")
	}
	for _, tc := range []struct{ event, want string }{
		{`{"response":"` + strings.Repeat("x", 4096) + `"}`, TooLarge},
		{`{"metadata":{"a":[{"b":1}]}}`, ""},
		{`{"metadata":{"a":[{"b":[]}]}}`, TooDeep},
		{"{\"response\":\"\xff\"}", InvalidUTF8},
		{`{"response":"x"`, BadJSON},
		{``, BadJSON},
	} {
		got := ""
		if _, rej := decodeWith(o, tc.event); rej != nil {
			got = rej.Reason
		}
		if got != tc.want {
			t.Errorf("%.40s: %q, want %q", tc.event, got, tc.want)
		}
	}
	if _, rej := decodeString(strings.Repeat(`{"metadata":`, 40) + "1" + strings.Repeat("}", 40)); rej == nil || rej.Reason != TooDeep {
		t.Error("40 levels were taken")
	}
	if _, rej := decodeString(strings.Repeat("[", 1<<20)); rej == nil || rej.Reason != TooDeep {
		t.Error("a million brackets were taken")
	}
}

// TestAllFaultsAtOnce: every field at fault is named, no text of the event is.
func TestAllFaultsAtOnce(t *testing.T) {
	_, rej := decodeString(`{"respose":"SECRET1","prompt_tokens":"SECRET2","status":"SECRET3","timestamp":"SECRET4","trace_id":"SECRET5","model":["SECRET6"],"tenant_id":"SECRET 7","messages":[{"role":"user"},"SECRET8"]}`)
	if rej == nil || rej.Reason != UnknownField {
		t.Fatalf("%+v", rej)
	}
	for _, want := range []string{"respose: is not a field of the event; put your own fields under metadata (did you mean response?)",
		"prompt_tokens: wants a number", "status:", "timestamp: wants an RFC 3339 time", "trace_id:", "model: wants a string", "tenant_id:", "messages[0].content:", "messages[1]:"} {
		if !strings.Contains(rej.Detail, want) {
			t.Errorf("detail does not say %q: %s", want, rej.Detail)
		}
	}
	if strings.Contains(rej.Detail, "SECRET") {
		t.Errorf("detail holds the event's text: %s", rej.Detail)
	}
	for event, want := range map[string]string{ // keys are texts as often as not
		`{"tenant_id":"acme","response":{"SECRET sentence":1,"SECRET sentence":2,"SECRET":3,"SECRET":4}}`: "response: holds an object that has a name twice",
		`{"metadata":{"SECRET":[{"SECRET":1,"SECRET":2}]}}`:                                               "metadata: holds an object that has a name twice",
		`{"SECRET sentence":1}`:               "(a name of 15 characters): is not a field of the event; put your own fields under metadata",
		`{"mary.SECRET@example.com":1}`:       "(a name of 23 characters): is not a field of the event; put your own fields under metadata",
		`{"response ":"SECRET"}`:              "(a name of 9 characters): is not a field of the event; put your own fields under metadata (did you mean response?)",
		`{"template":{"SECRET of Zürich":1}}`: "template.(a name of 16 characters): is not a field of template, which has id and version; put your own fields under metadata",
		`{"specversion":"1.0","SECRET words":1,"type":"t","source":"s","id":"i","data":{}}`: "(a name of 12 characters): is no name of an attribute, which has lower-case letters and digits; fields of the event stand in data",
	} {
		if _, rej := decodeString(event); rej == nil || rej.Detail != want {
			t.Errorf("%s: %+v, want %s", event, rej, want)
		}
	}
	many := map[string]int{}
	for i := range 200 {
		many[fmt.Sprintf("field_%d", i)] = i
	}
	b, _ := json.Marshal(many)
	if _, rej = decodeString(string(b)); len(rej.Detail) > maxDetail || !strings.HasSuffix(rej.Detail, "; and more") {
		t.Errorf("%d bytes: %s", len(rej.Detail), rej.Detail)
	}
	if rej.Origin.Offset != 7 || string(rej.Value) != string(b) {
		t.Error("the rejection does not hold its record")
	}
}

// Who could send a text only in part says so beside the event, which stays what it is.
func TestTruncatedBefore(t *testing.T) {
	whole, cut := accepted(t, `{"response":"x"}`), accepted(t, `{"response":"x"}`, HeaderTruncated, "true")
	if whole.Truncated || !cut.Truncated || whole.Digest != cut.Digest || cut.Stored(cut.Response) != "x" {
		t.Errorf("%v %v", whole.Truncated, cut.Truncated)
	}
}

// TestDigest pins the digest: stored keys hang on it. The vectors were computed by another program
// from the description of the encoding.
func TestDigest(t *testing.T) {
	full := `{"id":"` + uuid7 + `","tenant_id":"acme","timestamp":"2026-11-21T10:43:00.123Z","application":"a","domain":"hr","user_id":"u",
		"query_context":{"b":1,"a":2},"messages":[{"role":"user","content":"p"}],"response":{"choices":[{"message":{"content":"r"}}]},"provider":"openai","model":"m",
		"prompt_tokens":1,"response_tokens":2,"latency_ms":3,"estimated_cost_usd":0.5,"contained_pii":true,"template":{"id":"t","version":"1"},"metadata":{"k":"v"}}`
	in := accepted(t, full)
	for _, tc := range []struct{ name, event, want string }{
		{"empty", `{"tenant_id":"acme"}`, "eef565e377f4e5d2bc126fe0c33ca79437873080adf36772328e11ad73917445"},
		{"full", full, "8c4f6133aba5e3e44d50b8f000f928e162388cb161e4a04d6f06da96493f7ed2"},
	} {
		if got := accepted(t, tc.event).Digest; hex.EncodeToString(got[:]) != tc.want {
			t.Errorf("%s: %x", tc.name, got)
		}
	}
	same := strings.NewReplacer(uuid7, "o-1", `"b":1,"a":2`, `"a": 2, "b": 1`, `"response"`, `"llm_response"`).Replace(full)
	if accepted(t, same, HeaderTraceparent, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").Digest != in.Digest {
		t.Error("id, trace, order or alias change the digest")
	}
	seen := map[[32]byte]string{in.Digest: "full"}
	for _, change := range []string{`"acme"`, `"a",`, `00.123Z`, `"hr"`, `"u"`, `"b":1`, `"p"`, `"r"`, `"openai"`, `"m"`, `_tokens":1`, `_tokens":2`, `_ms":3`, `usd":0.5`, `"t"`, `"1"`, `"v"`, `pii":true`} {
		other := change[:len(change)-2] + "8" + change[len(change)-1:]
		switch change {
		case `"a",`:
			other = `"b",`
		case `pii":true`:
			other = `pii":false`
		case `"hr"`:
			other = `"finance"`
		case `"b":1`, `_tokens":1`, `_tokens":2`, `_ms":3`, `usd":0.5`:
			other = change[:len(change)-1] + "8"
		}
		if strings.Count(full, change) == 0 {
			t.Fatalf("%s is not in the event", change)
		}
		d := accepted(t, strings.Replace(full, change, other, 1)).Digest
		if by, dup := seen[d]; dup {
			t.Errorf("%s: same digest as %s", change, by)
		}
		seen[d] = change
	}
}

func TestDefaults(t *testing.T) {
	in := accepted(t, `{"response":"x","domain":"HR","estimated_cost_usd":0.00031,"latency_ms":12.5}`)
	if in.Domain != audit.HR || in.Provider != "unknown" || in.Model != "unknown" || !in.Incomplete || in.PromptTokens != audit.Unknown ||
		in.CostMicroUSD != 310 || in.LatencyMS != 13 || in.Status != "success" || in.ContainedPII != -1 {
		t.Errorf("%+v", in)
	}
	in = accepted(t, `{"domain":"astrology","model":"m","provider":"p","error_message":"timeout","contained_pii":false}`)
	if in.Domain != audit.General || in.DomainGiven != "astrology" || in.Incomplete || in.Status != "error" || in.ContainedPII != 0 || !in.WithoutContent {
		t.Errorf("%+v", in)
	}
}

func TestStamp(t *testing.T) {
	d := NewDecoder(Options{DefaultTenant: "d"})
	id := audit.NewID(brokerTime)
	for _, tc := range []struct{ event, want string }{
		{`{}`, `{"id":"ID"}`},
		{`{ "response": "x", "id": null, "timestamp": "" }`, `{"id":"ID","response":"x","timestamp":""}`},
		{`{"id":"` + uuid7 + `"}`, `{"id":"` + uuid7 + `"}`},
		{`{"id":"o-1"}`, `{"id":"o-1"}`},
		{`{"timestamp":"2026-11-21T10:42:00Z"}`, `{"id":"ID","timestamp":"2026-11-21T10:42:00Z"}`},
	} {
		got, faults := d.Stamp([]byte(tc.event), id)
		if want := strings.ReplaceAll(tc.want, "ID", id.String()); string(got) != want || faults != nil {
			t.Errorf("%s: %s, want %s (%v)", tc.event, got, want, faults)
		}
	}
	if _, faults := d.Stamp([]byte(`{"a":`), id); len(faults) != 1 || faults[0].Code != BadJSON {
		t.Errorf("%v", faults)
	}
}

func TestConcurrentUse(t *testing.T) {
	d := NewDecoder(Options{})
	rec := sources.Record{Value: benchEvent()}
	want, _ := d.Decode(rec, origin)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if got, _ := d.Decode(rec, origin); got.Digest != want.Digest || got.Messages != want.Messages {
					t.Error("another result")
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestOptionsValidate(t *testing.T) {
	if err := (Options{DefaultTenant: "default"}).Validate(); err != nil {
		t.Error(err)
	}
	err := Options{DefaultTenant: "a b", Limits: Limits{Text: -1, Depth: 400}}.Validate()
	for _, want := range []string{"tenant.default: ", "ingest.text_bytes: -1 is below 0", "ingest.depth: 400 is above 300"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestMembers(t *testing.T) {
	for _, tc := range []struct{ body, want, code string }{
		{` { "a" : [1, 2] ,"b":null,"é\n":"x" } `, `a=[1, 2] b=null é\n="x"`, ""},
		{`{}`, "", ""},
		{`{"a":1,"a":2}`, "", DuplicateKey},
		{`[1]`, "", WrongType},
		{`{"a":[[1]]}`, "", TooDeep},
		{`{"a":1}x`, "", BadJSON},
		{"{\"a\":\"\xff\"}", "", InvalidUTF8},
	} {
		ms, fault := Members([]byte(tc.body), 2)
		if fault != nil && fault.Code != tc.code || fault == nil && tc.code != "" {
			t.Errorf("%s: %v", tc.body, fault)
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(ms)) {
			got = append(got, name+"="+string(ms[name]))
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s: %s", tc.body, s)
		}
	}
}
