package kafka

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
)

// generation implements [sources.Generation].
type generation struct {
	gen    *kafka.Generation
	log    *reader
	topic  string
	claims []sources.Claim
	over   atomic.Bool // set once the member may have joined again
}

func newGeneration(gen *kafka.Generation, log *reader, topic string) *generation {
	g := &generation{gen: gen, log: log, topic: topic}
	for _, a := range gen.Assignments[topic] {
		c := sources.Claim{Partition: a.ID, Committed: a.Offset}
		if a.Offset < 0 { // kafka.FirstOffset: the group has no position
			c.Committed = -1
		}
		g.claims = append(g.claims, c)
	}
	slices.SortFunc(g.claims, func(a, b sources.Claim) int { return cmp.Compare(a.Partition, b.Partition) })
	return g
}

func (g *generation) ID() int32               { return g.gen.ID }
func (g *generation) Topic() string           { return g.topic }
func (g *generation) Claims() []sources.Claim { return slices.Clone(g.claims) }

func (g *generation) Fetch(ctx context.Context, partition int, offset int64, maxBytes int) (sources.Chunk, error) {
	if g.over.Load() {
		return sources.Chunk{}, sources.ErrGenerationEnded
	}
	return g.log.fetch(ctx, partition, offset, maxBytes)
}

func (g *generation) Bounds(ctx context.Context, partition int) (start, end int64, err error) {
	if g.over.Load() {
		return 0, 0, sources.ErrGenerationEnded
	}
	return g.log.bounds(ctx, partition)
}

// Commit implements [sources.Generation]. It is bounded by the group's own timeout; ctx is looked at
// before. While partitions move, a commit still succeeds until the member joins again.
func (g *generation) Commit(ctx context.Context, next map[int]int64) error {
	switch {
	case g.over.Load():
		return sources.ErrGenerationEnded
	case ctx.Err() != nil:
		return kafkaconn.E("sources/kafka: commit", context.Cause(ctx))
	case len(next) == 0:
		return nil
	}
	err := g.gen.CommitOffsets(map[string]map[int]int64{g.topic: next})
	if err == nil {
		return nil
	}
	g.log.onError("commit", err)
	var answer kafka.Error
	switch {
	case !errors.As(err, &answer): // the generation's only connection is lost, and with it the generation
		return sources.ErrGenerationEnded
	case answer == kafka.IllegalGeneration, answer == kafka.UnknownMemberId, answer == kafka.RebalanceInProgress,
		answer == kafka.FencedInstanceID, g.over.Load():
		return sources.ErrGenerationEnded
	}
	return kafkaconn.E("sources/kafka: commit", err)
}
