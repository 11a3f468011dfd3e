package compliance

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
)

func TestFind(t *testing.T) {
	for _, tc := range []struct {
		name, text, quote string
		hint              uint32
		want              audit.Span // empty: not found
	}{
		{"as it stands", "He is old.", "is old", 0, audit.Span{Start: 3, End: 9}},
		{"code points", "Él 👍 is old.", "is old", 0, audit.Span{Start: 5, End: 11}},
		{"the nearest", "old old old", "old", 5, audit.Span{Start: 4, End: 7}},
		{"the first of two equally near", "old old", "old", 2, audit.Span{Start: 0, End: 3}},
		{"overlapping occurrences", "aaaa", "aa", 1, audit.Span{Start: 1, End: 3}},
		{"composed text, decomposed quote", "le café noir", "cafe\u0301 noir", 0, audit.Span{Start: 3, End: 12}},
		{"decomposed text, composed quote", "le cafe\u0301 noir", "café", 0, audit.Span{Start: 3, End: 8}},
		{"a letter without its mark", "le cafe\u0301 noir", "cafe", 0, audit.Span{}},
		{"a mark without its letter", "le cafe\u0301 noir", "\u0301 noir", 0, audit.Span{}},
		{"line ends", "one\r\ntwo  three", "one two three", 0, audit.Span{Start: 0, End: 15}},
		{"a narrow space", "10\u202fans de prison", "10 ans", 0, audit.Span{Start: 0, End: 6}},
		{"space around", "so old.", " so old ", 0, audit.Span{Start: 0, End: 6}},
		{"typographic quotation marks", "They’re “old” folks", `They're "old" folks`, 0, audit.Span{Start: 0, End: 19}},
		{"plain ones", `They're "old" folks`, "They’re «old» folks", 0, audit.Span{Start: 0, End: 19}},
		{"escapes of the string that was given", "say \"hi\"\nnow <b>", `say \"hi\"\nnow \u003cb\u003e`, 0, audit.Span{Start: 0, End: 16}},
		{"a backslash of the text", `a C:\new file`, `C:\new`, 0, audit.Span{Start: 2, End: 8}},
		{"a part of an emoji", "the 👩‍🚀 flew", "👩", 0, audit.Span{}},
		{"a skin tone left out", "ok 👍🏽 fine", "ok 👍", 0, audit.Span{}},
		{"an emoji without its selector", "I ❤️ you", "I ❤ you", 0, audit.Span{Start: 0, End: 8}},
		{"a vowel sign left out", "मैं हिन्दी", "ह", 0, audit.Span{}},
		{"another case", "He is Old", "is old", 0, audit.Span{}},
		{"a dash for a hyphen", "well-known", "well–known", 0, audit.Span{}},
		{"an ellipsis", "one two three", "one … three", 0, audit.Span{}},
		{"nothing", "text", "", 0, audit.Span{}},
		{"space only", "a  b", "  ", 0, audit.Span{}},
		{"punctuation only", "a, b, c.", ", ", 0, audit.Span{}},
		{"an emoji alone", "yes 🐒!", "🐒", 0, audit.Span{Start: 4, End: 5}},
		{"longer than the text", "text", "text and more", 0, audit.Span{}},
	} {
		got, ok := newSource(tc.text).find(tc.quote, tc.hint)
		if ok != (tc.want != audit.Span{}) || got != tc.want {
			t.Errorf("%s: %v %t, want %v", tc.name, got, ok, tc.want)
		}
	}
}

// pieces are characters in the sense of a reader: none may be cut.
var pieces = []string{
	"a", "b", "aa", "é", "e\u0301", "ß", "ﬁ", "Å", "A\u030a", "한", "\u1112\u1161\u11ab", "हि", "न्", "👩‍🚀", "👍🏽", "❤️", "🐒", "日", "本", "о", "م", "ש\u05bc",
	" ", "  ", "\r\n", "\n", "\u00a0", "\t", "’", "'", "“", "\"", "»", ".", ",", "<", "&", "\\", "q\u0323\u0307", "q\u0307\u0323",
}

func drawPieces(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 40).Draw(t, "pieces")
}

// A quote that stands in the text is found where it stands when the hint is right, and verbatim with any hint.
func TestQuotesAreFoundWhereTheyStand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := drawPieces(t)
		from := rapid.IntRange(0, len(ps)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(ps)).Draw(t, "to")
		text, quote, before := strings.Join(ps, ""), strings.Join(ps[from:to], ""), strings.Join(ps[:from], "")
		want := audit.Span{Start: uint32(len([]rune(before))), End: uint32(len([]rune(before + quote)))}
		s := newSource(text)
		if !telling(quote) || s.cuts(int(want.Start)) || s.cuts(int(want.End)) {
			return
		}
		got, ok := s.find(quote, want.Start)
		if !ok || got != want {
			t.Fatalf("%q in %q: %v %t, want %v", quote, text, got, ok, want)
		}
		hint := rapid.Uint32().Draw(t, "hint")
		if got, ok := s.find(quote, hint); !ok || got.Slice(text) != quote {
			t.Fatalf("%q in %q from %d: %v %q", quote, text, hint, got, got.Slice(text))
		}
	})
}

// A quote in another form of the same text is found, and what is found reads the same.
func TestTolerantQuotesReadTheSame(t *testing.T) {
	forms := []func(string) string{
		norm.NFC.String, norm.NFD.String,
		func(s string) string { return strings.Join(strings.Fields(s), " ") },
		strings.NewReplacer("’", "'", "“", "\"", "»", "\"").Replace,
		strings.NewReplacer("'", "’", "\"", "„").Replace,
		strings.NewReplacer("\ufe0f", "").Replace,
		strings.NewReplacer("\r\n", "\n", " ", "\u2009").Replace,
	}
	rapid.Check(t, func(t *rapid.T) {
		ps := drawPieces(t)
		from := rapid.IntRange(0, len(ps)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(ps)).Draw(t, "to")
		text, quote := strings.Join(ps, ""), strings.Join(ps[from:to], "")
		s, start := newSource(text), len([]rune(strings.Join(ps[:from], "")))
		if !telling(quote) || s.cuts(start) || s.cuts(start+len([]rune(quote))) {
			return
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(forms)-1), 1, 3).Draw(t, "forms") {
			quote = forms[i](quote)
		}
		got, ok := s.find(quote, uint32(start))
		if !ok {
			t.Fatalf("%q is not found in %q", quote, text)
		}
		if a, b := same(got.Slice(text)), same(quote); a != b {
			t.Fatalf("%q in %q gave %q", quote, text, got.Slice(text))
		}
	})
}

// same is what folding must keep, said in another way.
func same(s string) string {
	s = strings.NewReplacer("’", "'", "“", "\"", "„", "\"", "»", "\"", "\ufe0f", "").Replace(s)
	return strings.Join(strings.Fields(norm.NFC.String(s)), " ")
}

// Whatever is asked, what is found lies in the text and nothing is found that is not there.
func TestFindIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(drawPieces(t), "")
		quote := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 3), func(p []string) string { return strings.Join(p, "") })).Draw(t, "quote")
		got, ok := newSource(text).find(quote, rapid.Uint32().Draw(t, "hint"))
		if !ok {
			return
		}
		if got.Start >= got.End || got.End > uint32(len([]rune(text))) {
			t.Fatalf("%v of %d", got, len([]rune(text)))
		}
		if words := got.Slice(text); same(words) != same(quote) && !strings.Contains(quote, `\`) {
			t.Fatalf("%q gave %q", quote, words)
		}
	})
}
