package scan

import (
	"regexp/syntax"
	"slices"
)

// trie holds the phrases of all parts that are plain lists, each beginning of a phrase once however many
// lists have it. So a state of the filter is a few instructions, not some of every list.
type trie struct {
	nodes   []node
	arcs    []arc      // of all nodes
	phrases [][]uint32 // by number of the phrase: the parts that have it
	last    []step     // the phrase that was added last
	path    []uint32   // and its nodes
}

// node is a beginning of phrases.
type node struct {
	first, last int32    // its arcs, see arc.next; or -1
	ends        [2]int32 // number of the phrase that ends here and, apart, of the one under notInside; or -1
}

var noArcs = node{first: -1, last: -1, ends: [2]int32{-1, -1}}

// arc leads to a node over one step. A trie of the rules that ship has a million of them: a slice in each node would be a million for the garbage
// collector to look at.
type arc struct {
	step step
	to   uint32
	next int32 // another arc of the node, or -1
}

// step is one character of a class set, or with loop several.
type step struct {
	set  uint32
	loop bool
}

const (
	inText  = iota // the root of phrases that may begin within a word
	asWords        // of those that may not
	roots
)

func newTrie() *trie {
	t := &trie{}
	for range roots {
		t.nodes = append(t.nodes, noArcs)
	}
	return t
}

// add adds a phrase of a part. It goes on where the phrase leaves the one before, which it often is like.
func (t *trie) add(phrase []step, part uint32, left, right bool) {
	at := uint32(inText)
	if left {
		at = asWords
	}
	same := 0
	if len(t.path) > 0 && t.path[0] == at {
		for same < min(len(phrase), len(t.last)) && phrase[same] == t.last[same] {
			same++
		}
		at = t.path[same]
	}
	t.path, t.last = append(t.path[:min(same, len(t.path))], at), phrase
	for _, s := range phrase[same:] {
		at = t.over(at, s)
		t.path = append(t.path, at)
	}
	end := &t.nodes[at].ends[0]
	if right {
		end = &t.nodes[at].ends[1]
	}
	if *end < 0 {
		*end = int32(len(t.phrases))
		t.phrases = append(t.phrases, nil)
	}
	if of := t.phrases[*end]; len(of) == 0 || of[len(of)-1] != part {
		t.phrases[*end] = append(of, part)
	}
}

// over gives the node behind a step, a new one if need be.
func (t *trie) over(at uint32, s step) uint32 {
	for i := t.nodes[at].first; i >= 0; i = t.arcs[i].next { // few, but at the roots
		if t.arcs[i].step == s {
			return t.arcs[i].to
		}
	}
	to, i := uint32(len(t.nodes)), int32(len(t.arcs))
	t.arcs = append(t.arcs, arc{s, to, -1})
	if n := &t.nodes[at]; n.first < 0 {
		n.first, n.last = i, i
	} else {
		t.arcs[n.last].next, n.last = i, i
	}
	t.nodes = append(t.nodes, noArcs)
	return to
}

// emit appends the instructions of the trie and gives where those of its roots begin. Phrases are
// matches from first on.
func (t *trie) emit(dst []inst, first uint32) (all []inst, entry [roots]uint32) {
	at := make([]uint32, len(t.nodes))
	var ways []uint32
	dst = slices.Grow(dst, 2*len(t.nodes))   // about
	for i := len(t.nodes) - 1; i >= 0; i-- { // what follows a node has a greater number
		n := &t.nodes[i]
		ways = ways[:0]
		add := func(in inst) uint32 {
			dst = append(dst, in)
			return uint32(len(dst) - 1)
		}
		if n.ends[0] >= 0 {
			ways = append(ways, add(inst{op: match, arg: first + uint32(n.ends[0])}))
		}
		if n.ends[1] >= 0 {
			end := add(inst{op: match, arg: first + uint32(n.ends[1])})
			ways = append(ways, add(inst{op: assert, arg: uint32(notInside), out: end}))
		}
		for i := n.first; i >= 0; i = t.arcs[i].next {
			a := &t.arcs[i]
			over := add(inst{op: symbol, arg: a.step.set, out: at[a.to]})
			if a.step.loop {
				dst[over].out = add(inst{op: alt, out: over, arg: at[a.to]})
			}
			ways = append(ways, over)
		}
		for len(ways) > 1 {
			ways = append(ways[:len(ways)-2], add(inst{op: alt, out: ways[len(ways)-2], arg: ways[len(ways)-1]}))
		}
		if len(ways) == 1 {
			at[i] = ways[0]
		} else {
			at[i] = add(inst{op: fail})
		}
	}
	entry = [roots]uint32{at[inText], at[asWords]}
	if t.nodes[asWords].first >= 0 {
		dst = append(dst, inst{op: assert, arg: uint32(notInside), out: at[asWords]})
		entry[asWords] = uint32(len(dst) - 1)
	}
	return dst, entry
}

// phrase is a beginning of what a part matches. A list of them is a necessary condition: each match of the
// part begins with one.
type phrase struct {
	steps []step
	cut   bool // it does not go on, though the part does
}

// listing is what a node of a tree says.
type listing struct {
	phrases []phrase
	ok      bool // or else they are too many
}

// list gives the phrases of a part.
func (l *linker) list(re *syntax.Regexp) listing {
	said, known := l.said[re]
	if !known {
		var open []beginning
		l.links = l.links[:0]
		if open, said.ok = l.listed([]beginning{{last: -1}}, re); said.ok {
			said.phrases = l.phrases(open)
		}
		l.said[re] = said
	}
	return said
}

// beginning is a phrase while it is being listed: its last link, and the number of its steps.
type beginning struct {
	last, n int32
	cut     bool
}

// link is a step of phrases and the link before it, or -1: what they have in common is there once.
type link struct {
	before int32
	step   step
}

// phrases gives the phrases that were listed.
func (l *linker) phrases(all []beginning) []phrase {
	n := int32(0)
	for _, b := range all {
		n += b.n
	}
	room := make([]step, n)
	list := make([]phrase, len(all))
	for i, b := range all {
		steps := room[:b.n:b.n]
		room = room[b.n:]
		for k, at := b.n-1, b.last; at >= 0; k, at = k-1, l.links[at].before {
			steps[k] = l.links[at].step
		}
		list[i] = phrase{l.fromTelling(steps), b.cut}
	}
	return list
}

// fromTelling gives a phrase from its first telling word on, if it has one. The frequent words before it are
// left to the exact match: each of them would open the phrase nearly everywhere, and multiply states. They stay
// where a common word alone would be left, which is found in too many texts.
func (l *linker) fromTelling(steps []step) []step {
	text := l.text[:0]
	for _, s := range steps {
		text = append(text, l.signs[s.set])
	}
	l.text = text
	for begin := 0; begin < len(text); {
		end := begin
		for end < len(text) && isLetter(text[end]) {
			end++
		}
		word := text[begin:end]
		switch {
		case end < len(text) && text[end] == seldom:
			return steps[begin:]
		case isTellingWord(word) && end == len(text) && isCommon[string(word)]:
			return steps
		case isTellingWord(word):
			return steps[begin:]
		}
		begin = end + 1
	}
	return steps
}

// isEverywhere says whether a phrase is empty.
func (l listing) isEverywhere() bool {
	return slices.ContainsFunc(l.phrases, func(p phrase) bool { return len(p.steps) == 0 })
}

// isAnyWord says whether some phrase of an alternation holds letters, and none that is known.
func (l *linker) isAnyWord(re *syntax.Regexp) bool {
	return slices.ContainsFunc(l.list(re).phrases, func(p phrase) bool {
		any := len(p.steps) == 0
		for _, s := range p.steps {
			switch sign := l.signs[s.set]; {
			case sign == manyLetters:
				any = true
			case sign != between:
				return false
			}
		}
		return any
	})
}

// listed extends phrases by what re matches. ok is false where there are too many.
func (l *linker) listed(all []beginning, re *syntax.Regexp) (to []beginning, ok bool) {
	if len(all) > 0 && !slices.ContainsFunc(all, func(p beginning) bool { return p.cut }) {
		to, ok = l.continued(all, re)
		return to, ok && len(to) <= maxPhrases
	}
	var open []beginning
	for _, p := range all {
		if p.cut {
			to = append(to, p)
		} else {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return to, true
	}
	more, ok := l.continued(open, re)
	to = append(to, more...)
	return to, ok && len(to) <= maxPhrases
}

// continued is listed of phrases none of which is cut.
func (l *linker) continued(all []beginning, re *syntax.Regexp) (to []beginning, ok bool) {
	switch re.Op {
	case syntax.OpLiteral:
		steps := make([]step, len(re.Rune))
		for i, r := range re.Rune {
			steps[i].set = l.setOf(r, re.Flags)
		}
		return l.extend(all, steps...), true
	case syntax.OpCharClass:
		return l.extend(all, step{set: l.set(re.Rune)}), true
	case syntax.OpCapture:
		return l.listed(all, re.Sub[0])
	case syntax.OpQuest:
		to, ok = l.listed(all, re.Sub[0])
		return slices.Concat(to, all), ok
	case syntax.OpPlus:
		if sub := re.Sub[0]; sub.Op == syntax.OpCharClass {
			if set := l.set(sub.Rune); l.signs[set] != manyLetters && !isLetter(l.signs[set]) { // loops over letters would multiply states
				return l.extend(all, step{set: set, loop: true}), true
			}
		}
		to, ok = l.listed(all, re.Sub[0])
		return cut(to), ok
	case syntax.OpRepeat:
		return l.repeated(all, re)
	case syntax.OpConcat:
		to, ok = all, true
		for i := 0; i < len(re.Sub) && ok; i++ {
			to, ok = l.listed(to, re.Sub[i])
		}
		return to, ok
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			more, ok := l.listed(all, sub)
			if to = append(to, more...); !ok || len(to) > maxPhrases {
				return nil, false
			}
		}
		return to, true
	case syntax.OpStar, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return cut(all), true
	}
	return all, true // what matches nothing, and assertions, which may be left out
}

// repeated is continued of a counted repeat. Large counts are for the automaton, see emitRepeat.
func (l *linker) repeated(all []beginning, re *syntax.Regexp) (to []beginning, ok bool) {
	switch {
	case re.Max == 0:
		return all, true
	case isLoop(re) && re.Min <= 1:
		return cut(all), true
	}
	least, most := min(re.Min, maxCount), re.Max
	if most < 0 || most > maxCount {
		most = maxCount + 1 // they are cut before
	}
	once, ok := l.listed(all, re.Sub[0])
	if least == 0 {
		to = append(to, all...)
	}
	for n := 1; ok; n++ {
		if n >= least {
			to = append(to, once...)
		}
		if n == most {
			return to, true
		}
		more, fits := l.listed(once, re.Sub[0])
		if n >= least && (!fits || most > maxCount || len(to)+len(more) > maxPhrases) {
			return append(to[:len(to)-len(once)], cut(once)...), true
		}
		once, ok = more, fits
	}
	return nil, false
}

// extend adds steps to the phrases.
func (l *linker) extend(all []beginning, steps ...step) []beginning {
	to := slices.Clone(all)
	for i := range to {
		for _, s := range steps {
			l.links = append(l.links, link{to[i].last, s})
			to[i].last = int32(len(l.links) - 1)
			to[i].n++
		}
	}
	return to
}

// cut ends the phrases.
func cut(all []beginning) []beginning {
	to := slices.Clone(all)
	for i := range to {
		to[i].cut = true
	}
	return to
}
