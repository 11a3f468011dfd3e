package pipeline

import (
	"context"
	"time"

	"github.com/evenhand/evenhand/sources"
)

// filler decodes chunks into the batch that is next to be written.
type filler struct {
	s       *session
	batches chan<- *batch
	b       *batch
	age     *time.Timer // since b holds anything
	late    bool        // b is old enough, and grows only while the one before it is written
}

// portion is how many messages are decoded at a time. A chunk may hold tens of thousands of short ones, which detectors
// may need many seconds for.
const portion = 512

// fill decodes chunks and cuts batches. When the chunks end it hands on what it has. Between portions it hands on a batch
// that is old enough, and leaves the rest of a chunk to the next owner once ending is done.
func (s *session) fill(ctx, ending context.Context, chunks <-chan sources.Chunk, batches chan<- *batch) {
	f := &filler{s: s, batches: batches, b: s.newBatch(), age: time.NewTimer(time.Hour)}
	f.age.Stop()
	defer f.age.Stop()
	for {
		var ready chan<- *batch
		if f.late {
			f.b.cut()
			ready = batches
		}
		select {
		case ready <- f.b:
			f.begin()
		case ch, ok := <-chunks:
			if !ok {
				f.send(ctx)
				return
			}
			if !f.take(ctx, ending, ch) {
				return
			}
		case <-f.age.C:
			f.late = true
		case <-ctx.Done():
			return
		}
	}
}

// take decodes a chunk portion by portion. It is false where no chunk may follow.
func (f *filler) take(ctx, ending context.Context, ch sources.Chunk) bool {
	for rest := ch.Records; len(rest) > 0; f.offer() {
		if ending.Err() != nil && len(rest) < len(ch.Records) {
			f.send(ctx)
			return false // a chunk behind it would make holes of what is left
		}
		n := min(portion, len(rest))
		now := ch
		now.Records, rest = rest[:n], rest[n:]
		if !f.add(ctx, now) {
			return false
		}
	}
	if f.b.empty() && f.s.pos[ch.Partition] < ch.Next {
		f.age.Reset(f.s.p.cfg.BatchAge)
	}
	f.b.reach(ch.Partition, ch.Next)
	return true
}

// add decodes a portion and puts it into batches.
func (f *filler) add(ctx context.Context, ch sources.Chunk) bool {
	p := f.s.p
	if f.b.empty() {
		f.age.Reset(p.cfg.BatchAge)
	}
	items := p.decode(ctx, f.s.g.Topic(), f.s.places[ch.Partition].epoch, ch)
	if ctx.Err() != nil {
		return false // the portion is not whole; without its marker it is read again
	}
	for _, it := range items {
		if f.b.full(p.cfg, it) {
			if !f.send(ctx) {
				return false
			}
			f.age.Reset(p.cfg.BatchAge)
		}
		f.b.add(ch.Partition, it)
	}
	return true
}

// begin begins the next batch.
func (f *filler) begin() { f.b, f.late = f.s.newBatch(), false }

// send hands the batch on, if it holds anything, and waits for the writer.
func (f *filler) send(ctx context.Context) bool {
	f.age.Stop()
	f.late = false
	if f.b.empty() {
		return true
	}
	f.b.cut()
	select {
	case f.batches <- f.b:
		f.begin()
		return true
	case <-ctx.Done():
		return false
	}
}

// offer hands the batch on if it is old enough and the writer waits.
func (f *filler) offer() {
	select {
	case <-f.age.C:
		f.late = true
	default:
	}
	if !f.late {
		return
	}
	f.b.cut()
	select {
	case f.batches <- f.b:
		f.begin()
	default:
	}
}
