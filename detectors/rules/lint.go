package rules

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/evenhand/evenhand/audit"
)

const maxPattern = 32 << 10 // bytes of one pattern with its lists put in

var (
	idForm      = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)
	versionForm = regexp.MustCompile(`^\d{4}\.\d{1,2}\.\d{1,3}$`)
)

// Lint tells what a loaded pack must mend before it ships: names, severity ranges of seeds 000 and
// 001, examples, and patterns that cost too much or match nothing. What known faults of Load say already is not said again.
func Lint(packs []*Pack, known ...Fault) []Fault {
	var faults []Fault
	at := func(f Fault, field string) bool {
		return slices.ContainsFunc(known, func(k Fault) bool { return k.Rule == f.Rule && k.Field == field })
	}
	for _, p := range packs {
		faults = append(faults, lintPack(p)...)
		for _, f := range lintFilled(p) {
			f.Where = p.ID
			faults = append(faults, f)
		}
		for _, r := range p.Rules {
			for _, f := range lintRule(p, r) {
				f.Where, f.Rule = p.ID, r.ID
				faults = append(faults, f)
			}
		}
	}
	return slices.DeleteFunc(faults, func(f Fault) bool {
		return at(f, f.Field) || f.Rule != "" && at(f, "class") // a class that is missing leaves the rule empty
	})
}

func lintPack(p *Pack) (faults []Fault) {
	family, member := "charter.", string(p.Ground)
	switch {
	case p.Category != "":
		family, member = "safety.", p.Category
	case p.Wording != "":
		family, member = "", p.Wording
	case p.Gate:
		family, member = "gate.", ""
	case p.PII:
		family, member = "pii.", ""
	}
	if problem := LanguageProblem(p.Language); problem != "" { // the id ends with it; one fault of the two is enough
		faults = append(faults, Fault{p.ID, "", "language", problem})
	} else if !idForm.MatchString(p.ID) || !strings.HasPrefix(p.ID, family+member) || !strings.HasSuffix(p.ID, "."+p.Language) {
		faults = append(faults, Fault{p.ID, "", "pack", fmt.Sprintf("want %s%s….%s", family, member, p.Language)})
	}
	if !versionForm.MatchString(p.Version) {
		faults = append(faults, Fault{p.ID, "", "version", fmt.Sprintf("%q: want year.month.number", p.Version)})
	}
	if p.Title == "" {
		faults = append(faults, Fault{p.ID, "", "title", "is missing"})
	}
	for _, guards := range []struct {
		field string
		items []string
	}{{"unless", p.Unless}, {"unless_clause", p.UnlessClause}} {
		for i, u := range guards.items {
			if looseBrace(u) {
				faults = append(faults, Fault{p.ID, "", index(guards.field, i), loose})
			}
		}
	}
	return faults
}

// LanguageProblem says what is wrong with the language of a pack; "" when nothing is.
func LanguageProblem(tag string) string {
	switch t, err := language.Parse(tag); {
	case err != nil:
		return fmt.Sprintf("%q is no BCP 47 tag; want one such as en, de or sv", tag)
	case t.String() != tag:
		return fmt.Sprintf("%q: want %s", tag, t)
	}
	return ""
}

// lintRule leaves Where and Rule of the faults to its caller.
func lintRule(p *Pack, r *Rule) (faults []Fault) {
	add := func(field, format string, args ...any) {
		faults = append(faults, Fault{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if !idForm.MatchString(r.ID) {
		add("id", "want 1 to 64 of a-z 0-9 _ . -")
	}
	if owner := string(p.Ground) + p.Category + p.Wording; owner != "" && !strings.HasPrefix(r.ID, owner+".") {
		add("id", "must begin with %q", owner+".")
	}
	if strings.TrimSpace(r.Description) == "" {
		add("description", "is missing")
	}
	switch {
	case p.Gate && r.Severity != "":
		add("severity", "gate rules have none")
	case p.Gate && r.Category == "":
		add("category", "is missing")
	case p.PII && (r.Entity == "" || !strings.HasPrefix(r.ID, "pii.")):
		add("entity", "must be set, and the id begin with \"pii.\"")
	case p.PII && !audit.SeverityRange{Min: audit.Low, Max: audit.High}.Holds(r.Severity):
		add("severity", "%q lies outside %s…%s", r.Severity, audit.Low, audit.High)
	case !p.Raw && len(r.Near)+len(r.NotNear)+len(r.NotBefore) > 0:
		add("near", "is for packs that read the text as it is spelled: raw: true")
	case !p.Gate && !p.PII:
		limits := audit.GroundSeverity[p.Ground]
		if p.Category != "" {
			limits = audit.SafetySeverity[p.Category]
		}
		if p.Wording != "" {
			limits = audit.WordingSeverity[p.Wording]
		}
		if !limits.Holds(r.Severity) {
			add("severity", "%q lies outside %s…%s", r.Severity, limits.Min, limits.Max)
		}
	}
	if r.Mitigation == audit.MitigationReplace && r.Replace == "" {
		add("replace", "is missing: %s wants the wording to use instead", audit.MitigationReplace)
	}
	if p.Ground != "" || p.Wording != "" {
		lintReasons(r, add)
	}
	if len(r.Match) < 2 {
		add("match", "want at least two sentences")
	}
	if len(r.NoMatch) < 2 {
		add("no_match", "want at least two sentences")
	}
	for _, part := range []struct {
		field    string
		patterns []string
	}{{"patterns", r.Patterns}, {"unless", r.Unless}, {"unless_here", r.UnlessHere}} {
		for i, pattern := range part.patterns {
			if looseBrace(pattern) {
				add(index(part.field, i), "%s", loose)
			}
		}
	}
	for i, pattern := range r.Expanded {
		if problem := patternProblem(pattern); problem != "" {
			add(index("patterns", i), "%s", problem)
		}
	}
	return faults
}

const loose = `has a brace that is neither a list, such as {job}, nor a count, such as {2,3}; write \{ for the sign itself`

// other are braces with a meaning: lists, counts, classes and numbers of characters.
var other = regexp.MustCompile(`\\[pPx]\{\^?\w+\}|` + counted.String() + `|\{[a-z_][a-z0-9_]*\}`)

// looseBrace tells whether a pattern has a brace that RE2 takes for the sign.
func looseBrace(pattern string) (is bool) {
	rest := other.ReplaceAllString(pattern, "x")
	outside(rest, func(i, _ int) bool {
		is = rest[i] == '{' || rest[i] == '}'
		return !is
	})
	return is
}

func patternProblem(pattern string) string {
	if len(pattern) > maxPattern {
		return fmt.Sprintf("%d bytes with its lists; at most %d", len(pattern), maxPattern)
	}
	re, err := syntax.Parse(pattern, syntax.Perl|syntax.FoldCase)
	switch {
	case err != nil:
		return err.Error()
	case canBeEmpty(re):
		return "can match nothing at all"
	case hasOpenGap(re):
		return "has an unbounded gap such as .* or [^x]+; give it an end, as .{0,40}"
	}
	return ""
}

// canBeEmpty tells whether the expression can match without taking a character.
func canBeEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpStar, syntax.OpQuest:
		return true
	case syntax.OpRepeat:
		return re.Min == 0 || canBeEmpty(re.Sub[0])
	case syntax.OpCapture, syntax.OpPlus:
		return canBeEmpty(re.Sub[0])
	case syntax.OpConcat:
		for _, s := range re.Sub {
			if !canBeEmpty(s) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, canBeEmpty)
	}
	return true // anchors, word boundaries, the empty match
}

// hasOpenGap tells whether a wide class (any character, a negated class) repeats without end.
func hasOpenGap(re *syntax.Regexp) bool {
	open := re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0
	return open && isWide(re.Sub[0]) || slices.ContainsFunc(re.Sub, hasOpenGap)
}

func isWide(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return true
	case syntax.OpCharClass:
		n := 0
		for i := 0; i+1 < len(re.Rune); i += 2 {
			n += int(re.Rune[i+1]-re.Rune[i]) + 1
		}
		return n > 1<<16
	case syntax.OpCapture, syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, isWide)
	}
	return false
}
