package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sources"
)

// subscription is one call of Subscribe.
type subscription struct {
	opt SubscriberOptions
	ctx context.Context // the caller's, which messages' contexts come from
	out chan *message.Message
	all *sync.Map // the subscriber's partitions
}

// serve hands out what a generation's partitions hold, each partition by a goroutine of its own, and
// commits what was acknowledged. It returns after ctx ended and what was out was drained.
func (s *subscription) serve(ctx context.Context, g sources.Generation) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	drained, expire := context.WithCancel(context.WithoutCancel(ctx))
	defer expire()
	unlink := context.AfterFunc(ctx, func() {
		wait.For(drained, s.opt.Drain)
		expire()
	})
	defer unlink()
	c := &commits{g: g, dirty: make(chan struct{}, 1), next: map[int]int64{}}
	var partitions, committer sync.WaitGroup
	for _, claim := range g.Claims() {
		p := &partition{subscription: s, g: g, id: claim.Partition, next: claim.Committed, commits: c, drained: drained}
		partitions.Go(func() {
			s.all.Store(p, nil)
			defer s.all.Delete(p)
			p.run(ctx)
		})
	}
	all := make(chan struct{})
	committer.Go(func() {
		if err := c.run(ctx, all, s.opt); err != nil {
			end() // the partitions belong to somebody else
		}
	})
	partitions.Wait()
	close(all)
	committer.Wait()
	return nil
}

// partition hands out one partition of a generation.
type partition struct {
	*subscription
	g       sources.Generation
	id      int
	next    int64 // offset to fetch; -1 when the group has no position
	commits *commits
	drained context.Context // ends when what is out has had its time

	mu    sync.Mutex
	marks []*mark // what is out, in the order of the log
}

// mark is what may be committed once all before it is acknowledged, too.
type mark struct {
	next  int64
	came  time.Time // to the broker
	acked bool
}

// begin puts a mark behind those that are out.
func (p *partition) begin(next int64, came time.Time) *mark {
	p.next = next
	m := &mark{next: next, came: came}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks = append(p.marks, m)
	return m
}

// end says that it is acknowledged.
func (p *partition) end(m *mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.acked = true
	for len(p.marks) > 0 && p.marks[0].acked {
		p.commits.moved(p.id, p.marks[0].next)
		p.marks[0] = nil
		p.marks = p.marks[1:]
	}
}

// oldest is when the first that is out came, for all before it are acknowledged; zero when none is out.
func (p *partition) oldest() (came time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marks) > 0 {
		came = p.marks[0].came
	}
	return came
}

// run fetches and delivers until ctx ends and what is out was drained. Errors of Fetch and Bounds are about ended contexts and
// generations, but for an offset outside the log.
func (p *partition) run(ctx context.Context) {
	if p.next < 0 {
		start, _, err := p.g.Bounds(ctx, p.id)
		if err != nil {
			return
		}
		p.next = start
	}
	var delivering sync.WaitGroup
	defer delivering.Wait()
	window := make(chan struct{}, p.opt.Ahead)
	for ctx.Err() == nil {
		chunk, err := p.g.Fetch(ctx, p.id, p.next, p.opt.FetchBytes)
		var outside *sources.OutOfRangeError
		switch {
		case errors.As(err, &outside):
			// The log was cut above the position, or made anew below it: what there is begins at its start.
			p.opt.OnError("gap", err)
			p.opt.Logger.Error("offsets were deleted before they were read", "topic", p.g.Topic(), "partition", p.id,
				"asked", outside.Asked, "start", outside.Start, "end", outside.End)
			p.end(p.begin(outside.Start, time.Time{}))
			continue
		case err != nil:
			return
		}
		for i := range chunk.Records {
			select {
			case window <- struct{}{}:
			case <-ctx.Done():
				return
			}
			m := p.begin(chunk.Records[i].Offset+1, chunk.Records[i].Time)
			delivering.Go(func() {
				defer func() { <-window }()
				if p.deliver(ctx, &chunk.Records[i]) {
					p.end(m)
				}
			})
		}
		if chunk.Next > p.next { // holes at the end
			p.end(p.begin(chunk.Next, time.Time{}))
		}
	}
}

// deliver hands out a record until it is acknowledged; false when ctx ended first.
func (p *partition) deliver(ctx context.Context, r *sources.Record) bool {
	d := Delivery{Origin: audit.Origin{Topic: p.g.Topic(), Partition: p.id, Offset: r.Offset, BrokerTime: r.Time}}
	for pause := p.opt.RetryMin; ; pause = min(2*pause, p.opt.RetryMax) {
		d.Attempt++
		m, cancel := decode(p.ctx, r, d) //nolint:contextcheck // what is out drains after ctx has ended
		acked, handed := p.hand(ctx, m)
		cancel()
		if acked {
			return true
		}
		if !handed || !wait.For(ctx, pause-time.Duration(rand.Int64N(int64(pause)/2+1))) {
			return false
		}
	}
}

// hand gives one message out and waits for its answer; handed is false when there was none in time.
func (p *partition) hand(ctx context.Context, m *message.Message) (acked, handed bool) {
	if ctx.Err() != nil {
		return false, false
	}
	select {
	case p.out <- m:
	case <-ctx.Done():
		return false, false
	}
	select {
	case <-m.Acked():
		return true, true
	case <-m.Nacked():
		return false, true
	case <-p.drained.Done(): // Drain after ctx ended
		return false, false
	}
}

// commits gathers positions and commits the newest of each partition.
type commits struct {
	g     sources.Generation
	dirty chan struct{} // holds one when next does

	mu   sync.Mutex
	next map[int]int64
}

func (c *commits) moved(partition int, next int64) {
	c.mu.Lock()
	c.next[partition] = next
	c.mu.Unlock()
	select {
	case c.dirty <- struct{}{}:
	default:
	}
}

// run commits until all partitions are done, the last time after that. It fails when the generation
// is over. ctx may have ended: while what is out is drained, commits still count.
func (c *commits) run(ctx context.Context, all <-chan struct{}, o SubscriberOptions) error {
	ctx = context.WithoutCancel(ctx)
	for {
		select {
		case <-c.dirty:
		case <-all:
			return c.flush(ctx, o)
		}
		if err := c.flush(ctx, o); err != nil {
			return err
		}
		t := time.NewTimer(max(o.CommitEvery, time.Millisecond))
		select {
		case <-t.C:
		case <-all:
		}
		t.Stop()
	}
}

// flush commits what moved. What fails otherwise than by an ended generation goes with the next time.
func (c *commits) flush(ctx context.Context, o SubscriberOptions) error {
	c.mu.Lock()
	next := c.next
	c.next = map[int]int64{}
	c.mu.Unlock()
	if len(next) == 0 {
		return nil
	}
	err := c.g.Commit(ctx, next)
	if err == nil || errors.Is(err, sources.ErrGenerationEnded) {
		return err
	}
	o.OnError("commit", fmt.Errorf("bus: %w", err))
	c.mu.Lock()
	maps.Copy(next, c.next)
	c.next = next
	c.mu.Unlock()
	select {
	case c.dirty <- struct{}{}:
	default:
	}
	return nil
}
