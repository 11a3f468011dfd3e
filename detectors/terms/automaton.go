package terms

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// automaton finds every occurrence of many terms in one pass: Aho–Corasick over the bytes of the
// lower-cased text, as a table of next states. It is read-only once built.
type automaton struct {
	class  [256]uint8 // column of a byte; 0 for bytes in no term. Upper-case ASCII shares the lower case's
	width  int        // columns
	next   []int32    // state*width + class -> state; in moves the way that all walks
	moves  []int32    // next with each state as its row's offset, and ending set where a term ends
	ends   []int32    // by state: the longest term that ends here, or -1
	suffix []int32    // by state: the longest proper suffix state at which a term ends, or 0
	runes  []int      // by term: its length in code points
	sieve  *sieve
}

// occurrence is a term in a text, in bytes of the original.
type occurrence struct{ term, start, end int }

// newAutomaton builds the table of lower-case terms, which must be distinct and not empty.
func newAutomaton(terms []string) *automaton {
	a := &automaton{width: 1}
	for _, t := range terms {
		for i := range len(t) {
			if a.class[t[i]] == 0 {
				a.class[t[i]] = uint8(a.width) // 255 at most: 0xff is in no UTF-8 text
				a.width++
			}
		}
	}
	for c := 'A'; c <= 'Z'; c++ {
		a.class[c] = a.class[c|0x20]
	}
	a.addState()
	for i, t := range terms {
		s := int32(0)
		for j := range len(t) {
			at := int(s)*a.width + int(a.class[t[j]])
			if a.next[at] == 0 {
				a.next[at] = a.addState()
			}
			s = a.next[at]
		}
		a.ends[s] = int32(i)
		a.runes = append(a.runes, utf8.RuneCountInString(t))
	}
	a.sieve = newSieve(a, terms)
	a.link()
	a.moves = make([]int32, len(a.next))
	for i, s := range a.next {
		if a.moves[i] = s * int32(a.width); a.ends[s] >= 0 || a.suffix[s] != 0 {
			a.moves[i] |= ending
		}
	}
	a.next = nil
	return a
}

// ending marks a move to a state at which at least one term ends.
const ending = 1 << 30

func (a *automaton) addState() int32 {
	a.next = append(a.next, make([]int32, a.width)...)
	a.ends = append(a.ends, -1)
	a.suffix = append(a.suffix, 0)
	return int32(len(a.ends) - 1)
}

// link fills in the moves after a mismatch, state by state in order of depth.
func (a *automaton) link() {
	fail := make([]int32, len(a.ends))
	queue := make([]int32, 0, len(a.ends))
	for _, s := range a.next[:a.width] {
		if s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		f := fail[s]
		if a.suffix[s] = a.suffix[f]; a.ends[f] >= 0 {
			a.suffix[s] = f
		}
		for c := range a.width {
			at, elsewhere := int(s)*a.width+c, a.next[int(f)*a.width+c]
			if to := a.next[at]; to != 0 {
				fail[to] = elsewhere
				queue = append(queue, to)
			} else {
				a.next[at] = elsewhere
			}
		}
	}
}

// find gives the occurrences that stay when of overlapping ones the longest wins (the earlier of two
// equally long), ordered by start.
func (a *automaton) find(text string) []occurrence {
	found := a.all(text)
	if len(found) > 1 {
		found = longest(found)
	}
	return found
}

// all gives every occurrence, ordered by end.
func (a *automaton) all(text string) (found []occurrence) {
	row, i := int32(0), 0
	for i < len(text) {
		if row == 0 {
			if i = a.sieve.skip(a, text, i); i == len(text) {
				break
			}
		}
		if c := text[i]; c < utf8.RuneSelf {
			row = a.moves[row+int32(a.class[c])]
			i++
		} else {
			r, size := utf8.DecodeRuneInString(text[i:])
			row = a.step(row, r, size)
			i += size
		}
		if row&ending == 0 {
			continue
		}
		row &^= ending
		for e := row / int32(a.width); e != 0; e = a.suffix[e] {
			if t := a.ends[e]; t >= 0 {
				found = append(found, occurrence{int(t), back(text, i, a.runes[t]), i})
			}
		}
	}
	return found
}

// step moves over a code point outside ASCII in its lower case, which may be shorter or longer.
func (a *automaton) step(row int32, r rune, size int) int32 {
	if r == utf8.RuneError && size == 1 {
		return 0 // a broken byte is part of no term
	}
	var b [utf8.UTFMax]byte
	for _, c := range b[:utf8.EncodeRune(b[:], lowerRune(r))] {
		row = a.moves[row&^ending+int32(a.class[c])]
	}
	return row
}

// back gives the offset of the n-th code point before end.
func back(text string, end, n int) int {
	for ; n > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:end])
		end -= size
	}
	return end
}

func longest(found []occurrence) []occurrence {
	slices.SortFunc(found, func(x, y occurrence) int {
		return cmp.Or(cmp.Compare(y.end-y.start, x.end-x.start), cmp.Compare(x.start, y.start))
	})
	from, to := found[0].start, found[0].end
	for _, o := range found {
		from, to = min(from, o.start), max(to, o.end)
	}
	// What is taken is at least as long as what is asked, so it covers one of its two ends.
	taken := make([]bool, to-from)
	kept := found[:0]
	for _, o := range found {
		if taken[o.start-from] || taken[o.end-1-from] {
			continue
		}
		for i := o.start; i < o.end; i++ {
			taken[i-from] = true
		}
		kept = append(kept, o)
	}
	slices.SortFunc(kept, func(x, y occurrence) int { return cmp.Compare(x.start, y.start) })
	return kept
}
