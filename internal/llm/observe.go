package llm

import (
	"sync"
	"time"
)

// Observer is told what becomes of questions, for metrics.
type Observer interface {
	// ModelAsked tells of a question that ended: outcome is answered, refused (by the model, or by the provider's filter), cut
	// (at the limit of tokens); or why there is no answer: budget, open (the circuit), limited, server, network, timeout, answer
	// (of an unexpected form), cancelled, invalid. Input and output are tokens.
	ModelAsked(model, outcome string, took time.Duration, input, output int, usd float64)
	// ModelRetried tells of an attempt that is made again: limited, server, network, timeout, answer; adapted when the
	// server refused something that can be left out.
	ModelRetried(model, reason string)
	// ModelCircuit tells the state of the configured model's circuit: closed, half-open (it is being looked at) or open.
	ModelCircuit(state string)
}

// maxNames bounds the models in metrics; callers may name any.
const maxNames = 16

// seen tells an observer, which may be nil.
type seen struct {
	to    Observer
	mu    sync.Mutex
	names map[string]bool
}

// name gives the model's name, "other" when there are too many.
func (s *seen) name(model string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]bool{}
	}
	if !s.names[model] && len(s.names) == maxNames {
		return "other"
	}
	s.names[model] = true
	return model
}

func (s *seen) answered(model string, a *Answer) {
	if s.to == nil {
		return
	}
	outcome := "answered"
	switch {
	case a.Refusal != "" || a.Finish == codeFilter:
		outcome = "refused"
	case a.Finish == "length":
		outcome = "cut"
	}
	s.to.ModelAsked(s.name(model), outcome, a.Duration, a.Usage.Input, a.Usage.Output, a.CostUSD)
}

func (s *seen) failed(model string, f *fault, took time.Duration) {
	if s.to == nil {
		return
	}
	outcome := f.reason
	if outcome == "refused" { // by the server: its settings or the request are at fault
		outcome = "invalid"
	}
	s.to.ModelAsked(s.name(model), outcome, took, 0, 0, 0)
}

func (s *seen) retried(model, reason string) {
	if s.to != nil {
		s.to.ModelRetried(s.name(model), reason)
	}
}

func (s *seen) circuit(state string) {
	if s.to != nil {
		s.to.ModelCircuit(state)
	}
}
