package scan

import (
	"strings"
	"unicode/utf8"
)

// walk is what one call of Scan works with.
type walk struct {
	s       *Scanner
	cache   *cache
	states  [lanes + 1]uint32 // of each lane, by number, and see filter
	ended   [lanes][]ended    // what the lanes found
	in      []uint64          // by part: the sentences in which it ended
	present []uint32          // parts that ended somewhere
	asked   []int32           // chains all of whose parts did
	wanted  bitset            // the parts of these
	ends    [][]int32         // by part that is wanted: where it ended, ascending
	good    [2][]int32
	chains  []chainState
	open    []int32 // chains whose state is not empty
	hit     []bool  // by wording: a match may begin somewhere
	hits    []int32 // the wordings that are hit
	found   []Match // of one wording
	merged  []interval
	matcher matcher
	foreign bool // there was a byte above 0x7f
}

func newWalk(s *Scanner) *walk {
	return &walk{
		s:       s,
		in:      make([]uint64, s.program.size),
		wanted:  newBitset(s.program.size),
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
		w.in[p] = 0
	}
	if len(w.asked) > 0 {
		for part := range w.wanted.all() {
			w.ends[part] = emptied(w.ends[part])
		}
		clear(w.wanted)
	}
	for i := range w.good {
		w.good[i] = emptied(w.good[i])
	}
	for _, p := range w.hits {
		w.hit[p] = false
	}
	for i := range w.ended {
		clear(w.ended[i])
		w.ended[i] = emptied(w.ended[i])
	}
	w.foreign = false
	w.present, w.asked = w.present[:0], emptied(w.asked)
	w.open, w.hits, w.merged, w.cache = w.open[:0], w.hits[:0], emptied(w.merged), nil
	w.found = emptied(w.found)
}

func emptied[T any](s []T) []T {
	if cap(s) > keep {
		return nil
	}
	return s[:0]
}

// next gives the entry for a symbol of a lane, and has it computed where it is not known. The walk may move
// to another cache then, with all lanes.
func (w *walk) next(lane, class int) uint32 {
	for {
		n := w.states[lane]
		if next := w.cache.entry(n, class); next != 0 {
			return next
		}
		if next := w.cache.step(n, class); next != 0 {
			return next
		}
		w.move()
	}
}

// move goes on in the successor of a full cache.
func (w *walk) move() {
	var at [len(w.states)]state
	for lane, n := range w.states {
		at[lane] = *w.cache.state(n)
	}
	for moved := false; !moved; {
		w.cache, moved = w.s.renew(w.cache), true
		for lane := range at {
			w.states[lane] = w.cache.adopt(at[lane])
			moved = moved && w.states[lane] != 0
		}
	}
}

const (
	lanes        = 4
	again        = lanes // the index of the lane that repeats another
	leastAbreast = 256   // the length from which on a text is walked in lanes
)

// filter finds where parts end in the text: ended[0].
//
// It walks the quarters of the text abreast: a step waits for the table, and meanwhile the other lanes' steps
// go on. The lanes behind the first begin after a space, as if the text began there, so that what they find is
// right only from where the lane before, going on, comes to the state that they had at the same place, mostly
// within a word or two. What they found before that is forgotten.
func (w *walk) filter(text string) {
	n := lanes
	if len(text) < w.s.leastAbreast {
		n = 1
	}
	var from [lanes + 1]int
	for lane := range w.states {
		w.states[lane] = w.cache.begin()
		if lane > 0 {
			from[lane] = seam(text, len(text)*min(lane, n)/n)
		}
	}
	at := from
	if n > 1 {
		w.abreast(text, &at, &from)
	}
	for lane := range n {
		w.walkOn(lane, text, at[lane], from[lane+1])
	}
	w.end(n-1, len(text))
	for lane := 1; lane < n; lane++ {
		w.states[again] = w.cache.begin()
		i := w.meet(text, from[lane], from[lane+1])
		switch {
		case i < from[lane+1]:
			for _, e := range w.ended[lane] {
				if int(e.at) >= i {
					w.ended[0] = append(w.ended[0], e)
				}
			}
			w.states[0] = w.states[lane]
		case lane == n-1:
			w.end(0, i)
		}
	}
}

// seam is a place for a lane to begin at: the first after a space from i on, if one is near.
func seam(text string, i int) int {
	const near = 16
	if k := strings.IndexByte(text[i:min(i+near, len(text))], ' '); k >= 0 {
		return i + k + 1
	}
	return boundary(text, i)
}

// meet walks lane 0 on, and beside it the lane that repeats another, until both are in one state, at most to an offset.
// It gives where.
func (w *walk) meet(text string, from, to int) (i int) {
	for i = from; i < to && w.states[0] != w.states[again]; {
		c := w.cache
		column := c.ascii[text[i]]
		e0, e1 := column.of(c.table, w.states[0]), column.of(c.table, w.states[again])
		if min(e0, e1) < silent {
			w.symbol(again, text, i)
			i += w.symbol(0, text, i)
			continue
		}
		w.states[0], w.states[again] = e0, e1
		i++
	}
	return i
}

// ended is where parts end.
type ended struct {
	parts []uint32
	at    int32
}

// abreast walks the lanes on from where they are, until one of them is where the next one began.
func (w *walk) abreast(text string, at, from *[lanes + 1]int) {
	for {
		n := len(text)
		for lane := range lanes {
			n = min(n, from[lane+1]-at[lane])
		}
		c := w.cache
		s := stride{table: c.table, ascii: &c.ascii, states: [lanes]uint32(w.states[:])}
		for lane := range lanes {
			s.texts[lane] = text[at[lane] : at[lane]+n]
		}
		for s.run(); s.at < n && min(s.next[0], s.next[1], s.next[2], s.next[3]) > 0; s.run() { // there is something to report
			for lane, e := range s.next {
				w.note(lane, e, at[lane]+s.at)
			}
			s.states = s.next
			s.at++
		}
		copy(w.states[:], s.states[:])
		for lane := range lanes {
			at[lane] += s.at
		}
		if s.at == n {
			return
		}
		for lane, e := range s.next { // one is not known
			if e >= silent {
				w.states[lane] = e
				at[lane]++
			}
		}
		for lane, e := range s.next { // last, as this may move to another cache
			if e < silent {
				at[lane] += w.symbol(lane, text, at[lane])
			}
		}
	}
}

// walkOn walks one lane from one offset to another.
func (w *walk) walkOn(lane int, text string, from, to int) {
	c, n := w.cache, w.states[lane]
	for i := from; i < to; {
		e := c.ascii[text[i]].of(c.table, n)
		if e >= silent {
			n = e
			i++
			continue
		}
		w.states[lane] = n
		i += w.symbol(lane, text, i)
		c, n = w.cache, w.states[lane]
	}
	w.states[lane] = n
}

// symbol takes a lane over the symbol at i and gives its width.
func (w *walk) symbol(lane int, text string, i int) (width int) {
	class := int(w.s.program.alphabet.ascii[text[i]])
	width = 1
	if text[i] >= utf8.RuneSelf {
		class, width = w.s.program.alphabet.decode(text[i:])
		w.foreign = true
	}
	w.take(lane, class, i)
	return width
}

// end takes a lane over the end of the text.
func (w *walk) end(lane, at int) { w.take(lane, ending, at) }

// take takes a lane over a symbol.
func (w *walk) take(lane, class, at int) {
	w.states[lane] = w.next(lane, class)
	w.note(lane, w.states[lane], at)
}

// note notes what a lane found before a symbol, if anything, by the state behind that.
func (w *walk) note(lane int, n uint32, at int) {
	if n < silent && lane != again {
		w.ended[lane] = append(w.ended[lane], ended{w.cache.state(n).found, int32(at)})
	}
}
