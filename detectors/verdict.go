package detectors

import (
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// conclude applies the policy to the findings of each family, and to what detectors measured. It is the one place where families meet;
// the table "What sets what" of docs/detection.md says the same. Findings in the prompt are kept and set nothing.
func (a *Analyzer) conclude(v *audit.Verdict, x *Input, families [][]audit.Finding, measured []audit.NamedScore) {
	var bias, safety, wording, learned, scored []audit.Finding // of the response
	var terms []string                                         // rules of the terms family
	for i, fs := range families {
		v.Findings = append(v.Findings, fs...)
		for _, f := range fs {
			if f.Side != audit.Output || a.ds[i].Info().Family == PII {
				continue // personal data is listed and masked; it has no part in what follows
			}
			scored = append(scored, f)
			switch a.ds[i].Info().Family {
			case Bias:
				bias = append(bias, f)
				v.BiasTypes = append(v.BiasTypes, f.Kind)
			case Terms:
				terms = append(terms, f.Rule)
				v.BiasTypes = append(v.BiasTypes, f.Kind)
			case Safety:
				safety = append(safety, f)
			case Linguistic:
				wording = append(wording, f)
			case Gates:
				v.Gated = true
			case Classifier:
				learned = append(learned, f)
				if f.Ground != "" { // toxicity and safety are no bias
					v.BiasTypes = append(v.BiasTypes, f.Kind)
				}
			}
		}
	}
	audit.SortFindings(v.Findings)
	slices.Sort(v.BiasTypes)
	v.BiasTypes = slices.Compact(v.BiasTypes)
	v.Detected = len(v.BiasTypes) > 0
	v.Threshold = x.Profile.Threshold
	v.BiasSum, v.SafetySum = audit.Sum(bias), audit.Sum(safety)
	v.Flagged = v.BiasSum > v.Threshold
	v.Unsafe = v.SafetySum > a.policy.SafetyThreshold
	strongest := audit.Score(-1)
	for _, f := range scored {
		v.MaxSeverity = max(v.MaxSeverity, f.Severity.Level())
	}
	for _, f := range bias {
		if f.Score > strongest || f.Score == strongest && f.Confidence > v.Confidence {
			strongest, v.Confidence = f.Score, f.Confidence
		}
	}
	if len(bias) == 0 {
		if len(terms) > 0 {
			v.Confidence = termsConfidence
		}
		for _, f := range learned {
			if f.Ground != "" {
				v.Confidence = max(v.Confidence, f.Confidence)
			}
		}
	}
	v.Action = a.action(v, len(learned) > 0)
	v.Scores = scores(v, scoredFamilies{bias, safety, wording}, scored, distinct(terms), measured)
	v.Scores = append(v.Scores, learnedScores(learned)...)
	v.Mitigation = mitigation(v, bias, safety, len(bias)+len(terms) > 0, len(learned) > 0)
	for _, f := range scored {
		v.Mitigation = audit.StrongerMitigation(v.Mitigation, a.advice[f.Rule].Type)
	}
}

// termsConfidence is the confidence of a substring of seed 002's list alone.
const termsConfidence audit.Score = 600_000

// action is the strongest of what is asked for.
func (a *Analyzer) action(v *audit.Verdict, learned bool) audit.Action {
	order := []audit.Action{audit.NoAction, audit.Log, audit.Warn, audit.Gate, audit.Block}
	act := audit.NoAction
	raise := func(to audit.Action) {
		if slices.Index(order, to) > slices.Index(order, act) {
			act = to
		}
	}
	if v.Flagged {
		raise(a.policy.BiasAction)
	}
	if v.Unsafe {
		raise(a.policy.SafetyMode)
	}
	if v.Gated {
		raise(audit.Gate)
	}
	if learned {
		raise(a.policy.ClassifierAction)
	}
	return act
}

// learnedScores gives the highest probability of what a learned detector found: "classifier" of bias,
// "classifier.<kind>" of each other kind. They stand apart from the rules' scores, so that a record tells who said what.
func learnedScores(learned []audit.Finding) (out []audit.NamedScore) {
	for _, f := range learned {
		name := audit.ScoreClassifier
		if f.Ground == "" {
			name += "." + strings.TrimPrefix(f.Kind, "safety.")
		}
		i := slices.IndexFunc(out, func(s audit.NamedScore) bool { return s.Name == name })
		if i < 0 {
			i, out = len(out), append(out, audit.NamedScore{Name: name})
		}
		out[i].Value = max(out[i].Value, f.Confidence)
	}
	slices.SortFunc(out, func(a, b audit.NamedScore) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func distinct(s []string) int {
	slices.Sort(s)
	return len(slices.Compact(s))
}

// scoredFamilies are the findings whose kinds get a score each.
type scoredFamilies struct{ bias, safety, wording []audit.Finding }

// scores lists the scores that are not zero, capped at 1, aggregates first and then by kind of the families and by
// what was measured, where a zero is a measure too. Of two of one name the higher holds.
func scores(v *audit.Verdict, families scoredFamilies, all []audit.Finding, terms int, measured []audit.NamedScore) []audit.NamedScore {
	if len(all) == 0 && len(measured) == 0 {
		return nil
	}
	var out []audit.NamedScore
	put := func(name string, s audit.Score) {
		if i := slices.IndexFunc(out, func(o audit.NamedScore) bool { return o.Name == name }); i >= 0 {
			out[i].Value = max(out[i].Value, s.Capped())
			return
		}
		out = append(out, audit.NamedScore{Name: name, Value: s.Capped()})
	}
	add := func(name string, s audit.Score) {
		if s > 0 {
			put(name, s)
		}
	}
	kindOf := func(fs []audit.Finding, kind string) (of []audit.Finding) {
		for _, f := range fs {
			if f.Kind == kind {
				of = append(of, f)
			}
		}
		return of
	}
	var abusive []audit.Finding
	for _, f := range all {
		if f.Abusive {
			abusive = append(abusive, f)
		}
	}
	add(audit.ScoreBias, v.BiasSum)
	add(audit.ScoreSafety, v.SafetySum)
	add(audit.ScoreToxicity, audit.Sum(abusive))
	add(audit.ScorePII, audit.Sum(kindOf(families.safety, "safety.pii_leakage")))
	add(audit.ScoreHallucination, audit.Sum(kindOf(families.safety, "safety.hallucination_indicator")))
	if terms > 0 {
		out = append(out, audit.NamedScore{Name: audit.ScoreTerms, Value: audit.TermsScore(terms)})
	}
	for _, fs := range [][]audit.Finding{families.bias, families.safety, families.wording} {
		var kinds []string
		for _, f := range fs {
			kinds = append(kinds, f.Kind)
		}
		slices.Sort(kinds)
		for _, k := range slices.Compact(kinds) {
			add(k, audit.Sum(kindOf(fs, k)))
		}
	}
	for _, m := range measured {
		put(m.Name, m.Value)
	}
	return out
}

// mitigation suggests what to do about the worst that was found. ruled says that rules or terms found bias,
// learned that a learned detector found anything.
func mitigation(v *audit.Verdict, bias, safety []audit.Finding, ruled, learned bool) string {
	worst := uint8(0)
	for _, f := range bias {
		worst = max(worst, f.Severity.Level())
	}
	pii := slices.ContainsFunc(safety, func(f audit.Finding) bool { return strings.HasSuffix(f.Kind, ".pii_leakage") })
	switch {
	case worst >= audit.High.Level():
		return audit.MitigationBlock
	case v.Unsafe && !pii:
		return audit.MitigationBlock
	case pii:
		return audit.MitigationRedact
	case ruled && worst != audit.Low.Level():
		return audit.MitigationRephrase
	case ruled:
		return audit.MitigationReview
	case v.Gated:
		return audit.MitigationApprove
	case learned: // a probability is no reason to rewrite: somebody should look
		return audit.MitigationReview
	}
	return ""
}
