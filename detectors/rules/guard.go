package rules

import "strings"

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
