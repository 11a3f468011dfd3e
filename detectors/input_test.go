package detectors

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
)

func TestSpanEqualsCountingFromTheFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"a", "é", "日", "😀", "\xff", "\xe2\x82", " "})
		text := strings.Join(rapid.SliceOfN(unit, 0, 3000).Draw(t, "text"), "")
		var bounds []int
		for i := range text {
			bounds = append(bounds, i)
		}
		bounds = append(bounds, len(text))
		x := textIndex{text: text}
		for range 20 {
			i := rapid.IntRange(0, len(bounds)-1).Draw(t, "i")
			j := rapid.IntRange(i, len(bounds)-1).Draw(t, "j")
			want := audit.Span{Start: uint32(i), End: uint32(j)}
			if got := x.span(bounds[i], bounds[j]); got != want {
				t.Fatalf("span(%d,%d) = %v, want %v", bounds[i], bounds[j], got, want)
			}
		}
	})
}

// Of a text that is not plainly English the paragraphs that are stay out, and those beside each other are searched together.
func TestFurtherParts(t *testing.T) {
	const english, german, name = "this is the one with a name\n\n", "das ist die frau, und sie bleibt\n\n", "the café of the town\n\n"
	for _, tc := range []struct {
		text string
		want []string
	}{
		{english + english, nil},
		{german + german, []string{german + german}},
		{english + german + english, []string{german}},
		{german + english + name + german + english, []string{german, name + german}},
		{"a heading\n\n" + english, []string{"a heading\n\n"}},
	} {
		var got []string
		for from, to := range furtherParts(tc.text) {
			got = append(got, tc.text[from:to])
		}
		if strings.Join(got, "|") != strings.Join(tc.want, "|") {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.want)
		}
	}
}
