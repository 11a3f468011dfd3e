package bus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// Publisher implements [message.Publisher]. It is safe for concurrent use.
type Publisher struct {
	opt      PublisherOptions
	producer *kafkaconn.Producer
	stop     context.Context // ends with Close
	cancel   context.CancelFunc
	closing  sync.Once
	closed   error // of the first Close
}

var _ message.Publisher = (*Publisher)(nil)

// NewPublisher builds a publisher; it connects with the first message.
func NewPublisher(conn kafkaconn.Config, opt PublisherOptions) (*Publisher, error) {
	const op = "bus: new publisher"
	if err := conn.Validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	producer, err := kafkaconn.NewProducer(conn, opt.Producer)
	if err != nil {
		return nil, err
	}
	if opt.OnError == nil {
		opt.OnError = func(error) {}
	}
	p := &Publisher{opt: opt, producer: producer}
	p.stop, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

const opPublish = "bus: publish"

// Publish sends the messages and returns after all in-sync replicas acknowledged them. Messages with
// one key keep their order. While brokers or the topic are away it waits, at most Patience. After an
// error some of the messages may have been taken and may come twice when they are published again;
// the error's kind says whether that may help. The context of any of the messages ends the call.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	if p.stop.Err() != nil {
		return audit.E(opPublish, audit.KindUnavailable, errClosed)
	}
	ctx, release := allOf(messages)
	defer release()
	for len(messages) > 0 {
		records, size := make([]kafka.Message, 0, len(messages)), int64(0)
		for _, m := range messages {
			r := encode(topic, m)
			if size += int64(len(r.Key) + len(r.Value)); len(records) > 0 && size > p.opt.Producer.MaxInFlight/4 {
				break
			}
			records = append(records, r)
		}
		if err := p.send(ctx, records); err != nil {
			return err
		}
		messages = messages[len(records):]
	}
	return nil
}

var errClosed = errors.New("it is closed")

// send produces records. The producer itself tries again what it has queued, in order; here only what
// it did not even queue is tried again, so that nothing overtakes.
func (p *Publisher) send(ctx context.Context, records []kafka.Message) error {
	deadline := time.Now().Add(p.opt.Producer.Patience)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := p.producer.Produce(ctx, records)
		var each kafkaconn.MessageErrors
		switch kind := audit.KindOf(err); {
		case err == nil:
			return nil
		case errors.As(err, &each), kind == audit.KindInvalid, ctx.Err() != nil, time.Now().Add(wait).After(deadline):
			return audit.E(opPublish, kind, err)
		}
		p.opt.OnError(err)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-p.stop.Done():
			t.Stop()
			return audit.E(opPublish, audit.KindUnavailable, errClosed)
		}
		t.Stop()
	}
}

// Close refuses new messages and waits for those under way, at most Patience. It may be called twice.
func (p *Publisher) Close() error {
	p.closing.Do(func() {
		p.cancel()
		ctx, cancel := context.WithTimeout(context.Background(), p.opt.Producer.Patience)
		defer cancel()
		p.closed = p.producer.Close(ctx)
	})
	return p.closed
}

// allOf is a context that ends when that of any message does.
func allOf(messages []*message.Message) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	release := []func(){cancel}
	var last context.Context
	for _, m := range messages {
		if c := m.Context(); c.Done() != nil && c != last { // mostly one context, or none that ends
			last = c
			stop := context.AfterFunc(c, cancel)
			release = append(release, func() { stop() })
		}
	}
	return ctx, func() {
		for _, f := range release {
			f()
		}
	}
}
