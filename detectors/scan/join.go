package scan

import "sort"

// use says where a part stands: as which joint of which chain.
type use struct{ chain, joint int32 }

// interval is a range of byte offsets, both ends included.
type interval struct{ lo, hi int }

// chainState is what is known of a chain in one text.
type chainState struct {
	ends   [][]int32  // by joint but the last: where it ended, given that the joints before it did
	used   int        // how many ends of the first joint are done with
	wall   int        // no bytes that are not in between from here to seen; see chain
	seen   int        // how far that is known
	starts []interval // where a match may begin; ascending, apart
	last   int32      // end of the first joint for which starts was last extended
}

// report tells the chains that parts ended. Calls come in the order of end.
func (w *walk) report(text string, parts []uint32, end int) {
	for _, part := range parts {
		for _, u := range w.s.uses[part] {
			w.join(text, u, int32(end))
		}
	}
}

func (w *walk) join(text string, u use, end int32) {
	c, st := &w.s.chains[u.chain], &w.chains[u.chain]
	if len(c.parts) == 1 {
		w.begin(text, u.chain, end)
		return
	}
	if u.joint == 0 {
		if len(st.ends[0]) == 0 {
			w.open = append(w.open, u.chain)
		}
	} else if d := c.parts[u.joint].after; !within(st.ends[u.joint-1], int(end)-w.most(d), int(end)-d.min) {
		return
	}
	if int(u.joint) < len(st.ends) {
		st.ends[u.joint] = append(st.ends[u.joint], end)
		return
	}
	lo, hi := int(end)-w.most(c.reach), int(end)-c.reach.min
	for i := int(end); i > max(lo, st.seen); i-- {
		if !c.between.has(text[i-1]) {
			st.wall = i
			break
		}
	}
	st.seen = int(end)
	lo = max(lo, st.wall)
	firsts := st.ends[0]
	for ; st.used < len(firsts) && int(firsts[st.used]) <= hi; st.used++ {
		if first := firsts[st.used]; int(first) >= lo {
			w.begin(text, u.chain, first)
		}
	}
}

// most is the upper bound of a length in the text that was seen so far.
func (w *walk) most(l length) int {
	if w.foreign {
		return l.max
	}
	return l.runes
}

// within says whether one of the ascending offsets lies in lo..hi.
func within(offsets []int32, lo, hi int) bool {
	i := sort.Search(len(offsets), func(i int) bool { return int(offsets[i]) > hi })
	return i > 0 && int(offsets[i-1]) >= lo
}

// begin takes note of where a match may begin if the first part of the chain ends at end. Calls for
// one chain come in the order of end.
func (w *walk) begin(text string, chain, end int32) {
	c, st := &w.s.chains[chain], &w.chains[chain]
	lo, hi := max(int(end)-w.most(c.start), 0), int(end)-c.start.min
	n, solid := len(st.starts), c.solid
	for i := int(end); i > lo; i-- {
		if n > 0 && i == int(st.last) { // it is known how far one gets from here
			lo = max(lo, st.starts[n-1].lo)
			break
		}
		b := text[i-1]
		if !c.loop.has(b) {
			solid--
		}
		if solid < 0 || !c.bytes.has(b) {
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
		if len(c.parts) == 1 {
			w.open = append(w.open, chain)
		}
		if !w.hit[c.pattern] {
			w.hit[c.pattern] = true
			w.hits = append(w.hits, c.pattern)
		}
	}
	st.starts = append(st.starts, interval{lo, hi})
}
