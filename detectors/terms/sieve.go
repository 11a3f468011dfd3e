package terms

import (
	"slices"
	"unicode/utf8"
)

// sieve skips what no term begins in (Wu & Manber 1994). An occurrence has at least so many bytes; of the blocks of four bytes that are
// looked at, one lies within these wherever it begins, and must be a block of some term's beginning.
type sieve struct {
	least  int // code points of the shortest term, for case may change the bytes; 0: nothing is skipped
	blocks [1 << sieveBits / 64]uint64
}

const block, sieveBits = 4, 13

func newSieve(a *automaton, terms []string) *sieve {
	s := &sieve{}
	if len(terms) == 0 || slices.Min(a.runes) < 2*block {
		return s
	}
	s.least = slices.Min(a.runes)
	for _, t := range terms {
		begin := len(string([]rune(t)[:s.least]))
		for end := block; end <= begin; end++ {
			at := blockOf(a, t[end-block:end])
			s.blocks[at/64] |= 1 << (at % 64)
		}
	}
	return s
}

// blockOf is the place of a block, in any case.
func blockOf(a *automaton, b string) uint32 {
	_ = b[3]
	x := uint32(a.class[b[0]]) | uint32(a.class[b[1]])<<8 | uint32(a.class[b[2]])<<16 | uint32(a.class[b[3]])<<24
	return x * 0x9e3779b1 >> (32 - sieveBits)
}

// skip gives the first place from i on at which a term may begin, the text's end where none does.
func (s *sieve) skip(a *automaton, text string, i int) int {
	if s.least == 0 {
		return i
	}
	for end := i + s.least; end <= len(text); end += s.least - block + 1 {
		b := text[end-block : end]
		at := blockOf(a, b)
		// What a byte outside ASCII is in lower case, and how long, is not known here.
		if s.blocks[at/64]>>(at%64)&1 != 0 || b[0]|b[1]|b[2]|b[3] >= utf8.RuneSelf {
			return end - s.least
		}
	}
	return len(text)
}
