package normal

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// settlePlainly is settle with every pass over the whole text, as a survey may only spare what changes nothing.
func (t *Text) settlePlainly() bool {
	w := new(rewriter)
	w.everywhere = true
	same := 0
	for range maxRounds {
		for _, pass := range passes {
			same++
			for n := 0; n < pass.times && t.apply(pass.run, w); n++ {
				same = 0
			}
			if same == len(passes) {
				return true
			}
		}
		if clean(t.normal) {
			return true
		}
	}
	return false
}

// ofPlainly is Of without a survey.
func ofPlainly(text string) Text {
	t := Text{normal: text, original: text}
	if clean(text) || t.settlePlainly() {
		return t
	}
	t.apply(blank, new(rewriter))
	t.settlePlainly()
	return t
}

// clean says that no pass can change a text, in one pass over it. It may say no of a text that is.
func clean(s string) bool {
	var (
		letters       uint // one bit a byte, the newest lowest
		last, run     int  // end and number of single letters in a row
		before, prior byte
	)
	for i := 0; i < len(s); i++ {
		c := s[i]
		k := kinds[c]
		letters = letters<<1 | uint(k&letter)
		if c|0x20 == before|0x20 && c|0x20 == prior|0x20 && k&letter != 0 {
			return false
		}
		prior, before = before, c
		if letters&7 == 2 || k&(mark|near) != 0 {
			if k&mark != 0 || k&near != 0 && suspect(s, i) {
				return false
			}
			if letters&7 == 2 {
				if i-last > maxGap+1 {
					run = 0
				}
				last = i
				if run++; run > 2 {
					return false
				}
			}
		}
	}
	return !inQuotes(s)
}

// suspect looks at a byte that needs its neighbours to tell.
func suspect(s string, i int) bool {
	var before, after byte = '\n', '\n'
	if i > 0 {
		before = s[i-1]
	}
	if i+1 < len(s) {
		after = s[i+1]
	}
	left, right := kinds[before], kinds[after]
	word := (left|right)&letter != 0
	inside := left&(letter|digit|symbol|joint) != 0 && right&(letter|digit) != 0 && left&right&digit == 0
	switch s[i] {
	case '@', '$', '+':
		if s[i] == '+' && (after == ' ' || after == '\t') {
			return before == '\n' || before == ' ' || before == '\t'
		}
		return word || inside
	case '.', '!':
		return inside || left&(letter|digit|symbol) != 0 && right&(letter|digit|symbol) != 0
	case '#':
		return before == '\n' || before == '\t' || before == ' ' || after == '#'
	case '-':
		return (after == ' ' || after == '\t') && (before == '\n' || before == '\t' || before == ' ' && (i < 2 || s[i-2] <= ' '))
	case '{', '[':
		return right&wide != 0 || strings.IndexByte("\"{[ \t\r\n", after) >= 0
	case ']':
		return after == '('
	}
	return word // a digit
}

// alike checks that a survey changes no result.
func alikePlainly(t interface{ Fatalf(string, ...any) }, text string) {
	var v survey
	v.look(text, false)
	if got := v.need&unclean == 0; got != clean(text) {
		t.Fatalf("%q: called clean: %t", text, got)
	}
	got, want := Of(text), ofPlainly(text)
	if got.normal != want.normal || !slices.EqualFunc(got.layers, want.layers, slices.Equal) {
		t.Fatalf("%q becomes %q and plainly %q", text, got.normal, want.normal)
	}
}

func TestSurvey(t *testing.T) {
	ascii := []string{"wom", "en", "stup", "stuuu", "UUp", "id", "e", "l", "  - ", "1.5", "$", "fuck", "f", "ck"}
	for _, p := range pieces {
		if isASCII(p) {
			ascii = append(ascii, p)
		}
	}
	for name, from := range map[string][]string{"ASCII": ascii, "all": pieces} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				alikePlainly(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(from), 0, 40).Draw(t, "pieces"), ""))
			})
		})
	}
}

// plainFrom stops at the first byte that characters has to look at, or short of it.
func TestPlainFrom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune(" ~azAZ09%'\n\t\f\v\r&\x00\x1f\x7f\u0080é’")), 0, 40, -1).Draw(t, "text")
		from := rapid.IntRange(0, len(s)).Draw(t, "from")
		to := plainFrom(s, from)
		for i := from; i < to; i++ {
			if c := s[i]; c == '&' || c < ' ' && kinds[c]&mark != 0 || c >= 0x7f {
				t.Fatalf("%q from %d: passed %q", s, from, c)
			}
		}
		if to+8 <= len(s) && s[to] > ' ' && s[to] != '&' && s[to] < 0x7f {
			t.Fatalf("%q from %d: stopped at %q", s, from, s[to])
		}
	})
}

func FuzzSurvey(f *testing.F) {
	for _, p := range pieces {
		f.Add(p)
	}
	f.Add(`{"reply": "{\"a\": \"x\\ny\"}", "n": [1, 2], "x": ["a b", nu`)
	f.Add("The **applicant** has worked at 3M since 2019, st*pid f.u.c.k $hit: [here](https://a.b/c).\n- Sooo w0men wom..en\n 1. a b c d")
	f.Fuzz(func(t *testing.T, text string) { alikePlainly(t, text) })
}
