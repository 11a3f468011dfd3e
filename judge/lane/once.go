package lane

import (
	"context"
	"sync"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks/clickhouse"
)

// running are the requests that are being answered. Of two that want the same verdict (several people ask, or the sweep asks for what still
// waits) the second waits for the first and finds its answer stored: both would be paid for, and one row kept.
type running struct {
	mu sync.Mutex
	of map[audit.ID]chan struct{} // closed at the end
}

// begin waits until nobody answers a request, and answers it until end is called. It fails with ctx alone.
func (r *running) begin(ctx context.Context, id audit.ID) (end func(), err error) {
	for {
		r.mu.Lock()
		other, busy := r.of[id]
		if !busy {
			if r.of == nil {
				r.of = map[audit.ID]chan struct{}{}
			}
			over := make(chan struct{})
			r.of[id] = over
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				delete(r.of, id)
				r.mu.Unlock()
				close(over)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// mostOwed bounds the requests whose spending is kept in mind.
const mostOwed = 10_000

// owed is what was spent on requests that have no verdict yet: votes before one that failed, and answers that could not be stored. The
// row that comes about in the end says what all of it cost. A process that ends forgets it; the metrics had it before.
type owed struct {
	mu sync.Mutex
	of map[audit.ID]clickhouse.Judging
}

// settle adds to j what is owed for a request, and forgets it.
func (o *owed) settle(id audit.ID, j *clickhouse.Judging) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.of[id]
	delete(o.of, id)
	j.Calls, j.Tokens[0], j.Tokens[1], j.Cost = j.Calls+was.Calls, j.Tokens[0]+was.Tokens[0], j.Tokens[1]+was.Tokens[1], j.Cost+was.Cost
}

// owe keeps what j says was spent.
func (o *owed) owe(id audit.ID, j clickhouse.Judging) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if j.Calls == 0 || len(o.of) >= mostOwed {
		return
	}
	if o.of == nil {
		o.of = map[audit.ID]clickhouse.Judging{}
	}
	o.of[id] = clickhouse.Judging{Calls: j.Calls, Tokens: j.Tokens, Cost: j.Cost}
}
