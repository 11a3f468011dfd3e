package arbiter

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sources"
)

// Winner implements [Arbiter].
func (a *Kafka) Winner(ctx context.Context, key Key) (Decision, bool, error) {
	const op = "arbiter: winner"
	if err := a.barrier(ctx); err != nil {
		return Decision{}, false, classed(op, err)
	}
	offsets := a.offsets(key)
	if len(offsets) == 0 {
		return Decision{}, false, nil
	}
	d, err := a.at(ctx, offsets[len(offsets)-1])
	return d, err == nil, classed(op, err)
}

// History implements [Arbiter].
func (a *Kafka) History(ctx context.Context, key Key) ([]Decision, error) {
	const op = "arbiter: history"
	if err := a.barrier(ctx); err != nil {
		return nil, classed(op, err)
	}
	var list []Decision
	for _, offset := range a.offsets(key) {
		d, err := a.at(ctx, offset)
		if err != nil {
			return nil, classed(op, err)
		}
		list = append(list, d)
	}
	return list, nil
}

// Watch implements [Arbiter].
func (a *Kafka) Watch(ctx context.Context, after uint64) iter.Seq2[Decision, error] {
	return func(yield func(Decision, error) bool) {
		for {
			list, err := a.batch(ctx, after, 1000)
			for _, d := range list {
				if !yield(d, nil) {
					return
				}
				after = d.N
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(Decision{}, classed("arbiter: watch", err))
				}
				return
			}
		}
	}
}

// batch waits for decisions above after and gives at most limit of them.
func (a *Kafka) batch(ctx context.Context, after uint64, limit int) ([]Decision, error) {
	if err := a.until(ctx, func() bool { return uint64(len(a.fold.winners)) > after }); err != nil {
		return nil, err
	}
	a.mu.RLock()
	have := a.fold.winners[after:]
	offsets := slices.Clone(have[:min(len(have), limit)])
	a.mu.RUnlock()
	return a.readAll(ctx, offsets)
}

// offsets are those of the key's decisions so far.
func (a *Kafka) offsets(key Key) []int64 {
	a.mu.RLock()
	defer a.mu.RUnlock()
	h, ok := a.fold.heads[placeOf(key)]
	if !ok {
		return nil
	}
	var list []int64
	if h.older != nil {
		list = slices.Clone(*h.older)
	}
	return append(list, h.last)
}

// at gives the decision at an offset that won.
func (a *Kafka) at(ctx context.Context, offset int64) (Decision, error) {
	if d, ok := a.cache.get(offset); ok {
		return d, nil
	}
	d, err := a.fetchAt(ctx, offset)
	if err == nil {
		a.cache.put(d)
	}
	return d, err
}

// fetchAt reads the record at an offset from the log; N is set when it is a decision.
func (a *Kafka) fetchAt(ctx context.Context, offset int64) (Decision, error) {
	list, err := a.fetch(ctx, []int64{offset}, recordBytes)
	if err != nil {
		return Decision{}, err
	}
	return list[0], nil
}

// readAll gives the decisions at ascending offsets, from the cache or with few fetches.
func (a *Kafka) readAll(ctx context.Context, offsets []int64) ([]Decision, error) {
	var list []Decision
	for len(list) < len(offsets) {
		rest := offsets[len(list):]
		if d, ok := a.cache.get(rest[0]); ok {
			list = append(list, d)
			continue
		}
		more, err := a.fetch(ctx, rest, fetchBytes)
		if err != nil {
			return list, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// fetch reads records at ascending offsets that were in the log before, with one fetch: the first one
// and those that came with it. ErrReplaced when the first one stays missing.
func (a *Kafka) fetch(ctx context.Context, offsets []int64, maxBytes int) ([]Decision, error) {
	for deadline := time.Now().Add(a.opt.patience); ; {
		chunk, err := a.log.Fetch(ctx, 0, offsets[0], maxBytes)
		var out *sources.OutOfRangeError
		if err != nil && !errors.As(err, &out) {
			return nil, err
		}
		if list := a.pick(&chunk, offsets); len(list) > 0 {
			return list, nil
		}
		if chunk.Next > offsets[0] && !unreadable(&chunk) { // something else stands there
			return nil, ErrReplaced
		}
		if time.Now().After(deadline) {
			return nil, ErrReplaced
		}
		if !wait.For(ctx, a.opt.patience/10) {
			return nil, ctx.Err()
		}
	}
}

func unreadable(c *sources.Chunk) bool { return len(c.Records) > 0 && isUndecodable(&c.Records[0]) }

// pick takes the records at the offsets out of a chunk, up to the first that is not there.
func (a *Kafka) pick(chunk *sources.Chunk, offsets []int64) []Decision {
	var list []Decision
	for i := range chunk.Records {
		r := &chunk.Records[i]
		if len(list) == len(offsets) {
			break
		}
		if r.Offset != offsets[len(list)] {
			continue
		}
		p, err := parse(r)
		if err != nil || p.genesis {
			break
		}
		a.mu.RLock()
		p.decision.N = a.fold.nth(r.Offset)
		a.mu.RUnlock()
		list = append(list, p.decision)
	}
	return list
}
