package scan

import (
	"cmp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// What matching one pattern in one text may cost before package regexp takes over, in instructions.
const (
	matchBudget = 1 << 12
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
	x := w.s.exact[pattern]()
	if x == nil {
		return w.findAllSlowly(text, pattern, dst)
	}
	w.matcher.budget = matchBudget + byteBudget*len(text)
	at := 0
	for _, iv := range w.intervals(pattern) {
		at = boundary(text, max(at, iv.lo))
		for at <= iv.hi {
			if x.mayBegin(w.s.program.alphabet, text, at) {
				if end := w.matcher.match(text, x, at); end > at {
					dst = append(dst, Match{pattern, int32(at), int32(end)})
					at = end
					continue
				}
				if w.matcher.budget < 0 {
					return w.findAllSlowly(text, pattern, dst[:from])
				}
			}
			if at++; text[at-1] >= utf8.RuneSelf {
				_, width := w.s.program.alphabet.decode(text[at-1:])
				at += width - 1
			}
		}
	}
	return dst
}

// mayBegin says whether a match may begin at a place, by the byte before it and those ahead.
func (x *exact) mayBegin(a *alphabet, text string, at int) bool {
	c := text[at]
	if !x.first.has(c) || !x.inside && at > 0 && wordBytes.has(text[at-1]) && wordBytes.has(c) {
		return false
	}
	if c >= utf8.RuneSelf || at+1 == len(text) || text[at+1] >= utf8.RuneSelf {
		return true
	}
	if !x.pairs[a.ascii[c]].has(int(a.ascii[text[at+1]])) {
		return false
	}
	rest := text[at+2:]
	for i, classes := range x.ahead {
		switch {
		case i == len(rest):
			return false
		case rest[i] >= utf8.RuneSelf:
			return true
		case !classes.has(int(a.ascii[rest[i]])):
			return false
		}
	}
	return true
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

// matcher runs one pattern from one place, keeping the list of instructions that are reached, in order
// of preference. It keeps no states: what hits differs from text to text, and would only fill a cache.
type matcher struct {
	p *program
	closer
	now, next []uint32
	budget    int
}

// match gives the end of the match that begins at start, the preferred one, or -1.
func (m *matcher) match(text string, x *exact, start int) int {
	a := m.p.alphabet
	m.inst = x.inst
	if len(m.seen) < len(x.inst) {
		m.seen, m.gen = make([]uint32, len(x.inst)), 0
	}
	class, width := a.decode(text[start:])
	m.now = append(m.now[:0], x.begin[a.before(text, start)].after(class)...)
	end, prev := -1, a.kind[class]
	for i := start + width; len(m.now) > 0; {
		class, width := ending, 1
		if i < len(text) {
			if class = int(a.ascii[text[i]]); text[i] >= utf8.RuneSelf {
				class, width = a.decode(text[i:])
			}
		}
		next := a.kind[class]
		m.budget -= len(m.now) + 1
		if m.step(assertions[prev][next], class) {
			end = i
		}
		m.now, m.next = m.next, m.now
		prev = next
		i += width
	}
	return end
}

// step takes the list over one symbol, from now to next. It says whether there is a match before the
// symbol; what is preferred less than that is given up.
func (m *matcher) step(holds syntax.EmptyOp, class int) bool {
	m.reset()
	next, stack := m.next[:0], m.stack[:0]
	inst, seen, gen := m.inst, m.seen, m.gen
	for _, pc := range m.now {
		for {
			in := &inst[pc]
			if seen[pc] != gen {
				seen[pc] = gen
				switch in.op {
				case symbol:
					if m.p.sets[in.arg].has(class) {
						next = append(next, in.out)
					}
				case alt:
					stack = append(stack, in.arg)
					pc = in.out
					continue
				case pass:
					pc = in.out
					continue
				case assert:
					if syntax.EmptyOp(in.arg)&^holds == 0 {
						pc = in.out
						continue
					}
				case match:
					m.next, m.stack = next, stack
					return true
				}
			}
			if len(stack) == 0 {
				break
			}
			pc, stack = stack[len(stack)-1], stack[:len(stack)-1]
		}
	}
	m.next, m.stack = next, stack
	return false
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
