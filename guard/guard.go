// Package guard decides in line, before a text goes on: allow, warn, block, or ask a person first (seeds 000, 001).
//
// A Guard runs the detectors in use on one interaction and holds their verdict against the caller's options. It
// asks no model unless Config.Judging says so, nothing leaves the process else, and nothing is stored; doors make an event of each decision (see Queue).
// Deciding costs what the detectors cost and less than 3 µs more; rules that a caller brings along are compiled
// once for each list of them.
//
// What could not be looked at is never taken for clean: Decide then fails, or says so, as Config.FailOpen has it.
package guard

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
)

// Reasons why nothing can be decided; Decide wraps them. Texts are not in them.
var (
	ErrNotAnalysed = errors.New("the analysis failed")
	ErrTextCut     = errors.New("the text is longer than the limit, and its rest was not read")
)

// Config is what an operator sets. The zero value works.
type Config struct {
	// FailOpen lets pass, with a reason, what could not be analysed; otherwise it is an error. Default false.
	FailOpen bool
	// Judging asks a language model before the decision; the zero value asks nobody.
	Judging Judging
	// Logger gets findings of safetyMode log, without any text; nil logs nothing.
	Logger *slog.Logger
}

// Guard decides. It is safe for concurrent use, and rules may be exchanged while it works.
type Guard struct {
	current *detectors.Current
	cfg     Config
	rules   ruleCache
	masker  atomic.Pointer[masker]
}

// New makes a guard over the analyzer in use.
func New(current *detectors.Current, c Config) *Guard {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Guard{current: current, cfg: c}
}

// Decide judges one interaction, which stays as it is. An [OptionError] (KindInvalid) names what is wrong with the
// options; ErrNotAnalysed and ErrNotJudged (KindUnavailable) and ErrTextCut (KindInvalid) come only where the guard fails closed.
func (g *Guard) Decide(ctx context.Context, in *audit.Interaction, o Options) (*Decision, error) {
	const op = "guard: decide"
	if faults := o.Faults(); len(faults) > 0 {
		return nil, audit.E(op, audit.KindInvalid, &OptionError{faults})
	}
	own, err := g.rules.of(&o)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if err := own.affords(in, &o); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if o.Domain != "" && o.Domain != in.Domain {
		placed := *in
		placed.Domain = o.Domain
		in = &placed
	}
	a := g.current.Analyzer()
	v := a.Analyze(ctx, o.seen(in))
	d := &Decision{
		ID: in.ID, Action: Allow, Domain: in.Domain, Check: o.Check, RuleSet: v.RuleSet, Verdict: v,
		BiasThreshold: v.Threshold, SafetyThreshold: o.SafetyThreshold, GateTimeout: o.HITLGateTimeout, safety: o.SafetyFilter && o.SafetyMode != audit.Log,
	}
	switch {
	case blind(a, v, &o):
		if err = audit.E(op, audit.KindUnavailable, ErrNotAnalysed); g.cfg.FailOpen {
			d.Reasons = append(d.Reasons, NotAnalysed)
		}
	case in.Truncated && cut(in, o.Check):
		if err = audit.E(op, audit.KindInvalid, ErrTextCut); g.cfg.FailOpen {
			d.Reasons = append(d.Reasons, TextCut)
		}
	case empty(in, o.Check):
		d.Reasons = append(d.Reasons, NoText)
	}
	if err != nil && !g.cfg.FailOpen {
		return nil, err
	}
	g.weigh(d, v, &o)
	if err := g.judge(ctx, d, in, &o); err != nil {
		return nil, err
	}
	if o.HITLGate {
		d.Gate = matched(a, v, own, in, &o)
		if d.Gate != nil {
			d.Reasons, d.otherwise = append(d.Reasons, Approval), d.Action
			d.raise(Gate)
		}
	}
	return d, nil
}

// seen is what is analysed.
func (o *Options) seen(in *audit.Interaction) *audit.Interaction {
	if !o.CheckedOnly || o.Check == Both {
		return in
	}
	part := *in
	if o.Check == Response {
		part.Prompt = ""
	} else {
		part.Response = ""
	}
	return &part
}

// weigh holds the sums against the thresholds.
func (g *Guard) weigh(d *Decision, v *audit.Verdict, o *Options) {
	if o.BiasThreshold != nil {
		d.BiasThreshold = *o.BiasThreshold
	}
	d.BiasSum, d.SafetySum = sum(v, biasKinds, v.BiasSum, o.Check), audit.Score(0)
	if d.BiasSum > d.BiasThreshold {
		d.Reasons = append(d.Reasons, Bias)
		d.biasBlocks = o.BiasAction == audit.Block
		d.raise(actionOf[o.BiasAction])
	}
	if !o.SafetyFilter {
		return
	}
	d.SafetySum = sum(v, safetyKinds, v.SafetySum, o.Check)
	if o.SafetyMode == audit.Log {
		g.log(d.ID, v, o.Check)
	}
	if d.SafetySum > d.SafetyThreshold {
		d.Reasons = append(d.Reasons, Safety)
		d.safetyBlocks = o.SafetyMode == audit.Block
		d.raise(actionOf[o.SafetyMode])
	}
}

// log says what was found and where, and no text.
func (g *Guard) log(id audit.ID, v *audit.Verdict, c Check) {
	for i := range v.Findings {
		if f := &v.Findings[i]; counts(f, safetyKinds) && slices.Contains(c.sides(), f.Side) {
			g.cfg.Logger.Info("safety finding", "interaction_id", id.String(), "category", strings.TrimPrefix(f.Kind, safetyKinds), "rule", f.Rule,
				"severity", string(f.Severity), "score", f.Score.Float(), "side", string(f.Side), "start", f.Span.Start, "end", f.Span.End)
		}
	}
}

// Kinds that enter the sums begin with these.
const (
	biasKinds   = "charter."
	safetyKinds = "safety."
	gateKinds   = "gate."
)

// counts tells whether a finding enters a sum: learned detectors report the same kinds without a score.
func counts(f *audit.Finding, kinds string) bool {
	return f.Score > 0 && strings.HasPrefix(f.Kind, kinds)
}

// sum is that of the checked sides; the verdict has the response's already.
func sum(v *audit.Verdict, kinds string, response audit.Score, c Check) audit.Score {
	if c == Response {
		return response
	}
	var fs []audit.Finding
	for i := range v.Findings {
		if f := &v.Findings[i]; counts(f, kinds) && slices.Contains(c.sides(), f.Side) {
			fs = append(fs, *f)
		}
	}
	return audit.Sum(fs)
}

// blind tells whether a detector that the decision rests on could not look.
func blind(a *detectors.Analyzer, v *audit.Verdict, o *Options) bool {
	if v.Status == audit.Failed {
		return true
	}
	for _, id := range v.FailedBy {
		for _, d := range a.Detectors() {
			if info := d.Info(); info.ID == id && (info.Family == detectors.Bias || info.Family == detectors.Safety && o.SafetyFilter || info.Family == detectors.Gates && o.HITLGate) {
				return true
			}
		}
	}
	return false
}

// cut tells whether a checked text is not there as a whole.
func cut(in *audit.Interaction, c Check) bool {
	return slices.ContainsFunc(c.sides(), func(s audit.Side) bool {
		whole := in.ResponseChars
		if s == audit.Input {
			whole = in.PromptChars
		}
		return utf8.RuneCountInString(in.Text(s)) < int(whole)
	})
}

// empty tells that there is nothing to judge: not the same as clean.
func empty(in *audit.Interaction, c Check) bool {
	for _, s := range c.sides() {
		if in.Text(s) != "" {
			return false
		}
	}
	return true
}
