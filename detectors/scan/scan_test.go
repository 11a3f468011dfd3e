package scan

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

// oracle is what Scan must give, found by package regexp, pattern by pattern.
type oracle []*regexp.Regexp

func newOracle(patterns []string) oracle {
	o := make(oracle, len(patterns))
	for i, p := range patterns {
		o[i] = regexp.MustCompile("(?i)" + p)
	}
	return o
}

func (o oracle) scan(text string) []Match {
	var all []Match
	for i, re := range o {
		for _, m := range re.FindAllStringIndex(text, -1) {
			all = append(all, Match{int32(i), int32(m[0]), int32(m[1])})
		}
	}
	slices.SortFunc(all, func(a, b Match) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Pattern, b.Pattern))
	})
	return all
}

// different says how Scan differs from the oracle on a text, or nothing. Texts too short for lanes are
// walked in them as well.
func different(s *Scanner, o oracle, patterns []string, text string) string {
	want := o.scan(text)
	got := s.Scan(text, nil)
	if slices.Equal(got, want) && len(text) < leastAbreast {
		s.leastAbreast = 0
		got = s.Scan(text, nil)
		s.leastAbreast = leastAbreast
	}
	if slices.Equal(got, want) {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "text %q\n got %v\nwant %v", text, got, want)
	for i, p := range patterns {
		only := func(ms []Match) (r []Match) {
			for _, m := range ms {
				if m.Pattern == int32(i) {
					r = append(r, m)
				}
			}
			return r
		}
		if g, w := only(got), only(want); !slices.Equal(g, w) {
			fmt.Fprintf(&b, "\npattern %d %q: got %v, want %v", i, p, g, w)
		}
	}
	return b.String()
}

func mustCompile(t testing.TB, patterns []string, o Options) *Scanner {
	t.Helper()
	s, err := Compile(patterns, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nasty holds patterns and texts that are all tried with each other.
var nasty = struct{ patterns, texts []string }{
	patterns: []string{
		`women`, `\bwomen\b`, `\bwomen\s+are\s+bad\b`, `omen`, `\Bomen`, `women\B`, `men|women`, `women|wom`, `wom|women`, `wo(?:men|man)?`,
		`abcd|c`, `c|abcd`, `a+`, `a+?`, `a{2,3}`, `a{2,3}?`, `(?:ab)+`, `(a|ab)(c|bcd)`, `a.c`, `a[^b]c`, `aa`, `a{7,9}`, `a{12}`, `(?:a{2}b?){7,}`,
		`kelvin`, `[k]`, `K`, `\x{212A}`, `ss`, `s`, `\x{17f}`, `ß`, `ẞ`, `straße`, `σ`, `Σ`, `ς`, `männer`, `[à-ü]+`, `[^a-z]{3}`, `\p{L}+`, `\p{Greek}`, `\pN{2}`, `é\b`, `\bé`, `ı`, `İ`, `ǆ`, `日本`,
		`(?-i:women)`, `(?-i:K)`, `a(?-i:B)c`, `(?-i:[a-c])x`, `\Qa.c\E`,
		`^women`, `women$`, `(?m)^women`, `(?m)women$`, `\Awomen`, `women\z`, `(?m)^a$`, `(?m:^)b`, `^a.*z$`, `(?s)a.z`, `(?m)^.+$`, `\n`, `a\n`, `\r\n`, `(?m)a\r$`, `(?m)\n^a`, `$.`, `.^`, `a\b.`, `\b.\b`, `\B.\B`,
		`.`, `..`, `(?s).`, `(?s).+`, `.+`, `.+?`, `[^.]+`, `.*a`, `.*?a`, `a.*`, `a.*b`, `a.*?b`, `(?s)a.*b`, `a.{0,40}b`, `a.{0,5}?b`, `a.{4,6}b.{4,6}c`, `.{0,4}b`, `.{5,}b`, `a.{5,}`, `.{8}`, `[^.!?\n]{0,60}b`,
		`\bwomen\b[^.!?\n]{0,60}\bbad\b`, `\b(?:women|men)\b.{0,40}\b(?:bad|weak)\b`, `women.*men.*women`, `\bwomen (?:\w+\s+){0,3}bad`, `(?:women.{0,9}bad|bad.{0,9}women)`, `\b(?:women.{0,9}bad|bad.{0,9}women)\b`,
		`(?:a.{0,9}b|c){2}`, `x(?:a.{0,9}b|c)y`, `(?:a.*b|b.*a)(?:c.*d|d.*c)`, `(?U)a.{0,20}b`, `(?s:a.{0,9})b`, `(a.{0,9}b)+`,
		`\x00`, `\x00+a`, `\x{FFFD}`, `[^\x{FFFD}]+`, `[\x{D800}-\x{DFFF}]`, `\x{10FFFF}`, `[\x{80}-\x{10FFFF}]+`, `\PL`, `\W+`, `\w+@\w+\.\w+`, `\S{6,}`, `\s+`, `[[:alpha:]]+`, `\d{3}-\d{4}`, `\b(?:\d[ -]?){13,16}\b`,
		`[^\x00-\x{10FFFF}]`, `a[^\x00-\x{10FFFF}]|b`, `(?:)a`, `(?:|a)b`, `a(?:$|b)`, `(?:^|a)b`, `(?:\b|x)a`, `a\b\B|b`,
	},
	texts: []string{
		"", "a", "b", "\n", "\r\n", "\x00", "\x00\x00a", "aaaa", "aaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaa", "abababab", "aabaabaabaabaabaabaab", "abcd", "xabcdabc", "abcbcd", "a.c abc a\nc", "aBc ABC abc",
		"women", "Women are bad", "WOMEN  ARE\n\tBAD.", "women are bad women are bad", "womenwomen", "wom women woman", "xwomen womenx", "women\nwomen", "women\r\nwomen\r\n", "\nwomen", "women\n", "the women, they say. are bad",
		"women men women men women", "women are not at all bad, women are really, really, really, really quite something else. bad", "bad women bad", "women  one two three bad", "women one two three four bad",
		"Kelvin \u212aelvin kelvin", "\u212a", "k\u212aK", "\u017f", "s\u017fS\u017fss", "ß", "ẞ", "STRASSE Straße STRAẞE", "Σσς", "MÄNNER männer Ma\u0308nner", "àéü ÀÉÜ", "é", "aé", "éa", " é ", "Iıİi", "ǆǅǄ", "日本日本語", "ﬁ",
		"\xff", "a\xffb", "\xc3", "\xc3\xa9", "\xe2\x84", "\xe2\x84\xaa", "\xe2\x84k", "\xa9\xa9a", "a\xe2\x84b", "\xed\xa0\x80", "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf0\x9f", "k\xe2", "\ufffd", "a\ufffd\xffb", "women\xff are bad", "\xffwomen\xff",
		"a b", "a\nb", "a\n\nb\n", "b\na", "xacy xa123by xay", "acbd abcdc badc", "a123b a1234567890123456789012345678901234567890b", "a12345b12345c", "aXXXXbXXXXc", "12345b", "123456789012345678", "4111 1111 1111 1111", "4111-1111-1111-1111-1", "555-1234 5555-12345",
		"me@example.org, you@example.org", "one two  three\tfour", "abc\r\ndef", "a.b!c?d\ne", strings.Repeat("ab ", 60), strings.Repeat("a", 300) + "b", strings.Repeat("women x ", 40) + "bad", strings.Repeat("é", 50) + "b", "a" + strings.Repeat("é", 40) + "b", "a" + strings.Repeat("é", 41) + "b",
	},
}

func TestNasty(t *testing.T) {
	var patterns []string
	for _, p := range nasty.patterns {
		if regexp.MustCompile("(?i)"+p).MatchString("") || errors.Is(compileErr(p), ErrEmpty) {
			t.Errorf("%q matches nothing at all; the case says nothing", p)
			continue
		}
		patterns = append(patterns, p)
	}
	o := newOracle(patterns)
	for _, opts := range []Options{{}, {MaxStates: 1}} {
		s := mustCompile(t, patterns, opts)
		for _, text := range nasty.texts {
			for range 2 { // cold, warm
				if d := different(s, o, patterns, text); d != "" {
					t.Fatalf("%+v: %s", opts, d)
				}
			}
		}
	}
	for i, p := range patterns { // alone, too: classes of symbols are coarser then
		s := mustCompile(t, []string{p}, Options{})
		for _, text := range nasty.texts {
			if d := different(s, o[i:i+1], patterns[i:i+1], text); d != "" {
				t.Fatal(d)
			}
		}
	}
}

func compileErr(p string) error {
	_, err := Compile([]string{p}, Options{})
	return err
}

func TestCompile(t *testing.T) {
	for _, tc := range []struct{ name, pattern, want string }{
		{"unbalanced", `a)`, "scan: compile: pattern 1: error parsing regexp: unexpected ): `(?i)a)`"},
		{"backreference", `(a)\1`, "scan: compile: pattern 1: error parsing regexp: invalid escape sequence: `\\1`"},
		{"lookahead", `a(?=b)`, "scan: compile: pattern 1: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
		{"empty", ``, "scan: compile: pattern 1: can match the empty string"},
		{"star", `a*`, "scan: compile: pattern 1: can match the empty string"},
		{"boundary", `\b`, "scan: compile: pattern 1: can match the empty string"},
		{"branch", `a|`, "scan: compile: pattern 1: can match the empty string"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Compile([]string{"fine", tc.pattern}, Options{})
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if audit.KindOf(err) != audit.KindInvalid {
				t.Errorf("kind %s", audit.KindOf(err))
			}
		})
	}
}

func TestNoPatterns(t *testing.T) {
	s := mustCompile(t, nil, Options{})
	if s.Patterns() != 0 || len(s.Scan("women", nil)) != 0 {
		t.Error("found something")
	}
}

// One alternation of all rules reports the first at each place and loses what overlaps it.
func TestOverlapping(t *testing.T) {
	patterns := []string{`all women`, `women are weak`, `\bare\b.{0,20}\bweak\b`, `women`, `are weak and`, `all women`}
	text := "They say all women are weak and old."
	s := mustCompile(t, patterns, Options{})
	if n := len(regexp.MustCompile("(?i)"+strings.Join(patterns, "|")).FindAllStringIndex(text, -1)); n != 2 {
		t.Fatalf("an alternation finds %d", n)
	}
	if got := s.Scan(text, nil); len(got) != len(patterns) {
		t.Errorf("got %v, want one match of each pattern", got)
	}
	if d := different(s, newOracle(patterns), patterns, text); d != "" {
		t.Error(d)
	}
}

func TestAppends(t *testing.T) {
	s := mustCompile(t, []string{"b", "a"}, Options{})
	got := s.Scan("ab", []Match{{9, 9, 9}})
	if want := []Match{{9, 9, 9}, {1, 0, 1}, {0, 1, 2}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLongText(t *testing.T) {
	patterns := []string{`\bneedle\b`, `a.{0,40}needle`, `needle.*end`, `(?s)begin.*end`, `\w+@\w+\.org`, `z{20,}`}
	s := mustCompile(t, patterns, Options{})
	text := "begin " + strings.Repeat("a haystack of many words, aé\n", 40_000) + "a needle me@example.org\n" + strings.Repeat("z", 5_000) + " end"
	if d := different(s, newOracle(patterns), patterns, text); d != "" {
		t.Error(d[max(0, len(d)-400):])
	}
}

// A pattern that begins often, runs far and fails is handed to package regexp.
func TestBudget(t *testing.T) {
	patterns := []string{`x.*\d{8}\b|xq`}
	s, o := mustCompile(t, patterns, Options{}), newOracle(patterns)
	for _, text := range []string{
		strings.Repeat("x ", 5_000) + "1234567 xq", // the automaton sees six digits or more
		strings.Repeat("x ", 5_000) + "1234567\nxq x 12345678",
	} {
		if d := different(s, o, patterns, text); d != "" {
			t.Error(d[max(0, len(d)-400):])
		}
		w := s.walk()
		w.filter(text)
		w.join(text)
		if w.findAll(text, 0, nil); w.matcher.budget >= 0 || w.matcher.budget < -10*len(text) {
			t.Errorf("%d left of the budget", w.matcher.budget)
		}
	}
}

// Many goroutines share a cache that is too small for one of them.
func TestConcurrent(t *testing.T) {
	patterns := nasty.patterns
	o := newOracle(patterns)
	for _, opts := range []Options{{}, {MaxStates: 40}} {
		s := mustCompile(t, patterns, opts)
		want := make([][]Match, len(nasty.texts))
		for i, text := range nasty.texts {
			want[i] = o.scan(text)
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				var dst []Match
				for k := range nasty.texts {
					i := (k*7 + g*11) % len(nasty.texts)
					if dst = s.Scan(nasty.texts[i], dst[:0]); !slices.Equal(dst, want[i]) {
						t.Errorf("goroutine %d: text %q: got %v, want %v", g, nasty.texts[i], dst, want[i])
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

// Patterns in many scripts tell more characters apart than a row has columns.
func TestManyCharacters(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var patterns []string
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteRune([]rune{0x4e00, 0x400, 0xac00, 0xe0}[r.IntN(4)] + rune(r.IntN(60)))
		}
		return b.String()
	}
	for i := range 200 {
		patterns = append(patterns, word(1+i%3), word(1)+".{0,9}"+word(1), `\b`+word(2)+`|[^\x{4e00}-\x{4f00}]`+word(1))
	}
	o := newOracle(patterns)
	for _, opts := range []Options{{}, {MaxStates: 1}} {
		s := mustCompile(t, patterns, opts)
		if size := s.program.alphabet.size; size <= maxColumns {
			t.Fatalf("%d characters only", size)
		}
		for range 20 {
			if d := different(s, o, patterns, word(100)+"\n\xff"+word(60)); d != "" {
				t.Fatal(d)
			}
		}
	}
}

// A full cache goes on with the half of its states that came first, and finds what one finds that never fills up.
func TestFullCachesKeepHalf(t *testing.T) {
	small, large := mustCompile(t, nasty.patterns, Options{MaxStates: leastHalved}), mustCompile(t, nasty.patterns, Options{})
	r := rand.New(rand.NewPCG(3, 3))
	all := []rune(strings.Join(nasty.texts, " "))
	halved := 0
	for i := 0; halved < 5; i++ {
		if i == 20_000 {
			t.Fatalf("only %d full caches", halved)
		}
		text := make([]rune, 60)
		for k := range text {
			text[k] = all[r.IntN(len(all))]
		}
		before := small.cache.Load()
		if got, want := small.Scan(string(text), nil), large.Scan(string(text), nil); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, with room %v", string(text), got, want)
		}
		after := small.cache.Load()
		if len(before.states) != leastHalved || after == before {
			continue
		}
		halved++
		told, silents := (silent-before.lastTold)/2, (before.lastSilent-silent)/2
		if silent-after.lastTold < told || after.lastSilent-silent < silents || after.lastSilent-silent > silents+uint32(len(text)) {
			t.Fatalf("of %d and %d states %d and %d are left", 2*told, 2*silents, silent-after.lastTold, after.lastSilent-silent)
		}
		for n := silent - told; n <= silent+silents; n++ {
			if after.state(n).key != before.state(n).key || after.numbers[before.state(n).key] != n {
				t.Fatalf("state %d is another", n)
			}
		}
	}
}
