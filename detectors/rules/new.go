package rules

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/identity"
)

// Draft says what a new pack is for. Exactly one of Ground, Category and Wording is set.
type Draft struct {
	Ground   audit.Ground
	Category string // of safety
	Wording  string // kind of wording
	Language string
	// Own gives the pack and its rules ids beside those of a shipped pack for the same.
	Own bool
	// Classes are those that the pack's language has and no shipped pack makes rules of.
	Classes []string
}

// What a skeleton says where its author has to; Lint names what of it is left.
const (
	anyPeople      = "people of the ground"
	anyWords       = "the words of the rule"
	anyDescription = "says what the rule is for"
	anyRationale   = "says why a match is biased or does harm"
	anySource      = "what the wording was checked against"
	anyRule        = ".example"
)

// about is what the pack is for, its kind and the severities that its rules may have.
func (d Draft) about() (name, family, field string, severity audit.SeverityRange) {
	switch {
	case d.Category != "":
		return d.Category, "safety.", "category", audit.SafetySeverity[d.Category]
	case d.Wording != "":
		return d.Wording, "", "wording", audit.WordingSeverity[d.Wording]
	}
	return string(d.Ground), "charter.", "ground", audit.GroundSeverity[d.Ground]
}

// PackID is the id of the pack.
func (d Draft) PackID() string {
	name, family, _, _ := d.about()
	if d.Own {
		name += ".own"
	}
	return family + name + "." + d.Language
}

// Skeleton gives a new pack, ready to be filled in: a rule of each class of the draft, and one rule of its own. It loads and
// passes its own sentences; Lint names what is still to be filled in.
func Skeleton(d Draft) string {
	name, _, field, severity := d.about()
	ids := name + "."
	if d.Own {
		ids += "own."
	}
	ids += d.Language
	words, pattern := anyPeople, `\b{group} should be avoided\b`
	match := []string{"People of the ground should be avoided.", "I think people of the ground should be avoided!"}
	noMatch := []string{"People of the ground were invited.", "Nobody should avoid people of the ground."}
	if d.Ground == "" {
		words, pattern = anyWords, `\b{group} stand here\b`
		match = []string{"The words of the rule stand here.", "I think the words of the rule stand here!"}
		noMatch = []string{"The words of the rule stand elsewhere.", "Here we do without the words of the rule."}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Rules for %[1]s, language %[2]s.
pack: %[3]s
title: '%[1]s: say what the pack is for'
version: "2026.11.1"
language: %[2]s
%[4]s: %[1]s
source: %[5]s

lists:
  group: [%[6]s]

rules:
`, name, d.Language, d.PackID(), field, anySource, words)
	for _, class := range d.Classes {
		fmt.Fprintf(&b, "  - {id: %s.%s, class: %s, severity: %s}\n", ids, class, class, severity.Min)
	}
	fmt.Fprintf(&b, `  - id: %s%s # never changes once it is in use: it is stored with findings
    description: %s
    severity: %s # %s to %s
    rationale: %s
    patterns:
      - '%s'
    match: # at least two each
      - %s
    no_match:
      - %s
`, ids, anyRule, anyDescription, severity.Min, severity.Min, severity.Max, anyRationale, pattern, strings.Join(match, "\n      - "), strings.Join(noMatch, "\n      - "))
	return b.String()
}

// lintFilled names what a pack still has of its skeleton. It leaves Where of the faults to its caller.
func lintFilled(p *Pack) (faults []Fault) {
	left := func(s string) bool {
		s = strings.ToLower(s)
		return strings.Contains(s, anyPeople) || strings.Contains(s, anyWords)
	}
	add := func(rule, field string) { faults = append(faults, Fault{"", rule, field, "is still the skeleton's"}) }
	if p.Source == anySource {
		add("", "source")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Lists)) {
		if slices.ContainsFunc(p.Lists[name], left) {
			add("", "lists."+name)
		}
	}
	for _, r := range p.Rules {
		for _, part := range []struct {
			field string
			left  bool
		}{
			{"id", strings.HasSuffix(r.ID, anyRule)},
			{"description", r.Description == anyDescription},
			{"rationale", r.Rationale == anyRationale},
			{"match", slices.ContainsFunc(r.Match, left)},
			{"no_match", slices.ContainsFunc(r.NoMatch, left)},
		} {
			if part.left {
				add(r.ID, part.field)
			}
		}
	}
	return faults
}

// Shared reads what packs of a ground in a language share in a folder: its common file, nil if there is none, and its lexicon,
// that of the program where the folder has none, nil without either. Faults are those of Load.
func Shared(fsys fs.FS, language string) (*Common, *identity.Lexicon, error) {
	names, err := packFiles(fsys)
	if err != nil {
		return nil, nil, err
	}
	common, faults := loadCommon(fsys, names)
	lexicons, more := loadLexicons(fsys, names)
	if faults = append(faults, more...); len(faults) > 0 {
		return nil, nil, audit.E("rules: load", audit.KindInvalid, Join(faults))
	}
	lexicon := lexicons[language]
	if lexicon == nil {
		lexicon = identity.In(language)
	}
	return common["charter."+language], lexicon, nil
}
