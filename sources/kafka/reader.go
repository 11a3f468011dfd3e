package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"

	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sources"
)

const (
	maxWait      = 250 * time.Millisecond // of an empty fetch at the broker
	fetchTimeout = 5 * time.Second        // of a request: a hung broker must not hold a partition for ever
)

// reader reads partitions of one topic.
type reader struct {
	topic     string
	transport *kafka.Transport
	client    *kafka.Client
	addr      net.Addr
	onError   func(op string, err error)
}

// fetch reads from offset on. What can be retried is, until ctx ends.
func (r *reader) fetch(ctx context.Context, partition int, offset int64, maxBytes int) (sources.Chunk, error) {
	for fails := 1; ; fails++ {
		p, err := r.fetchOnce(ctx, partition, offset, maxBytes)
		if err == nil {
			chunk, err := decodeChunk(p, partition, offset)
			if err != nil { // counted; the chunk holds a record that stands for the bad batch
				r.onError("decode", err)
			}
			return chunk, nil
		}
		if ctx.Err() != nil {
			return sources.Chunk{}, kafkaconn.E("sources/kafka: fetch", context.Cause(ctx))
		}
		r.onError("fetch", err)
		if errors.Is(err, kafka.OffsetOutOfRange) {
			start, end, err := r.bounds(ctx, partition)
			if err != nil {
				return sources.Chunk{}, err
			}
			if offset < start || offset > end {
				return sources.Chunk{}, &sources.OutOfRangeError{Asked: offset, Start: start, End: end}
			}
			// The bounds moved meanwhile and hold the offset now.
		}
		if !wait.For(ctx, wait.Backoff(firstWait, fails)) {
			return sources.Chunk{}, kafkaconn.E("sources/kafka: fetch", context.Cause(ctx))
		}
	}
}

func (r *reader) fetchOnce(ctx context.Context, partition int, offset int64, maxBytes int) (*fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	const readCommitted = 1
	req := &fetchRequest{Request: fetch.Request{
		ReplicaID: -1, MaxWaitTime: int32(maxWait / time.Millisecond), MinBytes: 1, MaxBytes: int32(maxBytes),
		IsolationLevel: readCommitted, SessionID: 0, SessionEpoch: -1, // -1: no fetch session
		Topics: []fetch.RequestTopic{{Topic: r.topic, Partitions: []fetch.RequestPartition{{
			Partition: int32(partition), CurrentLeaderEpoch: -1, FetchOffset: offset, LogStartOffset: -1, PartitionMaxBytes: int32(maxBytes),
		}}}},
	}}
	res, err := r.transport.RoundTrip(ctx, r.addr, req)
	if err != nil {
		return nil, err
	}
	p := res.(*fetched)
	if p.code != 0 {
		return nil, kafka.Error(p.code)
	}
	return p, nil
}

// bounds asks for the first offset and the one after the last record, until ctx ends.
func (r *reader) bounds(ctx context.Context, partition int) (start, end int64, err error) {
	for fails := 1; ; fails++ {
		start, end, err = r.boundsOnce(ctx, partition)
		if err == nil {
			return start, end, nil
		}
		if ctx.Err() == nil {
			r.onError("bounds", err)
		}
		if !wait.For(ctx, wait.Backoff(firstWait, fails)) {
			return 0, 0, kafkaconn.E("sources/kafka: bounds", context.Cause(ctx))
		}
	}
}

func (r *reader) boundsOnce(ctx context.Context, partition int) (start, end int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	res, err := r.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		r.topic: {kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition)},
	}})
	if err != nil {
		return 0, 0, err
	}
	for _, p := range res.Topics[r.topic] {
		if p.Partition == partition {
			return p.FirstOffset, p.LastOffset, p.Error
		}
	}
	return 0, 0, errors.New("the broker's answer lacks the partition")
}

// fetchRequest is kafka-go's fetch request with an answer of our own: kafka-go's drops the batches'
// maximum timestamp, which is the broker's time, and their producers, which tell what was aborted.
type fetchRequest struct {
	fetch.Request
	version int16 // negotiated on the connection in use
}

// fetched is the answer for the one partition asked for.
type fetched struct {
	code    int16
	end     int64 // the high watermark
	aborted []abortedTxn
	records []byte // record batches, the last one possibly cut
}

// abortedTxn says that the producer's transactional records from first on, up to its next control
// record, were aborted.
type abortedTxn struct{ producer, first int64 }

func (*fetched) ApiKey() protocol.ApiKey { return protocol.Fetch }

const (
	minFetchVersion = 4  // record batches of today's format
	maxFetchVersion = 11 // the last one before flexible encoding
	maxAnswer       = 1 << 30
)

// Required tells kafka-go's connection that this request speaks for itself, and learns the version
// that both sides know. The connection calls it right before RawExchange.
func (q *fetchRequest) Required(versions map[protocol.ApiKey]int16) bool {
	q.version = min(versions[protocol.Fetch], maxFetchVersion)
	return true
}

// RawExchange writes the request on a connection and reads its answer.
func (q *fetchRequest) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if q.version < minFetchVersion {
		return nil, fmt.Errorf("the broker speaks version %d of fetch, 4 is needed (Kafka 0.11)", q.version)
	}
	const correlation = 1 // one request at a time on a connection
	if err := protocol.WriteRequest(rw, q.version, correlation, "evenhand", &q.Request); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(rw, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 4 || size > maxAnswer {
		return nil, fmt.Errorf("the broker answers with %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(rw, body); err != nil {
		return nil, err
	}
	return decodeFetched(body, q.version)
}
