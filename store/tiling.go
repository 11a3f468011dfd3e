package store

import (
	"cmp"
	"slices"
)

// marker is a row of ingest_batches as far as check needs it.
type marker struct {
	lo, hi     int64
	generation int32
	rows       uint64
	rejected   uint64
	skipped    uint64
	reason     string
}

// tile is the part of a marker's range that holds after the overlaps are resolved.
type tile struct {
	marker
	from, to int64 // inclusive, inside [lo, hi]
}

func (t tile) whole() bool { return t.from == t.lo && t.to == t.hi }

// span is a range of offsets, inclusive.
type span struct{ lo, hi int64 }

// lay resolves the markers of one partition and epoch into tiles ordered by offset. Where generations
// overlap the highest wins; overlaps inside one generation are returned, as are the gaps between the
// first marker's lo and the last hi.
func lay(ms []marker) (tiles []tile, overlaps, gaps []span) {
	order := slices.Clone(ms)
	slices.SortFunc(order, func(a, b marker) int {
		return cmp.Or(cmp.Compare(b.generation, a.generation), cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi))
	})
	var reach int64 // of the generation so far
	for i, m := range order {
		if i == 0 || order[i-1].generation != m.generation {
			reach = m.lo - 1
		}
		if m.lo <= reach {
			overlaps = append(overlaps, span{m.lo, min(m.hi, reach)})
		}
		reach = max(reach, m.hi)
		tiles = put(tiles, m)
	}
	for i := 1; i < len(tiles); i++ {
		if tiles[i].from > tiles[i-1].to+1 {
			gaps = append(gaps, span{tiles[i-1].to + 1, tiles[i].from - 1})
		}
	}
	return tiles, overlaps, gaps
}

// put adds what of a marker no tile covers yet, keeping the order.
func put(tiles []tile, m marker) []tile {
	if m.hi < m.lo {
		return tiles
	}
	at, _ := slices.BinarySearchFunc(tiles, m.lo, func(t tile, lo int64) int { return cmp.Compare(t.to, lo) })
	from := m.lo
	for from <= m.hi {
		switch {
		case at == len(tiles) || tiles[at].from > m.hi: // free until the end
			return slices.Insert(tiles, at, tile{m, from, m.hi})
		case tiles[at].from > from: // free until the next tile
			tiles = slices.Insert(tiles, at, tile{m, from, tiles[at].from - 1})
			at++
		}
		from = tiles[at].to + 1
		at++
	}
	return tiles
}
