package mend

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/judge/replay"
)

// Evaluator judges a text: a compliance.Evaluator.
type Evaluator interface {
	Evaluate(ctx context.Context, in compliance.Input) (*compliance.Result, error)
}

// Validator says whether a response passes: the stricter of the Compliance Evaluator and the rules. Neither knows what the other
// found.
type Validator struct {
	Evaluator Evaluator
	// Analyze are the rules; nil leaves it to the evaluator.
	Analyze func(ctx context.Context, in *audit.Interaction) *audit.Verdict
}

var errNotAnalysed = errors.New("the rules could not look")

// Check validates the response of an interaction. Errors of the evaluator pass with their kind; rules that could not look are of
// KindUnavailable, for what was not looked at does not pass.
func (v *Validator) Check(ctx context.Context, in *audit.Interaction) (*replay.Check, error) {
	var rules *audit.Verdict
	if v.Analyze != nil {
		if rules = v.Analyze(ctx, in); rules.Status == audit.Failed || rules.Status == audit.Partial {
			return nil, audit.E(op, audit.KindUnavailable, errNotAnalysed)
		}
	}
	res, err := v.Evaluator.Evaluate(ctx, compliance.Input{Tenant: in.Tenant, Text: in.Response, Domain: string(in.Domain)})
	if err != nil {
		return nil, err
	}
	doc, err := json.Marshal(res.Verdict)
	if err != nil {
		return nil, audit.E(op, audit.KindInternal, errors.New("the verdict is no JSON"))
	}
	c, err := replay.FromVerdict(doc)
	if err != nil {
		return nil, err
	}
	c.Usage, c.CostUSD = res.Usage, res.CostUSD
	if rules != nil && (rules.Flagged || rules.Unsafe) {
		c.Outcome = replay.Failed
		c.Score = min(c.Score, audit.One-max(rules.BiasSum.Capped(), rules.SafetySum.Capped()))
		c.Notes = append(c.Notes, notes(in, rules)...)
	}
	return c, nil
}

// notes are the findings of the rules that made the sums.
func notes(in *audit.Interaction, v *audit.Verdict) (out []replay.Note) {
	response := audit.PointsOf(in.Response)
	for _, f := range v.Findings {
		if f.Side == audit.Output && f.Score > 0 {
			out = append(out, replay.Note{Issue: "rule " + f.Rule + ", " + f.Kind, Excerpt: response.Slice(f.Span)})
		}
	}
	return out
}
