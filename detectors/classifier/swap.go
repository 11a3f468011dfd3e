package classifier

import (
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// Mentions gives the grounds of the identity terms in a text in normal form, in order, without repeats.
func Mentions(text string) (out []audit.Ground) {
	var seen [NumGrounds + 1]bool
	for _, t := range identity.fold(words(nil, text, 0, len(text)), nil) {
		if t.ground != 0 && !seen[t.ground] {
			seen[t.ground] = true
			out = append(out, groundOf(int(t.ground)-1))
		}
	}
	return out
}

// Skeleton is a hash of a text's words with identity terms as their classes: a text and its counterfactuals share it.
func Skeleton(text string) (h uint64) {
	for _, t := range identity.fold(words(nil, text, 0, len(text)), nil) {
		h = (h ^ uint64(t.word)) * 1_099_511_628_211
	}
	return h
}

// Swap puts a term of another ground in the place of each term of the ground that is mentioned first: its
// counterfactual. pick(n) chooses one of n. ok is false when no ground is mentioned.
func Swap(text string, pick func(n int) int) (swapped string, to audit.Ground, ok bool) {
	ts := words(nil, text, 0, len(text))
	var from audit.Ground
	chosen := [numClasses]*Term{}
	var b strings.Builder
	at := 0
	for i := 0; i < len(ts); i++ {
		t, n := identity.at(ts, i)
		if n == 0 {
			continue
		}
		start, end := int(ts[i].start), int(ts[i+n-1].end)
		i += n - 1
		if from == "" {
			from = t.Ground
			for to = from; to == from; {
				to = groundOf(pick(NumGrounds))
			}
		}
		if t.Ground != from {
			continue
		}
		if chosen[t.class] == nil {
			if chosen[t.class] = identity.other(t.class, to, pick); chosen[t.class] == nil {
				continue // no such term for that ground
			}
		}
		b.WriteString(text[at:start])
		term := chosen[t.class].Text
		if c := text[start]; c >= 'A' && c <= 'Z' && start == 0 {
			term = strings.ToUpper(term[:1]) + term[1:]
		}
		b.WriteString(term)
		at, ok = end, true
	}
	if !ok {
		return text, "", false
	}
	b.WriteString(text[at:])
	return b.String(), to, true
}

// other picks a term of a class and a ground, nil when there is none.
func (l *lexicon) other(c class, g audit.Ground, pick func(n int) int) *Term {
	n := 0
	for i := range l.terms {
		if l.terms[i].class == c && l.terms[i].Ground == g {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	k := pick(n)
	for i := range l.terms {
		if l.terms[i].class == c && l.terms[i].Ground == g {
			if k == 0 {
				return &l.terms[i]
			}
			k--
		}
	}
	return nil
}
