package gates

import (
	"context"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/store"
)

// Run follows the log until ctx ends, so that who waits learns of other processes' decisions at once, and
// announces again the gates that were open when it began: a process that ended may not have come to it.
func (s *Service) Run(ctx context.Context) {
	s.remind(ctx)
	var seen uint64
	for fails := 1; ctx.Err() == nil; fails++ {
		for d, err := range s.Log.Watch(ctx, seen) {
			if err != nil {
				break
			}
			seen, fails = d.N, 1
			if d.Key.Kind == Kind {
				s.news.tell()
			}
		}
		wait.For(ctx, wait.Backoff(500*time.Millisecond, fails))
	}
}

// remind announces what is open.
func (s *Service) remind(ctx context.Context) {
	if s.Announcer == nil {
		return
	}
	open, err := s.Store.OpenGates(ctx, maxSwept)
	if err != nil {
		s.Logger.Warn("open gates cannot be read", "kind", string(audit.KindOf(err)))
		return
	}
	for i := range open {
		if g := &open[i]; s.Now().Before(g.Expires) {
			s.announce(g) //nolint:contextcheck // it outlives the start
		}
	}
}

// maxSwept is how many open gates are looked at in one go.
const maxSwept = 1000

// Swept is what a sweep found.
type Swept struct {
	Open     int // gates that are open and have time
	TimedOut int // that nobody answered, and nobody waited for
	Mended   int // that were decided, without a row to say so
}

// Sweep ends gates whose time is over, and writes the rows of decisions that have none. It is idempotent.
func (s *Service) Sweep(ctx context.Context) (n Swept, err error) {
	open, err := s.Store.OpenGates(ctx, maxSwept)
	if err != nil {
		return n, err
	}
	for i := range open {
		g := &open[i]
		now, err := s.look(ctx, g)
		switch {
		case err != nil:
			return n, err
		case now.State != audit.GateOpen:
			if err := s.write(ctx, now); err != nil {
				return n, err
			}
			s.announce(now) //nolint:contextcheck // it outlives the sweep
			n.Mended++
		case s.Now().Before(g.Expires):
			n.Open++
		default:
			if _, err := s.settle(ctx, g, audit.ID{}, said{State: audit.GateTimeout}); err != nil {
				return n, err
			}
			n.TimedOut++
		}
	}
	return n, nil
}

func filter(state audit.GateState) store.GateFilter { return store.GateFilter{State: state} }

var _ Log = (*arbiter.Kafka)(nil)
