package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/judge/mend"
)

// asking is how a process asks language models: the judging one, and those that calls came from. Nothing connects before the first
// question, and rules are compiled with it.
type asking struct {
	settings  settings
	observer  llm.Observer
	model     *llm.Client // the judging one; nil where judge.enabled is false. Without a server and a key it answers callers who bring one
	evaluator func() (*compliance.Evaluator, error)

	mu      sync.Mutex
	origins map[string]*llm.Client // by the upstream's name
}

func newAsking(s settings, o llm.Observer) (*asking, error) {
	a := &asking{settings: s, observer: o, origins: map[string]*llm.Client{}}
	a.evaluator = sync.OnceValues(func() (*compliance.Evaluator, error) { return s.newEvaluator(a) })
	if !s.Judge.Enabled {
		return a, nil
	}
	m, err := llm.New(s.Judge.Config, llm.Options{Price: s.Judge.price, Observer: o, CallersKeys: true})
	if err != nil {
		return nil, &settingsError{err}
	}
	a.model = m
	return a, nil
}

// Complete implements llm.Model with the judging model, or llm.ErrOff.
func (a *asking) Complete(ctx context.Context, r llm.Request) (*llm.Answer, error) {
	if a.model == nil {
		return nil, audit.E("llm", audit.KindInvalid, llm.ErrOff)
	}
	return a.model.Complete(ctx, r)
}

// Evaluate asks the Compliance Evaluator.
func (a *asking) Evaluate(ctx context.Context, in compliance.Input) (*compliance.Result, error) {
	e, err := a.evaluator()
	if err != nil {
		return nil, audit.E("judge", audit.KindInternal, err)
	}
	return e.Evaluate(ctx, in)
}

// origin gives the model that a call came from: of the upstream of the gateway that it went through or that serves such a
// model, else of the judge's server. model stands above the recorded one where it is not "".
func (a *asking) origin(in *audit.Interaction, model string) (llm.Model, string, error) {
	const op = "replay: model"
	name := ""
	if model == "" {
		name = upstreamOf(in.Metadata)
		if model = in.Model; model == "" || model == "unknown" {
			return nil, "", audit.E(op, audit.KindInvalid, mend.ErrNoModel)
		}
	}
	u, as, ok, err := a.settings.Gateway.Find(name, model)
	switch {
	case err != nil:
		return nil, "", audit.E(op, audit.KindInvalid, err)
	case !ok:
		return a, model, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.origins[u.Name]
	if m == nil {
		c := llm.DefaultConfig()
		c.BaseURL, c.APIKey, c.KeyHeader, c.AllowHTTP, c.Timeout = u.BaseURL, u.APIKey, u.KeyHeader, u.AllowHTTP, u.Timeout
		c.BudgetCalls, c.BudgetTokens = a.settings.Judge.BudgetCalls, a.settings.Judge.BudgetTokens
		if m, err = llm.New(c, llm.Options{Observer: a.observer}); err != nil {
			return nil, "", audit.E(op, audit.KindInvalid, fmt.Errorf("upstream %s: %w", u.Name, err))
		}
		a.origins[u.Name] = m
	}
	return m, as, nil
}

func (a *asking) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.origins {
		m.Close()
	}
	if a.model != nil {
		a.model.Close()
	}
}
