package store

import (
	"context"
	"time"
)

// Replays are how often calls were made again because their response did not pass, and what that gave.
type Replays struct {
	Runs      uint64 `json:"runs"`      // loops that made at least one replay
	Mended    uint64 `json:"mended"`    // whose replay passed
	Rounds    uint64 `json:"rounds"`    // replays in all
	Unchecked uint64 `json:"unchecked"` // replays that gave no answer, or whose answer could not be validated
}

// Replays counts over a window, by the times of the replays; an open window is the last seven days. It reads the ids that
// package judge/mend gives to rounds, "replay/ORIGINAL/RUN/ROUND/OUTCOME", which outlive the texts.
func (f *Figures) Replays(ctx context.Context, w Window) (r Replays, err error) {
	rounds := f.from("interactions").current().within(w.resolved(time.Now())).and("startsWith(given_id, 'replay/') AND length(splitByChar('/', given_id)) = 5")
	q := inside(rounds, "tenant_id, splitByChar('/', given_id)[3] AS run, max(splitByChar('/', given_id)[5] = 'passed') AS passed, count() AS n, "+
		"countIf(splitByChar('/', given_id)[5] = 'unchecked') AS unchecked", "GROUP BY tenant_id, run")
	return r, f.one(ctx, "store: replays", q.sql("count(), countIf(passed), sum(n), sum(unchecked)", ""), q.args, &r.Runs, &r.Mended, &r.Rounds, &r.Unchecked)
}
