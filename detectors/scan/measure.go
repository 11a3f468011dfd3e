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

// times is the length of lo..hi repetitions.
func (l length) times(lo, hi int) length {
	return length{min(l.min*lo, endless), min(l.max*hi, endless), min(l.runes*hi, endless)}
}

// facts are what the planner asks of an expression.
type facts struct {
	span length
	held bytes // all that a match may hold
	// No match holds more than solid bytes that are not in loop, which is what is repeated without bound, such
	// as the white space of `a\s+b`.
	solid int
	loop  bytes
	// No match holds white space in more than spaces places, apart from each other. It tells how many words
	// `a (\w+ )?b` spans, where nothing else does.
	spaces int
	size   int  // about the number of phrases, up to maxPhrases
	gap    bool // a piece of it can run over several words
}

// of gives the facts of an expression. They are the same wherever it stands.
func (pl *planner) of(re *syntax.Regexp) *facts {
	f, ok := pl.known[re]
	if !ok {
		own := pl.factsOf(re)
		f = &own
		pl.known[re] = f
	}
	return f
}

func (pl *planner) factsOf(re *syntax.Regexp) facts {
	switch re.Op {
	case syntax.OpLiteral:
		f := facts{size: 1}
		for _, r := range re.Rune {
			of := factsOfLiteral(r, re.Flags&syntax.FoldCase != 0)
			f.add(&of)
		}
		return f
	case syntax.OpCharClass:
		return factsOfRune(re.Rune)
	case syntax.OpAnyChar:
		return factsOfRune(anyRune)
	case syntax.OpAnyCharNotNL:
		return factsOfRune(notNL)
	case syntax.OpNoMatch:
		return facts{span: never, size: 1}
	case syntax.OpCapture:
		return *pl.of(re.Sub[0])
	case syntax.OpConcat:
		return pl.ofRow(re.Sub)
	case syntax.OpAlternate:
		f := facts{span: never}
		for _, sub := range re.Sub {
			g := pl.of(sub)
			f.span, f.held = f.span.or(g.span), f.held.or(g.held)
			f.solid, f.loop = max(f.solid, g.solid), f.loop.or(g.loop)
			f.spaces = max(f.spaces, g.spaces)
			f.size, f.gap = min(f.size+g.size, maxPhrases), f.gap || g.gap
		}
		return f
	case syntax.OpQuest:
		f := pl.of(re.Sub[0]).times(0, 1)
		f.size = min(f.size+1, maxPhrases)
		return f
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		lo, hi := re.Min, re.Max
		if re.Op != syntax.OpRepeat {
			lo, hi = 0, -1
		}
		if re.Op == syntax.OpPlus {
			lo = 1
		}
		if hi < 0 {
			hi = endless
		}
		f := pl.of(re.Sub[0]).times(lo, hi)
		f.gap = f.gap || f.span.runes > maxGap && f.anyLetter() && f.held.has(' ')
		return f
	}
	return facts{size: 1} // the empty string and the assertions
}

// ofRow gives the facts of factors in a row.
func (pl *planner) ofRow(items []*syntax.Regexp) facts {
	f := facts{size: 1}
	for _, it := range items {
		f.add(pl.of(it))
	}
	return f
}

// add puts g behind f.
func (f *facts) add(g *facts) {
	f.span, f.held = f.span.plus(g.span), f.held.or(g.held)
	f.solid, f.loop = min(f.solid+g.solid, endless), f.loop.or(g.loop)
	f.spaces = min(f.spaces+g.spaces, endless)
	f.size, f.gap = min(f.size*g.size, maxPhrases), f.gap || g.gap
}

// times gives the facts of lo..hi repetitions.
func (f *facts) times(lo, hi int) facts {
	to := *f
	to.span = f.span.times(lo, hi)
	to.solid, to.spaces = min(f.solid*hi, endless), min(f.spaces*hi, endless)
	if hi == endless {
		to.solid, to.loop = 0, f.held
	}
	if f.held.or(space) == space {
		to.spaces = min(to.spaces, 1)
	}
	return to
}

// anyLetter says whether every letter may stand in a match.
func (f *facts) anyLetter() bool { return f.held.or(aToZ) == f.held }

// factsOfLiteral gives the facts of one rune of a literal.
func factsOfLiteral(r rune, fold bool) facts {
	if uint32(r) < utf8.RuneSelf && fold {
		return asciiFacts[r]
	}
	return factsOfRune(orbit(r, fold))
}

var asciiFacts = func() (all [utf8.RuneSelf]facts) {
	for r := range all {
		all[r] = factsOfRune(orbit(rune(r), true))
	}
	return all
}()

// factsOfRune gives the facts of one rune of a set.
func factsOfRune(s runeSet) facts {
	f := facts{span: runeLength(s), held: bytesOfRunes(s), size: 1}
	f.solid = f.span.max
	if f.held.and(space) != (bytes{}) {
		f.spaces = 1
	}
	return f
}

var (
	space = bytesOfRunes(runeSet{'\t', '\n', '\f', '\r', ' ', ' '}) // of \s
	aToZ  = bytesOfRunes(runeSet{'a', 'z'})
)

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
