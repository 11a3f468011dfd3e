package compliance

import (
	"cmp"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// evidence checks the quotes of a verdict against the text it is about.
type evidence struct {
	seen *source
	at   func(audit.Span) audit.Span // from seen to the text that was given
	text []rune                      // that was given
	lost int                         // quotes that do not stand there
}

// place puts the span and the words of the text in the place of those of the model.
func (e *evidence) place(excerpt *string, span *Span) bool {
	found, ok := e.seen.find(*excerpt, span[0])
	if !ok {
		e.lost++
		return false
	}
	found = e.at(found)
	*span, *excerpt = Span{found.Start, found.End}, string(e.text[found.Start:found.End])
	return true
}

// verify drops what quotes nothing that stands in the text, and then makes what the verdict says of each section agree
// with what is left: a claim without a quote does not count.
func (e *evidence) verify(v *Verdict) {
	v.Bias.Findings = kept(v.Bias.Findings, func(f *BiasFinding) bool { return e.place(&f.Excerpt, &f.Span) })
	v.DEI.Violations = kept(v.DEI.Violations, func(f *Violation) bool { return e.place(&f.Excerpt, &f.Span) })
	v.Offensive.Instances = kept(v.Offensive.Instances, func(f *Instance) bool { return e.place(&f.Excerpt, &f.Span) })
	v.Mentioned = kept(v.Mentioned, func(f *Mention) bool { return e.place(&f.Excerpt, &f.Span) })
	v.Remediations = kept(v.Remediations, func(f *Remediation) bool { return e.place(&f.OriginalExcerpt, &f.Span) })
	agree(v)
}

// kept filters in place.
func kept[T any](all []T, keep func(*T) bool) []T {
	out := all[:0]
	for i := range all {
		if keep(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

// agree makes scores, risks and assessment those of the evidence.
func agree(v *Verdict) {
	if len(v.Bias.Findings) == 0 {
		v.Bias.Score, v.Bias.Risk = 0, None
	}
	if len(v.DEI.Violations) == 0 && v.DEI.Risk != None {
		v.DEI.Score, v.DEI.Risk = 100, None // nothing speaks against it
	}
	if len(v.Offensive.Instances) == 0 {
		v.Offensive.Score, v.Offensive.Severity = 0, None
	}
	evident := len(v.Bias.Findings)+len(v.DEI.Violations)+len(v.Offensive.Instances) > 0
	switch {
	case !evident && v.Overall.Assessment == NonCompliant:
		v.Overall.Assessment = NeedsReview
	case v.Overall.Assessment == Compliant && (v.Bias.Risk == "high" || v.DEI.Risk == "high" || level(v.Offensive.Severity) >= audit.High.Level()):
		v.Overall.Assessment = NeedsReview // it contradicts itself
	}
}

// severities of the findings' types are those of the vocabulary: 5 is critical, 4 high, 3 medium, less is low.
var severities = map[string]audit.Severity{
	"dehumanization": audit.Critical, "unequal_standards": audit.High, "stereotype": audit.Medium, "othering": audit.Medium,
	"generalization": audit.Medium, "microaggression": audit.Low,

	"representation": audit.Medium, "equitable_framing": audit.Medium, "cultural_sensitivity": audit.Medium, "inclusive_language": audit.Low,
	"people_first_language": audit.Low, "gender_inclusivity": audit.Low, "accessibility": audit.Low,
}

// severity is that of an instance, in our words.
func severity(s string) audit.Severity { return audit.Severity(strings.ToUpper(s)) }

func level(s string) uint8 { return severity(s).Level() }

var contexts = []string{"positive", "neutral", "negative"}

// order puts every array into the order of severity, the highest first, and then of place. Rewrites have the severity
// of the worst that they overlap; categories are those of the instances.
func order(v *Verdict) {
	var worst []struct {
		at    Span
		level uint8
	}
	note := func(at Span, level uint8) {
		worst = append(worst, struct {
			at    Span
			level uint8
		}{at, level})
	}
	for _, f := range v.Bias.Findings {
		note(f.Span, severities[f.Type].Level())
	}
	for _, f := range v.DEI.Violations {
		note(f.Span, severities[f.Guideline].Level())
	}
	for _, f := range v.Offensive.Instances {
		note(f.Span, level(f.Severity))
	}
	rewrite := func(f Remediation) (most uint8) {
		for _, w := range worst {
			if w.at[0] < f.Span[1] && f.Span[0] < w.at[1] {
				most = max(most, w.level)
			}
		}
		return most
	}
	sortBy(v.Bias.Findings, func(f BiasFinding) (uint8, Span) { return severities[f.Type].Level(), f.Span })
	sortBy(v.DEI.Violations, func(f Violation) (uint8, Span) { return severities[f.Guideline].Level(), f.Span })
	sortBy(v.Offensive.Instances, func(f Instance) (uint8, Span) { return level(f.Severity), f.Span })
	sortBy(v.Mentioned, func(f Mention) (uint8, Span) { return uint8(slices.Index(contexts, f.Context)), f.Span })
	sortBy(v.Remediations, func(f Remediation) (uint8, Span) { return rewrite(f), f.Span })
	v.Offensive.Categories = []string{}
	for _, f := range v.Offensive.Instances {
		if !slices.Contains(v.Offensive.Categories, f.Category) {
			v.Offensive.Categories = append(v.Offensive.Categories, f.Category)
		}
	}
}

func sortBy[T any](all []T, of func(T) (level uint8, at Span)) {
	slices.SortStableFunc(all, func(a, b T) int {
		la, sa := of(a)
		lb, sb := of(b)
		return cmp.Or(cmp.Compare(lb, la), cmp.Compare(sa[0], sb[0]), cmp.Compare(sa[1], sb[1]))
	})
}
