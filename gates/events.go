package gates

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

const (
	// pollEvery is how often the store is asked for other processes' gates; those of this one are told at once.
	pollEvery = time.Second
	// overlap is how far each look goes back: longer than an insert takes from its time to its appearance.
	overlap = 10 * time.Second
)

// Event is an entry of a tenant's stream.
type Event struct {
	ID   string // for Last-Event-ID
	Type string // EventOpened or EventDecided
	Gate audit.HumanGate
}

// Events gives a tenant's gates as they are opened and decided, until ctx ends or the store cannot be read.
// It begins with those that are open; after the id of an event with what came since, of which the last ten
// seconds before may come again. A gate that was opened and decided meanwhile comes as decided only.
func (s *Service) Events(ctx context.Context, tenant, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := s.events(ctx, tenant, after, func(e Event) bool { return yield(e, nil) }); err != nil && ctx.Err() == nil {
			yield(Event{}, err)
		}
	}
}

func (s *Service) events(ctx context.Context, tenant, after string, yield func(Event) bool) error {
	t, seen := s.Reader.WithTenant(tenant), map[string]time.Time{} // what was told, by its row's time
	from, err := eventTime(after)
	if err != nil {
		return audit.E("gates: events", audit.KindInvalid, err)
	}
	if after == "" {
		if from, err = snapshot(ctx, t, seen, yield); err != nil || from.IsZero() {
			return err
		}
	}
	_, last, _ := strings.Cut(after, "-")
	seen[last] = from
	for {
		news := s.news.wait()
		gs, now, err := t.GatesSince(ctx, from.Add(-overlap))
		if err != nil {
			return err
		}
		for i := range gs {
			e := eventOf(&gs[i])
			if _, told := seen[name(&gs[i])]; !told {
				seen[name(&gs[i])] = e.Gate.Written
				if !yield(e) {
					return nil
				}
			}
		}
		if from = now; len(gs) == store.MaxLimit { // there are more
			from = gs[len(gs)-1].Written.Add(overlap)
			continue
		}
		for id, at := range seen {
			if at.Before(from.Add(-2 * overlap)) {
				delete(seen, id)
			}
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}

// snapshot tells what is open, oldest first, and gives the store's time before it looked; zero when the reader
// has gone.
func snapshot(ctx context.Context, t *store.Tenant, seen map[string]time.Time, yield func(Event) bool) (time.Time, error) {
	_, now, err := t.GatesSince(ctx, time.Now().Add(time.Hour)) // for the store's clock
	if err != nil {
		return now, err
	}
	recent, now, err := t.GatesSince(ctx, now.Add(-2*overlap))
	if err != nil {
		return now, err
	}
	for i := range recent { // news of before
		seen[name(&recent[i])] = recent[i].Written
	}
	open, _, err := t.Gates(ctx, filter(audit.GateOpen), store.MaxLimit, "")
	if err != nil {
		return now, err
	}
	for i := len(open) - 1; i >= 0; i-- {
		seen[name(&open[i])] = open[i].Written
		if !yield(eventOf(&open[i])) {
			return time.Time{}, nil
		}
	}
	return now, nil
}

func eventOf(g *audit.HumanGate) Event {
	return Event{ID: fmt.Sprintf("%d-%s", g.Written.UnixMilli(), name(g)), Type: EventOf(g), Gate: *g}
}

// name tells news apart: a row that is written again, at another time, is none.
func name(g *audit.HumanGate) string { return string(g.State) + "-" + g.ID.String() }

// eventTime reads the time out of an event's id.
func eventTime(id string) (time.Time, error) {
	if id == "" {
		return time.Time{}, nil
	}
	ms, rest, ok := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil || n < 0 || n > 1<<43 || len(rest) > 100 {
		return time.Time{}, errors.New("Last-Event-ID: is not the id of an event of this stream")
	}
	return time.UnixMilli(n).UTC(), nil
}
