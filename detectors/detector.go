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

// Personal is a Detector of personal data: it also says what it found in the form of the record's fields.
type Personal interface {
	Detector
	// Personal gets what Detect found in the same input.
	Personal(in *Input, findings []audit.Finding) *audit.Personal
}

// Scorer is a Detector that measures besides finding: its scores join bias_score under their names, of two alike the
// higher. The Analyzer calls DetectScored in place of Detect; both give the same findings.
type Scorer interface {
	Detector
	DetectScored(ctx context.Context, in *Input) ([]audit.Finding, []audit.NamedScore, error)
}

// Graded is a Detector that can say how sure it is of what it looks for, found or not: probabilities by the names of what they are about.
// The Analyzer calls DetectGraded in place of Detect where its policy asks for grades; both give the same findings.
type Graded interface {
	Detector
	DetectGraded(ctx context.Context, in *Input) ([]audit.Finding, []audit.NamedScore, error)
}

// Adviser is a Detector that suggests mitigations for findings whose rule stands in no pack.
type Adviser interface {
	Detector
	Advice() map[string]audit.Advice // by rule
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

	PII        Family = "pii"        // personal data beyond seed 001's four kinds: masking, no sum
	Linguistic Family = "linguistic" // wording: bias_score keys and softer findings, outside the bias sum
	Classifier Family = "classifier" // learned: flags, never blocks by default
)
