package llm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxCircuits bounds the models that are kept in mind; callers may name any.
	maxCircuits = 256
	// pingWithin bounds the answer to a ping: one line, while an answer to a caller may take as long as Config.Timeout.
	pingWithin = 20 * time.Second
)

// circuits keep questions from a server that answers nobody, for each model by itself. What callers ask never opens one: a text may be
// one that the server chokes on, a model may not exist, a caller may have no time. So many failures in a row, of whomever, only raise
// a doubt; a question of ours, the ping, decides. Others are asked for meanwhile. An open circuit is closed by a ping again, or by any
// answer that was still under way.
type circuits struct {
	failures int                                                  // in a row that raise a doubt
	wait     time.Duration                                        // for which a circuit is open
	ping     func(ctx context.Context, model string) (away error) // nil: it answers
	told     func(model, state string)

	mu      sync.Mutex
	of      map[string]*circuit // by model: those with failures
	pinging sync.WaitGroup
}

// circuit is of one model; circuits.mu guards it.
type circuit struct {
	failed int                // in a row
	until  time.Time          // when it is open: before that nobody is asked
	away   error              // when it is open: how the server failed
	ping   chan struct{}      // closed when the ping under way has ended; nil where there is none
	stop   context.CancelFunc // of the ping
}

// admit waits until a model may be asked: not at all, or for the ping that a circuit has been open long enough for. It fails with errOpen
// or, when ctx ends first, with its error.
func (c *circuits) admit(ctx context.Context, model string) error {
	c.mu.Lock()
	x := c.of[model]
	if x == nil || x.until.IsZero() {
		c.mu.Unlock()
		return nil
	}
	if time.Now().Before(x.until) || x.ping != nil {
		defer c.mu.Unlock()
		return x.open()
	}
	c.told(model, "half-open")
	over := c.startPing(ctx, model, x)
	c.mu.Unlock()
	select {
	case <-over:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[model] == x {
		return x.open()
	}
	return nil
}

// open is the error of whoever is not asked. The cause is told and not wrapped: it was ours, under another deadline.
func (x *circuit) open() error { return fmt.Errorf("%w, at last with: %v", errOpen, x.away) }

// answered says that a model's server is there.
func (c *circuits) answered(model string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(model)
}

func (c *circuits) forget(model string) {
	x := c.of[model]
	if x == nil {
		return
	}
	delete(c.of, model)
	if x.ping != nil {
		x.stop()
	}
	if !x.until.IsZero() {
		c.told(model, "closed")
	}
}

// failed says that an attempt failed, whoever is to blame. The one that raises a doubt waits for the ping, not beyond ctx: there is no
// use in asking again before.
func (c *circuits) failed(ctx context.Context, model string) {
	c.mu.Lock()
	x := c.of[model]
	if x == nil {
		if x = c.begin(model); x == nil {
			c.mu.Unlock()
			return
		}
	}
	if x.failed++; x.failed < c.failures || x.ping != nil || !x.until.IsZero() {
		c.mu.Unlock()
		return
	}
	over := c.startPing(ctx, model, x)
	c.mu.Unlock()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// begin gives a model a circuit, nil where there are too many.
func (c *circuits) begin(model string) *circuit {
	if len(c.of) >= maxCircuits {
		for name, x := range c.of {
			if x.ping == nil && !time.Now().Before(x.until) {
				delete(c.of, name)
			}
		}
		if len(c.of) >= maxCircuits {
			return nil
		}
	}
	x := &circuit{}
	c.of[model] = x
	return x
}

// startPing asks beside the callers; the channel is closed when that is over.
func (c *circuits) startPing(ctx context.Context, model string, x *circuit) (over chan struct{}) {
	ctx, x.stop = context.WithTimeoutCause(context.WithoutCancel(ctx), pingWithin, errTimeout)
	over = make(chan struct{})
	x.ping = over
	c.pinging.Go(func() {
		defer close(over)
		defer x.stop()
		away := c.ping(ctx, model)
		c.mu.Lock()
		defer c.mu.Unlock()
		x.ping, x.failed = nil, 0
		switch {
		case c.of[model] != x, errors.Is(ctx.Err(), context.Canceled): // somebody was answered meanwhile, or this is the end
		case away == nil:
			c.forget(model)
		default:
			x.until, x.away = time.Now().Add(c.wait), away
			c.told(model, "open")
		}
	})
	return over
}

// close ends what is under way.
func (c *circuits) close() {
	c.mu.Lock()
	for _, x := range c.of {
		if x.ping != nil {
			x.stop()
		}
	}
	c.mu.Unlock()
	c.pinging.Wait()
}
