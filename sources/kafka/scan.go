package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
)

// scanTimeout bounds the wait for an answer of the brokers while a log is scanned.
const scanTimeout = 30 * time.Second

// Scanner reads topics without a group: for checks that look at what a log holds. Close it.
type Scanner struct {
	conn kafkaconn.Config
	log  reader
	free func()
}

// NewScanner connects to nobody yet; a faulty configuration is of KindInvalid.
func NewScanner(conn kafkaconn.Config) (*Scanner, error) {
	client, free, err := conn.Client()
	if err != nil {
		return nil, audit.E("sources/kafka: scan", audit.KindInvalid, err)
	}
	transport, err := conn.Transport()
	if err != nil {
		free()
		return nil, audit.E("sources/kafka: scan", audit.KindInvalid, err)
	}
	s := &Scanner{conn: conn, log: reader{transport: transport, addr: kafka.TCP(conn.Brokers...), client: client, onError: func(string, error) {}}}
	s.free = func() { transport.CloseIdleConnections(); free() }
	return s, nil
}

// Close ends the connections.
func (s *Scanner) Close() { s.free() }

// Partitions counts the partitions of a topic.
func (s *Scanner) Partitions(ctx context.Context, topic string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	res, err := s.log.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err == nil && len(res.Topics) != 1 {
		err = kafka.UnknownTopicOrPartition
	}
	if err == nil {
		err = res.Topics[0].Error
	}
	if err != nil {
		return 0, kafkaconn.E("sources/kafka: partitions of "+topic, err)
	}
	return len(res.Topics[0].Partitions), nil
}

// Positions gives a group's committed offsets by partition; those without one are left out.
func (s *Scanner) Positions(ctx context.Context, topic, group string) (map[int]int64, error) {
	const op = "sources/kafka: positions"
	n, err := s.Partitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	parts := make([]int, n)
	for i := range parts {
		parts[i] = i
	}
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	res, err := s.log.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: parts}})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return nil, kafkaconn.E(op, err)
	}
	at := map[int]int64{}
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			return nil, kafkaconn.E(op, p.Error)
		}
		if p.CommittedOffset >= 0 {
			at[p.Partition] = p.CommittedOffset
		}
	}
	return at, nil
}

// Bounds gives a partition's first offset and the one after its last record.
func (s *Scanner) Bounds(ctx context.Context, topic string, partition int) (start, end int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	log := s.log
	log.topic = topic
	return log.bounds(ctx, partition)
}

// Scan hands the records of [from, to) to f in order; holes are left out. What the log drops while it
// is read is left out too.
func (s *Scanner) Scan(ctx context.Context, topic string, partition int, from, to int64, f func(sources.Record)) error {
	log := s.log
	log.topic = topic
	for moved := time.Now(); from < to; {
		fctx, cancel := context.WithTimeout(ctx, scanTimeout)
		c, err := log.fetch(fctx, partition, from, 4<<20)
		cancel()
		var out *sources.OutOfRangeError
		switch {
		case errors.As(err, &out) && out.Start > from:
			from = out.Start
			continue
		case err != nil:
			return err
		case c.Next == from && time.Since(moved) > scanTimeout:
			return audit.E("sources/kafka: scan", audit.KindUnavailable, fmt.Errorf("%s/%d: nothing comes from offset %d on; an open transaction may hold it back", topic, partition, from))
		}
		if c.Next > from {
			moved = time.Now()
		}
		for i := range c.Records {
			if c.Records[i].Offset < to {
				f(c.Records[i])
			}
		}
		from = c.Next
	}
	return nil
}
