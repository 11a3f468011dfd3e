// Package detectors holds the one seam of detection and what surrounds it: the input that is
// computed once per interaction, the rule packs' common form, and the Analyzer that runs all
// detectors and makes a verdict of their findings.
//
// All patterns of all rule-based detectors compile into one scanner (package scan), so the cost of
// an interaction does not grow with the number of rules.
package detectors

import (
	"context"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/rules"
)

// Detector looks at one interaction and reports what it finds.
//
// Detect must be safe for concurrent use, must not modify or keep in (prepared once per
// interaction), and may return findings in any order. A deterministic one returns the same findings
// for the same input. Empty text yields none. An error means "could not look", never "found
// something" and never "clean"; the verdict is then stored as failed or partial and retried by cron,
// never dead-lettered.
type Detector interface {
	Info() Info
	Detect(ctx context.Context, in *Input) ([]audit.Finding, error)
}

// RuleBased is a Detector whose patterns run in the common scanner. Input.Hits gives it the hits.
type RuleBased interface {
	Detector
	// Rules is called once; the order fixes Hit.Rule.
	Rules() []*rules.Rule
}

// Info describes a detector to operators; the catalogue is made from it.
type Info struct {
	ID            string // lower_snake_case, stable: it is stored with every verdict
	Title         string
	Version       string // changes whenever the same input may give different findings
	Family        Family
	Deterministic bool // false if it asks a model
}

// Family says what a detector's findings mean for the verdict.
type Family string

// The families of the hot path.
const (
	Bias   Family = "bias"   // findings set bias_detected; charter.* kinds enter the bias sum
	Safety Family = "safety" // findings enter the safety sum
	Gates  Family = "gate"   // findings ask for a human's approval
	Terms  Family = "terms"  // seed 002: findings set bias_detected and the terms score
)
