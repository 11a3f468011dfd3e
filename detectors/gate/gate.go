// Package gate detects critical actions in text that a human must approve first (AI Act Art. 14):
// moving money, deleting data, changing permissions, touching production.
//
// The four built-in rules are a pack; an operator's custom rules replace them, extra rules add to
// what is there. Findings carry kind gate.<id> and no severity or score: a gate asks, it does not
// rate. Holding an answer until someone decides is not done here.
//
// The scan runs in the common scanner. New reports every faulty rule at once by its key
// (detect.gate_rules[1].pattern); Detect fails only when its context has ended.
package gate

import (
	"context"
	"embed"
	"io/fs"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/rules"
)

//go:embed packs
var packs embed.FS

// ID is the detector's id.
const ID = "gate"

// Packs holds the built-in rules, for [rules.Load].
func Packs() fs.FS { return packs }

// Detector is safe for concurrent use.
type Detector struct {
	rules   []*rules.Rule
	version string
}

// New makes the detector. Custom rules, when there are any, replace the built-in ones; extra rules and
// an operator's own packs are added to either.
func New(custom, extra []Custom, own ...*rules.Pack) (*Detector, error) {
	return NewNamed([2]string{"detect.gate_rules", "detect.gate_extra_rules"}, custom, extra, own...)
}

// NewNamed is New with the names that the two lists have for whoever reads the errors.
func NewNamed(names [2]string, custom, extra []Custom, own ...*rules.Pack) (*Detector, error) {
	var ps []*rules.Pack
	if len(custom) == 0 {
		builtIn, err := rules.Load(packs)
		if err != nil {
			return nil, err
		}
		ps = builtIn
	}
	ps = append(ps, own...)
	set, err := customPack(names, custom, extra, rules.All(ps))
	if err != nil {
		return nil, err
	}
	if set != nil {
		ps = append(ps, set)
	}
	return &Detector{rules: rules.All(ps), version: rules.SetVersion(ps)}, nil
}

// Info describes the detector.
func (d *Detector) Info() detectors.Info {
	return detectors.Info{
		ID: ID, Title: "Critical actions that need a human's approval", Version: d.version,
		Family: detectors.Gates, Deterministic: true,
	}
}

// Rules gives the rules for the common scanner; Rule.Category and Rule.Description are what a person
// who decides gets to see.
func (d *Detector) Rules() []*rules.Rule { return d.rules }

// Detect makes one finding of each hit, on both sides.
func (d *Detector) Detect(ctx context.Context, in *detectors.Input) ([]audit.Finding, error) {
	var findings []audit.Finding
	for _, side := range [...]audit.Side{audit.Output, audit.Input} {
		for _, hit := range in.Hits(ID, side) {
			r := d.rules[hit.Rule]
			findings = append(findings, audit.Finding{
				Kind: r.Kind, Rule: r.ID, RuleVersion: r.Pack.Version,
				Confidence: audit.ScoreOf(r.Confidence), Side: side, Span: in.Span(side, hit.Start, hit.End),
			})
		}
	}
	return findings, ctx.Err()
}
