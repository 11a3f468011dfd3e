package scan

import (
	"cmp"
	"slices"
	"sync/atomic"
	"unicode/utf8"
)

// Units of walk.budget: one step over a byte costs 1.
const (
	buildCost   = 64 // computing an entry of the table
	matchBudget = 1 << 14
	byteBudget  = 16 // for each byte of the text
)

// findAll appends the matches of one pattern, given where they may begin.
//
// Leftmost-first and without overlap means: from the end of one match on, the first place where a match
// begins, and there the one that the order of alternatives prefers. Every place where a match begins
// lies in one of the intervals, and what begins at a place does not depend on earlier matches, so that
// trying the places in order gives what package regexp gives.
//
// A pattern that begins often, runs far, and then fails (a.*b against many a and no b) would make this
// quadratic; it has a budget, beyond which package regexp does the work, in time linear in the text.
func (w *walk) findAll(text string, pattern int32, dst []Match) []Match {
	from := len(dst)
	w.budget = matchBudget + byteBudget*len(text)
	first := &w.s.program.first[pattern]
	at := 0
	for _, iv := range w.intervals(pattern) {
		at = boundary(text, max(at, iv.lo))
		for at <= iv.hi {
			if first.has(text[at]) {
				if end := w.match(text, pattern, at); end > at {
					dst = append(dst, Match{pattern, int32(at), int32(end)})
					at = end
					continue
				}
				if w.budget < 0 {
					return w.findAllSlowly(text, pattern, dst[:from])
				}
			}
			_, width := w.s.program.alphabet.decode(text[at:])
			at += width
		}
	}
	return dst
}

func (w *walk) findAllSlowly(text string, pattern int32, dst []Match) []Match {
	for _, m := range w.s.slow[pattern]().FindAllStringIndex(text, -1) {
		dst = append(dst, Match{pattern, int32(m[0]), int32(m[1])})
	}
	return dst
}

// intervals gives the starts of all chains of a pattern, ascending by lo. They may overlap.
func (w *walk) intervals(pattern int32) []interval {
	of := w.s.chainsOf[pattern]
	if of.lo == of.hi {
		return w.chains[of.lo].starts
	}
	w.merged = w.merged[:0]
	for i := of.lo; i <= of.hi; i++ {
		w.merged = append(w.merged, w.chains[i].starts...)
	}
	slices.SortFunc(w.merged, func(a, b interval) int { return cmp.Compare(a.lo, b.lo) })
	return w.merged
}

// match gives the end of the match of the pattern that begins at start, the preferred one, or -1.
func (w *walk) match(text string, pattern int32, start int) int {
	a := w.s.program.alphabet
	prev := a.before(text, start)
	row := w.cache.start(pattern, prev)
	for row == 0 {
		w.cache = w.s.renew(w.cache)
		row = w.cache.start(pattern, prev)
	}
	table := w.cache.table
	end, i := -1, start
	for i < len(text) {
		e := atomic.LoadUint32(&table[row+uint32(a.ascii[text[i]])])
		if e-1 < dead-1 { // known, going on, and nothing matched
			row = e
			i++
			continue
		}
		class, width := a.decode(text[i:])
		e = w.next(&row, class)
		table = w.cache.table
		if e&matched != 0 {
			end = i
		}
		if e&dead != 0 {
			w.budget -= i - start + 1
			return end
		}
		row = e & rowBits
		i += width
	}
	w.budget -= i - start + 1
	if w.next(&row, a.end)&matched != 0 {
		end = i
	}
	return end
}

// before is the kind of the symbol before offset i, which must be where a rune begins.
func (a *alphabet) before(text string, i int) kind {
	switch {
	case i == 0:
		return edge
	case text[i-1] < utf8.RuneSelf:
		return a.kind[a.ascii[text[i-1]]]
	}
	return other
}

// boundary gives the first offset from i on where a rune begins, as one finds them going from the
// beginning of the text.
func boundary(text string, i int) int {
	if i >= len(text) || utf8.RuneStart(text[i]) {
		return i
	}
	for k := i - 1; k >= 0 && k > i-utf8.UTFMax; k-- {
		if utf8.RuneStart(text[k]) {
			if _, width := utf8.DecodeRuneInString(text[k:]); k+width > i {
				return k + width
			}
			break
		}
	}
	return i // a stray continuation byte
}
