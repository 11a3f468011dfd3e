package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/failpoint"
	"github.com/evenhand/evenhand/internal/priority"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sources"
)

// item is what one message became: a record or a rejection.
type item struct {
	edge     sinks.Edge
	bytes    int64
	day      int64 // days since 1970 of the partition its rows go to
	record   audit.Record
	rejected *audit.Rejected
}

// decode turns a chunk into items, in offset order, on the workers over contiguous slices. It gives
// up with nil when ctx ends.
func (p *Pipeline) decode(ctx context.Context, topic string, epoch int32, ch sources.Chunk) []item {
	items := make([]item, len(ch.Records))
	one := func(i int) {
		if ctx.Err() != nil {
			return
		}
		r := &ch.Records[i]
		o := audit.Origin{Topic: topic, Epoch: epoch, Partition: ch.Partition, Offset: r.Offset, BrokerTime: r.Time}
		it := &items[i]
		it.edge, it.bytes = edgeOf(r), sizeOf(r)
		in, rej := p.Decode(*r, o)
		if rej != nil {
			it.rejected, it.day = rej, r.Time.Unix()/86400
		} else {
			it.record = audit.Record{Origin: o, Interaction: in, Verdict: p.Analyze(ctx, in)}
			if p.Keep != nil {
				it.record = p.Keep(ctx, it.record)
			}
			it.day = in.Time.Unix() / 86400
		}
		*r = sources.Record{} // the bytes are let go
	}
	const least = 64 // fewer messages are not worth another goroutine
	workers := max(1, min(p.cfg.Workers, len(items)/least))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			priority.Lower() // who waits for an answer comes before what is audited afterwards
			for i := len(items) * w / workers; i < len(items)*(w+1)/workers; i++ {
				one(i)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	failpoint.Hit(failpoint.Decoded, "")
	return items
}

// sizeOf is what a message counts in BatchBytes and BufferBytes.
func sizeOf(r *sources.Record) int64 { return int64(len(r.Value) + len(r.Key)) }

// batch is one contiguous range a partition, growing.
type batch struct {
	sinks.Batch
	oldest time.Time
	filled time.Duration

	s      *session
	born   time.Time
	bytes  int64
	days   map[int64]struct{}
	ranges map[int]*sinks.Marker
	order  []int // partitions in the order they came
}

func (s *session) newBatch() *batch {
	return &batch{s: s, days: map[int64]struct{}{}, ranges: map[int]*sinks.Marker{}}
}

func (b *batch) empty() bool { return len(b.ranges) == 0 }

// mixedDays is from how many event days on a batch may hold twice as much: in tables with a partition a
// day each day of a batch is a part of its own, and making one costs as much as some hundred rows.
const mixedDays = 8

// full tells whether the item belongs into the next batch.
func (b *batch) full(c Config, it item) bool {
	n := len(b.Records) + len(b.Rejected)
	if n == 0 {
		return false
	}
	_, known := b.days[it.day]
	rows, bytes := c.BatchRows, c.BatchBytes
	if len(b.days) >= mixedDays && c.BufferBytes >= 8*c.BatchBytes {
		rows, bytes = 2*rows, 2*bytes
	}
	return n >= rows || b.bytes+it.bytes > bytes || !known && len(b.days) >= maxDays
}

// rangeOf gives the partition's range, begun where the partition was left.
func (b *batch) rangeOf(part int) *sinks.Marker {
	m := b.ranges[part]
	if m == nil {
		lo := b.s.pos[part]
		m = &sinks.Marker{Topic: b.s.g.Topic(), Partition: part, Epoch: b.s.places[part].epoch, Lo: lo, Hi: lo - 1, Generation: b.s.g.ID()}
		b.ranges[part] = m
		b.order = append(b.order, part)
		if b.born.IsZero() {
			b.born = time.Now()
		}
	}
	return m
}

func (b *batch) add(part int, it item) {
	m := b.rangeOf(part)
	if m.First.Time.IsZero() {
		m.First = it.edge
	}
	m.Last = it.edge
	if b.oldest.IsZero() || it.edge.Time.Before(b.oldest) {
		b.oldest = it.edge.Time
	}
	b.bytes += it.bytes
	b.days[it.day] = struct{}{}
	if it.rejected != nil {
		b.Rejected = append(b.Rejected, *it.rejected)
		m.Rejected++
	} else {
		b.Records = append(b.Records, it.record)
		m.Rows++
	}
	b.reach(part, it.edge.Offset+1)
}

// reach extends the partition's range up to next, holes included.
func (b *batch) reach(part int, next int64) {
	if next <= b.s.pos[part] {
		return
	}
	b.rangeOf(part).Hi = next - 1
	b.s.pos[part] = next
}

// cut completes the markers of what the batch holds; it may grow and be cut again.
func (b *batch) cut() {
	b.Markers = b.Markers[:0]
	for _, part := range b.order {
		m := b.ranges[part]
		m.End = b.s.p.track.end(part)
		m.Skipped = uint32(m.Hi - m.Lo + 1 - int64(m.Rows) - int64(m.Rejected))
		b.Markers = append(b.Markers, *m)
	}
	b.filled = time.Since(b.born)
}
