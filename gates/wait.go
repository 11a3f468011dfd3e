package gates

import (
	"context"
	"errors"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
)

// lookAgain is how often who waits asks the log although nothing was heard.
const lookAgain = 2 * time.Second

// patience is how long after a gate's deadline who waits goes on to ask for the answer while the log is away.
const patience = 10 * time.Second

// Wait implements [Gates]. Who waits proposes the timeout at the deadline.
func (s *Service) Wait(ctx context.Context, id audit.ID) (Decision, error) {
	g, err := s.Store.Gate(ctx, id)
	if err != nil {
		return Decision{}, err
	}
	if g, err = s.WaitFor(ctx, g); err != nil {
		return Decision{}, err
	}
	return decision(g), nil
}

// WaitFor is Wait for a gate that was read, and gives it as its answer leaves it.
func (s *Service) WaitFor(ctx context.Context, g *audit.HumanGate) (*audit.HumanGate, error) {
	const op = "gates: wait"
	for fails := 0; ; {
		news := s.news.wait() // before the look: nothing is missed in between
		now, err := s.ended(ctx, g)
		switch {
		case err == nil && now.State != audit.GateOpen:
			return now, nil
		case ctx.Err() != nil:
			return nil, audit.E(op, audit.KindUnavailable, ctx.Err())
		case err != nil:
			if audit.KindOf(err) != audit.KindUnavailable || s.Now().After(g.Expires.Add(patience)) {
				return nil, err
			}
			fails++
			wait.For(ctx, wait.Backoff(100*time.Millisecond, fails))
			continue
		}
		fails = 0
		timer := time.NewTimer(min(lookAgain, max(g.Expires.Sub(s.Now()), time.Millisecond)))
		select {
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
		case <-s.stop.Done():
			timer.Stop()
			return nil, audit.E(op, audit.KindUnavailable, errors.New("this process is going down; ask again"))
		}
		timer.Stop()
	}
}

// ended gives the gate as it stands, after it has had the timeout decided when its time is over.
func (s *Service) ended(ctx context.Context, g *audit.HumanGate) (*audit.HumanGate, error) {
	if s.Now().Before(g.Expires) {
		return s.look(ctx, g)
	}
	return s.settle(ctx, g, audit.ID{}, said{State: audit.GateTimeout})
}

// Get reads a gate of a tenant as it stands now.
func (s *Service) Get(ctx context.Context, tenant string, id audit.ID) (*audit.HumanGate, error) {
	g, err := s.Reader.WithTenant(tenant).Gate(ctx, id)
	if err != nil || g.State != audit.GateOpen {
		return g, err
	}
	return s.ended(ctx, g)
}

// List reads a tenant's gates, newest first, as they are stored: a row follows its decision in milliseconds,
// after a crash within a minute. next is the cursor of the page after, "" when there is none.
func (s *Service) List(ctx context.Context, tenant string, state audit.GateState, limit int, after string) (gs []audit.HumanGate, next string, err error) {
	return s.Reader.WithTenant(tenant).Gates(ctx, filter(state), limit, after)
}
