package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/failpoint"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sources"
)

// session is the work on the claims of one generation, from located positions on.
type session struct {
	p      *Pipeline
	g      sources.Generation
	places map[int]place // where each partition was opened; read-only after open
	pos    map[int]int64 // what fill has put into batches; fill's own
	held   *budget       // bytes of all messages between fetch and commit

	mu        sync.Mutex
	committed map[int]int64 // what is written, published and (as far as the broker took it) committed
}

// open locates every claim. It retries what may pass.
func (p *Pipeline) open(ctx context.Context, g sources.Generation, claims []sources.Claim) (*session, error) {
	s := &session{p: p, g: g, places: map[int]place{}, pos: map[int]int64{}, committed: map[int]int64{}, held: newBudget(p.cfg.BufferBytes)}
	parts := make([]int, len(claims))
	for i, c := range claims {
		parts[i] = c.Partition
	}
	p.track.locate(parts)
	for _, c := range claims {
		err := p.retry(ctx, "recover", func() error {
			pl, err := p.locate(ctx, g, c)
			if isOutOfRange(err) { // the log moved under us: look again
				err = audit.E("pipeline: locate", audit.KindUnavailable, errors.New("the log's bounds moved"))
			}
			s.places[c.Partition] = pl
			return err
		})
		if err != nil {
			return nil, err
		}
		s.pos[c.Partition] = s.places[c.Partition].next
		s.committed[c.Partition] = s.places[c.Partition].next
	}
	p.track.begin(s.committed)
	return s, nil
}

// claims gives the partitions with the positions reached.
func (s *session) claims() []sources.Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cs []sources.Claim
	for part, next := range s.committed {
		cs = append(cs, sources.Claim{Partition: part, Committed: next})
	}
	return cs
}

// run fetches, fills and writes until ctx ends or the log leaves the positions.
func (s *session) run(ctx context.Context) error {
	fetching, stop := context.WithCancel(ctx)
	defer stop()
	chunks := make(chan sources.Chunk)
	batches := make(chan *batch)

	var fetchers errgroup.Group
	for part, pl := range s.places {
		fetchers.Go(func() error {
			err := s.fetch(fetching, part, pl.next, chunks)
			if err != nil {
				stop() // one lost partition ends the session: positions are looked up again
			}
			return err
		})
	}
	fetchErr := make(chan error, 1)
	go func() {
		fetchErr <- fetchers.Wait()
		close(chunks)
	}()

	// The last batch may still be written for a while after the generation ended.
	draining, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	detach := context.AfterFunc(fetching, func() {
		t := time.AfterFunc(s.p.cfg.DrainTimeout, cancel)
		context.AfterFunc(draining, func() { t.Stop() })
	})
	defer detach()

	filled := make(chan struct{})
	go func() {
		defer close(filled)
		defer close(batches)
		s.fill(draining, fetching, chunks, batches)
	}()
	var err error
	for b := range batches {
		if err == nil {
			if err = s.write(draining, b); err != nil {
				stop() // keep draining the channels, write nothing more
				cancel()
			}
		}
	}
	<-filled
	ferr := <-fetchErr
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, sources.ErrGenerationEnded):
		return err
	case ctx.Err() != nil || errors.Is(err, sources.ErrGenerationEnded):
		return nil
	}
	return ferr
}

// leastFetch is what a fetch asks for at the least, in bytes.
const leastFetch = 64 << 10

// fetchBytes is what one fetch asks for: all partitions together reserve at most half the budget, so
// that quiet ones cannot starve busy ones.
func (s *session) fetchBytes() int {
	return min(s.p.cfg.FetchBytes, max(leastFetch, int(s.held.most/2/int64(max(1, len(s.places))))))
}

// fetch reads one partition into chunks until ctx ends (nil) or the position is out of the log. It
// does not fetch while the budget is spent.
func (s *session) fetch(ctx context.Context, part int, next int64, chunks chan<- sources.Chunk) error {
	size := s.fetchBytes()
	for ctx.Err() == nil {
		if s.held.acquire(ctx, int64(size)) != nil {
			return nil
		}
		ch, err := s.g.Fetch(ctx, part, next, size)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, sources.ErrGenerationEnded) {
				return nil
			}
			return err
		}
		var bytes int64
		var first time.Time
		for i := range ch.Records {
			bytes += sizeOf(&ch.Records[i])
		}
		if len(ch.Records) > 0 {
			first = ch.Records[0].Time
		}
		s.held.settle(bytes - int64(size))
		s.p.track.fetched(part, ch.Next, ch.End, first)
		if ch.Next == next {
			continue
		}
		select {
		case chunks <- ch:
			next = ch.Next
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// write stores, publishes and commits one batch.
func (s *session) write(ctx context.Context, b *batch) error {
	p, t0 := s.p, time.Now()
	if err := s.store(ctx, &b.Batch); err != nil {
		return err
	}
	t1 := time.Now()
	failpoint.Hit(failpoint.AfterMarker, "")
	if err := p.retry(ctx, "dead_letter", func() error { return p.Publisher.DeadLetter(ctx, b.Rejected) }); err != nil {
		return err
	}
	events := make([]audit.StreamEvent, len(b.Records))
	for i := range b.Records {
		events[i] = b.Records[i].Event()
	}
	failpoint.Hit(failpoint.BeforePublish, "")
	defer p.ask(ctx, b.Records)()
	if err := p.retry(ctx, "publish", func() error { return p.Publisher.Publish(ctx, events) }); err != nil {
		return err
	}
	failpoint.Hit(failpoint.AfterPublish, "")
	t2 := time.Now()
	if err := s.commit(ctx, b); err != nil {
		return err
	}
	s.held.settle(-b.bytes)
	p.Observer.Written(&b.Batch, Stats{Oldest: b.oldest, Fill: b.filled, Write: t1.Sub(t0), Publish: t2.Sub(t1)})
	return nil
}

// ask has more asked for beside what follows; the returned function waits for it.
func (p *Pipeline) ask(ctx context.Context, rs []audit.Record) (wait func()) {
	if p.Ask == nil || len(rs) == 0 {
		return func() {}
	}
	var g sync.WaitGroup
	g.Go(func() { p.Ask(ctx, rs) })
	return g.Wait
}

// commit moves the group's positions behind the batch; only the end of the generation is an error.
func (s *session) commit(ctx context.Context, b *batch) error {
	next := map[int]int64{}
	s.mu.Lock()
	for _, m := range b.Markers {
		next[m.Partition] = m.Hi + 1
		s.committed[m.Partition] = m.Hi + 1
	}
	s.mu.Unlock()
	failpoint.Hit(failpoint.BeforeCommit, "")
	if err := s.g.Commit(ctx, next); err != nil {
		if errors.Is(err, sources.ErrGenerationEnded) {
			return err
		}
		// The next commit supersedes this one; after a crash the marker stands in for it.
		s.p.Logger.Warn("commit failed", "error", err)
	}
	failpoint.Hit(failpoint.AfterCommit, "")
	for _, m := range b.Markers {
		s.p.track.flushed(m.Partition, m.Hi+1, m.Last.Time)
	}
	return nil
}

// store writes the batch until it is in. Rows that the store refuses for their data are found by
// halving and dead-lettered; writing rows twice changes nothing, so halves need no markers.
func (s *session) store(ctx context.Context, b *sinks.Batch) error {
	p := s.p
	// The same Prepared is sent again, so that it can wait for what became of its last attempt.
	send := func(b *sinks.Batch, final func(error) bool) error {
		var pr sinks.Prepared
		return p.retryUnless(ctx, "store", func() (err error) {
			if pr == nil {
				if pr, err = p.Store.Prepare(b); err != nil {
					return err
				}
			}
			return pr.Send(ctx)
		}, final)
	}
	err := send(b, isInvalid)
	if err == nil || !isInvalid(err) {
		return err
	}
	p.Logger.Error("the store refuses rows of a batch, looking for them", "rows", len(b.Records), "error", err)
	var good []audit.Record
	var search func(rs []audit.Record) error
	search = func(rs []audit.Record) error {
		if len(rs) == 0 {
			return nil
		}
		err := send(&sinks.Batch{Records: rs}, isInvalid)
		switch {
		case err == nil:
			good = append(good, rs...)
			return nil
		case audit.KindOf(err) != audit.KindInvalid:
			return err
		case len(rs) == 1:
			m, err := s.message(ctx, rs[0].Origin)
			if err != nil {
				return err
			}
			b.Rejected = append(b.Rejected, audit.Rejected{
				Origin: rs[0].Origin, Tenant: rs[0].Interaction.Tenant, Reason: "store_refused", Detail: "the store refused the row",
				Key: m.Key, Value: m.Value, Header: m.Headers,
			})
			return nil
		}
		return errors.Join(search(rs[:len(rs)/2]), search(rs[len(rs)/2:]))
	}
	if err := search(b.Records); err != nil {
		return err
	}
	for i := range b.Markers {
		m := &b.Markers[i]
		m.Rows, m.Rejected = 0, 0
		for _, r := range good {
			if r.Origin.Partition == m.Partition {
				m.Rows++
			}
		}
		for _, r := range b.Rejected {
			if r.Origin.Partition == m.Partition {
				m.Rejected++
			}
		}
	}
	b.Records = good
	// Each of these rows was taken alone: what is refused now cannot be told from an outage.
	return send(b, func(error) bool { return false })
}

// message reads a message once more: its bytes were let go after decoding, but the log holds it until it is
// committed.
func (s *session) message(ctx context.Context, o audit.Origin) (m sources.Record, err error) {
	err = s.p.retryUnless(ctx, "recover", func() error {
		for from := o.Offset; from <= o.Offset; {
			ch, err := s.g.Fetch(ctx, o.Partition, from, 1)
			if err != nil {
				return err
			}
			for _, r := range ch.Records {
				if r.Offset == o.Offset {
					m = r
					return nil
				}
			}
			from = max(from, ch.Next)
		}
		return audit.E("pipeline: read a message again", audit.KindInternal, errors.New("the log holds another one in its place"))
	}, func(err error) bool { return audit.KindOf(err) == audit.KindInternal })
	return m, err
}
