package join

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// fetchBytes is about how much a fetch of one partition brings.
const fetchBytes = 512 << 10

// fetched is a chunk, and when it was asked for by our clock: what the log held then is in it or before it.
type fetched struct {
	sources.Chunk
	asked time.Time
}

// follow fetches all partitions from their positions and hands the chunks, empty ones too, to take, one at a time,
// until ctx ends or take fails.
func (e *events) follow(ctx context.Context, g sources.Generation, from map[int]int64, take func(context.Context, fetched) error) error {
	group, ctx := errgroup.WithContext(ctx)
	chunks := make(chan fetched)
	for part, next := range from {
		group.Go(func() error { return e.fetch(ctx, g, part, next, chunks) })
	}
	group.Go(func() error {
		for {
			select {
			case f := <-chunks:
				if err := take(ctx, f); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	return group.Wait()
}

func (e *events) fetch(ctx context.Context, g sources.Generation, part int, next int64, chunks chan<- fetched) error {
	for {
		asked := e.Now()
		ch, err := e.chunk(ctx, g, part, next, fetchBytes)
		if err != nil {
			return err
		}
		select {
		case chunks <- fetched{ch, asked}:
			next = ch.Next
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// chunk fetches once. A position that the log no longer holds is told, and an empty chunk leads to its first record.
func (e *events) chunk(ctx context.Context, g sources.Generation, part int, next int64, size int) (sources.Chunk, error) {
	ch, err := g.Fetch(ctx, part, next, size)
	var out *sources.OutOfRangeError
	if !errors.As(err, &out) {
		return ch, err
	}
	if next > out.End { // the topic was made anew: everything begins again
		return ch, sources.ErrGenerationEnded
	}
	e.gone(g.Topic(), part, next, out.Start)
	return sources.Chunk{Partition: part, From: out.Start, Next: out.Start, End: out.End}, nil
}

// positions are where reading begins: the group's, or the log's first record where that is not in the log.
func (e *events) positions(ctx context.Context, g sources.Generation) (map[int]int64, error) {
	at := map[int]int64{}
	for _, c := range g.Claims() {
		start, end, err := g.Bounds(ctx, c.Partition)
		if err != nil {
			return nil, audit.E("join: positions", audit.KindOf(err), err)
		}
		at[c.Partition] = c.Committed
		if c.Committed < start || c.Committed > end {
			at[c.Partition] = start
			if c.Committed >= 0 {
				e.gone(g.Topic(), c.Partition, c.Committed, start)
			}
		}
	}
	return at, nil
}

// gone tells that reading goes on at another place than it should. The place lies before when the topic was made anew.
func (e *events) gone(topic string, part int, from, to int64) {
	e.Logger.Error("records of calls are gone from the log unread", "topic", topic, "partition", part, "from", from, "to", to)
	if from < to {
		e.Observer.Gap(from, to-1)
	}
}
