package main

import (
	"context"
	"errors"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/judge"
	"github.com/evenhand/evenhand/judge/compliance"
)

// inlineJudge is the Compliance Evaluator where texts wait for a decision.
type inlineJudge struct {
	*asking
	selector *judge.Selector
}

// newInlineJudge gives the judge of guard and gateway; nil where neither asks one. Without a model to ask it is a fault of the settings.
func (st *stack) newInlineJudge() (guard.Judge, error) {
	s := st.settings
	if s.Guard.Judge == guard.AskNever && (!s.Gateway.Enabled || s.Gateway.Judge == guard.AskNever) {
		return nil, nil
	}
	if !s.Judge.on() {
		return nil, &settingsError{errors.New("guard.judge, gateway.judge: " + llm.ErrOff.Error())}
	}
	sel, err := judge.NewSelector(s.Judge.selection())
	if err != nil {
		return nil, &settingsError{err}
	}
	if _, err := st.asking.evaluator(); err != nil { // now, not while the first caller waits
		return nil, err
	}
	return &inlineJudge{st.asking, sel}, nil
}

// Grey implements guard.Judge.
func (j *inlineJudge) Grey(in *audit.Interaction, v *audit.Verdict) bool {
	return j.selector.Grey(judge.FactsOf(in, v))
}

// Judge implements guard.Judge.
func (j *inlineJudge) Judge(ctx context.Context, in *audit.Interaction) (*guard.Opinion, error) {
	r, err := j.Evaluate(ctx, compliance.Input{Tenant: in.Tenant, Text: in.Response, Domain: string(in.Domain)})
	if err != nil {
		return nil, err
	}
	v := r.Verdict
	o := &guard.Opinion{
		Assessment: v.Overall.Assessment, Confidence: r.Confidence, Summary: v.Overall.Summary, Findings: r.Findings, Scores: r.Scores,
		Version: j.settings.Judge.version(),
	}
	for _, x := range v.Remediations {
		o.Rewrites = append(o.Rewrites, guard.Rewrite{Issue: x.Issue, Excerpt: x.OriginalExcerpt, Span: audit.Span{Start: x.Span[0], End: x.Span[1]}, Rewrite: x.SuggestedRewrite})
	}
	return o, nil
}
