package normal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Each line: what it shows, a text, its normal form.
func TestUnwrap(t *testing.T) {
	const prose = "All women are too emotional to lead."
	for _, tc := range []struct{ name, text, want string }{
		{"an object", `{"decision": "reject", "confidence": 0.81, "reason": "` + prose + `"}`, "decision: reject\nconfidence: 0.81\nreason\n" + prose},
		{"an array", `[{"type":"text","text":"` + prose + `"}]`, "type: text\ntext\n" + prose},
		{"pretty printed", "{\n  \"a\": {\n    \"b c\": [\n      1,\n      2,\n      \"x\",\n      null\n    ]\n  }\n}\n", "a\nb c\n1, 2, x, null\n"},
		{"escapes", `{"t": "Fr\u00e4ulein \"M\u00fcller\" \ud83d\ude42\/\t\\x\nwas late again"}`, "t\nFräulein \"Müller\"  /\t\\x\nwas late again"},
		{"unknown escapes", `{"t": "a\' \d \u12 \ud83d b"}`, `t` + "\n" + `a\' \d \u12 \ud83d b`},
		{"a fence", "Here it is:\n```json\n{\"t\": \"" + prose + "\"}\n```\nAnything else?", "Here it is:\njson\nt\n" + prose + "\n\nAnything else?"},
		{"in a line", `I answer {"t": "` + prose + `"} and stop`, "I answer \nt\n" + prose + "\n and stop"},
		{"cut off in a string", `{"a": 1, "t": "All women are too emo`, "a: 1\nt\nAll women are too emo"},
		{"cut off in an escape", `{"a": 1, "t": "All women are too \u00`, "a: 1\nt\nAll women are too \\u00"},
		{"cut off in a literal", `{"a": "b", "c": fal`, "a: b\nc: fal"},
		{"cut off behind a comma", `[{"a": "b"}, `, "a: b"},
		{"a list cut off", `["All women are too`, "All women are too"},
		{"one after another", "{\"a\": \"b\"}\n{\"a\": \"c\"}", "a: b\na: c"},
		{"JSON in a string", `{"args": "{\"t\": \"He said \\\"no\\\" to \u201call\u201d women\"}"}`, "args\nt\nHe said \"no\" to \"all\" women"},
		{"a comma too many, a line break in a string", "{\"a\": \"b\",\n\"t\": \"first line\nsecond line\",}", "a: b\nt\nfirst line\nsecond line"},
		{"entities", `{&quot;t&quot;: &quot;` + prose + `&quot;}`, "t\n" + prose},
		{"sentences are prose", `{"a": "Yes, always.", "b": "on time", "c": "是的，他们很懒。"}`, "a\nYes, always.\nb: on time\nc\n是的,他们很懒。"},
		{"wide spaces between", "{\u00a0\"a\":\u202f\"b\"}", "a: b"},
		{"empty", `{"a": "", "b": {}, "c": []}`, "a: \nb\nc"},
		{"behind a word", `call{"a": "b"}`, "call\na: b"},
		{"words of a list", `Say ["I am fine", "so am I"] then`, "Say \nI am fine\nso am I\n then"},
		{"too deep, from where it is not", strings.Repeat("[", maxDepth+5) + `{"a":"b"}` + strings.Repeat("]", maxDepth+5), strings.Repeat("[", 6) + "\na: b\n" + strings.Repeat("]", 6)},

		{"a text in quotes", ` "` + prose + `"` + "\n", " " + prose + "\n"},
		{"a string of JSON", `"All \"women\"\nare \u00e9"`, "All \"women\"\nare é"},
		{"typographic quotes", "“" + prose + "”", prose},
		{"German quotes", "„" + prose + "“", prose},
		{"French quotes", "«" + prose + "»", prose},
		{"single quotes", "'" + prose + "'", prose},
		{"other quotes inside", "“She said \"no\"”", `She said "no"`},
		{"bold quotes", `**"` + prose + `"**`, prose},
	} {
		got := Of(tc.text)
		if got.String() != tc.want {
			t.Errorf("%s: %q\n got %q\nwant %q", tc.name, tc.text, got.String(), tc.want)
		}
		holds(t, tc.text)
	}
}

// What only looks like JSON, and quotations, stay as they are.
func TestNoUnwrap(t *testing.T) {
	for _, text := range []string{
		"the set {1, 2}", "see [12] and [3, 4]", "f = {x: 1}", `{"a", "b"}`, `names = ["a", "b"]`, `d["key of it"] = 1`, "[[1, 2], [3, 4]]", "[[wiki link]]", "{}", "[]", "[ ]",
		`int x[] = {"a", 1};`, `{'a': 'b c d e'}`, `{"a": b}`, `{"a" "b"}`, `{"a": 1 "b": 2}`, `{"a": 1]`, `["a b": 1]`, `{"a": True}`, `{"a": undefined}`, `\frac{1}{2} \text{"x"}`, `if (x) { "use strict"; }`,
		`He typed {"hello there and went away`, `Say ["hello there and go`, `["The title"](x)`, `{"a": 1.x}`, `func() { [] }`,
		`"Women" and "men"`, `'It's me'`, `He said "no"`, `"`, `"No.`, "'tis'nt'",
	} {
		if got := Of(text); got.String() != text {
			t.Errorf("%q becomes %q", text, got.String())
		}
	}
}

// Each case: a text, a part of its normal form, and the part of the original that it must lead to.
func TestUnwrapOriginal(t *testing.T) {
	for _, tc := range []struct{ text, part, want string }{
		{`{"reason": "all women lie", "x": 1}`, "all women lie", "all women lie"},
		{`{"reason": "all\nw\u00f6men\tlie"}`, "all\nwömen\tlie", `all\nw\u00f6men\tlie`},
		{`{"a": "{\"b\": \"x \\\"y\\\" z\"}"}`, `x "y"`, `x \\\"y\\\"`},
		{`{"a": "{\"b\": \"\\ud83d\\ude00\"}", "c": "d"}`, "d", "d"},
		{`{"a": "b"}`, "a: b", `a": "b`},
	} {
		x := Of(tc.text)
		at := strings.Index(x.String(), tc.part)
		if at < 0 {
			t.Errorf("%q: normal form %q lacks %q", tc.text, x.String(), tc.part)
			continue
		}
		from, to := x.Original(at, at+len(tc.part))
		if got := tc.text[from:to]; got != tc.want {
			t.Errorf("%q: %q leads to %q, want %q", tc.text, tc.part, got, tc.want)
		}
	}
}

// document draws a value of JSON and tells its strings, keys left out.
func document(t *rapid.T, depth int, all *[]string) any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	switch {
	case kind < 2 && depth > 0:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, document(t, depth-1, all))
		}
		return list
	case kind < 4 && depth > 0:
		members := map[string]any{}
		for i := range rapid.IntRange(0, 3).Draw(t, "members") {
			members[fmt.Sprintf("key%d", i)] = document(t, depth-1, all)
		}
		return members
	case kind == 4:
		return rapid.IntRange(-1000, 1000).Draw(t, "number")
	}
	// Words that other passes leave alone, so that what is decoded can be told.
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"applicant", "Größe", "日本", "женщина", "said", "\"no\"", "back\\slash", "and/or", "line\nbreak", "tab\tbed", "<tag", "R&D", "five", "(so)", "x,", "end."}), 0, 8).Draw(t, "words")
	text := strings.Join(words, " ")
	if text != "" {
		*all = append(*all, text)
	}
	return text
}

// Of any document the strings stand in the normal form, and lead to their place in the document.
func TestDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []string
		v := map[string]any{"one": document(t, 4, &all), "two": document(t, 4, &all)}
		indent := rapid.SampledFrom([]string{"", "  "}).Draw(t, "indent")
		raw, err := json.MarshalIndent(v, "", indent)
		if err != nil {
			t.Fatal(err)
		}
		text := rapid.SampledFrom([]string{"", "Here it is: ", "```json\n"}).Draw(t, "before") + string(raw)
		x := Of(text)
		j := jsonReader{}
		j.begin(text)
		if _, _, ok := j.next(0); !ok {
			t.Fatalf("%q: not found", text)
		}
		var literals [][2]int
		for _, tok := range j.tokens {
			if tok.kind == stringToken && tok.from < tok.to {
				literals = append(literals, [2]int{int(tok.from), int(tok.to)})
			}
		}
		if len(literals) != len(all) {
			t.Fatalf("%q: %d strings of %d", text, len(literals), len(all))
		}
		at := 0
		for _, l := range literals { // encoding/json orders keys
			var want string
			if err := json.Unmarshal([]byte(`"`+text[l[0]:l[1]]+`"`), &want); err != nil || !slices.Contains(all, want) {
				t.Fatalf("%q: %q is none of %q", text, want, all)
			}
			n := strings.Index(x.String()[at:], want)
			if n < 0 {
				t.Fatalf("%q: %q lacks %q", text, x.String(), want)
			}
			at += n
			if from, to := x.Original(at, at+len(want)); from < l[0] || to > l[1] {
				t.Fatalf("%q: %q leads to %q", text, want, text[from:to])
			}
			at += len(want)
		}
	})
}

// hard are texts that look like JSON again and again and are none.
var hard = map[string]string{
	"objects":  `{"`,
	"keys":     `{"a":`,
	"arrays":   "[",
	"deep":     `[{"a":`,
	"lists":    `["a[`,
	"numbers":  `{"a":` + strings.Repeat("1", 500) + "x",
	"strings":  `{"a": "` + strings.Repeat("b", 500) + `" x`,
	"items":    `[["` + strings.Repeat(`","`, 200) + `" x`,
	"blanks":   `{"a":` + strings.Repeat(" ", 500) + "x",
	"escapes":  `{"\\u00`,
	"quotes":   `"`,
	"document": `{"a b c": "d e f g \n\u00e9", "h": 1}`,
}

// Work grows with the text, whatever it holds: what one byte takes of a long text it takes of a short one.
func TestUnwrapIsLinear(t *testing.T) {
	for name, piece := range hard {
		text := strings.Repeat(piece, 1<<20/len(piece))
		j := jsonReader{}
		j.begin(text)
		for _, to, ok := j.next(0); ok; _, to, ok = j.next(to) {
		}
		if j.left < -len(text) {
			t.Errorf("%s: %d reads more than were free", name, -j.left)
		}
	}
}

func BenchmarkHard(b *testing.B) {
	for name, piece := range hard {
		for _, size := range []int{2 << 10, 64 << 10} {
			text := strings.Repeat(piece, size/len(piece)+1)[:size]
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				w := new(rewriter)
				for b.Loop() {
					w.begin(text)
					unwrap(w)
				}
			})
		}
	}
}
