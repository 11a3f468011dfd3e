package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources/kafka"
)

// Subscriber implements [message.Subscriber] and [message.SubscribeInitializer]. It is safe for
// concurrent use. Each Subscribe is a member of its group of its own.
type Subscriber struct {
	conn kafkaconn.Config
	opt  SubscriberOptions

	mu      sync.Mutex
	closed  bool
	stop    context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // subscriptions

	partitions sync.Map // those that are handed out now, *partition
}

var (
	_ message.Subscriber           = (*Subscriber)(nil)
	_ message.SubscribeInitializer = (*Subscriber)(nil)
)

// NewSubscriber checks its options; it connects to nobody yet.
func NewSubscriber(conn kafkaconn.Config, opt SubscriberOptions) (*Subscriber, error) {
	if err := errors.Join(conn.Validate(), opt.validate()); err != nil {
		return nil, audit.E("bus: new subscriber", audit.KindInvalid, err)
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.OnError == nil {
		opt.OnError = func(string, error) {}
	}
	s := &Subscriber{conn: conn, opt: opt}
	s.stop, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Subscribe joins the group and returns at once; a topic that does not exist yet is waited for. The
// channel is closed after ctx ended or Close was called, and what was out was drained. The contexts
// of messages come from ctx and end with Ack, Nack and the drain.
func (s *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	const op = "bus: subscribe"
	cfg := kafka.DefaultConfig()
	cfg.Topic, cfg.Group, cfg.SessionTimeout = topic, s.opt.Group, sessionTimeout
	if cfg.Group == "" {
		if cfg.Group = kafkaconn.GroupOf(topic); cfg.Group == "" {
			return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("topic %s has no group of its own: name one", topic))
		}
	}
	source, err := kafka.New(s.conn, cfg, kafka.Options{Logger: s.opt.Logger, OnError: s.opt.OnError})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, audit.E(op, audit.KindUnavailable, errClosed)
	}
	run, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(s.stop, cancel) //nolint:contextcheck // run ends with ctx or with Close
	sub := &subscription{opt: s.opt, ctx: ctx, out: make(chan *message.Message), all: &s.partitions}
	s.running.Go(func() {
		defer close(sub.out)
		defer cancel()
		defer unlink()
		if err := source.Run(run, sub.serve); err != nil {
			s.opt.OnError("serve", err)
			s.opt.Logger.Error("a subscription ended", "topic", topic, "group", cfg.Group, "error", err.Error())
		}
	})
	return sub.out, nil
}

// SubscribeInitialize creates the topic when it is missing, with the settings of kafkaconn.Topics
// when it is one of ours.
func (s *Subscriber) SubscribeInitialize(topic string) error {
	want := kafkaconn.Topic{Name: topic, Partitions: max(1, s.opt.Partitions), Config: map[string]string{"message.timestamp.type": "LogAppendTime"}}
	for _, ours := range kafkaconn.Topics(want.Partitions) {
		if ours.Name == topic {
			want = ours
		}
	}
	_, err := kafkaconn.Ensure(s.stop, s.conn, []kafkaconn.Topic{want}, s.opt.Replication)
	return err
}

// Close ends all subscriptions, drains and commits what is out, leaves the groups and closes the
// channels; it takes at most about Drain and four seconds more. It may be called twice.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
	return nil
}

// Oldest is when the oldest message that was read and is not acknowledged came to the broker; zero when there is none.
func (s *Subscriber) Oldest() (came time.Time) {
	s.partitions.Range(func(p, _ any) bool {
		if at := p.(*partition).oldest(); !at.IsZero() && (came.IsZero() || at.Before(came)) {
			came = at
		}
		return true
	})
	return came
}
