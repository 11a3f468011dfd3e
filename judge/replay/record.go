package replay

import (
	"cmp"
	"fmt"

	"github.com/evenhand/evenhand/audit"
)

// Unchecked is the outcome of a round without a validation.
const Unchecked Outcome = "unchecked"

// RoundID is the id, as producers give it, of the interaction that a round is: whose replay it is, in which run, the round's number and
// its outcome. package store counts by it.
func RoundID(of, run audit.ID, n int, outcome Outcome) string {
	return fmt.Sprintf("replay/%s/%s/%d/%s", of, run, n, cmp.Or(outcome, Unchecked))
}

// RoundNote is what the metadata of a round's interaction say under "replay".
type RoundNote struct {
	Of      audit.ID     `json:"of"`
	Run     audit.ID     `json:"run"`
	Round   int          `json:"round"`
	Outcome Outcome      `json:"outcome"`
	Score   *audit.Score `json:"score,omitempty"`
	Best    bool         `json:"kept"` // the best so far; a later round may be better
	Stop    Stop         `json:"stop,omitempty"`
}

// RoundNoteOf makes the note of a round.
func RoundNoteOf(of, run audit.ID, r *Round) RoundNote {
	n := RoundNote{Of: of, Run: run, Round: r.N, Outcome: Unchecked, Best: r.Best, Stop: r.Stop}
	if r.Check != nil {
		n.Outcome, n.Score = r.Check.Outcome, &r.Check.Score
	}
	return n
}
