package gateway

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
)

// unchecked is the action of a call that could not be judged and passed all the same.
const unchecked = "unchecked"

// report is what callers are told of a call beside its answer, in the words of POST /v1/guard.
type report struct {
	ID       string             `json:"id"` // of the interaction in the record
	Action   string             `json:"action"`
	TraceID  string             `json:"trace_id"`
	Reasons  []guard.Reason     `json:"reasons,omitempty"`
	Scores   *guard.Pair        `json:"scores,omitempty"` // the larger of both sides
	Findings []guard.Finding    `json:"findings,omitempty"`
	Error    *guard.Error       `json:"error,omitempty"`  // of a block
	Judge    *guard.JudgeAnswer `json:"judge,omitempty"`  // where it was asked
	Replay   *replayNote        `json:"replay,omitempty"` // where the answer was validated
	// Triggered says that a gate rule matched; Gate is what a person was asked through.
	Triggered bool   `json:"hitlGateTriggered,omitempty"`
	Gate      string `json:"gate,omitempty"`

	hush func([]byte) []byte // masks the report's JSON; nil where it may quote
}

// MarshalJSON tells the report as its caller may have it.
func (r *report) MarshalJSON() ([]byte, error) {
	type plain report
	b, err := json.Marshal((*plain)(r))
	if err == nil && r.hush != nil {
		b = r.hush(b)
	}
	return b, err
}

// judged is one judgement with the texts that its spans lie in.
type judged struct {
	decision *guard.Decision
	in       *audit.Interaction
}

// report tells what is known so far.
func (x *exchange) report() *report {
	r := &report{ID: x.id.String(), Action: x.action, TraceID: x.trace, Replay: x.replays.note()}
	if !x.gate.IsZero() {
		r.Gate = x.gate.String()
	}
	if x.opts.masks(audit.Output) {
		r.hush = x.hush
	}
	for _, j := range x.judged {
		if j == nil {
			continue
		}
		a := j.decision.Answer(j.in, audit.ID{}, true, 0)
		for _, reason := range a.Reasons {
			if !slices.Contains(r.Reasons, reason) {
				r.Reasons = append(r.Reasons, reason)
			}
		}
		if r.Scores == nil {
			r.Scores = &guard.Pair{}
		}
		r.Scores.Bias, r.Scores.Safety = max(r.Scores.Bias, a.Scores.Bias), max(r.Scores.Safety, a.Scores.Safety)
		r.Findings = append(r.Findings, a.Findings...)
		r.Triggered = r.Triggered || a.HITLGateTriggered
		if a.Error != nil {
			r.Error = a.Error
		}
		if a.Judge != nil {
			r.Judge = a.Judge
		}
	}
	return r
}

// describe sets our headers.
func (x *exchange) describe(h http.Header) {
	if x.status != "" { // else the call was not let in, and nothing of it is on record
		h.Set("X-Evenhand-Id", x.id.String())
	}
	h.Set("X-Evenhand-Trace-Id", x.trace)
	if x.action != "" && !(x.undecided && x.action == string(guard.Allow)) {
		h.Set("X-Evenhand-Action", x.action)
	}
	if !x.gate.IsZero() {
		h.Set("X-Evenhand-Gate", x.gate.String())
	}
	if n := x.replays.note(); n != nil {
		h.Set("X-Evenhand-Replay", n.String())
	}
	if n := x.mask.String(); n != "" {
		h.Set("X-Evenhand-Masked", n)
	}
	if x.dropped {
		h.Set("X-Evenhand-Audit", "dropped")
	}
	var scores guard.Pair
	for _, j := range x.judged {
		if j != nil {
			scores.Bias, scores.Safety = max(scores.Bias, j.decision.BiasSum), max(scores.Safety, j.decision.SafetySum)
		}
	}
	if x.judged != [2]*judged{} {
		h.Set("X-Evenhand-Scores", "bias="+scores.Bias.String()+", safety="+scores.Safety.String())
	}
	if h.Get("X-Request-Id") == "" {
		h.Set("X-Request-Id", x.requestID)
	}
}
