package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/semaphore"

	"github.com/evenhand/evenhand/audit"
)

// ProducerOptions configure a producer; start from DefaultProducerOptions.
type ProducerOptions struct {
	// MaxInFlight bounds the bytes that were handed over and not yet answered by the brokers.
	MaxInFlight int64
	// MaxMessage is the largest message taken, in bytes of key, value and headers.
	MaxMessage int
	// Linger is how long a message waits for company. Each call waits for it.
	Linger time.Duration
}

// DefaultProducerOptions are for a front door: 64 MiB in flight, messages up to MaxMessage, 5 ms.
func DefaultProducerOptions() ProducerOptions {
	return ProducerOptions{MaxInFlight: 64 << 20, MaxMessage: MaxMessage, Linger: 5 * time.Millisecond}
}

// Producer writes messages to the topics that they name and waits for all in-sync replicas. One
// producer is shared by all callers, who share its batches. It does not repeat a message that a
// caller's retry brings again: events carry their own id for that.
type Producer struct {
	opt    ProducerOptions
	pool   *kafka.Transport
	writer *kafka.Writer
	bytes  *semaphore.Weighted
	calls  sync.WaitGroup
	mu     sync.Mutex
	closed bool
}

// NewProducer builds a producer; it connects with the first message.
func NewProducer(cfg Config, opt ProducerOptions) (*Producer, error) {
	t, err := cfg.Transport()
	if err != nil {
		return nil, audit.E("kafkaconn: new producer", audit.KindInvalid, err)
	}
	return &Producer{opt: opt, pool: t, bytes: semaphore.NewWeighted(opt.MaxInFlight), writer: NewWriter(cfg, t, opt.Linger, maxInteractionsBatch)}, nil
}

// NewWriter is a kafka-go writer as all of ours are: acknowledged by all in-sync replicas, lz4, the
// key decides the partition, a bounded number of attempts. batchBytes is the most a batch holds.
func NewWriter(cfg Config, t *kafka.Transport, linger time.Duration, batchBytes int64) *kafka.Writer {
	return &kafka.Writer{
		Addr: kafka.TCP(cfg.Brokers...), Transport: t, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
		Compression: kafka.Lz4, BatchTimeout: linger, BatchSize: 10_000, BatchBytes: batchBytes,
		MaxAttempts: 5, WriteBackoffMin: 100 * time.Millisecond, WriteBackoffMax: time.Second,
		ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
	}
}

// MessageErrors holds the error of each message of a call, nil for those that were acknowledged.
type MessageErrors []error

// Error counts the failures and shows the first one.
func (e MessageErrors) Error() string {
	n, first := 0, error(nil)
	for _, err := range e {
		if err != nil {
			if n++; first == nil {
				first = err
			}
		}
	}
	return fmt.Sprintf("%d of %d messages failed: %v", n, len(e), first)
}

// Unwrap gives the failures.
func (e MessageErrors) Unwrap() []error {
	var errs []error
	for _, err := range e {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Produce returns once every message is acknowledged. Errors are classed: overloaded at once when too
// much is in flight or the log is full, invalid for messages that are too large (the others of the
// call are sent). When some failed, errors.As finds a [MessageErrors] with one entry a message. When
// ctx ends first, messages may still arrive; their byte slices must not be changed.
func (p *Producer) Produce(ctx context.Context, msgs []kafka.Message) error {
	const op = "kafkaconn: produce"
	if len(msgs) == 0 {
		return nil
	}
	errs := make(MessageErrors, len(msgs))
	send, at := make([]kafka.Message, 0, len(msgs)), make([]int, 0, len(msgs))
	var total int64
	for i, m := range msgs {
		n := messageSize(m)
		if n > p.opt.MaxMessage {
			errs[i] = audit.E(op, audit.KindInvalid, fmt.Errorf("the message has %d bytes, at most %d are taken", n, p.opt.MaxMessage))
			continue
		}
		total += int64(n)
		send, at = append(send, m), append(at, i)
	}
	if len(send) > 0 {
		if err := p.send(ctx, send, total); err != nil {
			var each kafka.WriteErrors
			many := errors.As(err, &each) && len(each) == len(send)
			for j, i := range at {
				if many {
					errs[i] = E(op, each[j])
				} else {
					errs[i] = E(op, err)
				}
			}
		}
	}
	return errs.reduce(op)
}

// reduce gives nil when all went well, else the errors under the kind that needs the most care.
func (e MessageErrors) reduce(op string) error {
	if len(e.Unwrap()) == 0 {
		return nil
	}
	return audit.E(op, classMany(kafka.WriteErrors(e)), e)
}

// send hands messages to the writer on a goroutine of their own, because they count as in flight
// until the writer is done with them, which may be long after ctx ended.
func (p *Producer) send(ctx context.Context, msgs []kafka.Message, bytes int64) error {
	const op = "kafkaconn: produce"
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return audit.E(op, audit.KindUnavailable, errors.New("the producer is closed"))
	}
	if !p.bytes.TryAcquire(bytes) {
		p.mu.Unlock()
		return audit.E(op, audit.KindOverloaded, fmt.Errorf("more than %d bytes wait for the brokers", p.opt.MaxInFlight))
	}
	done := make(chan error, 1)
	p.calls.Go(func() {
		defer p.bytes.Release(bytes)
		done <- p.writer.WriteMessages(context.WithoutCancel(ctx), msgs...)
	})
	p.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close refuses new messages and waits for those in flight, at most until ctx ends.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		p.calls.Wait()
		err := p.writer.Close()
		p.pool.CloseIdleConnections()
		done <- err
	}()
	select {
	case err := <-done:
		return E("kafkaconn: close producer", err)
	case <-ctx.Done():
		return audit.E("kafkaconn: close producer", audit.KindUnavailable, ctx.Err())
	}
}

// messageSize is what a message takes in a batch, about: key, value, headers and some framing.
func messageSize(m kafka.Message) int {
	n := 32 + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += 10 + len(h.Key) + len(h.Value)
	}
	return n
}
