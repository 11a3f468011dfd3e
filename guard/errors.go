package guard

import (
	"fmt"
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// BiasEvidence is one finding of bias as seed 000 has it.
type BiasEvidence struct {
	Characteristic string         `json:"characteristic"` // a ground: "sex", "race"
	Severity       audit.Severity `json:"severity"`
	Evidence       string         `json:"evidence"` // the matched text
	Score          audit.Score    `json:"score"`    // weight × multiplier of the domain
}

// BiasDetectedError stops a text with biasAction block (seed 000).
type BiasDetectedError struct {
	Domain    audit.Domain   `json:"domain"`
	Score     audit.Score    `json:"score"` // the sum, as compared: may pass 1
	Threshold audit.Score    `json:"threshold"`
	Findings  []BiasEvidence `json:"findings"`
}

func (e *BiasDetectedError) Error() string {
	return fmt.Sprintf("discriminatory language (%s): score %v is above %v", named(e.Findings, func(f BiasEvidence) string { return f.Characteristic }), e.Score, e.Threshold)
}

// SafetyFinding is one finding of the safety filter as seed 001 has it.
type SafetyFinding struct {
	Category string         `json:"category"` // "violence", "self_harm"
	Severity audit.Severity `json:"severity"`
	Evidence string         `json:"evidence"` // the matched text
	Score    audit.Score    `json:"score"`    // the pattern's weight
}

// SafetyViolationError stops a text with safetyMode block (seed 001).
type SafetyViolationError struct {
	Score     audit.Score     `json:"score"`
	Threshold audit.Score     `json:"threshold"`
	Findings  []SafetyFinding `json:"findings"`
}

func (e *SafetyViolationError) Error() string {
	return fmt.Sprintf("unsafe content (%s): score %v is above %v", named(e.Findings, func(f SafetyFinding) string { return f.Category }), e.Score, e.Threshold)
}

// Reasons of a HumanGateDeniedError.
const (
	Timeout = "timeout" // nobody decided in time
	Denied  = "denied"  // a person said no, or there was nobody to ask
)

// HumanGateDeniedError stops a text that no person approved (seed 001).
type HumanGateDeniedError struct {
	Reason string `json:"reason"`           // timeout or denied
	Detail string `json:"detail,omitempty"` // the operator's words, or why nobody could be asked
	Rule   string `json:"rule"`             // the gate rule that asked
}

func (e *HumanGateDeniedError) Error() string {
	return fmt.Sprintf("a human's approval is needed (rule %s) and was not given: %s", e.Rule, e.Reason)
}

// named lists each name once, in order.
func named[F any](fs []F, name func(F) string) string {
	var out []string
	for _, f := range fs {
		if n := name(f); len(out) == 0 || !strings.Contains(", "+strings.Join(out, ", ")+",", ", "+n+",") {
			out = append(out, n)
		}
	}
	return strings.Join(out, ", ")
}

// Err gives the seeds' error of a decision that stops the text, with what was found in the interaction: bias
// before safety before the gate. It is nil while the text may pass or waits. Evidence is the caller's own text: it
// may go to the caller and nowhere else.
func (d *Decision) Err(in *audit.Interaction) error {
	if d.Action != Block {
		return nil
	}
	for _, r := range d.Reasons {
		switch {
		case r == Bias && d.biasBlocks:
			return d.biasError(in)
		case r == Safety && d.safetyBlocks:
			return d.safetyError(in)
		case r == Judged && d.judgeBlocks:
			return d.judgeError(in)
		}
	}
	if d.Denied == nil {
		return nil
	}
	return d.Denied
}

func (d *Decision) biasError(in *audit.Interaction) error {
	e := &BiasDetectedError{Domain: d.Domain, Score: d.BiasSum, Threshold: d.BiasThreshold}
	texts := in.Evidence()
	for _, f := range d.Findings() {
		if counts(&f, biasKinds) {
			e.Findings = append(e.Findings, BiasEvidence{string(f.Ground), f.Severity, texts.At(f.Side, f.Span), f.Score})
		}
	}
	return e
}

func (d *Decision) judgeError(in *audit.Interaction) error {
	e := &NonCompliantError{Confidence: d.Judged.Opinion.Confidence, Findings: []Finding{}}
	texts := in.Evidence()
	for _, f := range d.Judged.Opinion.Findings {
		e.Findings = append(e.Findings, findingOf(f, texts))
	}
	return e
}

func (d *Decision) safetyError(in *audit.Interaction) error {
	e := &SafetyViolationError{Score: d.SafetySum, Threshold: d.SafetyThreshold}
	texts := in.Evidence()
	for _, f := range d.Findings() {
		if counts(&f, safetyKinds) {
			e.Findings = append(e.Findings, SafetyFinding{strings.TrimPrefix(f.Kind, safetyKinds), f.Severity, texts.At(f.Side, f.Span), f.Score})
		}
	}
	return e
}
