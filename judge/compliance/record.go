package compliance

import (
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// Analyzer names the judge in verdict rows.
const Analyzer = audit.JudgeAnalyzer

func scores(v *Verdict) []audit.NamedScore {
	return []audit.NamedScore{
		{Name: audit.ScoreJudge, Value: audit.ScoreOf(v.Bias.Score / 100)},
		{Name: audit.ScoreDEI, Value: audit.ScoreOf(v.DEI.Score / 100)},
		{Name: audit.ScoreOffensive, Value: audit.ScoreOf(v.Offensive.Score / 100)},
	}
}

// findings are what a verdict shows, in our words. A rule's id is the kind and the protected class as the model named
// it; a class of two grounds makes a finding of each.
func findings(v *Verdict, version string) (fs []audit.Finding) {
	add := func(kind, class string, ground audit.Ground, s audit.Severity, at Span, abusive bool) {
		rule := kind
		if class != "" {
			rule += "." + class
		}
		fs = append(fs, audit.Finding{
			Kind: kind, Rule: rule, RuleVersion: version, Ground: ground, Severity: s, Score: s.Weight(),
			Confidence: audit.ScoreOf(v.Overall.Confidence), Side: audit.Output, Span: audit.Span{Start: at[0], End: at[1]}, Abusive: abusive,
		})
	}
	for _, f := range v.Bias.Findings {
		for _, c := range grounds(f.ProtectedClass) {
			add("judge."+f.Type, c.class, c.ground, severities[f.Type], f.Span, f.Type == "dehumanization")
		}
	}
	for _, f := range v.DEI.Violations {
		add("dei."+f.Guideline, "", "", severities[f.Guideline], f.Span, false)
	}
	for _, f := range v.Offensive.Instances {
		add("offensive."+f.Category, "", "", severity(f.Severity), f.Span, f.Category == "slur" || f.Category == "threat")
	}
	return fs
}

// version names prompt and model, as rule sets and findings have it.
func (r *Result) version() string {
	if r.Model == "" {
		return r.PromptVersion
	}
	return r.PromptVersion + "/" + r.Model
}

// ReasonFailed is the reason of a row without a verdict, unless the caller knows a better one.
const ReasonFailed = "error"

// ReasonLeaked is the reason of a row whose verdict lacks an answer that was thrown away, or that was none. Its status stays done: whoever
// makes a text that undoes the judge must not take it out of the counts with that.
const ReasonLeaked = "answer_untrusted"

// ReasonLong is the reason of a row whose verdict is of the beginning of a text that is longer than Config.MaxWindows.
const ReasonLong = "partly_read"

// Mistrust makes of a Result without a verdict, whose text addresses the evaluator, one that asks for a person, and tells whether
// it did. It is for whoever keeps verdicts: a text that makes the model fail must not escape a look. Who decides in
// line has the error, which is the stricter answer.
func (r *Result) Mistrust() bool {
	if r == nil || r.Verdict != nil || !r.Injection {
		return false
	}
	r.mistrusted = true
	r.conclude(nil, r.meta)
	return true
}

// Row makes the row of verdicts. id is of the request, so that answering it twice is one row. The row flags only what
// fails validation and has evidence; it enters no sum, for those are the rules'. Of a Result without a verdict it is a
// failed one.
func (r *Result) Row(id audit.ID) *audit.Verdict {
	v := &audit.Verdict{
		ResultID: id, Analyzer: Analyzer, RuleSet: r.version(), Status: audit.Done, Action: audit.NoAction,
		Findings: r.Findings, Detected: r.Detected, Confidence: r.Confidence, Scores: r.Scores, Time: r.Time, Duration: r.Duration,
	}
	switch {
	case r.Leaked > 0 || r.mistrusted:
		v.Reason = ReasonLeaked
	case r.LeftOut > 0:
		v.Reason = ReasonLong
	}
	for _, f := range r.Findings {
		v.MaxSeverity = max(v.MaxSeverity, f.Severity.Level())
		if r.Detected && strings.HasPrefix(f.Kind, "judge.") && f.Kind != InjectionKind {
			v.BiasTypes = append(v.BiasTypes, f.Kind)
			if f.Ground != "" {
				v.BiasTypes = append(v.BiasTypes, "charter."+string(f.Ground))
			}
		}
	}
	slices.Sort(v.BiasTypes)
	v.BiasTypes = slices.Compact(v.BiasTypes)
	switch {
	case r.Verdict == nil:
		v.Status, v.Reason = audit.Failed, ReasonFailed
		if r.Injection {
			v.Mitigation = audit.MitigationReview
		}
	case r.Verdict.Overall.Assessment == NonCompliant:
		v.Flagged, v.Action, v.Mitigation = true, audit.Warn, audit.MitigationRephrase
	case r.Verdict.Overall.Assessment == NeedsReview:
		v.Mitigation = audit.MitigationReview
	}
	return v
}
