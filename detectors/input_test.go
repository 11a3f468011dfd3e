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
