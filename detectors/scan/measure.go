package scan

import (
	"regexp/syntax"
	"unicode/utf8"
)

// endless stands for "no bound" in lengths; sums and products stop there.
const endless = 1 << 30

// length is how much text an expression may match: at least min and at most max bytes, or at most
// runes bytes if all of them are ASCII.
type length struct{ min, max, runes int }

var never = length{min: endless} // the length of an expression that cannot match

func (l length) plus(o length) length {
	return length{min(l.min+o.min, endless), min(l.max+o.max, endless), min(l.runes+o.runes, endless)}
}

func (l length) or(o length) length {
	return length{min(l.min, o.min), max(l.max, o.max), max(l.runes, o.runes)}
}

// times is the length of lo..hi repetitions; hi < 0 is no bound.
func (l length) times(lo, hi int) length {
	if hi < 0 {
		hi = endless
	}
	return length{min(l.min*lo, endless), min(l.max*hi, endless), min(l.runes*hi, endless)}
}

// measure bounds the length of every match of re.
func (pl *planner) measure(re *syntax.Regexp) length {
	if len(re.Sub) < 2 {
		return pl.measureAnew(re)
	}
	l, ok := pl.lengths[re]
	if !ok {
		l = pl.measureAnew(re)
		pl.lengths[re] = l
	}
	return l
}

func (pl *planner) measureAnew(re *syntax.Regexp) length {
	switch re.Op {
	case syntax.OpNoMatch:
		return never
	case syntax.OpLiteral:
		var l length
		for _, r := range re.Rune {
			l = l.plus(runeLength(orbit(r, re.Flags&syntax.FoldCase != 0)))
		}
		return l
	case syntax.OpCharClass:
		return runeLength(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return runeLength(anyRune)
	case syntax.OpCapture:
		return pl.measure(re.Sub[0])
	case syntax.OpStar:
		return pl.measure(re.Sub[0]).times(0, -1)
	case syntax.OpPlus:
		return pl.measure(re.Sub[0]).times(1, -1)
	case syntax.OpQuest:
		return pl.measure(re.Sub[0]).times(0, 1)
	case syntax.OpRepeat:
		return pl.measure(re.Sub[0]).times(re.Min, re.Max)
	case syntax.OpConcat:
		return pl.lengthOf(re.Sub)
	case syntax.OpAlternate:
		l := never
		for _, sub := range re.Sub {
			l = l.or(pl.measure(sub))
		}
		return l
	}
	return length{} // the empty string and the assertions
}

// lengthOf bounds the length of every match of the factors in a row.
func (pl *planner) lengthOf(items []*syntax.Regexp) length {
	var l length
	for _, it := range items {
		l = l.plus(pl.measure(it))
	}
	return l
}

// solid gives a number of bytes and a set of bytes: no match of re holds more than so many bytes that are
// not in the set. The set is what is repeated without bound, such as the white space of `a\s+b`.
func (pl *planner) solid(re *syntax.Regexp) (n int, loop bytes) {
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus:
		return 0, pl.bytesIn(re)
	case syntax.OpRepeat:
		if re.Max < 0 {
			return 0, pl.bytesIn(re)
		}
		n, loop = pl.solid(re.Sub[0])
		return min(n*re.Max, endless), loop
	case syntax.OpCapture, syntax.OpQuest, syntax.OpConcat, syntax.OpAlternate:
		for _, sub := range re.Sub {
			m, l := pl.solid(sub)
			loop = loop.or(l)
			if re.Op == syntax.OpAlternate {
				n = max(n, m)
			} else {
				n = min(n+m, endless)
			}
		}
		return n, loop
	}
	return pl.measure(re).max, loop
}

// space is the white space of \s.
var space = bytesOfRunes(runeSet{'\t', '\n', '\f', '\r', ' ', ' '})

// spaces gives a number: no match of re holds white space in more than so many places, apart from each other.
// It tells how many words `a (\w+ )?b` spans, where nothing else does.
func (pl *planner) spaces(re *syntax.Regexp) (n int) {
	b := pl.bytesIn(re)
	switch {
	case b.and(space) == bytes{}:
		return 0
	case b.or(space) == space && re.Op != syntax.OpConcat && re.Op != syntax.OpLiteral:
		return 1
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r < utf8.RuneSelf && space.has(byte(r)) {
				n++
			}
		}
		return n
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpQuest:
		return pl.spaces(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			n = min(n+pl.spaces(sub), endless)
		}
		return n
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			n = max(n, pl.spaces(sub))
		}
		return n
	case syntax.OpRepeat:
		if re.Max >= 0 {
			return min(pl.spaces(re.Sub[0])*re.Max, endless)
		}
	}
	return endless
}

// runeLength is the length of one rune of the set; U+FFFD is also any byte that is not valid UTF-8.
func runeLength(s runeSet) length {
	if len(s) == 0 {
		return never
	}
	l := length{encodedLen(s[0]), encodedLen(s[len(s)-1]), 1}
	for i := 0; i < len(s); i += 2 {
		if s[i] <= utf8.RuneError && utf8.RuneError <= s[i+1] {
			l.min = 1
		}
	}
	return l
}

func encodedLen(r rune) int {
	switch {
	case r < 1<<7:
		return 1
	case r < 1<<11:
		return 2
	case r < 1<<16:
		return 3
	}
	return 4
}

// bytesIn is the set of all bytes that a match of re may hold.
func (pl *planner) bytesIn(re *syntax.Regexp) bytes {
	if len(re.Sub) < 2 {
		return pl.bytesInAnew(re)
	}
	b, ok := pl.held[re]
	if !ok {
		b = pl.bytesInAnew(re)
		pl.held[re] = b
	}
	return b
}

func (pl *planner) bytesInAnew(re *syntax.Regexp) bytes {
	switch re.Op {
	case syntax.OpLiteral:
		var b bytes
		for _, r := range re.Rune {
			b = b.or(bytesOfRunes(orbit(r, re.Flags&syntax.FoldCase != 0)))
		}
		return b
	case syntax.OpCharClass:
		return bytesOfRunes(re.Rune)
	case syntax.OpAnyChar:
		return bytesOfRunes(anyRune)
	case syntax.OpAnyCharNotNL:
		return bytesOfRunes(notNL)
	}
	return pl.bytesOf(re.Sub)
}

// bytesOf is bytesIn of several.
func (pl *planner) bytesOf(items []*syntax.Regexp) bytes {
	var b bytes
	for _, it := range items {
		b = b.or(pl.bytesIn(it))
	}
	return b
}

func bytesOfRunes(s runeSet) bytes {
	var b bytes
	for i := 0; i < len(s); i += 2 {
		for r := s[i]; r <= s[i+1] && r < utf8.RuneSelf; r++ {
			b.add(byte(r))
		}
		if s[i+1] >= utf8.RuneSelf {
			b = b.or(foreignBytes)
		}
	}
	return b
}
