package arbiter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sources/kafka"
)

// Options is what the program sets. Rules must be set.
type Options struct {
	Rules *Rules
	// Store is the projection to start from and to hold the log against. Without one the start reads
	// the whole log and a log that was replaced meanwhile is not noticed.
	Store *Store
	// Topic is kafkaconn.Decisions when empty.
	Topic string
	// Proposer names this process in records; host and process id when empty.
	Proposer string
	// Logger hears of what an operator should know; nil is quiet.
	Logger *slog.Logger
	// OnError is told of every error that was retried: op is fetch, bounds, decode, produce or project.
	// It must not block.
	OnError func(op string, err error)

	produce  func(context.Context, []kafkago.Message) error // for tests: in place of the producer
	patience time.Duration                                  // for tests: see lostAfter
}

// lostAfter is how long records that were read may be missing at the log's end before the log counts
// as replaced: a new leader may say for a moment that its log ends earlier.
const lostAfter = 5 * time.Second

// firstWait is how long is waited at most after a first failure.
const firstWait = 50 * time.Millisecond

// Kafka is the [Arbiter] on a topic with one partition.
type Kafka struct {
	opt      Options
	log      *kafka.Log
	producer *kafkaconn.Producer
	cache    *cache
	stop     context.CancelFunc
	tasks    sync.WaitGroup

	mu      sync.RWMutex
	fold    *fold
	next    int64         // the follower's position: what lies before it is folded
	changed chan struct{} // closed and made anew when next or err changes
	err     error         // set once the follower has given up
	waiting map[audit.ID][]chan error
	doubt   bool   // a fetch failed since the log was last found to be the same
	base    uint64 // decisions that came from the store at the start, and their sum
	baseSum uint64
}

var _ Arbiter = (*Kafka)(nil)

// Open reads the decisions so far, until ctx ends, and follows the log from then on. A log without
// records gets its id here. The topic must exist. The caller closes.
func Open(ctx context.Context, conn kafkaconn.Config, opt Options) (_ *Kafka, err error) {
	const op = "arbiter: open"
	if opt.Rules == nil {
		return nil, audit.E(op, audit.KindInvalid, errors.New("no rules are given"))
	}
	a, err := build(conn, opt)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	rctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	defer func() {
		if err != nil {
			_ = a.Close(context.WithoutCancel(ctx))
		}
	}()
	a.fold = newFold(a.opt.Rules, func(offset int64) (Decision, error) { return a.at(rctx, offset) })
	if err := a.begin(ctx); err != nil {
		return nil, classed(op, err)
	}
	a.tasks.Go(func() { a.follow(rctx) })
	if err := a.barrier(ctx); err != nil {
		return nil, classed(op, err)
	}
	if err := a.giveID(ctx); err != nil {
		return nil, classed(op, err)
	}
	return a, nil
}

func build(conn kafkaconn.Config, opt Options) (*Kafka, error) {
	if opt.Topic == "" {
		opt.Topic = kafkaconn.Decisions
	}
	if opt.Proposer == "" {
		host, _ := os.Hostname()
		opt.Proposer = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.OnError == nil {
		opt.OnError = func(string, error) {}
	}
	if opt.patience == 0 {
		opt.patience = lostAfter
	}
	a := &Kafka{opt: opt, cache: newCache(), changed: make(chan struct{}), waiting: map[audit.ID][]chan error{}}
	var err error
	a.log, err = kafka.NewLog(conn, opt.Topic, func(what string, err error) {
		a.mu.Lock()
		a.doubt = true
		a.mu.Unlock()
		opt.OnError(what, err)
	})
	if err != nil {
		return nil, err
	}
	po := kafkaconn.DefaultProducerOptions()
	po.MaxInFlight, po.Patience = 16<<20, 5*time.Second
	if a.producer, err = kafkaconn.NewProducer(conn, po); err != nil {
		a.log.Close()
		return nil, err
	}
	if a.opt.produce == nil {
		a.opt.produce = a.producer.Produce
	}
	return a, nil
}

// giveID writes the record that gives an empty log its id, and waits until the log has one.
func (a *Kafka) giveID(ctx context.Context) error {
	id := audit.NewID(time.Now())
	value, err := encode(wire{Log: id.String(), By: a.opt.Proposer})
	if err != nil {
		return err
	}
	for fails := 1; a.id().IsZero(); fails++ {
		if err := a.failed(); err != nil {
			return err
		}
		err := a.opt.produce(ctx, []kafkago.Message{{Topic: a.opt.Topic, Key: []byte(genesisKey), Value: value}})
		if err == nil {
			err = a.barrier(ctx)
		}
		if err != nil && audit.KindOf(err) != audit.KindUnavailable {
			return err
		}
		if err != nil {
			a.opt.OnError("produce", err)
			if !wait.For(ctx, wait.Backoff(firstWait, fails)) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// id is the log's, zero while it has none.
func (a *Kafka) id() audit.ID {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.fold.log
}

func (a *Kafka) failed() error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.err
}

// barrier waits until everything is folded that was in the log at the call.
func (a *Kafka) barrier(ctx context.Context) error {
	_, end, err := a.log.Bounds(ctx, 0)
	if err != nil {
		return err
	}
	return a.until(ctx, func() bool { return a.next >= end })
}

// until waits for a condition on what mu guards.
func (a *Kafka) until(ctx context.Context, ok func() bool) error {
	for {
		a.mu.RLock()
		done, err, changed := ok(), a.err, a.changed
		a.mu.RUnlock()
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fail ends the follower: every call gets err from now on.
func (a *Kafka) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return
	}
	a.err = err
	for id, list := range a.waiting {
		for _, w := range list {
			w <- err
		}
		delete(a.waiting, id)
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// Err is why the arbiter gave up, nil while it works. It cannot be used any more then: whoever opened
// it closes it and opens another.
func (a *Kafka) Err() error { return a.failed() }

// Close stops following; calls under way end with [ErrClosed]. It may be called twice.
func (a *Kafka) Close(ctx context.Context) error {
	a.fail(ErrClosed)
	a.stop()
	err := a.producer.Close(ctx)
	a.tasks.Wait()
	a.log.Close()
	return err
}

// classed gives err its kind: lost logs are internal, brokers and contexts unavailable.
func classed(op string, err error) error {
	var kinded *audit.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kinded), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return audit.E(op, audit.KindOf(err), err)
	case errors.Is(err, ErrClosed):
		return audit.E(op, audit.KindUnavailable, err)
	}
	return audit.E(op, audit.KindInternal, err)
}
