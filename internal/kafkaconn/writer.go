package kafkaconn

import (
	"time"

	"github.com/segmentio/kafka-go"
)

// NewWriter is a kafka-go writer for few callers with many messages each: acknowledged by all in-sync
// replicas, compressed as configured, the key decides the partition, a bounded number of attempts. A batch that is not
// full waits for linger; batchBytes is the most that a batch holds.
func NewWriter(cfg Config, t *kafka.Transport, linger time.Duration, batchBytes int64) *kafka.Writer {
	return &kafka.Writer{
		Addr: kafka.TCP(cfg.Brokers...), Transport: t, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
		Compression: codecs[cfg.Compression], BatchTimeout: linger, BatchSize: 10_000, BatchBytes: batchBytes,
		MaxAttempts: 5, WriteBackoffMin: 100 * time.Millisecond, WriteBackoffMax: time.Second,
		ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
	}
}
