package kafka

import (
	"context"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
)

// Log reads the partitions of one topic without a group: for readers that keep their own position. It
// is safe for concurrent use.
type Log struct{ r *reader }

// NewLog builds a reader of topic; it connects with the first call. onError is told of every error
// that was retried, as [Options.OnError]; nil is quiet.
func NewLog(conn kafkaconn.Config, topic string, onError func(op string, err error)) (*Log, error) {
	const op = "sources/kafka: new log"
	if err := conn.Validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	transport, err := conn.Transport()
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if onError == nil {
		onError = func(string, error) {}
	}
	addr := kafka.TCP(conn.Brokers...)
	return &Log{&reader{
		topic: topic, transport: transport, addr: addr, onError: onError,
		client: &kafka.Client{Addr: addr, Transport: transport, Timeout: fetchTimeout},
	}}, nil
}

// Fetch is as [sources.Generation]'s.
func (l *Log) Fetch(ctx context.Context, partition int, offset int64, maxBytes int) (sources.Chunk, error) {
	return l.r.fetch(ctx, partition, offset, maxBytes)
}

// Bounds is as [sources.Generation]'s.
func (l *Log) Bounds(ctx context.Context, partition int) (start, end int64, err error) {
	return l.r.bounds(ctx, partition)
}

// Close lets go of idle connections.
func (l *Log) Close() { l.r.transport.CloseIdleConnections() }
