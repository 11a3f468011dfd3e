package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// The store is away for an hour: it is asked again and again with pauses of at most ten seconds and a
// jitter, no more is fetched than the budget, and then everything is written once.
func TestAnHourWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.produce(0, values(4000)...)
		w.produce(1, values(4000)...)
		const hour = time.Hour
		w.downUntil = time.Now().Add(hour)
		w.config = func(c *Config) {
			c.BatchBytes, c.BufferBytes, c.FetchBytes = 1<<16, 1<<20, 1<<16
		}
		began := time.Now()
		var stalled error
		time.AfterFunc(30*time.Minute, func() {
			p := w.pipeline.Progress()
			stalled = p.Stalled(time.Now(), time.Minute)
			if p.Partitions != 2 || p.Lag != 8000 || p.Oldest.IsZero() || !p.LastFlush.IsZero() {
				t.Errorf("progress in the outage %+v", p)
			}
		})
		w.run(t)
		w.tiles(t, 0, 0, 0)
		w.tiles(t, 0, 1, 0)
		if took := time.Since(began); took < hour || took > hour+time.Minute {
			t.Errorf("done %v after the store came back", took-hour)
		}
		if n := int(hour / (10 * time.Second)); w.tries < n/2 || w.tries > 4*n+2000 {
			t.Errorf("%d attempts in an hour", w.tries)
		}
		if stalled == nil || !strings.Contains(stalled.Error(), "8000 records wait") {
			t.Errorf("in the outage: %v", stalled)
		}
		if p := w.pipeline.Progress(); p.LastFlush.IsZero() {
			t.Errorf("afterwards %+v", p)
		}
	})
}

// While nothing is written, no more is fetched than the budget and a chunk for each partition.
func TestTheBudgetStopsFetching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		big := strings.Repeat("x", 60_000)
		for p := range 4 {
			for i := range 100 {
				w.produce(p, fmt.Sprint(p, i, big))
			}
		}
		w.downUntil = time.Now().Add(10 * time.Minute)
		w.config = func(c *Config) { c.BatchRows, c.BatchBytes, c.BufferBytes, c.FetchBytes = 1000, 1<<19, 1<<20, 1<<18 }
		time.AfterFunc(5*time.Minute, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			// The fake gives three records a fetch whatever was asked for: what a reservation does not cover.
			if most := int64(1<<20 + 4*3*61_000); w.handedOut > most || w.handedOut < 1<<19 {
				t.Errorf("%d bytes were fetched, the budget is %d", w.handedOut, 1<<20)
			}
		})
		w.run(t)
		for p := range 4 {
			w.tiles(t, 0, p, 0)
		}
	})
}

func TestBudget(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.Int64Range(1, 100).Draw(rt, "most")
		b := newBudget(most)
		var held int64
		for range 50 {
			n := rapid.Int64Range(1, 60).Draw(rt, "n")
			ctx, cancel := context.WithCancel(t.Context())
			if held != 0 && held+n > most {
				cancel() // must wait, so it may only see the end
			}
			err := b.acquire(ctx, n)
			cancel()
			switch fits := held == 0 || held+n <= most; {
			case fits != (err == nil):
				rt.Fatalf("acquire(%d) of %d with %d held: %v", n, most, held, err)
			case fits:
				held += n
			}
			if back := rapid.Int64Range(0, held).Draw(rt, "back"); back > 0 {
				b.settle(-back)
				held -= back
			}
		}
	})
}

// What stream or dead letters refuse as invalid must be mended by people: it is tried again, the
// pipeline does not end and nothing is committed past it.
func TestARefusingStreamDoesNotEndThePipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.produce(0, "a", "bad", "b")
		w.publishBad = 7
		w.run(t)
		w.tiles(t, 0, 0, 0)
		if len(w.published) != 2 || len(w.letters) != 1 {
			t.Errorf("published %d, dead letters %v", len(w.published), w.letters)
		}
	})
}

func TestStalled(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) Progress { return Progress{Partitions: 2, Lag: 5, Moved: now.Add(-d)} }
	locating, idle := ago(time.Hour), ago(time.Hour)
	locating.Locating, idle.Lag = true, 0
	for _, tc := range []struct {
		name string
		p    Progress
		want string
	}{
		{"moves", ago(time.Second), ""},
		{"stands", ago(time.Hour), "5 records wait and no batch went through for 1h0m0s"},
		{"looks for positions", locating, "the positions of 2 partitions have not been found for 1h0m0s"},
		{"nothing to do", idle, ""},
		{"not begun", Progress{}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if err := tc.p.Stalled(now, time.Minute); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A batch is cut at rows, bytes or days, whichever comes first, and its markers account for every
// offset: rows, rejected and holes of a range are its length, and ranges of a partition adjoin.
func TestAnyBatchIsCutWithinItsLimits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := DefaultConfig()
		cfg.BatchRows = rapid.IntRange(1, 20).Draw(rt, "rows")
		cfg.BatchBytes = rapid.Int64Range(10, 400).Draw(rt, "bytes")
		s := &session{p: &Pipeline{cfg: cfg}, g: newWorld(), places: map[int]place{}, pos: map[int]int64{}}
		want := map[int]int64{}
		var cut []*batch
		b := s.newBatch()
		for range rapid.IntRange(1, 120).Draw(rt, "items") {
			part := rapid.IntRange(0, 2).Draw(rt, "partition")
			offset := want[part] + rapid.Int64Range(0, 3).Draw(rt, "hole")
			at := time.UnixMilli(1_790_000_000_000 + offset)
			it := item{bytes: rapid.Int64Range(0, 60).Draw(rt, "size"), day: rapid.Int64Range(0, 200).Draw(rt, "day")}
			it.edge.Offset, it.edge.Time = offset, at
			if rapid.Bool().Draw(rt, "rejected") {
				it.rejected = &audit.Rejected{}
			}
			if b.full(cfg, it) {
				b.cut()
				cut, b = append(cut, b), s.newBatch()
			}
			b.add(part, it)
			want[part] = offset + 1
			if rapid.IntRange(0, 9).Draw(rt, "trailing hole") == 0 {
				want[part] += 2
				b.reach(part, want[part])
			}
			if rapid.IntRange(0, 9).Draw(rt, "offered") == 0 { // it was old enough, and nobody took it
				b.cut()
			}
		}
		b.cut()
		next := map[int]int64{}
		for _, b := range append(cut, b) {
			rows, bytes := cfg.BatchRows, cfg.BatchBytes
			if len(b.days) >= mixedDays {
				rows, bytes = 2*rows, 2*bytes
			}
			if n := len(b.Records) + len(b.Rejected); n > rows || b.bytes > bytes && n > 1 || len(b.days) > maxDays {
				rt.Fatalf("%d rows, %d bytes, %d days", n, b.bytes, len(b.days))
			}
			for _, m := range b.Markers {
				if m.Lo != next[m.Partition] || int64(m.Rows)+int64(m.Rejected)+int64(m.Skipped) != m.Hi-m.Lo+1 {
					rt.Fatalf("marker %+v, the partition stood at %d", m, next[m.Partition])
				}
				next[m.Partition] = m.Hi + 1
			}
		}
		for part, n := range want {
			if next[part] != n {
				rt.Fatalf("partition %d is covered to %d of %d", part, next[part], n)
			}
		}
	})
}

var _ sources.Generation = (*world)(nil)
