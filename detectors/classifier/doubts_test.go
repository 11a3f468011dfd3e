package classifier

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// However long a text is, the encoder is asked about its four strongest doubts, the strongest first.
func TestTheStrongestDoubtsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOf(rapid.Float32Range(-9, 9)).Draw(t, "logits")
		var l doubts
		for _, z := range logits {
			l.add(doubt{logit: z})
		}
		slices.SortFunc(logits, func(a, b float32) int {
			switch {
			case a > b:
				return -1
			case a < b:
				return 1
			}
			return 0
		})
		if want := min(4, len(logits)); l.n != want {
			t.Fatalf("%d kept, want %d", l.n, want)
		}
		for i := range l.n {
			if l.list[i].logit != logits[i] {
				t.Fatalf("kept %v of %v", l.list[:l.n], logits)
			}
		}
	})
}
