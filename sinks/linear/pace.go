package linear

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// budget is what the headers of an answer say of one of the API's two limits: requests, and points of
// complexity.
type budget struct {
	limit, remaining float64
	reset            time.Time // when it is full again
}

// budgetsOf reads the budgets that the headers tell, in the order requests, complexity.
func budgetsOf(h http.Header) (out []budget) {
	for _, name := range []string{"X-RateLimit-Requests-", "X-RateLimit-Complexity-"} {
		limit, err1 := strconv.ParseFloat(h.Get(name+"Limit"), 64)
		remaining, err2 := strconv.ParseFloat(h.Get(name+"Remaining"), 64)
		reset, err3 := strconv.ParseInt(h.Get(name+"Reset"), 10, 64)
		if errors.Join(err1, err2, err3) == nil && limit > 0 {
			out = append(out, budget{limit, remaining, time.UnixMilli(reset)})
		}
	}
	return out
}

const (
	reserve   = 0.1             // share of a budget below which requests are spread over the time until it is full
	shortWait = 2 * time.Second // waited for on the spot; longer ones are the caller's
)

// pacer keeps requests below the limits that answers tell. Others may spend the same budget.
type pacer struct {
	mu      sync.Mutex
	budgets []budget
	last    time.Time // of the newest request
}

// told keeps what an answer said.
func (p *pacer) told(h http.Header) {
	b := budgetsOf(h)
	if len(b) == 0 {
		return
	}
	p.mu.Lock()
	p.budgets = b
	p.mu.Unlock()
}

// reserveNext is how long the next request has to wait; 0 takes the turn.
func (p *pacer) reserveNext(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := now
	for _, b := range p.budgets {
		left := b.reset.Sub(now)
		switch {
		case left <= 0: // full again
		case b.remaining <= 0:
			due = latest(due, b.reset)
		case b.remaining < b.limit*reserve:
			due = latest(due, p.last.Add(time.Duration(float64(left)/b.remaining)))
		}
	}
	if wait := due.Sub(now); wait > 0 {
		return min(wait, longestWait)
	}
	p.last = now
	return 0
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// turn waits for its turn, or says when to come back.
func (p *pacer) turn(ctx context.Context) error {
	for {
		wait := p.reserveNext(time.Now())
		if wait == 0 {
			return nil
		}
		if wait > shortWait {
			return fault(audit.KindOverloaded, &sinks.Later{After: wait, Err: errors.New("the rate limit is nearly used up")})
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fault(audit.KindUnavailable, ctx.Err())
		}
	}
}
