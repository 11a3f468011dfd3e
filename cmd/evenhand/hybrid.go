package main

import (
	"cmp"
	"context"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/terms"
	"github.com/evenhand/evenhand/ingest/door"
	"github.com/evenhand/evenhand/judge/hybrid"
)

// evaluate serves seed 002's evaluator at POST /v1/evaluate.
func (a *asking) evaluate(ctx context.Context, r door.EvaluateRequest) (any, error) {
	cfg := a.hybridConfig()
	cfg.Mode, cfg.Model, cfg.Check = cmp.Or(r.Mode, cfg.Mode), cmp.Or(r.Model, cfg.Model), cmp.Or(r.Check, cfg.Check)
	cfg.APIKey, cfg.Categories, cfg.CustomTerms = r.APIKey, r.Categories, r.CustomTerms
	res, err := a.hybrid(ctx, cfg, hybrid.Input{Tenant: r.Tenant, Input: r.Input, Output: r.Output})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// hybridConfig is what holds where a caller says nothing. The model is the configured one: whoever has a server of their own
// has no gpt-4o-mini, which is the default of both.
func (a *asking) hybridConfig() terms.Config {
	c := terms.DefaultConfig()
	c.Model = a.settings.Judge.Model
	return c
}

// hybrid evaluates once. What the model needs is made ready for the modes that ask it.
func (a *asking) hybrid(ctx context.Context, cfg terms.Config, in hybrid.Input) (*hybrid.Result, error) {
	var o hybrid.Options
	if cfg.Mode != terms.Deterministic && a.model != nil {
		if err := cfg.Validate(); err != nil { // before the rules are compiled
			return nil, err
		}
		e, err := a.evaluator()
		if err != nil {
			return nil, audit.E("evaluate", audit.KindInternal, err)
		}
		o.Model = a.model
		o.Hostile = func(ctx context.Context, text string) bool {
			addressed, err := e.Addresses(ctx, text)
			return addressed || err != nil // what was not looked at is not believed
		}
		if e.Masks() {
			o.Mask = func(ctx context.Context, text string) (string, error) {
				m, err := e.Mask(ctx, text)
				return m.Text, err
			}
		}
	}
	e, err := hybrid.New(cfg, o)
	if err != nil {
		return nil, err
	}
	return e.Evaluate(ctx, in)
}
