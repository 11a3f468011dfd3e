package kafka

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go/compress"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// maxInflated bounds what one batch may be unpacked to, in bytes: a batch is at most some megabytes
// and a compressor may claim a thousandfold.
const maxInflated = 128 << 20

var errInflated = fmt.Errorf("a batch unpacks to more than %d MiB", maxInflated>>20)

// decodeChunk turns an answer into records from offset on. An error is about one batch that could
// not be decoded: the chunk then ends with a record at the batch's place that bears
// [UndecodableHeader], so that it is rejected and the partition does not stand still. Only an answer
// whose framing is broken yields an empty chunk.
func decodeChunk(f *fetched, partition int, offset int64) (sources.Chunk, error) {
	c := sources.Chunk{Partition: partition, From: offset, Next: offset, End: f.end}
	slices.SortFunc(f.aborted, func(a, b abortedTxn) int { return cmp.Compare(a.first, b.first) })
	dead := abortions{open: f.aborted}
	for rest := f.records; ; {
		b, next, ok, err := nextBatch(rest)
		if err != nil || !ok {
			return c, err
		}
		rest = next
		if b.last < offset { // compaction leaves such
			continue
		}
		hole := dead.covers(&b) || b.attributes&control != 0
		if !hole {
			if err := appendRecords(&c, &b, offset); err != nil {
				c.Records = append(c.Records, undecodable(&b, max(b.base, offset), err))
				c.Next = b.last + 1
				return c, fmt.Errorf("partition %d, offsets %d to %d: %w", partition, b.base, b.last, err)
			}
		}
		c.Next = b.last + 1
	}
}

// appendRecords decodes a batch. On an error nothing of it was appended.
func appendRecords(c *sources.Chunk, b *batch, from int64) error {
	if !b.intact() {
		return errors.New("the batch's checksum is wrong")
	}
	payload, err := b.inflate()
	if err != nil {
		return err
	}
	at := time.UnixMilli(b.maxTimestamp).UTC()
	d := decoder{b: payload}
	kept, last := len(c.Records), b.base-1
	// The count comes from the sender: it may not size memory by itself. A record has 7 bytes or more.
	// Grow at least doubles: an answer may hold thousands of batches of one record.
	c.Records = slices.Grow(c.Records, min(int(b.count), len(payload)/7+1))
	for range b.count {
		d.varint() // length
		d.take(1)  // attributes
		d.varint() // timestamp, as the producer had it
		r := sources.Record{Offset: b.base + d.varint(), Time: at, Key: d.varbytes(), Value: d.varbytes()}
		tick := false
		for n := d.varint(); n > 0 && d.err == nil; n-- {
			key := string(d.varbytes())
			r.Headers = append(r.Headers, audit.Header{Key: key, Value: d.varbytes()})
			tick = tick || key == TickHeader
		}
		if d.err != nil || r.Offset <= last || r.Offset > b.last {
			c.Records = c.Records[:kept]
			return errMalformed
		}
		last = r.Offset
		if r.Offset >= from && !tick {
			c.Records = append(c.Records, r)
		}
	}
	return nil
}

func (b *batch) inflate() ([]byte, error) {
	kind := compress.Compression(b.attributes & codecMask)
	if kind == compress.None {
		return b.payload, nil
	}
	codec := kind.Codec()
	if codec == nil {
		return nil, fmt.Errorf("unknown compression %d", kind)
	}
	r := codec.NewReader(bytes.NewReader(b.payload))
	defer func() { _ = r.Close() }()
	out := scratch.Get().(*bytes.Buffer)
	out.Reset()
	n, err := io.Copy(out, io.LimitReader(r, maxInflated+1))
	defer func() {
		if out.Cap() <= maxScratch {
			scratch.Put(out)
		}
	}()
	switch {
	case n > maxInflated:
		return nil, errInflated
	case err != nil:
		return nil, fmt.Errorf("%s: %w", codec.Name(), err)
	}
	return bytes.Clone(out.Bytes()), nil
}

// scratch holds buffers to unpack into: what is unpacked is of unknown size, and growing a fresh
// buffer each time costs more than unpacking.
var scratch = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxScratch = 8 << 20 // larger buffers are not kept

func undecodable(b *batch, offset int64, err error) sources.Record {
	return sources.Record{
		Offset: offset, Time: time.UnixMilli(b.maxTimestamp).UTC(),
		Headers: []audit.Header{{Key: UndecodableHeader, Value: []byte(err.Error())}},
	}
}

// abortions tells the batches of aborted transactions: those of a producer from the transaction's
// first offset on up to that producer's next control batch.
type abortions struct {
	open []abortedTxn // not reached yet, ordered by first offset
	now  map[int64]bool
}

func (a *abortions) covers(b *batch) bool {
	if b.attributes&transactional == 0 {
		return false
	}
	for len(a.open) > 0 && a.open[0].first <= b.last {
		if a.now == nil {
			a.now = map[int64]bool{}
		}
		a.now[a.open[0].producer] = true
		a.open = a.open[1:]
	}
	if b.attributes&control != 0 {
		delete(a.now, b.producer)
		return false
	}
	return a.now[b.producer]
}
