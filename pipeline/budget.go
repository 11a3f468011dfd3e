package pipeline

import (
	"context"
	"sync"
)

// budget bounds the bytes of messages that were fetched and are not committed: the one semaphore over
// all partitions. A fetch reserves about what it will bring and then settles what it brought; when
// that is more (messages unpack to several times their size in the log), the budget is overdrawn and
// nothing more is fetched until it is paid back.
type budget struct {
	most int64

	mu    sync.Mutex
	used  int64
	freed chan struct{} // closed and made anew when bytes come back
}

func newBudget(most int64) *budget { return &budget{most: most, freed: make(chan struct{})} }

// acquire waits until n bytes are free, or nobody holds any; it fails only when ctx ends.
func (b *budget) acquire(ctx context.Context, n int64) error {
	for {
		b.mu.Lock()
		if b.used == 0 || b.used+n <= b.most {
			b.used += n
			b.mu.Unlock()
			return nil
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle adds n to what is held; a negative n gives bytes back. It never waits.
func (b *budget) settle(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
	if n < 0 {
		close(b.freed)
		b.freed = make(chan struct{})
	}
}
