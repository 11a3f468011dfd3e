package model

import (
	"context"
	"encoding/json"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// The values here are those of the view llm_interaction_audit, member by member.

// report is biasReportSummary.
type report struct {
	Status       string           `json:"status"`
	BiasDetected bool             `json:"bias_detected"`
	Flagged      bool             `json:"flagged"`
	Unsafe       bool             `json:"unsafe"`
	Gated        bool             `json:"gated"`
	Action       string           `json:"action"`
	BiasSum      audit.Score      `json:"bias_sum"`
	SafetySum    audit.Score      `json:"safety_sum"`
	Threshold    audit.Score      `json:"threshold"`
	Analyzers    []reportAnalyzer `json:"analyzers"`
	Findings     []reportFinding  `json:"findings"`
	// Outside are the reports of outside analyzers by who sent them.
	Outside map[string]json.RawMessage `json:"outside,omitempty"`
}

type reportAnalyzer struct {
	Analyzer string `json:"analyzer"`
	Status   string `json:"status"`
	Reason   string `json:"reason"`
	RuleSet  string `json:"rule_set"`
	ResultID string `json:"result_id"`
}

type reportFinding struct {
	Analyzer    string      `json:"analyzer"`
	Rule        string      `json:"rule"`
	RuleVersion string      `json:"rule_version"`
	Kind        string      `json:"kind"`
	Ground      string      `json:"ground"`
	Severity    string      `json:"severity"`
	Score       audit.Score `json:"score"`
	Confidence  audit.Score `json:"confidence"`
	Side        string      `json:"side"`
	Span        [2]uint32   `json:"span"`
	Evidence    *string     `json:"evidence"`
}

// BiasReportSummary is the analysis in full; null until there is a verdict.
func (a *Audit) BiasReportSummary(ctx context.Context) (any, error) {
	now, err := a.current(ctx)
	if err != nil || len(now) == 0 {
		return nil, err
	}
	t, err := a.texts(ctx)
	if err != nil {
		return nil, err
	}
	it := &a.Item
	r := report{
		Status: a.BiasAnalysisStatus(), BiasDetected: it.BiasDetected, Flagged: it.Flagged, Unsafe: it.Unsafe, Gated: it.Gated, Action: string(it.Action),
		Findings: []reportFinding{},
	}
	for _, v := range now {
		if v.Analyzer == audit.HotAnalyzer {
			r.BiasSum, r.SafetySum, r.Threshold = v.BiasSum, v.SafetySum, v.Threshold
		}
		r.Analyzers = append(r.Analyzers, reportAnalyzer{v.Analyzer, string(v.Status), v.Reason, v.RuleSet, v.ResultID.String()})
		for _, f := range v.Findings {
			r.Findings = append(r.Findings, reportFinding{
				Analyzer: v.Analyzer, Rule: f.Rule, RuleVersion: f.RuleVersion, Kind: f.Kind, Ground: string(f.Ground), Severity: string(f.Severity),
				Score: f.Score, Confidence: f.Confidence, Side: string(f.Side), Span: [2]uint32{f.Span.Start, f.Span.End}, Evidence: a.evidence(&t, f),
			})
		}
		if o := t.Outside[v.ResultID].Report; json.Valid([]byte(o)) {
			if r.Outside == nil {
				r.Outside = map[string]json.RawMessage{}
			}
			r.Outside[v.Version] = json.RawMessage(o)
		}
	}
	return r, nil
}

// BiasScore holds the highest value of each name; null when nobody looked.
func (a *Audit) BiasScore(ctx context.Context) (any, error) {
	now, err := a.current(ctx)
	if err != nil || !a.analysed() {
		return nil, err
	}
	var all []audit.NamedScore
	for _, v := range now {
		all = append(all, v.Scores...)
	}
	return scores(all), nil
}

// mitigation is what we suggest.
type mitigation struct {
	Type    string `json:"type"`
	Details string `json:"details"`
}

// MitigationAction is the newest that an outside analyzer gave, else ours. What came from outside may hold
// words of people: who may not see texts is shown ours, with the wording that the rules found suggest.
func (a *Audit) MitigationAction(ctx context.Context) (any, error) {
	now, err := a.verdicts(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range now { // newest first
		if !v.Current || !outside(v) {
			continue
		}
		t, err := a.texts(ctx)
		if err != nil {
			return nil, err
		}
		if m := t.Outside[v.ResultID].Mitigation; m != "" {
			return object(m), nil
		}
	}
	if m := a.Item.Mitigation; m != "" {
		return mitigation{m, audit.MitigationDetails(m, a.advice(now)...)}, nil
	}
	return nil, nil //nolint:nilnil // null: nothing is suggested
}

// advice is what the rules of the response's findings suggest.
func (a *Audit) advice(now []store.StoredVerdict) (out []audit.Advice) {
	if a.page == nil || a.page.sight.Advice == nil {
		return nil
	}
	for _, v := range now {
		for _, f := range v.Findings {
			if v.Current && f.Side == audit.Output {
				out = append(out, a.page.sight.Advice(f.Rule))
			}
		}
	}
	return out
}
