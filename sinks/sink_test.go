package sinks_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/sinks"
)

// What is kept is ordered, and no marker of a lower generation overlaps one that is kept.
func TestResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ms []sinks.Marker
		for range rapid.IntRange(0, 10).Draw(t, "markers") {
			lo := rapid.Int64Range(0, 40).Draw(t, "lo")
			ms = append(ms, sinks.Marker{Lo: lo, Hi: lo + rapid.Int64Range(0, 12).Draw(t, "length"), Generation: rapid.Int32Range(1, 4).Draw(t, "generation")})
		}
		kept := sinks.Resolve(ms)
		overlap := func(a, b sinks.Marker) bool { return a.Lo <= b.Hi && b.Lo <= a.Hi }
		for i, a := range kept {
			if i > 0 && kept[i-1].Lo > a.Lo {
				t.Fatalf("not ordered: %+v", kept)
			}
			for _, b := range kept {
				if a.Generation < b.Generation && overlap(a, b) {
					t.Fatalf("%+v is kept beside %+v", a, b)
				}
			}
		}
		for _, m := range ms { // what was dropped had to be
			is := false
			for _, k := range kept {
				is = is || k == m || k.Generation > m.Generation && overlap(k, m)
			}
			if !is {
				t.Fatalf("%+v was dropped for nothing: %+v", m, kept)
			}
		}
	})
}
