package normal

import (
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
