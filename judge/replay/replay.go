// Package replay is the loop of seed 004's article: a response that fails validation is asked for again with the
// validator's findings as added context, validated again, for so many rounds at most. The best response is kept; the
// loop ends when one passes, or is no better than the best before it.
//
// It is pure: the original call, the validator and the record of rounds are functions of the caller. What was not
// validated is never the best, and what could not be recorded is not used. Cost: one call and one validation a
// round; the response that is there already is validated as round 0.
package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/llm"
)

// Outcome is what a validator says.
type Outcome string

// The three outcomes, the best first.
const (
	Passed Outcome = "passed"
	Review Outcome = "review" // a person should look
	Failed Outcome = "failed"
)

// Response is an answer of the original model.
type Response struct {
	Text    string
	Model   string
	Usage   llm.Usage
	CostUSD float64
}

// Check is a validator's verdict about a response.
type Check struct {
	Outcome Outcome
	// Score tells responses of one outcome apart: the higher the better.
	Score   audit.Score
	Notes   []Note // what is wrong, for the model that answers again
	Usage   llm.Usage
	CostUSD float64
}

// better tells whether a is better than b: by outcome, then by score, then by the number of notes.
func (a *Check) better(b *Check) bool {
	rank := map[Outcome]int{Passed: 2, Review: 1}
	switch {
	case a.Outcome != b.Outcome:
		return rank[a.Outcome] > rank[b.Outcome]
	case a.Score != b.Score:
		return a.Score > b.Score
	}
	return len(a.Notes) < len(b.Notes)
}

// Stop is why a loop ended.
type Stop string

// The reasons.
const (
	StopPassed    Stop = "passed"
	StopReview    Stop = "review"         // the best is for people to look at, and Options.Review is off
	StopRounds    Stop = "rounds"         // as many as are allowed
	StopNoGain    Stop = "no_improvement" // a round was no better than the best before it
	StopRepeated  Stop = "repeated"       // a round gave a text that was there already; it is not validated again
	StopCall      Stop = "call_failed"
	StopCheck     Stop = "check_failed"
	StopRecord    Stop = "record_failed"
	StopCancelled Stop = "cancelled"
)

// Round is one response and what became of it.
type Round struct {
	N        int      // 0 is the response that was there
	Feedback Feedback // what the model was told; nothing in round 0
	Response Response // empty when the call failed
	Check    *Check   // nil when there was none
	Best     bool     // it was the best when its round ended
	Stop     Stop     // why the loop ends with it; "" when it goes on
	Err      error    // of the call or of the validator
	Called   time.Duration
	Checked  time.Duration
}

// Result is what a loop came to.
type Result struct {
	Best    int     // the round to use; -1 when round 0 could not be validated
	Rounds  []Round // all of them, in order
	Stop    Stop
	Usage   llm.Usage // of calls and validations, round 0's call apart
	CostUSD float64
}

// Response gives the best response; ok is false when none was validated.
func (r *Result) Response() (best Response, ok bool) {
	if r.Best < 0 {
		return best, false
	}
	return r.Rounds[r.Best].Response, true
}

// Mended tells whether a replay passed where the first response did not.
func (r *Result) Mended() bool {
	return r.Best > 0 && r.Rounds[r.Best].Check.Outcome == Passed
}

// Options are the caller's functions and bounds.
type Options struct {
	// Call makes the original call again with feedback in its context.
	Call func(ctx context.Context, f Feedback) (Response, error)
	// Check validates a response.
	Check func(ctx context.Context, text string) (*Check, error)
	// Record keeps a round, the last one included; its error ends the loop. nil keeps nothing.
	Record func(ctx context.Context, r Round) error
	// Rounds is how many replays there are at most; 1..10.
	Rounds int
	// Review replays responses for people to look at too; else they are where a loop ends.
	Review bool
}

func (o Options) validate() error {
	var errs []error
	if o.Call == nil || o.Check == nil {
		errs = append(errs, errors.New("call and check must be set"))
	}
	if o.Rounds < 1 || o.Rounds > 10 {
		errs = append(errs, fmt.Errorf("rounds: %d is not in 1..10", o.Rounds))
	}
	return audit.E(op, audit.KindInvalid, errors.Join(errs...))
}

const op = "replay"
