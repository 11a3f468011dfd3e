package normal

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// need says which passes can change a text. It may name a pass that then changes nothing, and never leaves
// one out that would change something.
type need uint8

const (
	needUnwrap need = 1 << iota // in the order of passes
	needCharacters
	needMarkdown
	needSpaced
	needWords

	// unclean says that a text calls for the passes at all: without it, it stays as it is.
	unclean

	needAll = needUnwrap | needCharacters | needMarkdown | needSpaced | needWords | unclean
)

// survey says what a text needs, and where.
type survey struct {
	need need
	// lines and words are places in lines and words that markdown and words have to look at. If there are many of
	// them, or many characters beyond ASCII, they have to look at all: everywhere.
	lines, words places
	everywhere   bool
	brief        bool // the rest of the text was not looked at

	single  row // letters, digits and characters beyond ASCII that stand alone
	letters row // of them the letters of ASCII
	wides   int // characters beyond ASCII, but for those behind many of them
}

// places are some places of a text, from front to back.
type places struct {
	at [maxPlaces]int
	n  int
}

const (
	maxPlaces = 512
	maxWides  = 160 // as many as there are in a page of French; most text in another script has more
)

// row counts places in a row, each so near the last as letters of a spaced word.
type row struct{ last, n int }

func (r *row) add(i int) int {
	if i-r.last > maxGap+1 {
		r.n = 0
	}
	r.last = i
	r.n++
	return r.n
}

// look surveys a text; a brief look ends at the first character beyond ASCII.
func (v *survey) look(text string, brief bool) {
	v.need, v.everywhere, v.brief, v.wides = 0, false, false, 0
	v.lines.n, v.words.n = 0, 0
	v.single, v.letters = row{}, row{}
	i := 0
	if len(text) >= 8 {
		v.at(text, 0)
		for i = 1; i+7 <= len(text); i += 6 {
			x := binary.LittleEndian.Uint64([]byte(text[i-1 : i+7]))
			if t := x & tops; t != 0 {
				if brief || v.wides > maxWides {
					v.need, v.everywhere, v.brief = needAll, true, brief
					return
				}
				wide := t | (t - t>>7)
				x = x&^wide | ones&wide // neither letters nor spaces
			}
			for odd := oddOnes(x); odd != 0; odd &= odd - 1 {
				v.at(text, i-1+bits.TrailingZeros64(odd)/8)
			}
		}
	}
	for ; i < len(text); i++ {
		v.at(text, i)
	}
	v.need |= when(inQuotes(text), needUnwrap|unclean)
}

const ones, tops = 0x0101010101010101, 0x8080808080808080

// oddOnes looks at eight bytes of ASCII at once and sets the top bit of those that are to be looked at one by
// one: neither letter nor space, a letter between others than letters, or the middle one of three alike. The
// first and the last are there as neighbours only.
func oddOnes(x uint64) uint64 {
	const middle = tops &^ (0xff | 0xff<<56)
	lower := x | ones*0x20
	letters := (lower + ones*(0x80-'a')) &^ (lower + ones*(0x7f-'z'))
	others := (x ^ ones*' ' + ones*0x7f) &^ letters // seven bits and 0x7f make the top bit, unless they are zero
	unlike := (lower ^ lower<<8 | lower ^ lower>>8) + ones*0x7f
	single := letters &^ (letters<<8 | letters>>8)
	return (others | single | letters&^unlike) & middle
}

// at notes what one byte calls for.
func (v *survey) at(text string, i int) {
	c := text[i]
	before, after := byte('\n'), byte('\n')
	if i > 0 {
		before = text[i-1]
	}
	if i+1 < len(text) {
		after = text[i+1]
	}
	k, beside := kinds[c], kinds[before]|kinds[after]
	n := ofByte[c]
	if k&(letter|digit) != 0 && beside&(letter|digit) == 0 {
		n |= when(v.single.add(i) >= minSpell, needSpaced)
		if k&letter != 0 && i+1 < len(text) {
			n |= when(v.letters.add(i) > 2, unclean)
		}
	}
	switch {
	case k&wide != 0:
		n |= v.wide(text, i)
	case k&letter != 0:
		n |= when(c|0x20 == before|0x20 && c|0x20 == after|0x20, needWords|unclean)
	case k&digit != 0:
		n |= when(beside&letter != 0, needWords|unclean)
	case k&near != 0:
		n |= sign(c, before, after, i < 2 || text[i-2] <= ' ')
	}
	v.need |= n
	if n&needMarkdown != 0 && !v.lines.add(i) || n&needWords != 0 && !v.words.add(i) {
		v.everywhere = true
	}
}

// wide notes what a byte of a character beyond ASCII calls for: something at the first one alone.
func (v *survey) wide(text string, i int) need {
	if i > 0 && kinds[text[i-1]]&wide != 0 && !utf8.RuneStart(text[i]) {
		return 0
	}
	v.wides++
	n := needCharacters | needMarkdown | needWords | unclean
	_, size := utf8.DecodeRuneInString(text[i:])
	if i > 0 && kinds[text[i-1]]&(letter|digit) != 0 || i+size < len(text) && kinds[text[i+size]]&(letter|digit) != 0 {
		return n
	}
	n |= when(v.single.add(i) >= minSpell, needSpaced)
	v.single.last += size - 1
	return n
}

// add says whether there was room.
func (p *places) add(i int) bool {
	if p.n == len(p.at) {
		return false
	}
	p.at[p.n] = i
	p.n++
	return true
}

func when(is bool, n need) need {
	if is {
		return n
	}
	return 0
}

// ofByte is what a byte calls for wherever it stands.
var ofByte = func() (of [256]need) {
	for c, k := range kinds {
		switch {
		case k&wide != 0: // see wide
		case strings.IndexByte("`~*_|<", byte(c)) >= 0:
			of[c] = needMarkdown | unclean
		case k&mark != 0:
			of[c] = needCharacters | unclean
		}
	}
	return of
}()

// sign is what a sign calls for by its neighbours. early says that white space is all that can stand in its
// line before the one in front of it.
func sign(c, before, after byte, early bool) (n need) {
	left, right := kinds[before], kinds[after]
	word := (left|right)&letter != 0
	starts := before == '\n' || before == '\t' || before == ' '
	blank := after == ' ' || after == '\t'
	switch c {
	case '#':
		return when(starts || after == '#', needMarkdown|unclean)
	case '-':
		return when(blank && starts && (before != ' ' || early), needMarkdown|unclean)
	case '{', '[':
		return when(right&wide != 0 || strings.IndexByte("\"{[ \t\r\n", after) >= 0, needUnwrap|unclean)
	case ']':
		return when(after == '(', needMarkdown|unclean)
	case '+':
		n = when(word && !blank, unclean) | when(starts && blank, needMarkdown|unclean)
	case '@', '$':
		n = when(word, unclean) | when((left|right)&(letter|symbol|joint) != 0, needWords)
	case '.', '!':
		n = when(left&(letter|digit|symbol) != 0 && right&(letter|digit|symbol) != 0, unclean)
	}
	// The last of the signs between two letters or digits, of which one is a letter or there are more signs.
	inside := left&(letter|digit|symbol|joint) != 0 && right&(letter|digit) != 0 && left&right&digit == 0
	return n | when(inside, needWords|unclean)
}
