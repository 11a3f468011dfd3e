package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// checkInvariants holds what every accepted interaction promises.
func checkInvariants(t *testing.T, in *audit.Interaction) {
	t.Helper()
	text := DefaultLimits().Text
	for name, bad := range map[string]bool{
		"id":      in.ID.IsZero(),
		"tenant":  !ValidTenant(in.Tenant),
		"trace":   !audit.ValidTraceID(in.TraceID),
		"span":    in.SpanID != "" && !audit.ValidSpanID(in.SpanID),
		"domain":  !in.Domain.Known(),
		"time":    in.Time.Before(earliest) || in.Time.Nanosecond()%1e6 != 0 || in.Time.Location().String() != "UTC",
		"status":  in.Status != "success" && in.Status != "error" && in.Status != "blocked",
		"model":   in.Model == "" || in.Provider == "",
		"numbers": in.PromptTokens < -1 || in.ResponseTokens < -1 || in.LatencyMS < -1 || in.CostMicroUSD < -1,
		"digest":  in.Digest == [32]byte{},
		"content": in.WithoutContent != (in.Prompt == "" && in.Response == ""),
		"chars":   (utf8.RuneCountInString(in.Prompt) != int(in.PromptChars) || utf8.RuneCountInString(in.Response) != int(in.ResponseChars)),
	} {
		if bad {
			t.Errorf("%s is wrong: %+v", name, in)
		}
	}
	for _, s := range []string{in.Stored(in.Prompt), in.Query, in.Stored(in.Response), in.SanitizedPrompt, in.ErrorMessage, in.UserID} {
		if len(s) > text || !utf8.ValidString(s) {
			t.Error("a text is too long or not UTF-8")
		}
	}
	for _, s := range []string{in.QueryContext, in.Messages, in.ResponseJSON, in.RedactionSummary, in.RetrievedContext, in.GroupAttributes, in.Metadata} {
		if s != "" && (len(s) > text || !json.Valid([]byte(s))) {
			t.Error("a JSON field is too long or not JSON")
		}
	}
}

// oracle tells how encoding/json sees b: depth of nesting and duplicate names, both as we count them.
func oracle(b []byte) (deep, duplicate bool, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	type level struct {
		names map[string]bool // nil for an array
		value bool            // a value comes next
	}
	var stack []level
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return deep, duplicate, nil
		}
		if err != nil {
			return deep, duplicate, err
		}
		top := len(stack) - 1
		name, isString := tok.(string)
		if top >= 0 && stack[top].names != nil && !stack[top].value && isString {
			duplicate = duplicate || stack[top].names[name]
			stack[top].names[name], stack[top].value = true, true
			continue
		}
		if top >= 0 {
			stack[top].value = false
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, level{names: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, level{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
		}
		deep = deep || len(stack) > DefaultLimits().Depth
	}
}

// FuzzDecode: never panics; what is accepted keeps the invariants, decodes the same way again and is
// an object to encoding/json too; what is refused as JSON is none there either.
func FuzzDecode(f *testing.F) {
	for _, tc := range cases {
		f.Add([]byte(tc.event))
	}
	for _, s := range []string{
		`{"metadata":{"a":"\ud83d\ude00\ud800x\udc00\ud800\ud800\udc00"}}`, "{\"response\":\"a\x01\\n\"}", "{\"response\":\"a\xff\"}",
		strings.Repeat(`{"metadata":`, 40) + "1" + strings.Repeat("}", 40), `{"metadata":{"n":[-0,1e400,0.10,1E+2]}}`, `{"a":01}`, `{"a":+1}`, `{"a":NaN}`, `{"a":.5}`, `{"a":1.}`,
		`{"response":{"content":"a","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":\"\\ud800\",\"\\udc00\":[1e999,\"\\u0000\"]}"}}]}}`, `{"response":{"content":[{"type":"x_call"}],"tool_calls":[[],"[\"a\"]"]}}`,
		`{"response":[{"type":"content_block_start","index":-1,"content_block":{"type":"tool_use","name":"f"}},{"type":"content_block_delta","index":-1,"delta":{"partial_json":"{"}}]}`, `{"response":[{"candidates":[{"index":9e9,"content":{"parts":[{"text":1},{"functionCall":{"args":[]}}]}}]},{"choices":[{"delta":{"content":[{"text":"a"}],"x":[{"y":"z"}]}}]}]}`,
		`{"response":{"lc":1,"kwargs":{"lc":1,"kwargs":{"role":"a","content":{"error":{"message":"m"}}}}}}`, `{"response":{"done":1,"response":{"done":1,"response":[]}}}`,
		`{"response":"x"}{}`, `{"response":"x",}`, `{"response":"\u12"}`, `{"response":"\x"}`, "\ufeff{}", "", "null", "{\"response\":\"\x7f\u2028\"}",
	} {
		f.Add([]byte(s))
	}
	d := NewDecoder(Options{DefaultTenant: "default"})
	o := audit.Origin{Topic: "llm.interactions", BrokerTime: brokerTime}
	f.Fuzz(func(t *testing.T, b []byte) {
		kept := bytes.Clone(b)
		in, rej := d.Decode(sources.Record{Value: b}, o)
		if (in == nil) == (rej == nil) {
			t.Fatal("want exactly one of interaction and rejection")
		}
		if !bytes.Equal(b, kept) {
			t.Fatal("the record's bytes were changed")
		}
		differential(t, b, in, rej)
		if rej != nil {
			if rej.Detail == "" || len(rej.Detail) > maxDetail || !utf8.ValidString(rej.Detail) || !bytes.Equal(rej.Value, b) {
				t.Fatalf("bad rejection: %q", rej.Detail)
			}
			return
		}
		clear(b) // an interaction holds none of the record's bytes
		checkInvariants(t, in)
		if again, _ := d.Decode(sources.Record{Value: kept}, o); !reflect.DeepEqual(in, again) {
			t.Fatalf("decoded twice, two results:\n%+v\n%+v", in, again)
		}
	})
}

func differential(t *testing.T, b []byte, in *audit.Interaction, rej *audit.Rejected) {
	b = bytes.TrimPrefix(b, Mark)
	valid := json.Valid(b) && utf8.Valid(b)
	if !valid {
		if in != nil || rej.Reason != BadJSON && rej.Reason != InvalidUTF8 && rej.Reason != TooDeep {
			t.Fatalf("encoding/json or UTF-8 refuses what was taken: %q", b)
		}
		return
	}
	var names map[string]json.RawMessage
	_ = json.Unmarshal(b, &names)
	if _, is := names["specversion"]; is || names["call_type"] != nil {
		return // another format, which FuzzForeign is about
	}
	deep, duplicate, err := oracle(b)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case in != nil && (deep || duplicate):
		t.Fatalf("deep %v, duplicate %v, yet taken: %q", deep, duplicate, b)
	case in != nil:
		sameJSON(t, b, in)
	case rej.Reason == BadJSON || rej.Reason == InvalidUTF8:
		t.Fatalf("%s (%s), yet encoding/json takes it: %q", rej.Reason, rej.Detail, b)
	case (rej.Reason == TooDeep) != deep:
		t.Fatalf("reason %s, deep %v: %q", rej.Reason, deep, b)
	case rej.Reason == DuplicateKey && !duplicate:
		t.Fatalf("no duplicate: %q", b)
	}
}

// sameJSON compares what we kept with what encoding/json reads.
func sameJSON(t *testing.T, b []byte, in *audit.Interaction) {
	var v struct {
		Response, Prompt                     any
		Metadata                             any
		QueryContext                         any `json:"query_context"`
		Messages                             any
		ErrorMessage                         *string `json:"error_message"`
		UserID                               *string `json:"user_id"`
		LLMResponse, OriginalQuery, LLMModel any
	}
	if numeric(b, &v) != nil {
		return // encoding/json folds the case of names and may meet another type
	}
	compare := func(name string, want any, got string) {
		if want == nil || strings.HasPrefix(got, `{"truncated"`) {
			return
		}
		var have any
		if err := numeric([]byte(got), &have); err != nil || !reflect.DeepEqual(want, have) {
			t.Fatalf("%s: %v became %q", name, want, got)
		}
	}
	compare("metadata", v.Metadata, in.Metadata)
	compare("query_context", v.QueryContext, in.QueryContext)
	if in.Messages != "" {
		compare("messages", v.Messages, in.Messages)
	}
	if s, ok := v.Response.(string); ok && s != "" && s != in.Response {
		t.Fatalf("response %q became %q", s, in.Response)
	} else if !ok {
		compare("response", v.Response, in.ResponseJSON)
	}
	if v.ErrorMessage != nil && !in.Truncated && *v.ErrorMessage != in.ErrorMessage || v.UserID != nil && *v.UserID != in.UserID {
		t.Fatal("a text differs")
	}
}

func numeric(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}
