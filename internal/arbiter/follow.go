package arbiter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sources"
	"github.com/evenhand/evenhand/sources/kafka"
)

const (
	fetchBytes  = 1 << 20
	recordBytes = 4 << 10 // for one record: brokers give a whole batch at least
)

// follow folds the log from next on until ctx ends or the log cannot be trusted any more.
func (a *Kafka) follow(ctx context.Context) {
	var missing time.Time // since when the log is too short
	for fails := 0; ctx.Err() == nil; {
		chunk, err := a.log.Fetch(ctx, 0, a.next, fetchBytes) // next is written by this goroutine only
		if err == nil {
			missing = time.Time{}
			var stuck bool
			if stuck, err = a.take(ctx, &chunk); !stuck {
				fails = 0
			} else if fails++; !wait.For(ctx, wait.Backoff(firstWait, fails)) {
				return
			}
		}
		var out *sources.OutOfRangeError
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			continue
		case errors.As(err, &out) && out.Start > a.next:
			err = ErrTrimmed
		case errors.As(err, &out):
			if missing.IsZero() {
				missing = time.Now()
			}
			if time.Since(missing) < a.opt.patience {
				wait.For(ctx, a.opt.patience/10)
				continue
			}
			err = ErrReplaced
		}
		a.opt.Logger.Error("arbitration has stopped", "topic", a.opt.Topic, "offset", a.next, "error", err.Error())
		a.fail(err)
		return
	}
}

// take folds a chunk. stuck says that a batch could not be read: the position stands before it, for
// what cannot be read may have been a decision.
func (a *Kafka) take(ctx context.Context, chunk *sources.Chunk) (stuck bool, err error) {
	a.mu.RLock()
	doubt := a.doubt
	a.mu.RUnlock()
	if doubt && len(chunk.Records) > 0 {
		if err := a.same(ctx); err != nil {
			return false, err
		}
		a.mu.Lock()
		a.doubt = false
		a.mu.Unlock()
	}
	checked := doubt
	for i := range chunk.Records {
		r := &chunk.Records[i]
		if isUndecodable(r) {
			a.opt.OnError("decode", fmt.Errorf("the batch at offset %d cannot be read", r.Offset))
			a.advance(r.Offset)
			return true, nil
		}
		o, err := a.fold.judge(r)
		if err != nil {
			a.advance(r.Offset)
			return false, err
		}
		if errors.Is(o.err, errForeign) && !o.log.IsZero() && !checked { // or is it we who are on another log?
			if checked, err = true, a.same(ctx); err != nil {
				return false, err
			}
		}
		a.settle(&o, r.Offset)
	}
	a.advance(chunk.Next)
	return false, nil
}

func isUndecodable(r *sources.Record) bool {
	return len(r.Headers) > 0 && r.Headers[0].Key == kafka.UndecodableHeader
}

// settle takes a judged record in and tells who waits for it.
func (a *Kafka) settle(o *outcome, offset int64) {
	if o.won && !o.genesis {
		a.cache.put(o.decision)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fold.commit(o, offset)
	if o.genesis || errors.Is(o.err, errForeign) {
		return
	}
	waiters := a.waiting[o.decision.Proposal]
	if len(waiters) == 0 {
		return
	}
	var refused *Refused
	errors.As(o.err, &refused)
	for _, w := range waiters {
		if refused != nil {
			w <- refused
		} else {
			w <- nil // decided; the waiter looks up by whom
		}
	}
	delete(a.waiting, o.decision.Proposal)
}

func (a *Kafka) advance(next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if next != a.next {
		a.next = next
		close(a.changed)
		a.changed = make(chan struct{})
	}
}
