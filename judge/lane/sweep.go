package lane

import (
	"context"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/judge"
	"github.com/evenhand/evenhand/store"
)

// Sweeper asks for what nobody is about to answer. It is a job: see [Sweeper.Sweep].
type Sweeper struct {
	Config Config
	Store  *store.Store
	Asker  *Asker
}

const (
	// settled is how old a chosen interaction must be to count as never asked for: older than any batch that is still
	// about to ask.
	settled = 15 * time.Minute
	// most is the longest wait between two attempts.
	most = 24 * time.Hour
	// page bounds how many requests are held.
	page = 1000
	// visible is how long an insert may take to be seen.
	visible = 5 * time.Second
)

// Outcome counts what a sweep asked for.
type Outcome struct {
	Lost    int       // chosen, and never asked for or not answered yet
	Again   int       // another attempt
	Through time.Time // where the next sweep begins, by the store's clock
}

// Sweep asks for interactions that were chosen and have no verdict of the judge a quarter of an hour after they were written,
// and for another attempt at those whose last one failed or was skipped, once it is due. from is the Through of the last
// sweep, zero for the first, which looks back Days. Each is asked for once; what the lane has not come to yet
// may be asked for twice and is answered once. Once an hour the last two are looked at again, for inserts that took
// long.
func (s *Sweeper) Sweep(ctx context.Context, from time.Time) (out Outcome, err error) {
	now, err := s.Store.Now(ctx)
	if err != nil {
		return out, err
	}
	to := now.Add(-visible)
	if !to.After(from) {
		out.Through = from
		return out, nil
	}
	if earliest := to.AddDate(0, 0, -s.Config.Days); from.Before(earliest) {
		from = earliest
	} else if !from.Truncate(time.Hour).Equal(to.Truncate(time.Hour)) {
		from = from.Add(-2 * time.Hour)
	}
	requests := paged{ctx: ctx, asker: s.Asker}
	err = s.Store.Unjudged(ctx, store.Written{From: from.Add(-settled), To: to.Add(-settled)}, func(u store.Unjudged) error {
		f := judge.Facts{ID: u.ID, Domain: u.Domain, Response: !u.WithoutContent && u.Status != audit.Skipped, Detected: u.Detected, BiasSum: u.BiasSum, Threshold: u.Threshold}
		why, ok := s.Asker.Selector.Select(f)
		if !ok || !s.Asker.keeps(ctx, u.Tenant, u.Day) {
			return nil
		}
		out.Lost++
		return requests.add(u.Key, 1, why)
	})
	if err != nil {
		return out, err
	}
	due := store.JudgeDue{Written: store.Written{From: from, To: to}, First: s.Config.Backoff, Most: most, Days: s.Config.Days}
	err = s.Store.Unanswered(ctx, due, func(k store.Key, attempts int) error {
		if attempts >= judge.MaxAttempt {
			return nil
		}
		out.Again++
		return requests.add(k, attempts+1, judge.Again)
	})
	if err == nil {
		err = requests.flush()
	}
	if err == nil {
		out.Through = to
	}
	return out, err
}

// paged sends requests in pages.
type paged struct {
	ctx   context.Context
	asker *Asker
	held  []judge.Request
}

func (p *paged) add(k store.Key, attempt int, why judge.Reason) error {
	p.held = append(p.held, judge.Request{Tenant: k.Tenant, Day: k.Day, ID: k.ID, Digest: k.Digest, Attempt: attempt, Why: why})
	if len(p.held) < page {
		return nil
	}
	return p.flush()
}

func (p *paged) flush() error {
	if len(p.held) == 0 {
		return nil
	}
	err := p.asker.Send(p.ctx, p.held...)
	p.held = p.held[:0]
	return audit.E("judge/lane: sweep", audit.KindOf(err), err)
}
