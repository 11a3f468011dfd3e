package scan

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// letters is a small alphabet in which folding, word boundaries, line ends and encoding all matter.
var letters = []string{"a", "b", "c", "A", "k", "K", "\u212a", "s", "\u017f", "ß", "é", "É", "σ", "ς", "_", "1", " ", " ", ".", "\n", "\r\n", "日"}

// debris is what text may hold, too.
var debris = []string{"\xff", "\xc3", "\xe2\x84", "\x80", "\x00", "\ufffd", "\xed\xa0\x80", "\U0001f600"}

var atoms = []string{
	".", "(?s:.)", `\w`, `\W`, `\s`, `\S`, `\d`, `\pL`, `[^a]`, `[a-c]`, `[^.\n]`, `[à-ü]`, `[k-s]`, `[^\x{FFFD}]`, `\x{FFFD}`,
	`\b`, `\B`, `^`, `$`, `(?m:^)`, `(?m:$)`, `\A`, `\z`,
}

var repeats = []string{"", "", "", "", "?", "??", "*", "*?", "+", "+?", "{2}", "{0,2}", "{1,3}?", "{2,}", "{0,9}", "{4,9}", "{7}", "{7,9}?"}

// expression draws a pattern.
func expression(t *rapid.T, depth int) string {
	var b strings.Builder
	for range rapid.IntRange(1, 4).Draw(t, "items") {
		var item string
		switch n := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case n < 5 || depth == 0 && n < 7:
			item = regexp.QuoteMeta(rapid.SampledFrom(letters).Draw(t, "letter"))
			if rapid.IntRange(0, 7).Draw(t, "exact") == 0 {
				item = "(?-i:" + item + ")"
			}
		case n < 7 || depth == 0:
			item = rapid.SampledFrom(atoms).Draw(t, "atom")
		default:
			var branches []string
			for range rapid.IntRange(1, 3).Draw(t, "branches") {
				branches = append(branches, expression(t, depth-1))
			}
			open := rapid.SampledFrom([]string{"(", "(?:", "(?s:", "(?-i:", "(?U:"}).Draw(t, "group")
			item = open + strings.Join(branches, "|") + ")"
		}
		if repeat := rapid.SampledFrom(repeats).Draw(t, "repeat"); repeat != "" {
			item = "(?:" + item + ")" + repeat
		}
		b.WriteString(item)
	}
	return b.String()
}

func drawText(t *rapid.T) string {
	all := append(append([]string{}, letters...), letters...)
	all = append(all, debris...)
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(all), 0, 40).Draw(t, "text"), "")
}

// TestProperty compares random patterns on random texts with package regexp.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var patterns []string
		for range rapid.IntRange(1, 5).Draw(t, "patterns") {
			p := expression(t, 2)
			if _, err := regexp.Compile("(?i)" + p); err != nil {
				continue // too many repeats
			}
			patterns = append(patterns, p)
		}
		compareAll(t, patterns, rapid.SampledFrom([]int{0, 1, 100}).Draw(t, "states"), drawText(t), drawText(t), drawText(t))
	})
}

// TestPropertyGaps does the same with patterns in the shape of rules: words with gaps between them.
func TestPropertyGaps(t *testing.T) {
	words := []string{"a", "ab", "b", "k", "(?:a|ab)", "(?:b|bc|s)", "a+", "c?a", `\ba`, `b\b`, `\bab\b`, "é", "ss", `a\.`, `\.b`, "\n"}
	gaps := []string{".*", ".*?", ".{0,4}", ".{0,9}?", ".{2,6}", "[^.\n]{0,8}", `(?:\w+\s+){0,3}`, `(?s:.{0,5})`, `\s+`, `\W+`, `\w+`, " ?", `\b.{0,7}\b`}
	rapid.Check(t, func(t *rapid.T) {
		rule := func() string {
			p := ""
			if rapid.IntRange(0, 5).Draw(t, "leading") == 0 {
				p = rapid.SampledFrom(gaps).Draw(t, "gap")
			}
			for range rapid.IntRange(1, 3).Draw(t, "words") {
				p += rapid.SampledFrom(words).Draw(t, "word") + rapid.SampledFrom(gaps).Draw(t, "gap")
			}
			return p + rapid.SampledFrom(words).Draw(t, "word")
		}
		var patterns []string
		for range rapid.IntRange(1, 6).Draw(t, "patterns") {
			switch rapid.IntRange(0, 4).Draw(t, "shape") {
			case 0:
				patterns = append(patterns, rule()+"|"+rule())
			case 1:
				patterns = append(patterns, fmt.Sprintf(`\b(?:%s|%s)%s`, rule(), rule(), rule()))
			case 2:
				patterns = append(patterns, "("+rule()+"){1,2}")
			default:
				patterns = append(patterns, rule())
			}
		}
		compareAll(t, patterns, rapid.SampledFrom([]int{0, 1}).Draw(t, "states"), drawText(t), drawText(t), drawText(t))
	})
}

// TestPropertySentences does the same with rules whose words stand in one sentence, or need not, in texts of more sentences than are told apart.
func TestPropertySentences(t *testing.T) {
	words := []string{"women", "men", "lazy", "never", "send", "U.S.", "no!"}
	gaps := []string{`\s+`, `[^.!?\n]{0,40}?`, `[^.!?]*`, `(?:\w+\s+){0,3}`, `.{0,30}`, `[^!?]{0,200}`, `[.\s]+`}
	between := []string{" ", " ", " x ", " yes ", ". ", ". ", "! ", "? ", ".", " 3.5 ", "\n", " é ", "…"}
	rapid.Check(t, func(t *rapid.T) {
		var patterns []string
		for range rapid.IntRange(1, 6).Draw(t, "patterns") {
			p := rapid.SampledFrom([]string{"", `\b`}).Draw(t, "border") + regexp.QuoteMeta(rapid.SampledFrom(words).Draw(t, "word"))
			for range rapid.IntRange(1, 3).Draw(t, "words") {
				p += rapid.SampledFrom(gaps).Draw(t, "gap") + regexp.QuoteMeta(rapid.SampledFrom(words).Draw(t, "word"))
			}
			patterns = append(patterns, p)
		}
		text := strings.Repeat(rapid.SampledFrom([]string{"", ". ", "No. "}).Draw(t, "before"), rapid.IntRange(0, 130).Draw(t, "sentences"))
		for range rapid.IntRange(0, 60).Draw(t, "length") {
			text += rapid.SampledFrom(words).Draw(t, "word") + rapid.SampledFrom(between).Draw(t, "between")
		}
		compareAll(t, patterns, 0, text)
	})
}

func compareAll(t *rapid.T, patterns []string, states int, texts ...string) {
	var kept []string
	for _, p := range patterns {
		_, err := Compile([]string{p}, Options{})
		if errors.Is(err, ErrEmpty) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, p)
	}
	s, err := Compile(kept, Options{MaxStates: states})
	if err != nil {
		t.Fatal(err)
	}
	o := newOracle(kept)
	for _, text := range texts {
		if d := different(s, o, kept, text); d != "" {
			t.Fatal(d)
		}
	}
}
