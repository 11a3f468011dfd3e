package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/detectors/rules/check"
)

// Test runs the sentences of every rule against that rule as it works in the pipeline: patterns,
// then guards, then the check of the matched text. It also looks that no rule of a ground fires on
// a term of the pack's lists alone, unless the rule is there for slurs (abusive).
func Test(packs []*Pack) []Fault {
	var faults []Fault
	for _, p := range packs {
		terms := bareTerms(p)
		for _, r := range p.Rules {
			for _, f := range testRule(r, terms) {
				f.Where, f.Rule = p.ID, r.ID
				faults = append(faults, f)
			}
		}
	}
	return faults
}

// testRule leaves Where and Rule of the faults to its caller.
func testRule(r *Rule, terms []string) (faults []Fault) {
	patterns := make([]*regexp.Regexp, 0, len(r.Expanded))
	for i, e := range r.Expanded {
		re, err := regexp.Compile("(?i)" + e)
		if err != nil {
			return []Fault{{Field: index("patterns", i), Problem: err.Error()}}
		}
		patterns = append(patterns, re)
	}
	for i, s := range r.Match {
		if raw, kept := fires(r, patterns, s); kept == "" {
			problem := "does not match"
			if raw != "" {
				problem = fmt.Sprintf("matches %q, but a guard or check drops it", raw)
			}
			faults = append(faults, Fault{Field: index("match", i), Problem: fmt.Sprintf("%s: %q", problem, s)})
		}
	}
	for i, s := range r.NoMatch {
		if _, kept := fires(r, patterns, s); kept != "" {
			faults = append(faults, Fault{Field: index("no_match", i), Problem: fmt.Sprintf("matches %q in %q", kept, s)})
		}
	}
	if r.Abusive {
		return faults
	}
	for _, term := range terms {
		// In the middle of a sentence, and alone.
		if _, kept := fires(r, patterns, "They wrote about "+term+" yesterday.\n"+term); kept != "" {
			faults = append(faults, Fault{Field: "patterns", Problem: fmt.Sprintf("fires on the bare term %q", term)})
		}
	}
	return faults
}

// fires gives the first text that a pattern matches and the first that guards and check keep.
func fires(r *Rule, patterns []*regexp.Regexp, s string) (raw, kept string) {
	valid := check.Named(r.Check)
	for _, re := range patterns {
		for _, at := range re.FindAllStringIndex(s, -1) {
			if raw == "" {
				raw = s[at[0]:at[1]]
			}
			if !Suppressed(r, s, at[0], at[1]) && (valid == nil || valid(s, at[0], at[1])) {
				return raw, s[at[0]:at[1]]
			}
		}
	}
	return raw, ""
}

// bareTerms lists the terms of a ground's pack: plain list items of one or two words. Longer items
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
	return terms
}
