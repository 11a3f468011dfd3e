package guard

import (
	"errors"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Answer is a decision as POST /v1/guard tells it: to the caller who sent the texts, so evidence is in it.
type Answer struct {
	ID         audit.ID     `json:"id"` // of the event; send it again to ask about the same text
	Action     Action       `json:"action"`
	Reasons    []Reason     `json:"reasons"`
	Domain     audit.Domain `json:"domain"`
	Check      Check        `json:"check"`
	Scores     Pair         `json:"scores"` // sums of the checked texts, as compared: they may pass 1
	Thresholds Pair         `json:"thresholds"`
	Findings   []Finding    `json:"findings"`
	Versions   Versions     `json:"versions"`
	Analysis   Analysis     `json:"analysis"`
	Error      *Error       `json:"error,omitempty"` // of a block
	Judge      *JudgeAnswer `json:"judge,omitempty"` // where it was asked
	Gate       *GateAnswer  `json:"gate,omitempty"`
	// HITLGateTriggered: a gate rule matched, whatever came of it.
	HITLGateTriggered bool    `json:"hitlGateTriggered,omitempty"`
	Audited           bool    `json:"audited"` // the event waits in memory until the log takes it; false only where the guard fails open
	Duration          float64 `json:"duration_ms"`
}

// Pair is a figure of bias and one of safety.
type Pair struct {
	Bias   audit.Score `json:"bias"`
	Safety audit.Score `json:"safety"`
}

// Versions say what decided.
type Versions struct {
	RuleSet string `json:"rule_set"`
}

// Analysis says how far the detectors came.
type Analysis struct {
	Status   audit.Status `json:"status"`
	Reason   string       `json:"reason,omitempty"`
	FailedBy []string     `json:"failed_by,omitempty"`
}

// Finding is one finding with its text.
type Finding struct {
	Rule           string         `json:"rule"`
	Version        string         `json:"rule_version"`
	Kind           string         `json:"kind"`
	Characteristic audit.Ground   `json:"characteristic,omitempty"`
	Severity       audit.Severity `json:"severity,omitempty"`
	Score          audit.Score    `json:"score"`
	Confidence     audit.Score    `json:"confidence"`
	Side           audit.Side     `json:"side"`
	Span           audit.Span     `json:"span"`
	Evidence       string         `json:"evidence"`
}

// GateAnswer tells of a gate.
type GateAnswer struct {
	ID      *audit.ID `json:"id,omitempty"` // absent where nobody could be asked
	Rule    string    `json:"rule"`
	Rules   []string  `json:"rules"`
	Timeout int64     `json:"timeout_ms"`
}

// Error is one of the seeds' errors by its name.
type Error struct {
	Name      string       `json:"name"` // BiasDetectedError, SafetyViolationError, HumanGateDeniedError, NonCompliantError
	Message   string       `json:"message"`
	Domain    audit.Domain `json:"domain,omitempty"`
	Score     *audit.Score `json:"score,omitempty"`
	Threshold *audit.Score `json:"threshold,omitempty"`
	Findings  any          `json:"findings,omitempty"` // []BiasEvidence, []SafetyFinding or []Finding
	Reason    string       `json:"reason,omitempty"`
	Detail    string       `json:"detail,omitempty"`
	Rule      string       `json:"rule,omitempty"`
}

// Answer tells a decision about an interaction. gate is the one that was opened, zero without one.
func (d *Decision) Answer(in *audit.Interaction, gate audit.ID, audited bool, took time.Duration) Answer {
	a := Answer{
		ID: d.ID, Action: d.Action, Reasons: append([]Reason{}, d.Reasons...), Domain: d.Domain, Check: d.Check,
		Scores: Pair{d.BiasSum, d.SafetySum}, Thresholds: Pair{d.BiasThreshold, d.SafetyThreshold},
		Findings: []Finding{}, Versions: Versions{d.RuleSet}, Analysis: Analysis{d.Verdict.Status, d.Verdict.Reason, d.Verdict.FailedBy},
		Error: errorOf(d.Err(in)), Judge: d.Judged.answer(in), HITLGateTriggered: d.Gate != nil, Audited: audited, Duration: float64(took.Microseconds()) / 1000,
	}
	texts := in.Evidence()
	for _, f := range d.Findings() {
		a.Findings = append(a.Findings, findingOf(f, texts))
	}
	if d.Gate != nil {
		r := d.Request(in, "", time.Time{})
		a.Gate = &GateAnswer{Rule: r.Rule.ID, Rules: r.Rules, Timeout: d.GateTimeout.Milliseconds()}
		if !gate.IsZero() {
			a.Gate.ID = &gate
		}
	}
	return a
}

func findingOf(f audit.Finding, texts audit.Evidence) Finding {
	return Finding{
		Rule: f.Rule, Version: f.RuleVersion, Kind: f.Kind, Characteristic: f.Ground, Severity: f.Severity, Score: f.Score,
		Confidence: f.Confidence, Side: f.Side, Span: f.Span, Evidence: texts.At(f.Side, f.Span),
	}
}

func errorOf(err error) *Error {
	var bias *BiasDetectedError
	var safety *SafetyViolationError
	var judged *NonCompliantError
	var denied *HumanGateDeniedError
	switch {
	case errors.As(err, &bias):
		return &Error{Name: "BiasDetectedError", Message: err.Error(), Domain: bias.Domain, Score: &bias.Score, Threshold: &bias.Threshold, Findings: bias.Findings}
	case errors.As(err, &safety):
		return &Error{Name: "SafetyViolationError", Message: err.Error(), Score: &safety.Score, Threshold: &safety.Threshold, Findings: safety.Findings}
	case errors.As(err, &judged):
		return &Error{Name: "NonCompliantError", Message: err.Error(), Score: &judged.Confidence, Findings: judged.Findings}
	case errors.As(err, &denied):
		return &Error{Name: "HumanGateDeniedError", Message: err.Error(), Reason: denied.Reason, Detail: denied.Detail, Rule: denied.Rule}
	}
	return nil
}
