package scan

import (
	"sync/atomic"
	"unicode/utf8"
)

// walk is what one call of Scan works with.
type walk struct {
	s       *Scanner
	cache   *cache
	chains  []chainState
	open    []int32 // chains whose state is not empty
	hit     []bool  // by pattern: a match may begin somewhere
	hits    []int32 // the patterns that are hit
	merged  []interval
	matcher matcher
	foreign bool // there was a byte above 0x7f
}

func newWalk(s *Scanner) *walk {
	w := &walk{
		s:       s,
		chains:  make([]chainState, len(s.chains)),
		hit:     make([]bool, len(s.chainsOf)),
		matcher: matcher{closer: *newCloser(s.program)},
	}
	for i := range w.chains {
		w.chains[i].ends = make([][]int32, len(s.chains[i].parts)-1)
	}
	return w
}

// keep is the capacity up to which a list is kept for the next text.
const keep = 1 << 10

func (w *walk) reset() {
	for _, i := range w.open {
		st := &w.chains[i]
		for j := range st.ends {
			st.ends[j] = emptied(st.ends[j])
		}
		st.starts = emptied(st.starts)
		st.used, st.wall, st.seen, st.last = 0, 0, 0, 0
	}
	for _, p := range w.hits {
		w.hit[p] = false
	}
	w.foreign = false
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

// filter reports where the parts of all patterns end in the text.
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
			w.report(text, w.cache.stateAt(row).found, i)
		}
		w.foreign = w.foreign || text[i] >= utf8.RuneSelf
		i += width
	}
	if e := w.next(&row, ending); e&matched != 0 {
		w.report(text, w.cache.stateAt(e&rowBits).found, len(text))
	}
}
