package arbiter

import (
	"context"
	"errors"

	"github.com/evenhand/evenhand/audit"
)

// begin sets the follower's position and what is known before it: from the store when its decisions
// stand in the log, else from the log's start.
func (a *Kafka) begin(ctx context.Context) error {
	start, _, err := a.log.Bounds(ctx, 0)
	if err != nil {
		return err
	}
	if start > 0 {
		return ErrTrimmed
	}
	if a.opt.Store == nil {
		return nil
	}
	snap, err := a.opt.Store.snapshot(ctx)
	if err != nil || len(snap.rows) == 0 {
		return err
	}
	id, born, err := a.findID(ctx)
	if err != nil {
		return err
	}
	if id != snap.log {
		return ErrReplaced
	}
	for _, d := range []*Decision{&snap.newest, &snap.rows[len(snap.rows)-1]} {
		if err := a.holds(ctx, d); err != nil {
			return err
		}
	}
	rows := snap.usable(a.opt.Rules.sum)
	if len(rows) == 0 { // folded under other rules, or with a hole at the start: the whole log is read
		return nil
	}
	f := a.fold
	f.log, f.born = id, born
	for i := range rows {
		f.push(placeOf(rows[i].Key), rows[i].Offset)
		f.sum += mark(&rows[i])
	}
	f.counts.Decisions = uint64(len(rows))
	a.base, a.baseSum = f.counts.Decisions, f.sum
	a.next = rows[len(rows)-1].Offset + 1
	_, err = a.at(ctx, a.next-1) // into the cache: it is what same looks for
	return err
}

// findID looks for the record that gives the log its id: the first one, but for what others wrote
// before it. The id is zero when there is none.
func (a *Kafka) findID(ctx context.Context) (id audit.ID, offset int64, err error) {
	_, end, err := a.log.Bounds(ctx, 0)
	if err != nil {
		return id, 0, err
	}
	for next := int64(0); next < end; {
		chunk, err := a.log.Fetch(ctx, 0, next, recordBytes)
		if err != nil {
			return id, 0, err
		}
		for i := range chunk.Records {
			switch p, err := parse(&chunk.Records[i]); {
			case errors.Is(err, ErrNewer):
				return id, 0, err
			case err == nil && p.genesis:
				return p.log, chunk.Records[i].Offset, nil
			}
		}
		next = chunk.Next
	}
	return id, 0, nil
}

// holds tells whether the log has the decision at its place: ErrReplaced when not.
func (a *Kafka) holds(ctx context.Context, d *Decision) error {
	got, err := a.fetchAt(ctx, d.Offset)
	if err == nil && (got.Proposal != d.Proposal || got.Key != d.Key || got.Seq != d.Seq || got.Log != d.Log) {
		err = ErrReplaced
	}
	return err
}

// same tells whether the log is still the one that was folded: by the record that gave it its id and
// the newest decision.
func (a *Kafka) same(ctx context.Context) error {
	a.mu.RLock()
	f := a.fold
	id, last := f.log, int64(-1)
	if n := len(f.winners); n > 0 {
		last = f.winners[n-1]
	}
	a.mu.RUnlock()
	if id.IsZero() {
		return nil
	}
	if now, _, err := a.findID(ctx); err != nil {
		return err
	} else if now != id {
		return ErrReplaced
	}
	if last < 0 {
		return nil
	}
	d, cached := a.cache.get(last)
	if !cached {
		return nil // it was read from the log just now
	}
	return a.holds(ctx, &d)
}
