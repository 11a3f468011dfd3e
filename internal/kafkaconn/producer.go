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
	// Patience is how long a message is tried while brokers cannot take it, and how long a call waits without any
	// acknowledgement, whatever is under way before it. 0 tries once.
	Patience time.Duration
	// Transport are connections that others made, which Close leaves open but for the idle ones; nil makes them of Config.
	Transport *kafka.Transport
}

// patience is how long a call waits without any acknowledgement.
func (o ProducerOptions) patience() time.Duration {
	if o.Patience > 0 {
		return o.Patience
	}
	return requestTimeout
}

// DefaultProducerOptions are for a front door: 64 MiB in flight, messages up to MaxMessage, 20 s.
func DefaultProducerOptions() ProducerOptions {
	return ProducerOptions{MaxInFlight: 64 << 20, MaxMessage: MaxMessage, Patience: 20 * time.Second}
}

// Producer writes messages to the topics that they name and waits for all in-sync replicas. It is
// for many callers with few messages and for few with many: per partition one request is under way, and what
// comes meanwhile goes together into the next. So nobody waits for company on a quiet log, and a slow
// broker gets larger batches instead of a longer queue. (kafka-go's Writer cuts batches by the clock:
// with one message a call it sends about one message a round trip. And it hands back a batch that is larger than its
// topic's max.message.bytes, though each message would fit.)
//
// The key decides the partition, as kafka-go's Hash does; without a key they take turns. A message
// may arrive twice when an answer is lost: events carry their own id for that.
type Producer struct {
	opt     ProducerOptions
	client  *kafka.Client
	codec   kafka.Compression
	release func()
	bytes   *semaphore.Weighted
	balance kafka.Hash

	mu      sync.Mutex
	closed  bool
	queues  map[place]*queue
	topics  map[string]layout
	limits  map[string]limit // by topic
	workers sync.WaitGroup
	stop    context.Context // ends when Close has waited long enough
	giveUp  context.CancelFunc
}

type place struct {
	topic     string
	partition int
}

// layout is a topic's partitions, as known at a time.
type layout struct {
	partitions []int
	at         time.Time
}

// NewProducer builds a producer; it connects with the first message.
func NewProducer(cfg Config, opt ProducerOptions) (*Producer, error) {
	t := opt.Transport
	if t == nil {
		var err error
		if t, err = cfg.Transport(); err != nil {
			return nil, audit.E("kafkaconn: new producer", audit.KindInvalid, err)
		}
	}
	cl, release := cfg.clientOn(t)
	p := &Producer{
		opt: opt, client: cl, codec: codecs[cfg.Compression], release: release, bytes: semaphore.NewWeighted(opt.MaxInFlight),
		queues: map[place]*queue{}, topics: map[string]layout{}, limits: map[string]limit{},
	}
	p.stop, p.giveUp = context.WithCancel(context.Background())
	return p, nil
}

const opProduce = "kafkaconn: produce"

// Produce returns once every message is acknowledged. Errors are classed: overloaded at once when too
// much is in flight or the log is full, invalid for messages that are too large (the others of the
// call are sent). When some failed, errors.As finds a [MessageErrors] with one entry a message. When
// ctx ends first, or nothing is acknowledged for as long as patience lasts, messages may still arrive; their byte slices
// must not be changed.
func (p *Producer) Produce(ctx context.Context, msgs []kafka.Message) error {
	errs := make(MessageErrors, len(msgs))
	var total int64
	for i := range msgs {
		n := messageSize(&msgs[i])
		if n > p.opt.MaxMessage {
			errs[i] = audit.E(opProduce, audit.KindInvalid, fmt.Errorf("the message has %d bytes, at most %d are taken", n, p.opt.MaxMessage))
			continue
		}
		total += int64(n)
	}
	if total == 0 {
		return errs.reduce()
	}
	if !p.bytes.TryAcquire(total) {
		return audit.E(opProduce, audit.KindOverloaded, fmt.Errorf("more than %d bytes wait for the brokers", p.opt.MaxInFlight))
	}
	late := time.NewTimer(p.opt.patience())
	defer late.Stop()
	waiting, err := p.enqueue(ctx, msgs, errs)
	if err != nil {
		p.bytes.Release(total)
		return err
	}
	for _, s := range waiting {
		select {
		case <-s.done:
			for j, i := range s.index {
				errs[i] = s.errs[j]
			}
			late.Reset(p.opt.patience())
		case <-late.C:
			for _, s := range waiting {
				s.late.Store(true)
			}
			return audit.E(opProduce, audit.KindUnavailable, fmt.Errorf("the brokers acknowledged nothing for %v", p.opt.patience()))
		case <-ctx.Done():
			return audit.E(opProduce, audit.KindUnavailable, ctx.Err())
		}
	}
	return errs.reduce()
}

// enqueue cuts the messages that have no error yet into shares by partition and queues them. On an
// error nothing was queued.
func (p *Producer) enqueue(ctx context.Context, msgs []kafka.Message, errs MessageErrors) ([]*share, error) {
	open := map[place]*share{}
	var all []*share
	var at []place
	for i := range msgs {
		if errs[i] != nil {
			continue
		}
		partitions, err := p.partitions(ctx, msgs[i].Topic)
		if err != nil {
			return nil, E(opProduce, err)
		}
		where := place{msgs[i].Topic, p.balance.Balance(msgs[i], partitions...)}
		n := messageSize(&msgs[i])
		s := open[where]
		if s == nil || s.bytes+n > maxRequest {
			s = &share{done: make(chan struct{})}
			open[where] = s
			all, at = append(all, s), append(at, where)
		}
		s.msgs, s.index, s.bytes = append(s.msgs, msgs[i]), append(s.index, i), s.bytes+n
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, audit.E(opProduce, audit.KindUnavailable, errors.New("the producer is closed"))
	}
	for i, s := range all {
		q := p.queues[at[i]]
		if q == nil {
			q = &queue{}
			p.queues[at[i]] = q
		}
		q.waiting = append(q.waiting, s)
		if !q.running { // a worker lives as long as its queue holds something
			q.running = true
			p.workers.Go(func() { p.work(at[i], q) }) //nolint:contextcheck // it outlives the call; Close ends it
		}
	}
	return all, nil
}

// partitions asks which partitions a topic has, at most every few seconds.
func (p *Producer) partitions(ctx context.Context, topic string) ([]int, error) {
	p.mu.Lock()
	known, ok := p.topics[topic]
	p.mu.Unlock()
	if ok && time.Since(known.at) < metadataTTL {
		return known.partitions, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := p.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err == nil && len(res.Topics) != 1 {
		err = kafka.UnknownTopicOrPartition
	}
	if err == nil {
		err = res.Topics[0].Error
	}
	if err == nil && len(res.Topics[0].Partitions) == 0 {
		err = kafka.LeaderNotAvailable
	}
	switch {
	case err != nil && ok: // the brokers are away: what was known is a good guess
		return known.partitions, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", topic, err)
	}
	known = layout{at: time.Now()}
	for i := range res.Topics[0].Partitions {
		known.partitions = append(known.partitions, i)
	}
	p.mu.Lock()
	p.topics[topic] = known
	p.mu.Unlock()
	return known.partitions, nil
}

// Close refuses new messages and waits for those in flight, at most until ctx ends; then it gives them
// up. It may be called twice.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { p.workers.Wait(); p.release(); close(done) }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = audit.E("kafkaconn: close producer", audit.KindUnavailable, ctx.Err())
	}
	p.giveUp()
	return err
}

// messageSize is what a message takes in a batch, about: key, value, headers and some framing.
func messageSize(m *kafka.Message) int {
	n := 32 + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += 10 + len(h.Key) + len(h.Value)
	}
	return n
}
