package scan

import (
	"fmt"
	"iter"
	"math/bits"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// runeSet is a set of runes as sorted, disjoint, inclusive ranges: lo, hi, lo, hi, ...
type runeSet []rune

var (
	anyRune   = runeSet{0, unicode.MaxRune}
	notNL     = runeSet{0, '\n' - 1, '\n' + 1, unicode.MaxRune}
	wordRunes = runeSet{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
	asciiOnly = runeSet{0, utf8.RuneSelf - 1}
	newlineIs = runeSet{'\n', '\n'}
)

// runesOf is the set of runes that an instruction matches, folding included.
func runesOf(in *syntax.Inst) runeSet {
	switch in.Op {
	case syntax.InstRuneAny:
		return anyRune
	case syntax.InstRuneAnyNotNL:
		return notNL
	}
	if len(in.Rune) != 1 {
		return in.Rune
	}
	return orbit(in.Rune[0], in.Op == syntax.InstRune && syntax.Flags(in.Arg)&syntax.FoldCase != 0)
}

// orbit is one rune, or with fold all that Unicode simple folding makes equal to it: k, K and U+212A.
func orbit(r rune, fold bool) runeSet {
	if uint32(r) < utf8.RuneSelf && fold {
		return asciiOrbits[r]
	}
	return newOrbit(r, fold)
}

var asciiOrbits = func() (all [utf8.RuneSelf]runeSet) {
	for r := range all {
		all[r] = newOrbit(rune(r), true)
	}
	return all
}()

func newOrbit(r rune, fold bool) runeSet {
	all := []rune{r}
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			all = append(all, f)
		}
		slices.Sort(all)
	}
	set := make(runeSet, 0, 2*len(all))
	for _, x := range all {
		set = append(set, x, x)
	}
	return set
}

// kind is what an assertion (\b, ^, $) can see of the symbol on one side of it.
type kind uint8

const (
	other   kind = iota
	word         // an ASCII word character
	newline      // told apart from other only where a pattern has a line assertion
	edge         // the beginning or the end of the text
	kinds
)

// notInside is an assertion of our own: not between two word characters. Other than \b it also holds
// between two other ones.
const notInside syntax.EmptyOp = 1 << 6

// assertions are the empty-width conditions that hold between two neighbours.
var assertions = func() (all [kinds][kinds]syntax.EmptyOp) {
	for prev := range kinds {
		for next := range kinds {
			op := syntax.EmptyNoWordBoundary
			if (prev == word) != (next == word) {
				op = syntax.EmptyWordBoundary
			}
			if prev != word || next != word {
				op |= notInside
			}
			switch prev {
			case edge:
				op |= syntax.EmptyBeginText | syntax.EmptyBeginLine
			case newline:
				op |= syntax.EmptyBeginLine
			}
			switch next {
			case edge:
				op |= syntax.EmptyEndText | syntax.EmptyEndLine
			case newline:
				op |= syntax.EmptyEndLine
			}
			all[prev][next] = op
		}
	}
	return all
}()

// alphabet maps runes to symbol classes. Runes of one class are alike to every pattern, so that an
// automaton needs one column a class. Two more symbols go before the classes.
type alphabet struct {
	ascii   [256]uint16 // class of an ASCII byte; undecoded for other bytes
	page    [(unicode.MaxRune >> 8) + 1]uint16
	leaf    [][256]uint16 // classes of 256 runes; equal leaves are held once
	kind    []kind        // of each symbol
	foreign []bool        // the class holds a rune above 0x7f
	size    int           // the number of symbols
}

const (
	undecoded  = iota // a byte above 0x7f, of which nothing is known before it is decoded
	ending            // the end of the text
	firstClass        // ASCII classes come first
	maxSymbols = 1 << 16
)

// frequent are the characters of most texts, the most frequent first. Their classes come first, so that
// most steps of the automaton touch one cache line of a row.
const frequent = " etaoinsrhldcumfgpwybvk,.\n"

// decode gives the class and the width of the rune at the beginning of text, which must not be empty.
// A byte that is not valid UTF-8 is U+FFFD of width 1, as in package regexp.
func (a *alphabet) decode(text string) (class, width int) {
	if c := text[0]; c < utf8.RuneSelf {
		return int(a.ascii[c]), 1
	}
	r, w := utf8.DecodeRuneInString(text)
	return int(a.leaf[a.page[r>>8]][r&0xff]), w
}

// newAlphabet divides all runes by the given sets and returns, beside the alphabet, each set as a set
// of classes.
func newAlphabet(sets []runeSet, lines bool) (*alphabet, []bitset, error) {
	// ASCII is told apart from the rest, so that no foreign rune is taken for a word character.
	basis := append([]runeSet{asciiOnly, wordRunes, newlineIs}, sets...)
	cuts := []rune{0, unicode.MaxRune + 1}
	for _, s := range basis {
		for i := 0; i < len(s); i += 2 {
			cuts = append(cuts, s[i], s[i+1]+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	classOf, n := refine(cuts, basis)
	if n > maxSymbols {
		return nil, nil, fmt.Errorf("patterns tell %d kinds of characters apart, more than %d", n, maxSymbols)
	}

	a := &alphabet{kind: make([]kind, n), foreign: make([]bool, n), size: n}
	a.kind[ending] = edge
	classes := make([]bitset, len(sets))
	for i, s := range sets {
		classes[i] = newBitset(n)
		eachInterval(cuts, s, func(k int) { classes[i].add(classOf[k]) })
	}
	eachInterval(cuts, wordRunes, func(k int) { a.kind[classOf[k]] = word })
	if lines {
		eachInterval(cuts, newlineIs, func(k int) { a.kind[classOf[k]] = newline })
	}
	a.fill(cuts, classOf)
	return a, classes, nil
}

// refine gives equal classes to the intervals between cuts that lie in the same sets; size is the
// number of symbols then.
func refine(cuts []rune, sets []runeSet) (classOf []int, size int) {
	classOf = make([]int, len(cuts)-1)
	n := 1
	for _, s := range sets {
		moved := map[int]int{}
		eachInterval(cuts, s, func(k int) {
			to, ok := moved[classOf[k]]
			if !ok {
				to = n
				n++
				moved[classOf[k]] = to
			}
			classOf[k] = to
		})
	}
	dense := map[int]int{}
	number := func(c int) {
		if _, ok := dense[c]; !ok {
			dense[c] = firstClass + len(dense)
		}
	}
	for _, r := range frequent {
		eachInterval(cuts, runeSet{r, r}, func(k int) { number(classOf[k]) })
	}
	for _, c := range classOf {
		number(c)
	}
	for k, c := range classOf {
		classOf[k] = dense[c]
	}
	return classOf, firstClass + len(dense)
}

// eachInterval calls f with the index of every interval between cuts that holds a rune of the set.
func eachInterval(cuts []rune, s runeSet, f func(k int)) {
	for i := 0; i < len(s); i += 2 {
		k, exact := slices.BinarySearch(cuts, s[i])
		if !exact {
			k--
		}
		for ; k < len(cuts)-1 && cuts[k] <= s[i+1]; k++ {
			f(k)
		}
	}
}

// fill builds the look-up tables.
func (a *alphabet) fill(cuts []rune, classOf []int) {
	seen := map[[256]uint16]uint16{}
	even := map[int]uint16{} // leaves of one class
	k := 0
	for p := range a.page {
		first, last := rune(p<<8), rune(p<<8|0xff)
		for first >= cuts[k+1] {
			k++
		}
		if id, ok := even[classOf[k]]; ok && last < cuts[k+1] {
			a.page[p] = id
			continue
		}
		var leaf [256]uint16
		for r, i := first, k; r <= last; r++ {
			if r >= cuts[i+1] {
				i++
			}
			leaf[r&0xff] = uint16(classOf[i])
		}
		id, ok := seen[leaf]
		if !ok {
			id = uint16(len(a.leaf))
			seen[leaf] = id
			a.leaf = append(a.leaf, leaf)
		}
		if last < cuts[k+1] {
			even[classOf[k]] = id
		}
		a.page[p] = id
	}
	for c := range a.ascii {
		a.ascii[c] = undecoded
		if c < utf8.RuneSelf {
			a.ascii[c] = a.leaf[a.page[0]][c]
		}
	}
	for i, c := range classOf {
		a.foreign[c] = a.foreign[c] || cuts[i] >= utf8.RuneSelf
	}
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (b bitset) add(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b bitset) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }

func (b bitset) or(o bitset) {
	for i := range b {
		b[i] |= o[i]
	}
}

func (b bitset) fill() {
	for i := range b {
		b[i] = ^uint64(0)
	}
}

func (b bitset) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range b {
			for ; w != 0; w &= w - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}
