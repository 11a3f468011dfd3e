package replay

import (
	"context"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Run validates a response and replays its call while that helps. The result is there beside an error too. Errors: the kind of
// the validator's, when round 0 could not be validated; of Record's, when a round could not be kept;
// audit.KindUnavailable, when ctx ended. That a later call or validation failed is told in the result.
func Run(ctx context.Context, first Response, o Options) (*Result, error) {
	res := &Result{Best: -1}
	if err := o.validate(); err != nil {
		return res, err
	}
	seen := map[string]bool{first.Text: true}
	r := Round{Response: first}
	for {
		o.round(ctx, &r, seen, res)
		res.Rounds, res.Stop = append(res.Rounds, r), r.Stop
		if o.Record != nil {
			if err := o.Record(context.WithoutCancel(ctx), r); err != nil { // an end of the caller does not take the row with it
				res.Stop = StopRecord
				res.Rounds[r.N].Stop, res.Rounds[r.N].Best = StopRecord, false
				return res, audit.E(op, audit.KindOf(err), err)
			}
		}
		if r.Best {
			res.Best = r.N
		}
		switch {
		case r.Stop == StopCancelled:
			return res, audit.E(op, audit.KindUnavailable, ctx.Err())
		case r.Stop == StopCheck && r.N == 0:
			return res, audit.E(op, audit.KindOf(r.Err), r.Err)
		case r.Stop != "":
			return res, nil
		}
		best := res.Rounds[res.Best]
		r = Round{N: r.N + 1, Feedback: Feedback{Notes: best.Check.Notes}}
	}
}

// round makes one round: the call, unless it is the first, then the validation, then what follows from it.
func (o Options) round(ctx context.Context, r *Round, seen map[string]bool, res *Result) {
	start := time.Now()
	if r.N > 0 {
		r.Response, r.Err = o.Call(ctx, r.Feedback)
		r.Called = time.Since(start)
		res.Usage.Input, res.Usage.Output = res.Usage.Input+r.Response.Usage.Input, res.Usage.Output+r.Response.Usage.Output
		res.CostUSD += r.Response.CostUSD
		switch {
		case ctx.Err() != nil:
			r.Stop = StopCancelled
			return
		case r.Err != nil:
			r.Stop = StopCall
			return
		case seen[r.Response.Text]:
			r.Stop = StopRepeated
			return
		}
		seen[r.Response.Text] = true
	}
	start = time.Now()
	r.Check, r.Err = o.Check(ctx, r.Response.Text)
	r.Checked = time.Since(start)
	if c := r.Check; c != nil {
		res.Usage.Input, res.Usage.Output, res.CostUSD = res.Usage.Input+c.Usage.Input, res.Usage.Output+c.Usage.Output, res.CostUSD+c.CostUSD
	}
	switch {
	case ctx.Err() != nil:
		r.Check, r.Stop = nil, StopCancelled
		return
	case r.Err != nil, r.Check == nil:
		r.Check, r.Stop = nil, StopCheck
		return
	}
	r.Best = res.Best < 0 || r.Check.better(res.Rounds[res.Best].Check)
	switch {
	case !r.Best:
		r.Stop = StopNoGain
	case r.Check.Outcome == Passed:
		r.Stop = StopPassed
	case r.Check.Outcome == Review && !o.Review:
		r.Stop = StopReview
	case r.N == o.Rounds:
		r.Stop = StopRounds
	}
}
