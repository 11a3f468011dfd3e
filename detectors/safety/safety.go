// Package safety detects harmful content with curated patterns, one rule pack per category:
// violence, self_harm, illegal_instructions, pii_leakage, hallucination_indicator.
//
// The patterns describe the shape of instructions, encouragement, personal data and unfounded
// claims; look-alikes ("kill the process", crisis-line text, a card number with a wrong check digit)
// stand in each pack as sentences that must not match. Numbers and credentials pass the validators
// of package check before they count. A finding's score is its severity's weight, in millionths,
// without a multiplier.
//
// The scan runs in the common scanner, so a call here costs its hits only. What a pattern cannot
// tell (intent, whether a citation exists) is the judge's task. New fails on a pack of another
// family; Detect fails only when its context has ended.
package safety

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
const ID = "safety"

// Packs holds the packs that ship with the program, for [rules.Load].
func Packs() fs.FS { return packs }

// Detector is safe for concurrent use.
type Detector struct {
	rules   []*rules.Rule
	version string
}

// New makes the detector of loaded packs; packs without a safety category are an error.
func New(packs []*rules.Pack) (*Detector, error) {
	d := &Detector{rules: rules.All(packs), version: rules.SetVersion(packs)}
	if len(d.rules) == 0 {
		return nil, audit.E("safety: new", audit.KindInvalid, errors.New("no rules; load at least one pack"))
	}
	for _, r := range d.rules {
		if r.Pack.Category == "" {
			return nil, audit.E("safety: new", audit.KindInvalid, errors.New("pack "+r.Pack.ID+" has no category"))
		}
	}
	return d, nil
}

// Info describes the detector.
func (d *Detector) Info() detectors.Info {
	return detectors.Info{
		ID: ID, Title: "Harmful content, leaked personal data, signs of hallucination", Version: d.version,
		Family: detectors.Safety, Deterministic: true,
	}
}

// Rules gives the rules for the common scanner.
func (d *Detector) Rules() []*rules.Rule { return d.rules }

// unfounded is the category that a prompt cannot have: a person's memories and claims are the person's own.
const unfounded = "hallucination_indicator"

// Detect makes one finding of each hit, on both sides.
func (d *Detector) Detect(ctx context.Context, in *detectors.Input) ([]audit.Finding, error) {
	var findings []audit.Finding
	for _, side := range [...]audit.Side{audit.Output, audit.Input} {
		for _, hit := range in.Hits(ID, side) {
			r := d.rules[hit.Rule]
			if side == audit.Input && r.Pack.Category == unfounded {
				continue
			}
			findings = append(findings, audit.Finding{
				Kind: r.Kind, Rule: r.ID, RuleVersion: r.Pack.Version, Severity: r.Severity, Score: r.Severity.Weight(),
				Confidence: audit.ScoreOf(r.Confidence), Side: side, Span: in.Span(side, hit.Start, hit.End),
				Abusive: r.Abusive, Entity: r.Entity,
			})
		}
	}
	return findings, ctx.Err()
}
