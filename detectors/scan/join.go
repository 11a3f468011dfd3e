package scan

import (
	"slices"
	"strings"
)

// interval is a range of byte offsets, both ends included.
type interval struct{ lo, hi int }

// chain is a plan as a text needs it. There are tens of thousands, of which each text looks at some, so they are small.
type chain struct {
	pattern       int32
	first, last   int32 // its parts: numbers of joints
	start         reach // as in plan, as what follows
	bytes, loop   int32 // numbers of sets
	solid, spaces int32
	within        bool // all parts end in one sentence, see sentences
}

// joint is one part of a chain, as planned.
type joint struct {
	part    int32
	after   reach
	between int32 // number of a set
}

// reach is a length.
type reach struct{ min, max, runes int32 }

func (l length) reach() reach { return reach{int32(l.min), int32(l.max), int32(l.runes)} }

func (s *Scanner) jointsOf(c *chain) []joint { return s.joints[c.first : c.last+1] }

// chainState is where matches of a chain may begin in one text.
type chainState struct {
	starts []interval // ascending, apart
	last   int32      // end of the first part for which starts was last extended
}

// trigger says that a chain is looked at when a part is in the text. Of all its parts this is the one
// that the fewest chains have; other and third are the next of them, or the same. Those with the same within, which is the chain's, and the same
// other stand in a row, and next is the first of them behind.
type trigger struct {
	chain, other, third, next int32
	within                    bool
}

// sentenceEnds are what ends a sentence as far as plans go: hardly any allows such a character between two parts.
const sentenceEnds = ".!?"

var sentenceEndBytes = bytesOfRunes(runeSet{'!', '!', '.', '.', '?', '?'})

// sentences counts those of a text as one goes through it, so that it is known which parts end in the same. It knows a sentence by one bit of 64, and so
// may take two that are far apart for one.
type sentences struct {
	text string
	next [len(sentenceEnds)]int // the next place of each
	n    int
}

func newSentences(text string) (s sentences) {
	s.text = text
	for k := range s.next {
		s.next[k] = -1
		s.advance(k)
	}
	return s
}

func (s *sentences) advance(k int) {
	from := s.next[k] + 1
	if n := strings.IndexByte(s.text[from:], sentenceEnds[k]); n >= 0 {
		s.next[k] = from + n
	} else {
		s.next[k] = len(s.text)
	}
}

// at gives the sentence of what ends at an offset. Calls come in the order of end.
func (s *sentences) at(end int) uint64 {
	for k := range s.next {
		for s.next[k] < end {
			s.n++
			s.advance(k)
		}
	}
	return 1 << (s.n & 63)
}

// join looks at the chains all of whose parts are in the text. A frequent word may be in hundreds of parts, of which hardly
// one in twenty is in such a chain: where these end is gathered in a second pass.
func (w *walk) join(text string) {
	of := newSentences(text)
	for _, e := range w.ended[0] {
		sentence := of.at(int(e.at))
		for _, part := range e.parts {
			if w.in[part] == 0 {
				w.present = append(w.present, part)
			}
			w.in[part] |= sentence
		}
	}
	for _, part := range w.present {
		here := w.in[part]
		for i, end := int32(w.s.triggerOf[part]), int32(w.s.triggerOf[part+1]); i < end; {
			t := &w.s.triggers[i]
			other, third := w.in[t.other], w.in[t.third]
			if t.within {
				other &= here
				third &= other
			}
			if other == 0 {
				i = t.next
				continue
			}
			if third != 0 && w.isIn(&w.s.chains[t.chain]) {
				w.asked = append(w.asked, t.chain)
			}
			i++
		}
	}
	if len(w.asked) == 0 {
		return
	}
	for _, chain := range w.asked {
		for _, j := range w.s.jointsOf(&w.s.chains[chain]) {
			w.wanted.add(int(j.part))
		}
	}
	for _, e := range w.ended[0] {
		for _, part := range e.parts {
			if w.wanted.has(int(part)) {
				w.ends[part] = append(w.ends[part], e.at)
			}
		}
	}
	for _, chain := range w.asked {
		w.joinChain(text, chain)
	}
}

// isIn says whether all parts of a chain are in the text, in one sentence where the chain is within one.
func (w *walk) isIn(c *chain) bool {
	where := ^uint64(0)
	for _, j := range w.s.jointsOf(c) {
		in := w.in[j.part]
		if c.within {
			in &= where
			where = in
		}
		if in == 0 {
			return false
		}
	}
	return true
}

// joinChain finds the ends of the first part from where the others follow in order and near enough. It
// goes from the last part to the first and keeps of each the ends from where it goes on.
func (w *walk) joinChain(text string, chain int32) {
	c := &w.s.chains[chain]
	joints := w.s.jointsOf(c)
	n := len(joints) - 1
	good := w.ends[joints[n].part]
	for i := n; i > 0 && len(good) > 0; i-- {
		ends := w.ends[joints[i-1].part]
		w.good[i&1] = w.before(text, &joints[i], ends, good, w.good[i&1][:0])
		good = w.good[i&1]
	}
	for _, end := range good {
		w.begin(text, chain, end)
	}
}

// before appends the ends from which the joint d can be reached at one of its own ends, good.
func (w *walk) before(text string, d *joint, ends, good, dst []int32) []int32 {
	least, most := d.after.min, w.most(d.after)
	between := &w.s.sets[d.between]
	g := len(good)    // good[g] is the nearest that is far enough
	clear := int32(0) // between here and there, only bytes that may be, unless
	wall := true
	for i := len(ends) - 1; i >= 0; i-- {
		at := ends[i]
		from := g
		for g > 0 && good[g-1]-at >= least {
			g--
		}
		if g == len(good) {
			continue
		}
		if g != from {
			clear, wall = good[g], false
		}
		if good[g]-at > most {
			continue
		}
		for ; clear > at && !wall; clear-- {
			wall = !between.has(text[clear-1])
		}
		if !wall {
			dst = append(dst, at)
		}
	}
	slices.Reverse(dst)
	return dst
}

// most is the upper bound of a length in the text that was seen so far.
func (w *walk) most(l reach) int32 {
	if w.foreign {
		return l.max
	}
	return l.runes
}

// begin takes note of where a match may begin if the first part of the chain ends at end. Calls for
// one chain come in the order of end.
func (w *walk) begin(text string, chain, end int32) {
	c, st := &w.s.chains[chain], &w.chains[chain]
	lo, hi := max(int(end-w.most(c.start)), 0), int(end-c.start.min)
	bytes, loop := &w.s.sets[c.bytes], &w.s.sets[c.loop]
	n, solid, spaces := len(st.starts), c.solid, c.spaces
	inSpace := false
	for i := int(end); i > lo; i-- {
		if n > 0 && i == int(st.last) { // it is known how far one gets from here
			lo = max(lo, st.starts[n-1].lo)
			break
		}
		b := text[i-1]
		if !loop.has(b) {
			solid--
		}
		if is := space.has(b); is != inSpace {
			if inSpace = is; is {
				spaces--
			}
		}
		if solid < 0 || spaces < 0 || !bytes.has(b) {
			lo = i
		}
	}
	if hi < lo {
		return
	}
	st.last = end
	if n > 0 && lo <= st.starts[n-1].hi+1 {
		st.starts[n-1].hi = hi
		return
	}
	if n == 0 {
		w.open = append(w.open, chain)
		if !w.hit[c.pattern] {
			w.hit[c.pattern] = true
			w.hits = append(w.hits, c.pattern)
		}
	}
	st.starts = append(st.starts, interval{lo, hi})
}
