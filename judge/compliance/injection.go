package compliance

import (
	"context"
	"embed"
	"sync"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/rules"
)

// The packs have the form of gate rules: like them they ask for a person and rate nothing. One reads the normal form of
// a text, the other the text as it came, where marks are what they are.
//
//go:embed packs
var packs embed.FS

// InjectionKind is the kind of findings in texts that address the evaluator.
const InjectionKind = "judge.injection_attempt"

// InjectionRule is the rule where a model gave its canary away, but no rule saw why.
const InjectionRule = "judge_injection_attempt"

const injectionID = "judge_injection"

// injection finds places where a text addresses the one who evaluates it. It is deterministic and asks nobody.
type injection struct {
	rules   []*rules.Rule
	version string
}

func newInjection() (*injection, error) {
	ps, err := rules.Load(packs)
	if err != nil {
		return nil, err
	}
	return &injection{rules.All(ps), rules.SetVersion(ps)}, nil
}

// finder runs the rules; they are the same for all evaluators, so they are compiled once.
type finder struct {
	*injection
	analyzer *detectors.Analyzer
}

var newFinder = sync.OnceValues(func() (f finder, err error) {
	if f.injection, err = newInjection(); err != nil {
		return f, err
	}
	f.analyzer, err = detectors.NewAnalyzer(detectors.DefaultPolicy(), f.injection)
	return f, err
})

// Addresses tells whether a text addresses the one who evaluates it, in a form that the rules know. It asks nobody.
func (e *Evaluator) Addresses(ctx context.Context, text string) (bool, error) {
	found, err := e.rules.attempts(ctx, text)
	return len(found) > 0, err
}

// attempts are the places where a text addresses the evaluator.
func (f finder) attempts(ctx context.Context, text string) ([]audit.Finding, error) {
	return f.Detect(ctx, f.analyzer.Prepare(&audit.Interaction{Domain: audit.General, Response: text}))
}

// Info describes the detector. Its family is the one that enters no sum.
func (d *injection) Info() detectors.Info {
	return detectors.Info{ID: injectionID, Title: "Texts that address the evaluator", Version: d.version, Family: detectors.Gates, Deterministic: true}
}

// Rules gives the rules for the scanner.
func (d *injection) Rules() []*rules.Rule { return d.rules }

// Detect makes one finding of each hit, on both sides.
func (d *injection) Detect(ctx context.Context, in *detectors.Input) ([]audit.Finding, error) {
	var findings []audit.Finding
	for _, side := range [...]audit.Side{audit.Output, audit.Input} {
		for _, hit := range in.Hits(injectionID, side) {
			r := d.rules[hit.Rule]
			findings = append(findings, attempt(r.ID, r.Pack.Version, side, in.Span(side, hit.Start, hit.End), audit.ScoreOf(r.Confidence)))
		}
	}
	return findings, ctx.Err()
}

func attempt(rule, version string, side audit.Side, at audit.Span, confidence audit.Score) audit.Finding {
	return audit.Finding{
		Kind: InjectionKind, Rule: rule, RuleVersion: version, Severity: audit.High, Score: audit.High.Weight(),
		Confidence: confidence, Side: side, Span: at,
	}
}
