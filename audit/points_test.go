package audit_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

// Points cut and count as the plain functions do, whatever the text holds.
func TestPoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "é", "漢", "\U0001F469", "\xff", "\xe2\x82", "", strings.Repeat("b", 255), strings.Repeat("ö", 257)}
	for range 300 {
		var b strings.Builder
		for range rng.IntN(40) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		text := b.String()
		p := audit.PointsOf(text)
		for range 20 {
			s := audit.Span{Start: uint32(rng.IntN(len(text) + 3)), End: uint32(rng.IntN(len(text) + 3))}
			if got, want := p.Slice(s), s.Slice(text); got != want {
				t.Fatalf("%q %v: %q, want %q", text, s, got, want)
			}
			from := rng.IntN(len(text) + 1)
			to := from + rng.IntN(len(text)-from+1)
			if got, want := p.Span(from, to), audit.SpanOf(text, from, to); got.Start != want.Start {
				t.Fatalf("%q %d: %v, want %v", text, from, got, want)
			}
		}
	}
}
