package scan

import (
	"regexp/syntax"
	"slices"
)

// A pattern is planned as one or more chains, one for each alternative that is told apart. A chain
// is a sequence of parts, the pieces of the pattern that lie between gaps. A gap is a piece that can
// run over several words (.*, .{0,40}, [^.!?\n]{0,60}): inside an automaton that looks for all
// patterns at once, every open gap of every pattern would double the number of states. So the
// automaton knows the parts only, and the chain says how far apart they may end.
//
// A plan is a necessary condition: wherever the pattern matches, the parts of one of its chains end
// in order and at these distances. It need not be sufficient; what it finds is matched exactly.
type chain struct {
	pattern int32
	parts   []joint
	// start is how far before the end of the first part a match may begin. Between the two stand bytes
	// only, at most solid of them not in loop.
	start length
	bytes bytes
	loop  bytes
	solid int
	// reach is how far the end of the last part may be from the end of the first, and between what
	// bytes may stand there.
	reach   length
	between bytes
}

// joint is one part of a chain.
type joint struct {
	re    *syntax.Regexp
	part  int32
	after length // distance between the end of the part before and the end of this one
}

const (
	maxCount  = 6  // longer counted repeats are x{6,} to the automaton
	maxChains = 32 // chains of one pattern
	maxGap    = 3  // repeats of a class of up to so many are no gap
)

// plan divides a pattern into chains.
func plan(re *syntax.Regexp) []chain {
	if cs := divide(re, maxChains); cs != nil {
		return cs
	}
	whole := &builder{}
	whole.add(re)
	return []chain{whole.chain}
}

// divide makes the chains of re, at most limit of them. It returns nil where that cannot be, because a
// chain would have no parts or there would be too many.
func divide(re *syntax.Regexp, limit int) []chain {
	items := flatten(nil, re)
	for i, it := range items {
		if it.Op == syntax.OpAlternate && hasGap(it) {
			if all := distribute(items, i, limit); all != nil {
				return all
			}
		}
	}
	c := &builder{}
	var open []*syntax.Regexp
	for _, it := range items {
		if hasGap(it) {
			c.close(open)
			open = nil
			c.skip(it)
		} else {
			open = append(open, it)
		}
	}
	c.close(open)
	if len(c.parts) == 0 || limit < 1 {
		return nil
	}
	return []chain{c.chain}
}

// distribute makes the chains of a(b|c)d, where the alternatives are at i, as those of abd and acd.
func distribute(items []*syntax.Regexp, i, limit int) []chain {
	var all []chain
	for _, sub := range items[i].Sub {
		cs := divide(concat(slices.Concat(items[:i], []*syntax.Regexp{sub}, items[i+1:])), limit-len(all))
		if cs == nil {
			return nil
		}
		all = append(all, cs...)
	}
	return all
}

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

// hasGap says whether a piece of re can run over several words.
func hasGap(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpRepeat:
		if (re.Max < 0 || re.Max > maxGap) && manyWords(re.Sub[0]) {
			return true
		}
	case syntax.OpStar, syntax.OpPlus:
		if manyWords(re.Sub[0]) {
			return true
		}
	}
	for _, sub := range re.Sub {
		if hasGap(sub) {
			return true
		}
	}
	return false
}

// manyWords says whether repeating re may match any words with spaces between them.
func manyWords(re *syntax.Regexp) bool {
	b := bytesIn(re)
	for c := byte('a'); c <= 'z'; c++ {
		if !b.has(c) {
			return false
		}
	}
	return b.has(' ')
}

// builder grows one chain from left to right.
type builder struct {
	chain
	gap []*syntax.Regexp // what was skipped since the last part
}

// skip goes over a piece without looking for it.
func (b *builder) skip(re *syntax.Regexp) { b.gap = append(b.gap, re) }

// close adds a run of pieces as one part, or skips it if it can be empty and so would be found
// everywhere.
func (b *builder) close(items []*syntax.Regexp) {
	if len(items) == 0 {
		return
	}
	if re := concat(items); measure(re).min > 0 {
		b.add(re)
	} else {
		b.skip(re)
	}
}

func (b *builder) add(re *syntax.Regexp) {
	way := concat(append(b.gap, re)) // from the end of the part before
	l := measure(way)
	if len(b.parts) == 0 {
		b.start, b.bytes = l, bytesIn(way)
		b.solid, b.loop = solid(way)
	} else {
		b.reach, b.between = b.reach.plus(l), b.between.or(bytesIn(way))
	}
	b.parts = append(b.parts, joint{re: clip(re), after: l})
	b.gap = nil
}

func concat(items []*syntax.Regexp) *syntax.Regexp {
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: items}
}

// clip widens counted repeats: x{3,40} to x{3,}, x{16} to x{6,}. Counting is the business of the exact
// match; in the common automaton it would multiply states.
func clip(re *syntax.Regexp) *syntax.Regexp {
	if len(re.Sub) == 0 {
		return re
	}
	to := *re
	to.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		to.Sub[i] = clip(sub)
	}
	if re.Op == syntax.OpRepeat && (re.Max > maxCount || re.Min > maxCount) {
		to.Min, to.Max = min(re.Min, maxCount), -1
	}
	return &to
}
