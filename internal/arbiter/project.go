package arbiter

import (
	"context"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
)

const (
	projectRows  = 1000                   // of one insert at most
	projectEvery = 200 * time.Millisecond // between two inserts: each makes a part
)

// Project writes decisions into the store as they fall, from the first that it lacks on, until ctx
// ends (nil) or the arbiter gives up. Errors of the store are retried for ever. Several processes may
// project at once: they write the same rows.
func (a *Kafka) Project(ctx context.Context) error {
	const op = "arbiter: project"
	if a.opt.Store == nil {
		return audit.E(op, audit.KindInvalid, errNoStore)
	}
	after, sum := a.base, a.baseSum
	for {
		list, err := a.batch(ctx, after, projectRows)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return classed(op, err)
		}
		rows := make([]row, len(list))
		for i := range list {
			sum += mark(&list[i])
			rows[i] = row{Decision: list[i], sum: sum, rules: a.opt.Rules.sum}
		}
		after += uint64(len(list))
		for fails := 1; ; fails++ {
			err := a.opt.Store.write(ctx, rows)
			if err == nil {
				break
			}
			if ctx.Err() == nil {
				a.opt.OnError("project", err)
			}
			if !wait.For(ctx, wait.Backoff(firstWait, fails)) {
				return nil
			}
		}
		if !wait.For(ctx, projectEvery) {
			return nil
		}
	}
}
