package normal

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestParted(t *testing.T) {
	for written, want := range map[string]bool{
		"that film is «stupid\n\nWomen» in science":             true,
		"that film is «stupid\r\n \r\n \r\nWomen» in science":   true,
		"- Nobody here may be «lazy\n- Old people» are welcome": true,
		"1) Never be «lazy\n 2) Old people» are welcome":        true,
		"# We are not «lazy\n## Old people»":                    true,
		"| «lazy | old people» |\n|---|---|":                    true,
		"<td>«lazy</td><td>old people»</td>":                    true,
		"<p>We were «lazy</p>\n<p>Old people» came</p>":         true,
		"«Women are\ntoo emotional» to lead":                    false,
		"We all know that «women are\r\ntoo emotional» to lead": false,
		"«Women\n\nare\n\ntoo\n\nemotional»":                    false,
		"«Women are too emotional»":                             false,
		"- «Women are\n  too emotional»\n- x":                   false,
	} {
		before, rest, _ := strings.Cut(written, "«")
		inside, after, _ := strings.Cut(rest, "»")
		x := Of(before + inside + after)
		words := strings.FieldsFunc(inside, func(r rune) bool { return strings.ContainsRune(" \r\n|<", r) })
		first, last := words[0], words[len(words)-1]
		start, end := strings.Index(x.String(), first), strings.Index(x.String(), last)+len(last)
		if got := Parted(x.String(), start, end, inside); got != want {
			t.Errorf("%q: %v in %q", written, got, x.String()[start:end])
		}
	}
}

// Paragraphs are the whole text, in order, and what reaches from one into the next is parted.
func TestParagraphs(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                      nil,
		"one line":                              {"one line"},
		"two\nlines":                            {"two\nlines"},
		"one of\n\ntwo of\n \r\nthree of\n\n\n": {"one of\n\n", "two of\n \r\n", "three of\n\n\n"},
		"single\n\nwords\n\nof one sentence\n":  {"single\n\nwords\n\nof one sentence\n"},
	} {
		if got := paragraphs(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var b strings.Builder
		for range random.IntN(30) {
			b.WriteString([]string{"\n", "\n", " ", "a", "b c", "\r", "\t"}[random.IntN(7)])
		}
		text := b.String()
		parts := paragraphs(text)
		if strings.Join(parts, "") != text {
			t.Fatalf("%q: %q", text, parts)
		}
		for i, at := 0, 0; i < len(parts)-1; i++ {
			if at += len(parts[i]); !Parted(text, at-len(parts[i])+len(strings.TrimRight(parts[i], " \t\r\n")), at, "") {
				t.Errorf("%q: nothing ends at %d", text, at)
			}
		}
	}
}

func paragraphs(text string) (all []string) {
	for from, to := range Paragraphs(text) {
		all = append(all, text[from:to])
	}
	return all
}
