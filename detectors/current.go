package detectors

import (
	"context"
	"sync/atomic"

	"github.com/evenhand/evenhand/audit"
)

// Current is the Analyzer in use. Another may take its place at any time: what was begun with one is ended
// with that one, so a verdict comes from one rule set. It is safe for concurrent use.
type Current struct{ analyzer atomic.Pointer[Analyzer] }

// NewCurrent begins with an Analyzer.
func NewCurrent(a *Analyzer) *Current {
	c := &Current{}
	c.Use(a)
	return c
}

// Use puts an Analyzer in the place of the one before. Warm it first.
func (c *Current) Use(a *Analyzer) { c.analyzer.Store(a) }

// Analyzer is the one in use now.
func (c *Current) Analyzer() *Analyzer { return c.analyzer.Load() }

// Analyze gives the verdict of the Analyzer in use when it is called.
func (c *Current) Analyze(ctx context.Context, in *audit.Interaction) *audit.Verdict {
	return c.Analyzer().Analyze(ctx, in)
}

// Advice is what a rule of the Analyzer in use suggests against what it finds.
func (c *Current) Advice(rule string) audit.Advice { return c.Analyzer().Advice(rule) }
