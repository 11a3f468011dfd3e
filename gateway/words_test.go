package gateway

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Pieces are joined to the text that their escapes are together, wherever they were cut.
func TestWords(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		pieces     []string
	}{
		{"between the halves", "Hi 👋 all", []string{`Hi \ud83d`, `\udc4b all`}},
		{"halves alone", "👋", []string{`\ud83d`, `\udc4b`}},
		{"capitals", "👋", []string{`\uD83D`, `\uDC4B`}},
		{"several", "👋👋!", []string{`\ud83d`, `\udc4b\ud83d`, `\udc4b!`}},
		{"an empty piece between", "👋", []string{`\ud83d`, ``, `\udc4b`}},
		{"before another escape", "👋é", []string{`\ud83d`, `\udc4b\u00e9`}},
		{"whole characters", "👋 👋", []string{`\ud83d\udc4b`, ` 👋`}},
		{"the other never comes", "a�b", []string{`a\ud83d`, `b`}},
		{"nor at the end", "a�", []string{`a\ud83d`}},
		{"the first never came", "�a", []string{`\udc4ba`}},
		{"two firsts", "�👋", []string{`\ud83d`, `\ud83d`, `\udc4b`}},
		{"an escape that is escaped", `a\ud83d` + "�", []string{`a\\ud83d`, `\udc4b`}},
		{"and one behind it", `\👋`, []string{`\\\ud83d`, `\udc4b`}},
		{"no escape", "é", []string{"\u00e9"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var w words
			for _, p := range tc.pieces {
				if w.add(wordsOf(gjson.Parse(`"` + p + `"`))); w.Len() != len(w.String()) || !utf8.ValidString(w.String()) {
					t.Errorf("%q has %d bytes", w.String(), w.Len())
				}
			}
			if w.String() != tc.want {
				t.Errorf("%q, want %q", w.String(), tc.want)
			}
		})
	}
}

// A character that a stream tells in two halves is one on record, and the text stands there once.
func TestStreamCutsACharacter(t *testing.T) {
	chunk := func(delta string) string {
		return `{"id":"c1","model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
	}
	call := func(fields string) string { return chunk(`{"tool_calls":[{"index":0,` + fields + `}]}`) }
	chat := []string{chunk(`{"content":"Hi \ud83d"}`), chunk(`{"content":"\udc4b all"}`), chunk(`{"reasoning_content":"hm \ud83d"}`), chunk(`{"reasoning_content":"\udc4b"}`),
		call(`"id":"t","type":"function","function":{"name":"f","arguments":"{\"who\":\"\ud83d"}`), call(`"function":{"arguments":"\udc4b\"}"}`),
		`{"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `[DONE]`}
	said := `{"type":"message","id":"m1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi \ud83d\udc4b all","annotations":[]}]}`
	thought := `{"type":"reasoning","id":"r1","summary":[{"type":"summary_text","text":"hm \ud83d\udc4b"}]}`
	asked := `{"type":"function_call","id":"f1","status":"completed","call_id":"t","name":"f","arguments":"{\"who\":\"\ud83d\udc4b\"}"}`
	var responses []string
	event := func(kind, fields string) { responses = append(responses, fmt.Sprintf(`{"type":%q,%s}`, kind, fields)) }
	for _, delta := range []string{`Hi \ud83d`, `\udc4b all`} {
		event("response.output_text.delta", `"output_index":0,"content_index":0,"delta":"`+delta+`"`)
	}
	event("response.output_text.done", `"output_index":0,"content_index":0,"text":"Hi \ud83d\udc4b all"`)
	for _, delta := range []string{`hm \ud83d`, `\udc4b`} {
		event("response.reasoning_summary_text.delta", `"output_index":1,"summary_index":0,"delta":"`+delta+`"`)
	}
	event("response.output_item.added", `"output_index":2,"item":{"type":"function_call","call_id":"t","name":"f","arguments":""}`)
	for _, delta := range []string{`{\"who\":\"\ud83d`, `\udc4b\"}`} {
		event("response.function_call_arguments.delta", `"output_index":2,"delta":"`+delta+`"`)
	}
	event("response.function_call_arguments.done", `"output_index":2,"arguments":"{\"who\":\"\ud83d\udc4b\"}"`)
	for i, item := range []string{said, thought, asked} {
		event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, item))
	}
	event("response.completed", `"response":{"id":"r1","model":"m","status":"completed","output":[`+said+`,`+thought+`,`+asked+`]}`)
	for _, tc := range []struct {
		path   string
		chunks []string
	}{{PathChat, chat}, {PathResponses, responses}} {
		for _, mode := range []string{StreamHold, StreamWindow, StreamPass} {
			s := start(t, newProvider(t, streams("\n", tc.chunks...)).URL, func(c *Config, _ *Deps) { c.Stream, c.WindowBytes = mode, 1 })
			ask := prompt("Hi", streamed)
			if tc.path == PathResponses {
				ask = `{"model":"gpt-x","input":"Hi","stream":true}`
			}
			got := s.do(tc.path, ask)
			if want := "data: " + strings.Join(tc.chunks, "\n\ndata: ") + "\n\n"; stripComments(got.body) != want {
				t.Errorf("%s %s: passes on %q", tc.path, mode, got.body)
			}
			in := s.recorded()
			if strings.Count(in.Response, "Hi 👋 all") != 1 || strings.Count(in.Response, "hm 👋") != 1 || strings.Count(in.Response, "👋") != 3 || strings.Contains(in.Response, "�") {
				t.Errorf("%s %s: on record is %q", tc.path, mode, in.Response)
			}
		}
	}
}
