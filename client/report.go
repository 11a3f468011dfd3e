package client

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
)

// Unchecked is the action of a call that could not be judged and passed all the same.
const Unchecked guard.Action = "unchecked"

// Report is what was decided about a call: seed 000's response metadata. Evidence is the application's own text.
type Report struct {
	ID        audit.ID        `json:"id"` // of the interaction in the record
	Action    guard.Action    `json:"action"`
	Reasons   []guard.Reason  `json:"reasons,omitempty"`
	Scores    guard.Pair      `json:"scores"` // sums as compared: they may pass 1
	Findings  []guard.Finding `json:"findings,omitempty"`
	Error     *guard.Error    `json:"error,omitempty"` // of a block
	Triggered bool            `json:"hitlGateTriggered,omitempty"`
	Gate      *audit.ID       `json:"gate,omitempty"` // that a server opened
	RuleSet   string          `json:"rule_set,omitempty"`
	Unchecked string          `json:"unchecked,omitempty"` // why it could not be judged
}

// Watch gives a context under which calls leave their reports.
func Watch(ctx context.Context) (context.Context, *Watcher) {
	w := &Watcher{}
	return context.WithValue(ctx, watchKey{}, w), w
}

type watchKey struct{}

// Watcher holds the report of the last call made under its context. It is safe for concurrent use.
type Watcher struct{ last atomic.Pointer[Report] }

// Report is nil until a call was judged: of a stream that passes as it comes, at its end.
func (w *Watcher) Report() *Report { return w.last.Load() }

// leave gives a report to who watches.
func (r *Report) leave(ctx context.Context) {
	if w, ok := ctx.Value(watchKey{}).(*Watcher); ok {
		w.last.Store(r)
	}
}

// describe sets our headers: those of the gateway.
func (r *Report) describe(h http.Header) {
	h.Set("X-Evenhand-Id", r.ID.String())
	h.Set("X-Evenhand-Action", string(r.Action))
	if r.Action != Unchecked {
		h.Set("X-Evenhand-Scores", "bias="+r.Scores.Bias.String()+", safety="+r.Scores.Safety.String())
	}
	if r.Triggered {
		h.Set("X-Evenhand-Hitl-Gate-Triggered", "true")
	}
	if r.Gate != nil {
		h.Set("X-Evenhand-Gate", r.Gate.String())
	}
}
