package join

import (
	"context"
	"errors"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/failpoint"
	"github.com/evenhand/evenhand/sources"
)

// batch is what was closed and is not told.
type batch struct {
	events   []made
	bytes    int
	rejected []audit.Rejected
	groups   []*group
}

func (b *batch) full() bool { return len(b.groups) >= 1000 || b.bytes >= 4<<20 }

func (b *batch) add(m made) {
	b.events = append(b.events, m)
	b.bytes += len(m.message.Value)
}

func (b *batch) reject(r audit.Rejected, reason, detail string) {
	r.Reason, r.Detail = reason, detail
	b.rejected = append(b.rejected, r)
	b.bytes += len(r.Value)
}

// tell hands the batch on: events, dead letters, the mark; then its groups hold nothing back any more.
func (s *session) tell(ctx context.Context) error {
	b := s.batch
	if len(b.groups)+len(b.rejected) == 0 {
		return nil
	}
	for len(b.events) > 0 { // in bites that the producer takes at once
		n := b.bite()
		if err := s.retry(ctx, "produce", func(ctx context.Context) error { return s.produce(ctx, b.events[:n]) }, never); err != nil {
			return err
		}
		b.events = b.events[n:]
	}
	if err := s.retry(ctx, "dead_letter", func(ctx context.Context) error { return s.bury(ctx, b.rejected) }, never); err != nil {
		return err
	}
	failpoint.Hit(failpoint.CallsTold, "")
	if err := s.mark(ctx, b.groups); err != nil {
		return err
	}
	failpoint.Hit(failpoint.CallsMarked, "")
	for _, g := range b.groups {
		g.p.order.Remove(g.place)
	}
	s.batch = batch{}
	return nil
}

// bite is how many events go at once.
func (b *batch) bite() (n int) {
	for size := 0; n < len(b.events); n++ {
		if size += len(b.events[n].message.Value); n > 0 && size > 8<<20 {
			break
		}
	}
	return n
}

func (e *events) counted(rs []audit.Rejected) {
	for i := range rs {
		e.Observer.Refused(rs[i].Reason)
	}
}

func (s *session) bury(ctx context.Context, rs []audit.Rejected) error {
	if len(rs) == 0 {
		return nil
	}
	err := s.dead(ctx, rs)
	if err == nil {
		s.counted(rs)
	}
	return err
}

// commit moves the group's positions up to the first part that waits, once a second.
func (s *session) commit(ctx context.Context) error {
	now := s.Now()
	if now.Sub(s.committed) < time.Second {
		return nil
	}
	next := map[int]int64{}
	for _, p := range s.parts {
		at := p.next
		if e := p.order.Front(); e != nil {
			at = e.Value.(*group).first()
		}
		if at > p.commit {
			next[p.id] = at
		}
	}
	if len(next) == 0 {
		return nil
	}
	s.committed = now
	if err := s.g.Commit(ctx, next); err != nil {
		if errors.Is(err, sources.ErrGenerationEnded) || ctx.Err() != nil {
			return err
		}
		s.Logger.Warn("commit failed", "topic", s.g.Topic(), "error", err.Error()) // the next one supersedes it
		return nil
	}
	for part, at := range next {
		s.parts[part].commit = at
	}
	failpoint.Hit(failpoint.CallsCommitted, "")
	return nil
}
