// Package bus carries the low-volume, branching work over Kafka as watermill messages: a [Publisher]
// and a [Subscriber] for watermill's router and its middleware. The interactions themselves do not
// come this way (package pipeline reads them in batches): a message here costs some ten microseconds.
//
// What is promised, in the words of watermill's tests.Features; its suite runs on the embedded broker
// and on a real Kafka:
//
//   - ConsumerGroups, Persistent: each group gets every message, from the first one that the log
//     holds, and goes on where it stopped.
//   - GuaranteedOrder, for messages with one key: they share a partition, and of a partition one
//     message is out at a time, unless Ahead says more; the next one comes after its Ack. More work
//     at a time is more partitions. Without a key messages are spread and order means nothing.
//   - NewSubscriberReceivesOldMessages, for a subscriber with a group of its own: a group without a
//     position begins at the log's start, so that nothing that came before it joined is missed.
//   - Not ExactlyOnceDelivery: Ack lets the group's position move, a crash before the commit, at
//     most CommitEvery later, delivers again; a broker's lost answer may publish twice. Handlers are
//     idempotent by [Delivery]'s Origin or by the message's UUID.
//   - Not ContextPreserved: of a publisher's context only the W3C trace goes along.
//
// Nack delivers the message again after a pause that doubles from RetryMin to RetryMax, for ever:
// watermill's Retry and PoisonQueue decide when to give up. Positions are committed only inside the
// generation that fetched. Before partitions move and on Close the messages that are out get Drain to
// be acknowledged; what is not comes again elsewhere.
//
// Memory: what one fetch brought for each owned partition, at most about FetchBytes or one batch.
// Metadata are Kafka headers (the first one of a name counts), the UUID is watermill-kafka's header,
// so that both read each other; a record without it has the id that package audit derives from its
// place. Errors are audit.E, classed by what the caller does next, and hold nothing of a payload.
package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// SubscriberOptions is what the program sets. Start from DefaultSubscriberOptions.
type SubscriberOptions struct {
	// Group is the consumer group. "" means the one that the topic waits for, kafkaconn.GroupOf.
	// Subscribers of one group and one topic share its partitions.
	Group string
	// FetchBytes bounds what one fetch of a partition brings, but for one larger batch. Default 256 KiB.
	FetchBytes int
	// RetryMin and RetryMax bound the pause before a message is delivered again after Nack. Default
	// 100ms and 30s.
	RetryMin, RetryMax time.Duration
	// CommitEvery is how long acknowledged positions may wait for their commit. Default 100ms; 0
	// commits as fast as the broker answers.
	CommitEvery time.Duration
	// Drain is how long messages that are out may still be acknowledged when partitions move or the
	// subscriber closes. Default 4s; it must stay below half the session timeout of 10s, for kafka-go
	// sends no heartbeat while partitions move.
	Drain time.Duration
	// Ahead is how many messages of a partition may be out at once. Default 1: in order, the next when the last is acknowledged. With
	// more, whoever takes them may choose; what was acknowledged behind one that was not comes again when the partition moves. 1..10,000.
	Ahead int
	// Partitions and Replication are of topics that SubscribeInitialize creates. Default 1 and the
	// cluster's.
	Partitions, Replication int
	// Logger is told of trouble; nil is quiet.
	Logger *slog.Logger
	// OnError is told of every error that was retried or lived with: op is as in package
	// sources/kafka, or gap (offsets that the log no longer held) or serve. It must not block. nil is
	// quiet.
	OnError func(op string, err error)
}

// DefaultSubscriberOptions are for the work between people's and models' answers.
func DefaultSubscriberOptions() SubscriberOptions {
	return SubscriberOptions{
		FetchBytes: 256 << 10, RetryMin: 100 * time.Millisecond, RetryMax: 30 * time.Second,
		CommitEvery: 100 * time.Millisecond, Drain: 4 * time.Second, Ahead: 1, Partitions: 1, Replication: -1,
	}
}

// sessionTimeout is the one of package sources/kafka's default.
const sessionTimeout = 10 * time.Second

func (o SubscriberOptions) validate() error {
	var errs []error
	if o.FetchBytes < 1<<10 {
		errs = append(errs, fmt.Errorf("fetch bytes: %d is below 1024", o.FetchBytes))
	}
	if o.RetryMin <= 0 || o.RetryMax < o.RetryMin {
		errs = append(errs, fmt.Errorf("retry: wants 0 < min <= max, has %v and %v", o.RetryMin, o.RetryMax))
	}
	if o.Ahead < 1 || o.Ahead > 10_000 {
		errs = append(errs, fmt.Errorf("ahead: %d is not in 1..10000", o.Ahead))
	}
	if o.CommitEvery < 0 {
		errs = append(errs, fmt.Errorf("commit every: %v is negative", o.CommitEvery))
	}
	if o.Drain < 0 || o.Drain >= sessionTimeout/2 {
		errs = append(errs, fmt.Errorf("drain: %v is not in 0..%v", o.Drain, sessionTimeout/2))
	}
	return errors.Join(errs...)
}

// PublisherOptions is what the program sets. Start from DefaultPublisherOptions.
type PublisherOptions struct {
	// Producer bounds memory, the size of a message and how long brokers may be away.
	Producer kafkaconn.ProducerOptions
	// OnError is told of every error that was retried. It must not block. nil is quiet.
	OnError func(err error)
}

// DefaultPublisherOptions are those of a front door.
func DefaultPublisherOptions() PublisherOptions {
	return PublisherOptions{Producer: kafkaconn.DefaultProducerOptions()}
}
