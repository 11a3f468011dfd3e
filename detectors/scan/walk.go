package scan

import (
	"unicode/utf8"
)

// walk is what one call of Scan works with.
type walk struct {
	s       *Scanner
	cache   *cache
	states  [lanes + 1]uint32 // of each lane, by number, and see filter of each lane, and see filter
	ended   [lanes][]ended    // what the lanes found
	events  []event           // ends of parts, in the order of the text
	last    []int32           // by part: its last event, counted from 1; 0: none
	present []uint32          // parts that ended somewhere
	ends    [][]int32         // by part: where it ended, once somebody asked
	asked   []uint32          // parts that somebody asked about
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
		last:    make([]int32, s.program.size),
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
		w.last[p] = 0
	}
	for _, p := range w.asked {
		w.ends[p] = emptied(w.ends[p])
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
	w.present, w.asked, w.events = w.present[:0], w.asked[:0], emptied(w.events)
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
		at[lane] = w.cache.states[n]
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
// go on. The lanes behind the first begin as if the text began there, so that what they find is right only from
// where the lane before, going on, comes to the state that they had at the same place, mostly a word or two
// later. What they found before that is forgotten.
func (w *walk) filter(text string) {
	n := lanes
	if len(text) < w.s.leastAbreast {
		n = 1
	}
	var from [lanes + 1]int
	for lane := range w.states {
		w.states[lane] = w.cache.begin()
		from[lane] = boundary(text, len(text)*min(lane, n)/n)
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
		i := from[lane]
		for w.states[0] != w.states[again] && i < from[lane+1] {
			w.symbol(again, text, i)
			i += w.symbol(0, text, i)
		}
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
		t0, t1, t2, t3 := text[at[0]:at[0]+n], text[at[1]:at[1]+n], text[at[2]:at[2]+n], text[at[3]:at[3]+n]
		s0, s1, s2, s3 := w.states[0], w.states[1], w.states[2], w.states[3]
		c := w.cache
		ascii, table, silent := &c.ascii, c.table, c.told+1
		var e [lanes]uint32
		i := 0
		for ; i < n; i++ {
			e0, e1, e2, e3 := ascii[t0[i]].of(table, s0), ascii[t1[i]].of(table, s1), ascii[t2[i]].of(table, s2), ascii[t3[i]].of(table, s3)
			if int32((e0-silent)|(e1-silent)|(e2-silent)|(e3-silent)) < 0 { // one is not known, or there is something to report
				if e0 == 0 || e1 == 0 || e2 == 0 || e3 == 0 {
					e = [lanes]uint32{e0, e1, e2, e3}
					break
				}
				w.note(0, e0, at[0]+i)
				w.note(1, e1, at[1]+i)
				w.note(2, e2, at[2]+i)
				w.note(3, e3, at[3]+i)
			}
			s0, s1, s2, s3 = e0, e1, e2, e3
		}
		w.states = [lanes + 1]uint32{s0, s1, s2, s3, w.states[again]}
		for lane := range lanes {
			at[lane] += i
		}
		if i == n {
			return
		}
		for lane, e := range e {
			if e >= silent {
				w.states[lane] = e
				at[lane]++
			}
		}
		for lane, e := range e { // last, as this may move to another cache
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
		if e > c.told {
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
	if n <= w.cache.told && lane != again {
		w.ended[lane] = append(w.ended[lane], ended{w.cache.states[n].found, int32(at)})
	}
}
