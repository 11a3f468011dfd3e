package rules

import (
	"regexp"
	"slices"
	"sync"

	"github.com/evenhand/evenhand/detectors/language"
	"github.com/evenhand/evenhand/detectors/normal"
	"github.com/evenhand/evenhand/detectors/refute"
	"github.com/evenhand/evenhand/detectors/rules/check"
	"github.com/evenhand/evenhand/detectors/scan"
)

// Guard is a pattern that excludes a hit if it matches in the hit's sentence, by its number in the pack.
type Guard int32

// guards are the distinct guards of a pack. They are looked for all at once, and compiled when a hit first
// asks for them, since those of most packs never are. Packs do not share one scanner, though most guards are common
// to those of a language: it would look for all guards of all packs at each hit.
type guards struct {
	scanner func() *scan.Scanner // nil if one of them is not for the scanner
	slow    []func() *regexp.Regexp
	found   sync.Pool // *[]scan.Match
}

// newGuards makes the guards of patterns that were parsed already. Should package regexp refuse one even
// so, for its size, that guard excludes nothing.
func newGuards(patterns []string) *guards {
	g := &guards{}
	g.scanner = sync.OnceValue(func() *scan.Scanner {
		s, err := scan.Compile(patterns, scan.Options{})
		if err != nil {
			return nil
		}
		return s
	})
	for _, p := range patterns {
		g.slow = append(g.slow, sync.OnceValue(func() *regexp.Regexp {
			re, err := regexp.Compile("(?i)" + p)
			if err != nil {
				return nil
			}
			return re
		}))
	}
	g.found.New = func() any { return new([]scan.Match) }
	return g
}

// Warm compiles the guards of a pack and scans ordinary text with them, so that its first hit does not wait.
func (p *Pack) Warm() {
	if p.guards == nil || len(p.guards.slow) == 0 {
		return
	}
	if s := p.guards.scanner(); s != nil {
		s.Warm()
	}
}

// match says whether one of the asked guards matches somewhere in a text.
func (g *guards) match(asked []Guard, text string) bool {
	s := g.scanner()
	if s == nil {
		return slices.ContainsFunc(asked, func(i Guard) bool {
			re := g.slow[i]()
			return re != nil && re.MatchString(text)
		})
	}
	found := g.found.Get().(*[]scan.Match)
	defer g.found.Put(found)
	*found = s.Scan(text, (*found)[:0])
	return slices.ContainsFunc(*found, func(m scan.Match) bool { return slices.Contains(asked, Guard(m.Pattern)) })
}

// Accept gives what the match text[start:end] of the rule finds: the match, or the value in it where the pattern takes in
// a label too, or all values of the column that it names. That is nothing where a guard excludes it, the rule's check fails, or the
// words that the rule asks for do not stand beside it.
func Accept(r *Rule, text string, start, end int) []check.Range {
	valid := check.Named(r.Check)
	// What costs most, the guards' expressions over a whole sentence, comes last.
	if valid != nil && !valid(text, start, end) || !InContext(r, text, start, end) || Suppressed(r, text, start, end) {
		return nil
	}
	return check.Values(r.Check, text, start, end)
}

// Suppressed tells whether the match text[start:end] of the rule stands in a sentence that one of
// the rule's guards excludes: a negation, a quotation, counter-speech; or is itself what UnlessHere excludes; or whether
// the sentence is in a language that the pack does not speak.
//
// The sentence is that of package normal, so guards and detectors mean the same by it.
//
// Guards of UnlessClause look at a part of that sentence: what stands beside the match between semicolons, colons, dashes
// with white space around them, and commas that "and", "but" and the like follow. They are asked last: a second scan for hits
// that all other guards leave. What a guard would drop is looked at once more, see [guarded].
func Suppressed(r *Rule, text string, start, end int) bool {
	if len(r.Guards)+len(r.here)+len(r.Pack.clause) == 0 && !r.Pack.EnglishOnly && !r.Pack.NotInEnglish {
		return false
	}
	from, to := normal.SentenceAround(text, start, end)
	return r.Pack.EnglishOnly && language.Other(text[from:to]) ||
		r.Pack.NotInEnglish && language.English(text[from:to]) || // words that languages share: "tips", "app", "virus"
		slices.ContainsFunc(r.here, func(re *regexp.Regexp) bool { return re.MatchString(text[from:end]) }) ||
		guarded(r, text, from, to, start, end)
}

// maxFrames is how many frames of a statement are taken off, one from within the other.
const maxFrames = 3

// guarded tells whether a guard excludes the match text[start:end] of the sentence text[from:to]. Of bias and insults, a sentence
// that affirms what it says or concedes something first is asked again without that: "myth" is no counter-speech in "It's no
// myth that …", see [refute.Stance].
func guarded(r *Rule, text string, from, to, start, end int) bool {
	behind := to
	for range maxFrames {
		if !excluded(r, text[from:to], start-from, end-from) {
			return false
		}
		if r.Pack.Ground == "" && r.Pack.Wording != "toxicity" {
			return true
		}
		f, t, ok := refute.Stance(text[from:to], text[behind:], start-from, end-from)
		if !ok {
			return true
		}
		from, to = from+f, from+t
	}
	return true
}

// excluded asks the guards of a sentence, or a part of one, then those of the clause.
func excluded(r *Rule, sentence string, start, end int) bool {
	return len(r.Guards) > 0 && r.Pack.guards.match(r.Guards, sentence) ||
		len(r.Pack.clause) > 0 && r.Pack.guards.match(r.Pack.clause, clauseAround(sentence, start, end))
}

// clauseEnd is where a clause ends; the next one begins behind it.
var clauseEnd = regexp.MustCompile(`(?i)[;:]\s|\s[-–—]{1,2}\s|,"?\s(?:"|(?:and|but|so|yet|or|nor|while|whereas|now|then|und|aber|denn|doch|oder|jetzt|also)\b)`)

// clauseAround gives the clause of a sentence in which [start, end) lies, or begins and ends.
func clauseAround(sentence string, start, end int) string {
	from, to := 0, len(sentence)
	for _, at := range clauseEnd.FindAllStringIndex(sentence, -1) {
		if at[1] <= start {
			from = at[1]
		} else if at[0] >= end {
			to = at[0]
			break
		}
	}
	return sentence[from:to]
}
