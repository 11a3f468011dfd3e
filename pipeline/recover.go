package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cespare/xxhash/v2"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/failpoint"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sources"
)

// place is where a partition is read next and under which epoch it is written.
type place struct {
	next  int64
	epoch int32
}

// edgeOf identifies a record.
func edgeOf(r *sources.Record) sinks.Edge {
	h := xxhash.New()
	_, _ = h.Write(r.Key)
	_, _ = h.Write(r.Value)
	return sinks.Edge{Offset: r.Offset, Time: r.Time, Hash: h.Sum64()}
}

// locate decides where to go on in a partition: behind everything whose marker is in the store and
// whose records are still the ones the marker saw. It publishes again what it skips.
//
// The committed position alone proves nothing: a topic that was deleted and made again has other
// records under the same offsets, and a commit may be lost after its marker was written.
func (p *Pipeline) locate(ctx context.Context, g sources.Generation, c sources.Claim) (place, error) {
	start, end, err := g.Bounds(ctx, c.Partition)
	if err != nil {
		return place{}, err
	}
	pos := c.Committed
	if pos < 0 {
		pos = start
	}
	ms, epoch, err := p.Store.Markers(ctx, g.Topic(), c.Partition, pos-1)
	if err != nil {
		return place{}, err
	}
	if c.Committed >= 0 && len(ms) == 0 {
		// Nothing in the store vouches for the commit: read again what the log still holds.
		all, e, err := p.Store.Markers(ctx, g.Topic(), c.Partition, 0)
		if err != nil {
			return place{}, err
		}
		epoch, pos = e, start
		if n := len(all); n > 0 {
			pos = all[n-1].Hi + 1
			ms = all[n-1:]
		}
		p.Logger.Warn("committed position has no marker in the store, reading again", "partition", c.Partition, "committed", c.Committed, "from", pos)
	}
	replaced := func() (place, error) {
		epoch++
		p.Logger.Error("the log was replaced: its records are not those the store remembers", "topic", g.Topic(), "partition", c.Partition, "epoch", epoch, "from", start)
		p.Observer.LogReplaced(c.Partition, epoch)
		return place{start, epoch}, nil
	}
	if pos > end {
		return replaced()
	}
	if len(ms) > 0 && ms[0].Hi == pos-1 {
		same, err := p.sameEdge(ctx, g, c.Partition, ms[0].Last, start, end)
		if err != nil {
			return place{}, err
		}
		if !same {
			return replaced()
		}
		ms = ms[1:]
	}
	for _, m := range ms {
		if m.Lo != pos {
			continue
		}
		for _, e := range []sinks.Edge{m.First, m.Last} {
			same, err := p.sameEdge(ctx, g, c.Partition, e, start, end)
			if err != nil {
				return place{}, err
			}
			if !same {
				return replaced()
			}
		}
		if err := p.republish(ctx, g, m); err != nil {
			return place{}, err
		}
		pos = m.Hi + 1
		if err := g.Commit(ctx, map[int]int64{c.Partition: pos}); err != nil {
			return place{}, err
		}
	}
	if pos < start {
		if err := p.markGap(ctx, g, c.Partition, epoch, pos, start-1); err != nil {
			return place{}, err
		}
		pos = start
	}
	return place{pos, epoch}, nil
}

// sameEdge tells whether the log still holds the record that the marker saw. Records that retention
// has taken, and ranges without any record, cannot be compared and count as the same.
func (p *Pipeline) sameEdge(ctx context.Context, g sources.Generation, partition int, e sinks.Edge, start, end int64) (bool, error) {
	if e.Time.IsZero() || e.Offset < start {
		return true, nil
	}
	if e.Offset >= end {
		return false, nil
	}
	for from := e.Offset; from <= e.Offset; {
		ch, err := g.Fetch(ctx, partition, from, 1)
		if err != nil {
			return false, err
		}
		for i := range ch.Records {
			if r := &ch.Records[i]; r.Offset >= e.Offset {
				return edgeOf(r) == e, nil
			}
		}
		if ch.Next > e.Offset {
			return false, nil // a hole where a record was
		}
		from = max(from, ch.Next)
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// republish sends the stream events of a range that is in the store.
func (p *Pipeline) republish(ctx context.Context, g sources.Generation, m sinks.Marker) error {
	evs, err := p.Store.Events(ctx, m)
	if err != nil {
		return err
	}
	if err := p.Publisher.Publish(ctx, evs); err != nil {
		return err
	}
	p.Logger.Info("range is in the store already, published again", "partition", m.Partition, "lo", m.Lo, "hi", m.Hi, "events", len(evs))
	p.Observer.Skipped(m.Partition, m.Lo, m.Hi)
	failpoint.Hit(failpoint.Republished, "")
	return nil
}

// markGap records offsets that the log dropped before they were read; never a silent skip.
func (p *Pipeline) markGap(ctx context.Context, g sources.Generation, partition int, epoch int32, lo, hi int64) error {
	p.Logger.Error("the log dropped records before they were read", "topic", g.Topic(), "partition", partition, "lo", lo, "hi", hi)
	p.Observer.Gap(partition, lo, hi)
	pr, err := p.Store.Prepare(&sinks.Batch{Markers: []sinks.Marker{{
		Topic: g.Topic(), Partition: partition, Epoch: epoch, Lo: lo, Hi: hi,
		Skipped: uint32(hi - lo + 1), Generation: g.ID(), Reason: "gap",
	}}})
	if err != nil {
		return err
	}
	return pr.Send(ctx)
}

// retry runs do until it succeeds, ctx ends, or the generation or the position is lost; back-off grows
// from 100 ms to 10 s with jitter, without an end. No error of store or stream ends the pipeline: what
// cannot be mended by waiting is mended by people, and until then nothing is committed past it.
func (p *Pipeline) retry(ctx context.Context, stage string, do func() error) error {
	return p.retryUnless(ctx, stage, do, func(error) bool { return false })
}

// retryUnless is retry that also gives up on errors that final picks.
func (p *Pipeline) retryUnless(ctx context.Context, stage string, do func() error, final func(error) bool) error {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, 10*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := do()
		if err == nil {
			return struct{}{}, nil
		}
		if ctx.Err() != nil || errors.Is(err, sources.ErrGenerationEnded) || isOutOfRange(err) || final(err) {
			return struct{}{}, backoff.Permanent(err)
		}
		p.Observer.Retried(stage, audit.KindOf(err))
		p.Logger.Warn("stage failed, trying again", "stage", stage, "error", err)
		return struct{}{}, err
	}, backoff.WithBackOff(b), backoff.WithMaxElapsedTime(0))
	var perm *backoff.PermanentError
	if errors.As(err, &perm) {
		return perm.Unwrap()
	}
	return err
}

func isInvalid(err error) bool { return audit.KindOf(err) == audit.KindInvalid }

func isOutOfRange(err error) bool {
	var out *sources.OutOfRangeError
	return errors.As(err, &out)
}
