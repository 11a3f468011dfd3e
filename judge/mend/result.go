package mend

import (
	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/judge/replay"
)

// Result is what became of a call: for the caller who may read its texts.
type Result struct {
	ID       audit.ID       `json:"id"`  // of the original interaction
	Run      audit.ID       `json:"run"` // names this loop in the record
	Outcome  replay.Outcome `json:"outcome"`
	Mended   bool           `json:"mended"` // a replay passed where the first response did not
	Best     int            `json:"best"`   // the round to use; -1 when the first response could not be validated
	Stop     replay.Stop    `json:"stop"`
	Response string         `json:"response"` // of the best round
	Rounds   []Round        `json:"rounds"`   // round 0 is the original response
	Input    int            `json:"input_tokens"`
	Output   int            `json:"output_tokens"`
	CostUSD  float64        `json:"cost_usd"`
}

// Round is one response.
type Round struct {
	Round    int            `json:"round"`
	ID       *audit.ID      `json:"id,omitempty"` // of its interaction; absent where it could not be recorded
	Outcome  replay.Outcome `json:"outcome"`      // passed, review, failed, or unchecked
	Score    *audit.Score   `json:"score,omitempty"`
	Notes    []replay.Note  `json:"notes"`
	Response string         `json:"response"`
	Model    string         `json:"model"`
	Best     bool           `json:"kept"`
	Stop     replay.Stop    `json:"stop,omitempty"`
	Error    string         `json:"error,omitempty"`
}

func (r *run) result(from *replay.Result) *Result {
	out := &Result{
		ID: r.of.ID, Run: r.id, Outcome: replay.Unchecked, Mended: from.Mended(), Best: from.Best, Stop: from.Stop,
		Input: from.Usage.Input, Output: from.Usage.Output, CostUSD: from.CostUSD,
	}
	for i := range from.Rounds {
		x := &from.Rounds[i]
		n := replay.RoundNoteOf(r.of.ID, r.id, x)
		round := Round{Round: x.N, Outcome: n.Outcome, Score: n.Score, Notes: []replay.Note{}, Response: x.Response.Text, Model: x.Response.Model, Best: x.N == from.Best, Stop: x.Stop}
		if x.Check != nil && x.Check.Notes != nil {
			round.Notes = x.Check.Notes
		}
		if x.N < len(r.ids) {
			round.ID = &r.ids[x.N]
		}
		if x.Err != nil {
			round.Error = x.Err.Error()
		}
		out.Rounds = append(out.Rounds, round)
		if round.Best {
			out.Outcome, out.Response = round.Outcome, round.Response
		}
	}
	return out
}
