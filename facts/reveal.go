package facts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

const (
	leastReason, mostReason = 8, 1000 // characters of a reason; as many at least are letters or digits
	revealWindow            = time.Hour
)

// Reveal records that a caller asked to see texts and identity, and why; nothing may be shown before it
// returns. Who asks more often than the limit gets audit.KindOverloaded, which is recorded too.
//
// The row is stored first and then those of the last hour are counted, its own among them: however many
// processes do so at once, the last of those that are let through has counted all of them.
//
// content is which of several contents of the id is meant, see beginOf; zero where there is one.
func (w *Writer) Reveal(ctx context.Context, by *auth.Principal, id, content audit.ID, reason string) (out *store.Item, err error) {
	const op = "facts: reveal"
	defer func() { w.counted(kindReveal, err) }()
	t, it, err := w.beginOf(ctx, op, by, id, content)
	if err != nil {
		return nil, err
	}
	reason = strings.TrimSpace(reason)
	if err := reasoned(reason); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if err := w.textsKept(ctx, it, "reason"); err != nil {
		return nil, err
	}
	caller := callerKey{Key: store.Key{Tenant: by.Tenant}, subject: by.Subject}
	_, err = w.asking.alone(caller, func() (said, error) { return said{}, w.reveal(ctx, op, t, by, it, reason) })
	if err != nil {
		if audit.KindOf(err) == audit.KindOverloaded {
			w.Logger.Warn("a reveal was refused: the caller's limit is reached", "tenant", by.Tenant, "subject", by.Subject, "interaction_id", id.String())
		}
		return nil, err
	}
	return it, nil
}

// reasoned refuses what gives no reason: one that nobody can see, or of dots alone, is on record and tells nothing.
func reasoned(reason string) error {
	if err := words("reason", reason, leastReason, mostReason); err != nil {
		return err
	}
	n := 0
	for _, r := range reason {
		if (unicode.IsLetter(r) || unicode.IsNumber(r)) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) { // some letters are invisible
			n++
		}
	}
	if n < leastReason {
		return fmt.Errorf("reason: has %d letters and digits; want %d to %d", n, leastReason, mostReason)
	}
	return nil
}

func (w *Writer) reveal(ctx context.Context, op string, t *store.Tenant, by *auth.Principal, it *store.Item, reason string) error {
	over := audit.E(op, audit.KindOverloaded, fmt.Errorf("reveal: %d in an hour are the limit of reveal.per_hour; try again later", w.RevealsPerHour))
	f := fact(by, it, w.now(time.Time{}))
	if w.asked.count(by, f.At) >= w.RevealsPerHour { // what this process knows needs no asking
		return errors.Join(over, stored(ctx, func(ctx context.Context) error { return w.Rows.Reveal(ctx, f, false) }))
	}
	if err := stored(ctx, func(ctx context.Context) error { return w.Rows.Reveal(ctx, f, true) }); err != nil {
		return err
	}
	n, err := t.Reveals(ctx, by.Subject, f.At.Add(-revealWindow))
	if err != nil {
		return err
	}
	if n > uint64(w.RevealsPerHour) {
		return errors.Join(over, stored(ctx, func(ctx context.Context) error { return w.Rows.Reveal(ctx, f, false) }))
	}
	w.asked.add(by, f.At)
	f.Texts = []clickhouse.FactText{{Kind: clickhouse.KindRevealReason, Text: reason}}
	return stored(ctx, func(ctx context.Context) error { return w.Rows.Texts(ctx, f) })
}

// reveals are when callers of this process were let through.
type reveals struct {
	mu sync.Mutex
	m  map[[2]string][]time.Time
}

// count counts those of the last hour and forgets the others.
func (r *reveals) count(by *auth.Principal, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for who, times := range r.m {
		for len(times) > 0 && !times[0].After(now.Add(-revealWindow)) {
			times = times[1:]
		}
		if r.m[who] = times; len(times) == 0 {
			delete(r.m, who)
		}
	}
	return len(r.m[[2]string{by.Tenant, by.Subject}])
}

func (r *reveals) add(by *auth.Principal, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil {
		r.m = map[[2]string][]time.Time{}
	}
	who := [2]string{by.Tenant, by.Subject}
	r.m[who] = append(r.m[who], at)
}
