package client

import (
	"encoding/json"
	"errors"

	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/guard"
)

// The errors of seeds 000 and 001, with their fields. errors.As finds them in what http.Client and the clients built on
// it return.
type (
	BiasDetectedError    = guard.BiasDetectedError
	BiasEvidence         = guard.BiasEvidence
	SafetyViolationError = guard.SafetyViolationError
	SafetyFinding        = guard.SafetyFinding
	HumanGateDeniedError = guard.HumanGateDeniedError
	GateRule             = gate.Custom
	GateRequest          = guard.GateRequest
	GateDecision         = guard.GateDecision
)

// UncheckedError stops an answer that could not be judged, where it might have been stopped. Options.FailOpen lets such
// answers pass.
type UncheckedError struct {
	Why string // "the answer is too large", "the guard failed", …
	Err error  // of the guard, else nil
}

func (e *UncheckedError) Error() string { return "the answer could not be judged: " + e.Why }

// Unwrap gives the guard's error.
func (e *UncheckedError) Unwrap() error { return e.Err }

// errorOf makes the error that an answer tells of.
func errorOf(a *guard.Answer) error {
	if a.Action != guard.Block {
		return nil
	}
	var told guard.Error
	if a.Error != nil {
		told = *a.Error
	}
	if told.Score == nil || told.Threshold == nil {
		told.Score, told.Threshold = &a.Scores.Bias, &a.Thresholds.Bias
	}
	switch told.Name {
	case "BiasDetectedError":
		return &BiasDetectedError{Domain: told.Domain, Score: *told.Score, Threshold: *told.Threshold, Findings: listed[BiasEvidence](told.Findings)}
	case "SafetyViolationError":
		return &SafetyViolationError{Score: *told.Score, Threshold: *told.Threshold, Findings: listed[SafetyFinding](told.Findings)}
	case "HumanGateDeniedError":
		return &HumanGateDeniedError{Reason: told.Reason, Detail: told.Detail, Rule: told.Rule}
	}
	return &UncheckedError{"the server blocked the answer and does not say why", errors.New("unknown error")}
}

// listed gives the findings of an error: as they are, or as a server's JSON has them.
func listed[F any](v any) (fs []F) {
	if fs, ok := v.([]F); ok {
		return fs
	}
	b, _ := json.Marshal(v) // came as JSON
	_ = json.Unmarshal(b, &fs)
	return fs
}
