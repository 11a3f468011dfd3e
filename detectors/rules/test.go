package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/detectors/identity"
)

// Test runs the sentences of every rule against that rule as it works in the pipeline: on the normal form
// of the sentence unless the pack is raw, patterns, then guards, then the check of the matched text. It also
// looks that no rule of a ground fires on a term of the pack's lists alone, unless the rule is there for slurs (abusive).
func Test(packs []*Pack) []Fault {
	var faults []Fault
	for _, p := range packs {
		scales, err := NewScales([]*Pack{p})
		if err != nil {
			faults = append(faults, Fault{Where: p.ID, Field: "patterns", Problem: err.Error()})
			continue
		}
		for _, f := range append(testSentences(p, scales), testTerms(p, scales)...) {
			f.Where = p.ID
			faults = append(faults, f)
		}
	}
	return faults
}

// testSentences leaves Where of the faults to its caller.
func testSentences(p *Pack, scales *Scales) (faults []Fault) {
	for _, r := range p.Rules {
		for i, sentence := range r.Match {
			matched, fired := scales.rulesOn(sentence)
			if textOf(fired, r) != "" {
				continue
			}
			problem := "does not match"
			if text := textOf(matched, r); text != "" {
				problem = fmt.Sprintf("matches %q, but a guard or check drops it", text)
			}
			faults = append(faults, Fault{Rule: r.ID, Field: index("match", i), Problem: fmt.Sprintf("%s: %q", problem, sentence)})
		}
		for i, sentence := range r.NoMatch {
			_, fired := scales.rulesOn(sentence)
			if text := textOf(fired, r); text != "" {
				faults = append(faults, Fault{Rule: r.ID, Field: index("no_match", i), Problem: fmt.Sprintf("matches %q in %q", text, sentence)})
			}
		}
	}
	return faults
}

// testTerms gives a fault for each rule that fires on bare terms, and leaves its Where to the caller.
func testTerms(p *Pack, scales *Scales) (faults []Fault) {
	on := map[string][]string{} // rule -> terms
	for _, term := range bareTerms(p) {
		// In the middle of a sentence, and alone.
		_, fired := scales.rulesOn("They wrote about " + term + " yesterday.\n" + term)
		for _, f := range fired {
			if !f.rule.Abusive && !slices.Contains(on[f.rule.ID], term) {
				on[f.rule.ID] = append(on[f.rule.ID], term)
			}
		}
	}
	for _, r := range p.Rules {
		terms := on[r.ID]
		if len(terms) == 0 {
			continue
		}
		problem := fmt.Sprintf("fires on the bare term %q", terms[0])
		if len(terms) > 1 {
			problem += fmt.Sprintf(" and %d more", len(terms)-1)
		}
		faults = append(faults, Fault{Rule: r.ID, Field: "patterns", Problem: problem + "; a word for people says nothing about them"})
	}
	return faults
}

// bareTerms lists the terms of a ground's pack: plain list items of one or two words, and those of the lexicon. Longer items
// are phrases that may well be the whole of a pattern.
func bareTerms(p *Pack) []string {
	if p.Ground == "" {
		return nil
	}
	var terms []string
	for _, name := range slices.Sorted(maps.Keys(p.Lists)) {
		for _, item := range p.Lists[name] {
			if !strings.HasPrefix(item, "re:") && len(strings.Fields(item)) <= 2 {
				terms = append(terms, item)
			}
		}
	}
	if l := p.lexicon; l != nil {
		for _, t := range l.Terms(p.Ground) {
			if t.Mark != identity.Slur && t.Form != identity.Basis { // a slur may well be all that a rule needs
				terms = append(terms, t.Text)
			}
		}
	}
	return terms
}
