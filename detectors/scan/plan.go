package scan

import (
	"regexp/syntax"
	"slices"
)

// A pattern is planned as one or more chains, one for each alternative that is told apart. A chain
// is a sequence of parts, the telling pieces of the pattern, and says how far apart they may end. The
// automaton that looks for all patterns at once knows the parts only.
//
// What lies between parts is left to the exact match:
//   - gaps, pieces that can run over several words (.*, [^.!?\n]{0,60}) or be missing. Every open gap
//     of every pattern would double the number of states;
//   - what most texts hold ("are", "not", any word), which would be reported again and again.
//
// Long lists of alternatives are parts of their own, since many patterns share them: the automaton
// looks for a list once, and two lists in a row would multiply.
//
// A plan is a necessary condition: wherever the pattern matches, the parts of one of its chains end
// in order and at these distances. It need not be sufficient; what it finds is matched exactly.
type plan struct {
	parts []planned
	// start is how far before the end of the first part a match may begin. Between the two stand bytes
	// only, at most solid of them not in loop, and white space in at most spaces places.
	start  length
	bytes  bytes
	loop   bytes
	solid  int
	spaces int
}

// planned is one part of a chain.
type planned struct {
	re          *syntax.Regexp
	left, right bool   // no word goes on over this end of the part
	after       length // distance between the end of the part before and the end of this one
	between     bytes  // what may stand there
}

const (
	maxCount   = 6       // longer counted repeats are x{6,} to the automaton
	maxChains  = 32      // chains of one pattern
	maxGap     = 3       // repeats of a class of up to so many characters are no gap
	maxSuffix  = 4       // what may be missing is looked for up to this length
	maxList    = 32      // a part with more phrases than this is a list, and stays alone
	maxProduct = 1 << 8  // lists in a row that give more phrases are divided
	maxJoined  = 1 << 9  // common words and frequent ones behind them are one part up to so many phrases
	maxPhrases = 1 << 11 // lists of more are shortened
)

// planner divides patterns into chains. It remembers what it found out of the nodes of their trees,
// many of which stand in many patterns.
type planner struct {
	known  map[*syntax.Regexp]*facts
	grades map[*syntax.Regexp]grade
	apart  map[*syntax.Regexp][]*syntax.Regexp // alternatives
	text   []byte                              // of a phrase
	l      *linker
}

func newPlanner(l *linker) *planner {
	return &planner{known: map[*syntax.Regexp]*facts{}, grades: map[*syntax.Regexp]grade{}, apart: map[*syntax.Regexp][]*syntax.Regexp{}, l: l}
}

// plans divides a pattern into chains.
func (pl *planner) plans(re *syntax.Regexp) []plan {
	if cs := pl.divide(re, maxChains); cs != nil {
		return cs
	}
	return []plan{pl.chain([]*syntax.Regexp{re}, []piece{{0, 1}})}
}

// divide makes the chains of re, at most limit of them. It returns nil where that cannot be, because a
// chain would have no parts or there would be too many.
func (pl *planner) divide(re *syntax.Regexp, limit int) []plan {
	items := flatten(nil, re)
	for i, it := range items {
		if it.Op == syntax.OpAlternate && len(pl.alternatives(it)) > 1 {
			if all := pl.distribute(items, i, limit); all != nil {
				return all
			}
		}
	}
	pieces := pl.telling(items)
	if len(pieces) == 0 || limit < 1 {
		return nil
	}
	return []plan{pl.chain(items, pieces)}
}

// distribute makes the chains of a(b|c)d, where the alternatives are at i, as those of abd and acd.
func (pl *planner) distribute(items []*syntax.Regexp, i, limit int) []plan {
	var all []plan
	for _, sub := range pl.alternatives(items[i]) {
		cs := pl.divide(concat(slices.Concat(items[:i], []*syntax.Regexp{sub}, items[i+1:])), limit-len(all))
		if cs == nil {
			return nil
		}
		all = append(all, cs...)
	}
	return all
}

// alternatives gives what an alternation is divided into: on its own each alternative that has a gap, or lists in a
// row (of adjectives and of nouns) that are too long for one; and the others together, in lists as long as one may be.
func (pl *planner) alternatives(re *syntax.Regexp) []*syntax.Regexp {
	all, known := pl.apart[re]
	if known {
		return all
	}
	if f := pl.of(re); !f.gap && f.size <= maxProduct {
		return nil
	}
	var list []*syntax.Regexp
	size := 0
	flush := func() {
		if len(list) > 0 {
			one := either(list)
			pl.apart[one] = nil
			all = append(all, one)
		}
		list, size = nil, 0
	}
	for _, sub := range re.Sub {
		f := pl.of(sub)
		switch {
		case sub.Op == syntax.OpAlternate && len(pl.alternatives(sub)) > 1:
			all = append(all, pl.alternatives(sub)...)
		case f.gap || f.size > maxList && len(pl.runs(flatten(nil, sub))) > 1:
			all = append(all, sub)
		default:
			if size+f.size > maxPhrases {
				flush()
			}
			list, size = append(list, sub), size+f.size
		}
	}
	flush()
	pl.apart[re] = all
	return all
}

// either makes one node of alternatives.
func either(list []*syntax.Regexp) *syntax.Regexp {
	if len(list) == 1 {
		return list[0]
	}
	return &syntax.Regexp{Op: syntax.OpAlternate, Sub: list}
}

// piece is a run of factors of a pattern, items[lo:hi].
type piece struct{ lo, hi int }

// telling picks the parts: of the runs of factors between gaps those that most texts do not hold, one of common words
// with the frequent ones behind it ("people who"), or else the longest.
func (pl *planner) telling(items []*syntax.Regexp) []piece {
	var parts []piece
	var longest piece
	most, last := 0, -1 // last is where the run of the last part ends, if that could tell more
	for _, run := range pl.runs(items) {
		p := pl.trimmed(items, run)
		n := pl.ofRow(items[p.lo:p.hi]).span.min
		if n == 0 {
			continue // it would be found everywhere
		}
		switch pl.grade(items[p.lo:p.hi]) {
		case everywhere:
			if k := len(parts) - 1; last == run.lo && pl.ofRow(items[parts[k].lo:p.hi]).size <= maxJoined {
				parts[k].hi = p.hi
			}
			last = -1
		case common:
			parts, last = append(parts, p), run.hi
		default:
			parts, last = append(parts, p), -1
		}
		if n > most {
			longest, most = p, n
		}
	}
	if len(parts) == 0 && most > 0 {
		parts = append(parts, longest)
	}
	return parts
}

// trimmed is a run without what tells nothing at its ends.
func (pl *planner) trimmed(items []*syntax.Regexp, p piece) piece {
	for p.lo < p.hi && pl.isTrim(items[p.lo]) {
		p.lo++
	}
	for p.lo < p.hi && pl.isTrim(items[p.hi-1]) {
		p.hi--
	}
	return p
}

// grade says how telling a part is: as its least telling phrase.
func (pl *planner) grade(items []*syntax.Regexp) grade {
	re := together(items)
	g, known := pl.grades[re]
	if !known {
		g = rare
		for _, p := range pl.l.list(re).phrases {
			text := pl.text[:0]
			for _, s := range p.steps {
				text = append(text, pl.l.signs[s.set])
			}
			pl.text = text
			g = min(g, gradeOf(text))
		}
		pl.grades[re] = g
	}
	return g
}

// together makes one node of factors in a row.
func together(items []*syntax.Regexp) *syntax.Regexp {
	if len(items) == 1 {
		return items[0]
	}
	return concat(items)
}

// runs divides factors at gaps and around lists, but not within a word if it can be.
func (pl *planner) runs(items []*syntax.Regexp) (all []piece) {
	lo, size := 0, 1   // of the run
	word, here := 0, 1 // where its last word begins, and the size of that
	for i, it := range items {
		if pl.isGap(it) {
			all = append(all, piece{lo, i})
			lo, word, size, here = i+1, i+1, 1, 1
			continue
		}
		n := pl.of(it).size
		if size*n > maxList && word > lo {
			all = append(all, piece{lo, word})
			lo, size = word, here
		}
		size, here = min(size*n, maxPhrases), min(here*n, maxPhrases)
		if pl.endsBlank(it) {
			word, here = i+1, 1
		}
	}
	return append(all, piece{lo, len(items)})
}

// isGap says whether a factor divides the pattern.
func (pl *planner) isGap(re *syntax.Regexp) bool {
	f := pl.of(re)
	if f.span.min == 0 && f.span.runes > maxSuffix || f.gap || isLoop(re) && f.anyLetter() {
		return true
	}
	return re.Op == syntax.OpAlternate && pl.l.isAnyWord(re)
}

// isGlue says whether a factor is but white space.
func (pl *planner) isGlue(re *syntax.Regexp) bool {
	return pl.of(re).held.or(blanks) == blanks
}

// endsBlank says whether every match of a row of factors ends with white space.
func (pl *planner) endsBlank(items ...*syntax.Regexp) bool {
	for _, re := range slices.Backward(items) {
		switch re.Op {
		case syntax.OpCapture, syntax.OpPlus, syntax.OpRepeat, syntax.OpQuest:
			if !pl.endsBlank(re.Sub[0]) {
				return false
			}
		case syntax.OpConcat:
			if !pl.endsBlank(re.Sub...) {
				return false
			}
		case syntax.OpAlternate:
			if slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !pl.endsBlank(sub) }) {
				return false
			}
		default:
			if !pl.isGlue(re) {
				return false
			}
		}
		if pl.of(re).span.min > 0 {
			return true
		}
	}
	return true
}

// isTrim says whether a factor tells nothing at the end of a part: white space, or what may be missing.
func (pl *planner) isTrim(re *syntax.Regexp) bool {
	return pl.isGlue(re) || pl.of(re).span.min == 0
}

// blanks are what stands between words.
var blanks = bytesOfRunes(runeSet{'\t', '\r', ' ', ' '})

// flatten appends the factors of re, without captures.
func flatten(dst []*syntax.Regexp, re *syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpCapture:
		return flatten(dst, re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			dst = flatten(dst, sub)
		}
		return dst
	}
	return append(dst, re)
}

// isLoop says whether re repeats something, more often than a few times.
func isLoop(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && (re.Max < 0 || re.Max > maxGap)
}

// chain makes the chain of these pieces.
func (pl *planner) chain(items []*syntax.Regexp, pieces []piece) plan {
	var c plan
	from := 0
	var before piece
	for _, p := range pieces {
		way := items[from:p.hi]                                        // from the end of the part before
		f, rest := pl.ofRow(way), pl.ofRow(items[before.lo:before.hi]) // the part before, where that was cut
		l, b := f.span.plus(rest.span), f.held.or(rest.held)
		l.min = pl.ofRow(items[from:p.lo]).span.min + 1 // a part may be cut after its first word, see phrase
		if len(c.parts) == 0 {
			c.start, c.bytes, c.solid, c.loop, c.spaces = l, b, f.solid, f.loop, f.spaces
		}
		c.parts = append(c.parts, planned{
			re: together(items[p.lo:p.hi]), left: pl.endsWord(items[:p.lo]), right: pl.beginsNone(items[p.hi:]), after: l, between: b,
		})
		from, before = p.hi, p
	}
	return c
}

// endsWord says whether after these factors no word goes on: what follows is not a word character if
// what came before is one.
func (pl *planner) endsWord(items []*syntax.Regexp) bool { return pl.side(items, true) == apart }

// beginsNone says whether before these factors every word is at its end.
func (pl *planner) beginsNone(items []*syntax.Regexp) bool { return pl.side(items, false) == apart }

// border is what an expression says of the word beside it.
type border uint8

const (
	unsaid border = iota // it may match nothing, and else the word ends
	apart                // the word ends
	joined               // the word may go on
)

// side is the border of factors at their last or their first one.
func (pl *planner) side(items []*syntax.Regexp, last bool) border {
	for i := range items {
		it := items[i]
		if last {
			it = items[len(items)-1-i]
		}
		if b := pl.border(it, last); b != unsaid {
			return b
		}
	}
	return unsaid
}

func (pl *planner) border(re *syntax.Regexp, last bool) border {
	switch re.Op {
	case syntax.OpWordBoundary:
		return apart
	case syntax.OpBeginText, syntax.OpBeginLine:
		if last {
			return apart
		}
		return unsaid
	case syntax.OpEndText, syntax.OpEndLine:
		if !last {
			return apart
		}
		return unsaid
	case syntax.OpCapture, syntax.OpConcat:
		return pl.side(re.Sub, last)
	case syntax.OpQuest:
		if pl.border(re.Sub[0], last) == joined {
			return joined
		}
		return unsaid
	case syntax.OpAlternate:
		all := apart
		for _, sub := range re.Sub {
			switch pl.border(sub, last) {
			case joined:
				return joined
			case unsaid:
				all = unsaid
			}
		}
		return all
	}
	if b := pl.edge(re, last); b.and(wordBytes) != (bytes{}) {
		return joined
	}
	if pl.of(re).span.min > 0 {
		return apart
	}
	return unsaid
}

// edge is the set of bytes that may be the last, or the first, of a match of re. A rune above 0x7f
// counts with all its bytes.
func (pl *planner) edge(re *syntax.Regexp, last bool) bytes {
	var b bytes
	switch re.Op {
	case syntax.OpLiteral:
		r := re.Rune[0]
		if last {
			r = re.Rune[len(re.Rune)-1]
		}
		return bytesOfRunes(orbit(r, re.Flags&syntax.FoldCase != 0))
	case syntax.OpConcat:
		for i := range re.Sub {
			sub := re.Sub[i]
			if last {
				sub = re.Sub[len(re.Sub)-1-i]
			}
			b = b.or(pl.edge(sub, last))
			if pl.of(sub).span.min > 0 {
				break
			}
		}
		return b
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return pl.of(re).held
	}
	for _, sub := range re.Sub {
		b = b.or(pl.edge(sub, last))
	}
	return b
}

func concat(items []*syntax.Regexp) *syntax.Regexp {
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: items}
}
