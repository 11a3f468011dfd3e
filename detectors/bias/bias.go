// Package bias detects discriminatory phrasing with curated patterns, one rule pack per protected
// ground (EU Charter of Fundamental Rights, Art. 21) and language.
//
// A pack is a YAML file under packs/ that holds its patterns, their severity, and the sentences that
// must and must not match; TestPacks runs them all, so a pack documents itself. A finding's score is
// severity weight × multiplier of the interaction's domain profile, in millionths.
//
// An identity term alone is never a finding; negation and quotation are guards of the rules. The
// scan runs in the common scanner, so a call here costs its hits only. New fails on no packs at all;
// Detect fails only when its context has ended.
package bias

import (
	"context"
	"embed"
	"errors"
	"io/fs"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/rules"
)

//go:embed packs
var packs embed.FS

// ID is the detector's id.
const ID = "bias"

// Packs holds the packs that ship with the program, for [rules.Load].
func Packs() fs.FS { return packs }

// Detector is safe for concurrent use.
type Detector struct {
	rules   []*rules.Rule
	version string
}

// New makes the detector of loaded packs; packs without a ground are an error.
func New(packs []*rules.Pack) (*Detector, error) {
	d := &Detector{rules: rules.All(packs), version: rules.SetVersion(packs)}
	if len(d.rules) == 0 {
		return nil, audit.E("bias: new", audit.KindInvalid, errors.New("no rules; load at least one pack"))
	}
	for _, r := range d.rules {
		if r.Pack.Ground == "" {
			return nil, audit.E("bias: new", audit.KindInvalid, errors.New("pack "+r.Pack.ID+" has no ground"))
		}
	}
	return d, nil
}

// Info describes the detector.
func (d *Detector) Info() detectors.Info {
	return detectors.Info{
		ID: ID, Title: "Bias on the grounds of Art. 21 of the EU Charter", Version: d.version,
		Family: detectors.Bias, Deterministic: true,
	}
}

// Rules gives the rules for the common scanner.
func (d *Detector) Rules() []*rules.Rule { return d.rules }

// Detect makes one finding of each hit, on both sides: (rule, span) is unique.
func (d *Detector) Detect(ctx context.Context, in *detectors.Input) ([]audit.Finding, error) {
	var findings []audit.Finding
	for _, side := range [...]audit.Side{audit.Output, audit.Input} {
		for _, hit := range in.Hits(ID, side) {
			r := d.rules[hit.Rule]
			findings = append(findings, audit.Finding{
				Kind: r.Kind, Rule: r.ID, RuleVersion: r.Pack.Version, Ground: r.Pack.Ground,
				Severity: r.Severity, Score: r.Severity.Weight().Times(in.Profile.Multiplier(r.Pack.Ground)),
				Confidence: audit.ScoreOf(r.Confidence), Side: side, Span: in.Span(side, hit.Start, hit.End),
				Abusive: r.Abusive,
			})
		}
	}
	return findings, ctx.Err()
}
