package scan

import (
	"sync/atomic"
	"unicode/utf8"
)

// walk is what one call of Scan works with.
type walk struct {
	s       *Scanner
	cache   *cache
	ends    [][]int32 // by part: where it ended
	present []uint32  // parts that ended somewhere
	good    [2][]int32
	chains  []chainState
	open    []int32 // chains whose state is not empty
	hit     []bool  // by pattern: a match may begin somewhere
	hits    []int32 // the patterns that are hit
	merged  []interval
	matcher matcher
	foreign bool // there was a byte above 0x7f
}

func newWalk(s *Scanner) *walk {
	return &walk{
		s:       s,
		ends:    make([][]int32, s.program.size),
		chains:  make([]chainState, len(s.chains)),
		hit:     make([]bool, len(s.chainsOf)),
		matcher: matcher{p: s.program},
	}
}

// keep is the capacity up to which a list is kept for the next text.
const keep = 1 << 10

func (w *walk) reset() {
	for _, i := range w.open {
		st := &w.chains[i]
		st.starts, st.last = emptied(st.starts), 0
	}
	for _, p := range w.present {
		w.ends[p] = emptied(w.ends[p])
	}
	for i := range w.good {
		w.good[i] = emptied(w.good[i])
	}
	for _, p := range w.hits {
		w.hit[p] = false
	}
	w.foreign = false
	w.present = w.present[:0]
	w.open, w.hits, w.merged, w.cache = w.open[:0], w.hits[:0], emptied(w.merged), nil
}

func emptied[T any](s []T) []T {
	if cap(s) > keep {
		return nil
	}
	return s[:0]
}

// next gives the entry for a symbol, and has it computed where it is not known. The walk may move to
// another cache; row is then changed to what it is there.
func (w *walk) next(row *uint32, class int) uint32 {
	for {
		if e := w.cache.entry(*row, class); e != 0 {
			return e
		}
		if e := w.cache.step(*row, class); e != 0 {
			return e
		}
		st := w.cache.stateAt(*row)
		for *row = 0; *row == 0; {
			w.cache = w.s.renew(w.cache)
			*row = w.cache.adopt(st)
		}
	}
}

// filter finds where the patterns may begin in the text.
func (w *walk) filter(text string) {
	a := w.s.program.alphabet
	row, table := w.cache.begin(), w.cache.table
	for i := 0; i < len(text); {
		e := atomic.LoadUint32(&table[row+uint32(a.ascii[text[i]])])
		if e-1 < rowBits { // known, and nothing to report
			row = e
			i++
			continue
		}
		class, width := a.decode(text[i:])
		e = w.next(&row, class)
		table = w.cache.table
		row = e & rowBits
		if e&matched != 0 {
			w.report(w.cache.stateAt(row).found, i)
		}
		w.foreign = w.foreign || text[i] >= utf8.RuneSelf
		i += width
	}
	if e := w.next(&row, ending); e&matched != 0 {
		w.report(w.cache.stateAt(e&rowBits).found, len(text))
	}
	w.join(text)
}
