package compliance

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
)

// The decoder never panics, and what it takes keeps the schema, before its quotes are checked and after.
func FuzzDecode(f *testing.F) {
	good := edited(found("stereotype", "gender", "women are too emotional", 9))
	for _, seed := range []string{
		good, "```json\n" + good + "\n```", "well " + good, good[:120], good + good, `{"overall":{}}`, "{", "{{}}", "[]", "", `{"a":1,"a":2}`, `{"bias":{"score":1e999}}`,
		strings.Replace(good, `[9,32]`, `[1e300,2.0]`, 1), strings.Replace(good, `[9,32]`, `[-1,"x"]`, 1), strings.Replace(good, `"meta"`, `"META"`, 1),
		strings.Replace(good, `"women are too emotional"`, `"\ud800 \u0000"`, 1),
	} {
		f.Add(seed, text)
	}
	f.Fuzz(func(t *testing.T, answer, text string) {
		meta := Meta{verdictVersion, "2026-11-22T12:00:00Z", 5}
		v, err := decode(answer, meta)
		if err != nil {
			if v != nil || len(err.Error()) > 300 {
				t.Errorf("%v %v", v, err)
			}
			return
		}
		keeps(t, v)
		if !utf8.ValidString(text) {
			text = string([]rune(text))
		}
		e := evidence{seen: newSource(text), text: []rune(text), at: func(s audit.Span) audit.Span { return s }}
		e.verify(v)
		order(v)
		keeps(t, v)
		for _, x := range findings(v, "v") {
			if x.Span.Start >= x.Span.End || x.Span.End > uint32(utf8.RuneCountInString(text)) {
				t.Errorf("%+v", x)
			}
		}
	})
}

// An error says where an answer fails and in what, without its words.
func TestFaultsSayWhatIsWrong(t *testing.T) {
	for _, tc := range []struct{ answer, want string }{
		{`{"canary":1}`, "faults, the first: the top level lacks overall, "},
		{strings.Replace(edited(), `"compliant"`, `"canary"`, 1), "1 fault: /overall/assessment: enum"},
	} {
		_, err := decode(tc.answer, Meta{verdictVersion, "2026-11-22T12:00:00Z", 5})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
}
