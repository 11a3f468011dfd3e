package pii_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
)

// What was JSON is JSON when it is masked; what only looks like it gets no quotation marks.
func TestMaskLeavesJSON(t *testing.T) {
	const fence = "Here:\n```json\n%\n```\nDone."
	for _, tc := range []struct{ text, want string }{
		{`[4539148803436467,1]`, `["[CREDIT_CARD]",1]`},
		{"[\n  4539148803436467,\n  null\n]\n", "[\n  \"[CREDIT_CARD]\",\n  null\n]\n"},
		{`[[1,4539148803436467],[4539148803436467]]`, `[[1,"[CREDIT_CARD]"],["[CREDIT_CARD]"]]`},
		{`["visa",4539148803436467]`, `["visa","[CREDIT_CARD]"]`},
		{strings.ReplaceAll(fence, "%", `[4539148803436467,1]`), strings.ReplaceAll(fence, "%", `["[CREDIT_CARD]",1]`)},
		{`{"a":-4539148803436467}`, `{"a":"[CREDIT_CARD]"}`},
		{`{"a": 4539148803436467 , "é": true}`, `{"a": "[CREDIT_CARD]" , "é": true}`},
		{`{"a":"{\"card\":4539148803436467}"}`, `{"a":"{\"card\":\"[CREDIT_CARD]\"}"}`},
		{`{"a":"{\"card\":-4539148803436467, \"x\":\"\u00e9\"}","b":1}`, `{"a":"{\"card\":\"[CREDIT_CARD]\", \"x\":\"\u00e9\"}","b":1}`},
		{`{"a":"[4539148803436467]"}`, `{"a":"[\"[CREDIT_CARD]\"]"}`},
		{`{"a":"{\"b\":\"{\\\"card\\\":4539148803436467}\"}"}`, `{"a":"{\"b\":\"{\\\"card\\\":\\\"[CREDIT_CARD]\\\"}\"}"}`},
		{`{"a":"4539148803436467"}`, `{"a":"[CREDIT_CARD]"}`},
		{` "{\"card\":4539148803436467}"`, ` "{\"card\":\"[CREDIT_CARD]\"}"`},
		{`4539148803436467`, `[CREDIT_CARD]`},
		{`Card [4539148803436467] is old`, `Card [[CREDIT_CARD]] is old`},
		{`cards[4539148803436467]`, `cards[[CREDIT_CARD]]`},
		{"[4539148803436467] is old", "[[CREDIT_CARD]] is old"},
	} {
		got := pii.Mask(tc.text, audit.Output, find(t, tc.text))
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.text, got, tc.want)
		}
		if json.Valid([]byte(tc.text)) && strings.ContainsAny(tc.text, "[{") && !json.Valid([]byte(got)) {
			t.Errorf("%s is no JSON", got)
		}
	}
}

// Of any document with card numbers a document without them is left.
func TestMaskLeavesAnyJSON(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var value func(depth int) any
		value = func(depth int) any {
			kind := rapid.IntRange(0, 8).Draw(r, "kind")
			switch {
			case kind < 2 && depth > 0:
				list := []any{}
				for range rapid.IntRange(0, 3).Draw(r, "items") {
					list = append(list, value(depth-1))
				}
				return list
			case kind < 4 && depth > 0:
				members := map[string]any{}
				for range rapid.IntRange(0, 3).Draw(r, "members") {
					members[rapid.SampledFrom([]string{"card", "b", "é", "the card"}).Draw(r, "key")] = value(depth - 1)
				}
				return members
			case kind == 4 && depth > 0:
				inner, _ := json.Marshal([]any{value(depth - 1)})
				return string(inner)
			}
			return rapid.SampledFrom([]any{json.Number("4539148803436467"), json.Number("-4539148803436467"), json.Number("1.5e3"), "4539148803436467", "a \"card\": 4539148803436467\n", true, nil, "x"}).Draw(r, "leaf")
		}
		raw, err := json.MarshalIndent([]any{value(4)}, "", rapid.SampledFrom([]string{"", " "}).Draw(r, "indent"))
		if err != nil {
			r.Fatal(err)
		}
		if got := pii.Mask(string(raw), audit.Output, find(t, string(raw))); !json.Valid([]byte(got)) {
			r.Errorf("%s became\n%s", raw, got)
		}
	})
}
