package rules

import (
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/evenhand/evenhand/detectors/rules/check"
)

const (
	contextBefore = 60 // bytes before a match in which a word counts
	contextAfter  = 24 // bytes behind it
)

// InContext tells whether the match text[start:end] has the words beside it that the rule asks for: one of
// Near before it, closer than any of NotNear, or right behind it, or in the head of its column where
// the text is a table. Where a rule names no Near, a word of NotNear counts in the match's own clause only: what stands before a
// comma, a semicolon, the end of a sentence or of a line is about something else. A word of NotBefore counts where nothing but
// signs and words such as "number" and "is" stand between it and the match. A rule that names none is always in context.
//
// Words are whole: "id" does not stand in "paid", but does in "user_id". Cost is a few searches in a hundred
// bytes, so it comes last, after the check.
func InContext(r *Rule, text string, start, end int) bool {
	if len(r.near)+len(r.notNear)+len(r.notBefore) == 0 {
		return true
	}
	lower := strings.ToLower(text[max(0, start-contextBefore):start])
	if len(r.notBefore) > 0 && directly(lower, r.notBefore) {
		return false
	}
	if len(r.near) == 0 {
		return !has(lower[clause(lower):], r.notNear) && !has(check.ColumnHead(text, start), r.notNear)
	}
	before := placesIn(lower)
	near, not := before.lastOf(r.near), before.lastOf(r.notNear)
	if near >= 0 || not >= 0 {
		return near > not
	}
	after := strings.ToLower(text[end:min(len(text), end+contextAfter)])
	return has(after, r.near) || has(check.ColumnHead(text, start), r.near)
}

// clause gives where the last clause of a text begins. A line that ends in a colon is a label for the next one.
func clause(s string) int {
	for i := len(s); i > 0; i-- {
		switch s[i-1] {
		case ',', ';':
			return i
		case '\n':
			if !strings.HasSuffix(strings.TrimRight(s[:i-1], " *\r"), ":") {
				return i
			}
		case '.', '!', '?':
			if i < len(s) && s[i] == ' ' && !abbreviated(s[:i-1]) {
				return i
			}
		}
	}
	return 0
}

// abbreviated tells whether a text ends in a word that is cut, as "no." and "ref." are: the dot behind it ends no sentence.
func abbreviated(s string) bool {
	return isFiller(s[strings.LastIndexAny(s, " \t(:")+1:])
}

// fillers stand between a word and its number, or are cut short with a dot.
var fillers = []string{"no", "nr", "num", "number", "nummer", "numero", "número", "numéro", "n", "id", "code", "is", "was", "ist", "lautet", "ref", "ver", "ser", "art", "inv"}

func isFiller(word string) bool { return slices.Contains(fillers, word) }

// directly tells whether one of some phrases ends a text, signs and fillers left out.
func directly(lower string, ps []phrase) bool {
	for {
		lower = strings.TrimRight(lower, " :#=\"'`.-_(°º\t")
		if slices.ContainsFunc(ps, func(p phrase) bool {
			return strings.HasSuffix(lower, p.text) && isWhole(lower, len(lower)-len(p.text), len(lower))
		}) {
			return true
		}
		at := strings.LastIndexAny(lower, " \t:_") + 1
		if at == 0 || !isFiller(lower[at:]) {
			return false
		}
		lower = lower[:at]
	}
}

func has(lower string, ps []phrase) bool {
	if lower == "" {
		return false
	}
	p := placesIn(lower)
	return p.lastOf(ps) >= 0
}

// phrase is a word or several, in lower case.
type phrase struct {
	text        string
	first, last letter // of a to z; anyLetter where it has none
}

// letter is one of a to z, from 0, and where it stands in a phrase.
type letter struct{ c, at int }

const anyLetter = 26

func phrases(words []string) (ps []phrase) {
	for _, w := range words {
		p := phrase{text: strings.ToLower(w), first: letter{c: anyLetter}, last: letter{c: anyLetter}}
		for i := range len(p.text) {
			if c := int(p.text[i]) - 'a'; c >= 0 && c < anyLetter {
				if p.last = (letter{c, i}); p.first.c == anyLetter {
					p.first = p.last
				}
			}
		}
		ps = append(ps, p)
	}
	return ps
}

// places is a text in lower case, of at most 64 bytes, and where each letter stands in it: most phrases are ruled out by two of their letters.
type places struct {
	text string
	of   [anyLetter + 1]uint64
}

// placesIn reads the last 64 bytes of a text.
func placesIn(lower string) (p places) {
	p.text = lower[max(0, len(lower)-64):]
	p.of[anyLetter] = ^uint64(0)
	for i := range len(p.text) {
		if c := p.text[i] - 'a'; c < anyLetter {
			p.of[c] |= 1 << i
		}
	}
	return p
}

// lastOf gives where the last of some phrases begins, -1 when none stands there.
func (p *places) lastOf(ps []phrase) int {
	last := -1
	for i := range ps {
		ph := &ps[i]
		for may := p.of[ph.first.c] >> ph.first.at & (p.of[ph.last.c] >> ph.last.at); may != 0; {
			at := bits.Len64(may) - 1
			may &^= 1 << at
			if at <= last {
				break
			}
			if strings.HasPrefix(p.text[min(at, len(p.text)):], ph.text) && isWhole(p.text, at, at+len(ph.text)) {
				last = at
			}
		}
	}
	return last
}

func isWhole(s string, from, to int) bool {
	return !(endsInLetter(s[:from]) && startsWithLetter(s[from:])) && !(endsInLetter(s[:to]) && startsWithLetter(s[to:]))
}

// endsInLetter and startsWithLetter are for text in lower case; quotes, dashes and arrows beyond ASCII are no letters.
func endsInLetter(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return isLowerLetter(r)
}

func startsWithLetter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return isLowerLetter(r)
}

func isLowerLetter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= utf8.RuneSelf && r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r))
}
