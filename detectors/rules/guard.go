package rules

import (
	"regexp"
	"strings"
	"sync"
)

// Guard is a pattern that excludes a hit if it matches in the hit's sentence. It is compiled when it is
// first asked for, since most of them never are.
type Guard struct {
	compiled func() *regexp.Regexp
}

// newGuard makes a guard of a pattern that was parsed already. Should package regexp refuse it even so,
// for its size, the guard excludes nothing.
func newGuard(pattern string) *Guard {
	return &Guard{sync.OnceValue(func() *regexp.Regexp {
		re, err := regexp.Compile("(?i)" + pattern)
		if err != nil {
			return nil
		}
		return re
	})}
}

// MatchString says whether the pattern matches somewhere in the text.
func (g *Guard) MatchString(text string) bool {
	re := g.compiled()
	return re != nil && re.MatchString(text)
}

// Suppressed tells whether the match text[start:end] of the rule stands in a sentence that one of
// the rule's guards excludes: a negation, a quotation, counter-speech.
//
// A sentence ends at . ! ? or a line break; abbreviations are not told apart, which makes the
// guarded stretch shorter, never longer.
func Suppressed(r *Rule, text string, start, end int) bool {
	if len(r.Guards) == 0 {
		return false
	}
	from, to := sentence(text, start, end)
	for _, g := range r.Guards {
		if g.MatchString(text[from:to]) {
			return true
		}
	}
	return false
}

// sentence gives the bounds of the sentence around a match, its end mark included.
func sentence(text string, start, end int) (from, to int) {
	const ends = ".!?\n"
	from = strings.LastIndexAny(text[:start], ends) + 1
	to = len(text)
	if i := strings.IndexAny(text[end:], ends); i >= 0 {
		to = end + i + 1
	}
	return from, to
}
