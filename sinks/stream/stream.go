// Package stream publishes to Kafka what the pipeline found: one message a verdict to
// bias.audit.stream, what could not be decoded to the dead-letter topic, and what people said about it to
// evenhand.feedback.
//
// All calls return after all in-sync replicas acknowledged, and may deliver twice: consumers of the
// stream keep the newest message of an audit_id, dead letters carry the id that the event would have
// had. Of a call that failed in part only the failed messages are sent again, a few times; then the
// error goes to the caller with its class. A batch that is larger than the topic takes is cut until it fits; a message
// that does not fit alone is an error that names the topic's setting. No error holds a message's content.
//
// The stream's messages are JSON with exactly the names of seed 003, section 4.4.5, encoded by hand:
// one message costs about a microsecond and no reflection.
package stream

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/failpoint"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sinks"
)

// Config says where to publish. Start from DefaultConfig.
type Config struct {
	// Stream is the topic of the verdicts. Default "bias.audit.stream".
	Stream string `yaml:"stream"`
	// DeadLetters is the topic of what could not be decoded. Default "llm.interactions.dlq".
	DeadLetters string `yaml:"dead_letters"`
	// Feedback is the topic of what people said. Default "evenhand.feedback".
	Feedback string `yaml:"feedback"`
}

// DefaultConfig names the topics of kafkaconn.Topics.
func DefaultConfig() Config {
	return Config{Stream: kafkaconn.AuditStream, DeadLetters: kafkaconn.DeadLetters, Feedback: kafkaconn.Feedback}
}

// Options is what the program sets.
type Options struct {
	// Group is the consumer group that met the dead letters (header subscriber_poisoned). Default
	// kafkaconn.PipelineGroup.
	Group string
	// OnError is told of every error that was retried: op is publish or dead_letter.
	OnError func(op string, err error)

	now func() time.Time // for tests; nil is time.Now
}

const (
	maxDeadMessage = 3 << 20         // what is larger is cut, see fit
	rounds         = 4               // of sending what failed, on top of the producer's own attempts
	patience       = 2 * time.Second // of a round
	messagesAtOnce = 50_000          // of one call to the producer
)

// Publisher implements [sinks.Publisher]. It is safe for concurrent use.
type Publisher struct {
	cfg      Config
	opt      Options
	producer *kafkaconn.Producer
}

var _ sinks.Publisher = (*Publisher)(nil)

// New builds a publisher; it connects with the first message.
func New(conn kafkaconn.Config, cfg Config, opt Options) (*Publisher, error) {
	const op = "sinks/stream: new"
	if cfg.Stream == "" || cfg.DeadLetters == "" || cfg.Feedback == "" {
		return nil, audit.E(op, audit.KindInvalid, errors.New("kafka.stream, kafka.dead_letters, kafka.feedback: name all topics"))
	}
	// What is in flight the callers bound, and what is too large the brokers say.
	producer, err := kafkaconn.NewProducer(conn, kafkaconn.ProducerOptions{MaxInFlight: math.MaxInt64, MaxMessage: kafkaconn.MaxDeadLetterBatch, Patience: patience})
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if opt.Group == "" {
		opt.Group = kafkaconn.PipelineGroup
	}
	if opt.OnError == nil {
		opt.OnError = func(string, error) {}
	}
	if opt.now == nil {
		opt.now = time.Now
	}
	return &Publisher{cfg: cfg, opt: opt, producer: producer}, nil
}

// Publish implements [sinks.Publisher]: one message an event, with the audit id as its key.
func (p *Publisher) Publish(ctx context.Context, events []audit.StreamEvent) error {
	const op = "sinks/stream: publish"
	for len(events) > 0 {
		n := min(len(events), messagesAtOnce)
		if err := p.send(ctx, op, "publish", p.cfg.Stream, messages(events[:n])); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// DeadLetter implements [sinks.Publisher]: each message with its key, value and headers as they were,
// and headers that tell what was wrong with it.
func (p *Publisher) DeadLetter(ctx context.Context, rejected []audit.Rejected) error {
	if len(rejected) == 0 {
		return nil
	}
	now := p.opt.now()
	msgs := make([]kafka.Message, len(rejected))
	for i := range rejected {
		msgs[i] = deadLetter(&rejected[i], p.opt.Group, now)
	}
	if err := p.send(ctx, "sinks/stream: dead letter", "dead_letter", p.cfg.DeadLetters, msgs); err != nil {
		return err
	}
	failpoint.Hit(failpoint.DeadLetters, "")
	return nil
}

// Opinions sends what people said, one message each, with the interaction's id as its key.
func (p *Publisher) Opinions(ctx context.Context, os []audit.Opinion) error {
	const op = "sinks/stream: opinions"
	msgs := make([]kafka.Message, len(os))
	for i := range os {
		m, err := opinion(&os[i])
		if err != nil {
			return audit.E(op, audit.KindInternal, err)
		}
		msgs[i] = m
	}
	return p.send(ctx, op, "opinions", p.cfg.Feedback, msgs)
}

// Close waits for what is being written, at most until ctx ends.
func (p *Publisher) Close(ctx context.Context) error {
	return p.producer.Close(ctx)
}

// send writes messages to a topic and sends the failed ones again while that may help.
func (p *Publisher) send(ctx context.Context, op, name, topic string, msgs []kafka.Message) error {
	for i := range msgs {
		msgs[i].Topic = topic
	}
	for round := 1; ; round++ {
		err := p.producer.Produce(ctx, msgs)
		if err == nil {
			return nil
		}
		p.opt.OnError(name, err)
		kind := kafkaconn.Class(err)
		if ctx.Err() != nil || round == rounds || kind == audit.KindInvalid || kind == audit.KindOverloaded {
			return audit.E(op, kind, err)
		}
		msgs = failed(msgs, err)
		d := 100 * time.Millisecond << round
		t := time.NewTimer(d - time.Duration(rand.Int64N(int64(d)/2)))
		select {
		case <-ctx.Done():
			t.Stop()
			return audit.E(op, audit.KindUnavailable, err)
		case <-t.C:
		}
	}
}

// failed keeps the messages that were not acknowledged; all of them when err does not tell.
func failed(msgs []kafka.Message, err error) []kafka.Message {
	var each kafkaconn.MessageErrors
	if !errors.As(err, &each) || len(each) != len(msgs) {
		return msgs
	}
	var again []kafka.Message
	for i, err := range each {
		if err != nil {
			again = append(again, msgs[i])
		}
	}
	return again
}
