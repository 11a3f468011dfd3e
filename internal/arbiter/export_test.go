package arbiter

import (
	"context"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// WithProduce puts f in the producer's place.
func (o Options) WithProduce(f func(context.Context, []kafkago.Message) error) Options {
	o.produce = f
	return o
}

// WithPatience sets how long records may be missing before the log counts as replaced.
func (o Options) WithPatience(d time.Duration) Options {
	o.patience = d
	return o
}

// FromStore is how many decisions came from the store at the start.
func (a *Kafka) FromStore() uint64 { return a.base }

// Produce writes through the arbiter's own producer.
func (a *Kafka) Produce(ctx context.Context, msgs []kafkago.Message) error {
	return a.producer.Produce(ctx, msgs)
}

// Waiting is how many proposals wait for their judgement.
func (a *Kafka) Waiting() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.waiting)
}

// Count is the number of rows of the newest log.
func (s *Store) Count(ctx context.Context) (n uint64, err error) {
	logs, err := s.logs(ctx)
	if err != nil || len(logs) == 0 {
		return 0, err
	}
	err = s.each(ctx, logs[0], false, func(*row) error { n++; return nil })
	return n, err
}

// Forget empties the cache.
func (a *Kafka) Forget() { a.cache = newCache() }
