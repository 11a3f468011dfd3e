package store

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestLay(t *testing.T) {
	m := func(gen int32, lo, hi int64) marker { return marker{lo: lo, hi: hi, generation: gen} }
	for _, tc := range []struct {
		name    string
		markers []marker
		want    string // "generation[from,to]" joined by spaces; then overlaps and gaps
	}{
		{"none", nil, ""},
		{"a chain", []marker{m(1, 0, 9), m(1, 10, 19)}, "1[0,9] 1[10,19]"},
		{"starts anywhere", []marker{m(1, 70, 79)}, "1[70,79]"},
		{"gap", []marker{m(1, 0, 9), m(1, 15, 19)}, "1[0,9] 1[15,19] gap[10,14]"},
		{"overlap inside one generation", []marker{m(1, 0, 9), m(1, 5, 12)}, "1[0,9] 1[10,12] overlap[5,9]"},
		{"overlaps behind a short one", []marker{m(1, 0, 99), m(1, 5, 6), m(1, 50, 60)}, "1[0,99] overlap[5,6] overlap[50,60]"},
		{"higher generation wins", []marker{m(1, 0, 99), m(2, 0, 49), m(2, 50, 120)}, "2[0,49] 2[50,120]"},
		{"a late zombie fills the end", []marker{m(2, 0, 49), m(1, 0, 99)}, "2[0,49] 1[50,99]"},
		{"an older one on both sides", []marker{m(1, 0, 99), m(3, 40, 59)}, "1[0,39] 3[40,59] 1[60,99]"},
		{"three generations", []marker{m(1, 0, 99), m(2, 10, 50), m(3, 20, 30)}, "1[0,9] 2[10,19] 3[20,30] 2[31,50] 1[51,99]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tiles, overlaps, gaps := lay(tc.markers)
			var got []string
			for _, x := range tiles {
				got = append(got, fmt.Sprintf("%d[%d,%d]", x.generation, x.from, x.to))
			}
			for _, x := range overlaps {
				got = append(got, fmt.Sprintf("overlap[%d,%d]", x.lo, x.hi))
			}
			for _, x := range gaps {
				got = append(got, fmt.Sprintf("gap[%d,%d]", x.lo, x.hi))
			}
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("got  %s\nwant %s", s, tc.want)
			}
		})
	}
}

// Every offset belongs to the highest generation that covers it, and to one tile.
func TestLayAgreesWithOffsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ms []marker
		for range rapid.IntRange(0, 8).Draw(t, "markers") {
			lo := rapid.Int64Range(0, 30).Draw(t, "lo")
			ms = append(ms, marker{lo: lo, hi: lo + rapid.Int64Range(0, 12).Draw(t, "length"), generation: rapid.Int32Range(1, 4).Draw(t, "generation")})
		}
		tiles, overlaps, gaps := lay(ms)
		at := map[int64]int32{}
		last := int64(-1)
		for _, x := range tiles {
			if x.from <= last || x.to < x.from || x.from < x.lo || x.to > x.hi {
				t.Fatalf("tile %+v after offset %d", x, last)
			}
			last = x.to
			for o := x.from; o <= x.to; o++ {
				at[o] = x.generation
			}
		}
		for _, g := range gaps {
			for o := g.lo; o <= g.hi; o++ {
				if at[o] != 0 {
					t.Fatalf("offset %d lies in a gap and in a tile", o)
				}
			}
		}
		twice := map[int64]bool{}
		for _, x := range overlaps {
			for o := x.lo; o <= x.hi; o++ {
				twice[o] = true
			}
		}
		for o := range int64(50) {
			covers := map[int32]int{}
			most := 0
			for _, m := range ms {
				if m.lo <= o && o <= m.hi {
					covers[m.generation]++
					most = max(most, covers[m.generation])
				}
			}
			if twice[o] != (most > 1) {
				t.Fatalf("offset %d is covered %d times by one generation, told as an overlap: %t", o, most, twice[o])
			}
			var want int32
			for _, m := range ms {
				if m.lo <= o && o <= m.hi {
					want = max(want, m.generation)
				}
			}
			if at[o] != want {
				t.Fatalf("offset %d belongs to generation %d, want %d", o, at[o], want)
			}
		}
	})
}
