package pipeline

import (
	"fmt"
	"sync"
	"time"
)

// Progress tells how far the pipeline is, as of the last fetches and commits.
type Progress struct {
	Partitions int       // claimed now
	Locating   bool      // the claims' positions are being looked up
	Lag        int64     // records of the claimed partitions behind the committed positions; holes count
	Oldest     time.Time // broker time of the oldest record read and not committed, at most a batch early; zero when there is none
	LastFlush  time.Time // when a batch last went through all stages; zero before the first
	Moved      time.Time // when a batch last went through, or there was nothing to do
}

// Stalled says what is wrong when work waits and nothing has moved for so long; nil when all is well.
// A backlog that shrinks is no stall, however long.
func (p Progress) Stalled(now time.Time, limit time.Duration) error {
	still := now.Sub(p.Moved)
	if still <= limit || p.Moved.IsZero() {
		return nil
	}
	switch {
	case p.Locating:
		return fmt.Errorf("the positions of %d partitions have not been found for %v", p.Partitions, still.Round(time.Second))
	case p.Lag > 0:
		return fmt.Errorf("%d records wait and no batch went through for %v", p.Lag, still.Round(time.Second))
	}
	return nil
}

// tracker keeps what Progress tells. Its methods cost a lock a fetch or a batch, none a message.
type tracker struct {
	mu        sync.Mutex
	locating  bool
	parts     map[int]*tracked
	lastFlush time.Time
	moved     time.Time
}

type tracked struct {
	end       int64 // of the log
	read      int64 // next offset to fetch
	committed int64 // next offset to commit from
	oldest    time.Time
}

// locate begins a generation with so many partitions whose positions are not known yet.
func (t *tracker) locate(partitions []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parts = make(map[int]*tracked, len(partitions))
	for _, p := range partitions {
		t.parts[p] = &tracked{}
	}
	t.locating, t.moved = true, time.Now()
}

// begin says where the partitions are read from.
func (t *tracker) begin(positions map[int]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.locating, t.moved = false, time.Now()
	for p, next := range positions {
		t.parts[p] = &tracked{end: next, read: next, committed: next}
	}
}

// leave forgets the partitions at the end of a generation.
func (t *tracker) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parts, t.locating = nil, false
}

// fetched notes a chunk up to next whose first record is of the given time (zero: it has none).
func (t *tracker) fetched(partition int, next, end int64, first time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.parts[partition]
	if p == nil {
		return
	}
	p.read, p.end = next, max(end, next)
	if p.oldest.IsZero() {
		p.oldest = first
	}
	if t.lag() == 0 {
		t.moved = time.Now()
	}
}

// end is the offset after the partition's last record, as the newest fetch told it; 0 when it is not claimed.
func (t *tracker) end(partition int) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.parts[partition]; p != nil {
		return p.end
	}
	return 0
}

// flushed notes a batch that went through; last is the broker time of a range's last record.
func (t *tracker) flushed(partition int, next int64, last time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastFlush = time.Now()
	t.moved = t.lastFlush
	p := t.parts[partition]
	if p == nil {
		return
	}
	p.committed = next
	switch {
	case p.read <= next:
		p.oldest = time.Time{}
	case !last.IsZero():
		p.oldest = last // what follows is not older
	}
}

func (t *tracker) lag() (n int64) {
	for _, p := range t.parts {
		n += max(0, p.end-p.committed)
	}
	return n
}

func (t *tracker) progress() Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := Progress{Partitions: len(t.parts), Locating: t.locating, Lag: t.lag(), LastFlush: t.lastFlush, Moved: t.moved}
	for _, p := range t.parts {
		if !p.oldest.IsZero() && (now.Oldest.IsZero() || p.oldest.Before(now.Oldest)) {
			now.Oldest = p.oldest
		}
	}
	return now
}
