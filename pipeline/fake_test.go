package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sources"
)

// world is a log, a store and a stream in memory, with the faults that a test plants.
type world struct {
	ask       func(context.Context, []audit.Record) // Parts.Ask
	mu        sync.Mutex
	log       map[int][]sources.Record // by partition, offsets ascending, holes allowed
	start     map[int]int64
	end       map[int]int64
	committed map[int]int64
	gen       int32

	rows      map[string]audit.Record // by partition/offset, as a key would do
	rejected  map[string]audit.Rejected
	markers   []sinks.Marker
	published []string // audit ids in order
	letters   []string // dead letters
	order     []string // what happened: "marker", "dead", "publish", "commit"

	sendFails   int       // so many Sends fail as unavailable first
	downUntil   time.Time // Sends fail as unavailable until then
	publishBad  int       // so many calls of Publish and DeadLetter are refused as invalid first
	handedOut   int64     // bytes of records that Fetch gave
	tries       int       // of Send
	config      func(*Config)
	refuse      map[string]bool
	commitFails bool
	pipeline    *Pipeline
	replacedAt  []int32
	gaps        []string
	skippedN    int
	chunk       int                      // so many records a fetch gives; 0: 3
	analyzing   func(*audit.Interaction) // called for each
	done        func(w *world) bool      // checked after each commit
	stop        context.CancelFunc
}

func newWorld() *world {
	return &world{log: map[int][]sources.Record{}, start: map[int]int64{}, end: map[int]int64{}, committed: map[int]int64{},
		rows: map[string]audit.Record{}, rejected: map[string]audit.Rejected{}, refuse: map[string]bool{}}
}

func (w *world) produce(part int, values ...string) {
	for _, v := range values {
		if v != "hole" {
			w.log[part] = append(w.log[part], sources.Record{Offset: w.end[part], Time: time.UnixMilli(1_790_000_000_000 + w.end[part]), Value: []byte(v)})
		}
		w.end[part]++
	}
}

// recreate drops the log of a partition and begins a new one, as deleting and creating a topic does.
func (w *world) recreate(part int, values ...string) {
	w.log[part], w.start[part], w.end[part] = nil, 0, 0
	w.produce(part, values...)
}

func (w *world) trim(part int, start int64) {
	w.start[part] = start
	for len(w.log[part]) > 0 && w.log[part][0].Offset < start {
		w.log[part] = w.log[part][1:]
	}
}

// run consumes until every partition is committed to its end.
func (w *world) run(t *testing.T) {
	t.Helper()
	w.done = func(w *world) bool {
		for p, end := range w.end {
			if w.committed[p] < end {
				return false
			}
		}
		return true
	}
	w.runUntilDone(t)
}

func (w *world) build(t *testing.T) *Pipeline {
	t.Helper()
	cfg := DefaultConfig()
	cfg.BatchRows, cfg.BatchAge, cfg.DrainTimeout = 5, 10*time.Millisecond, time.Second
	if w.config != nil {
		w.config(&cfg)
	}
	p, err := New(cfg, Parts{Source: w, Store: w, Publisher: w, Observer: w, Decode: decodeFake, Analyze: func(_ context.Context, in *audit.Interaction) *audit.Verdict {
		if w.analyzing != nil {
			w.analyzing(in)
		}
		return &audit.Verdict{ResultID: in.ID, Status: audit.Done}
	}, Ask: w.ask})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) runUntilDone(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), max(20*time.Second, 2*time.Until(w.downUntil)))
	defer cancel()
	w.stop = cancel
	w.pipeline = w.build(t)
	if err := w.pipeline.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatalf("did not finish; committed %v of %v, order %v", w.committed, w.end, w.order)
	}
}

func decodeFake(r sources.Record, o audit.Origin) (*audit.Interaction, *audit.Rejected) {
	if bytes.HasPrefix(r.Value, []byte("bad")) {
		return nil, &audit.Rejected{Origin: o, Reason: "bad_json", Value: bytes.Clone(r.Value)}
	}
	in := &audit.Interaction{ID: audit.DeriveID(string(r.Value)), Tenant: "t", Time: o.BrokerTime, Response: string(r.Value)}
	return in, nil
}

// Run implements sources.Source: one generation.
func (w *world) Run(ctx context.Context, serve func(context.Context, sources.Generation) error) error {
	w.gen++
	return serve(ctx, w)
}

func (w *world) ID() int32     { return w.gen }
func (w *world) Topic() string { return "llm.interactions" }
func (w *world) Claims() (cs []sources.Claim) {
	for p := range w.end {
		c, ok := w.committed[p]
		if !ok {
			c = -1
		}
		cs = append(cs, sources.Claim{Partition: p, Committed: c})
	}
	return cs
}

func (w *world) Bounds(_ context.Context, p int) (int64, int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.start[p], w.end[p], nil
}

func (w *world) Fetch(ctx context.Context, p int, offset int64, maxBytes int) (sources.Chunk, error) {
	w.mu.Lock()
	start, end := w.start[p], w.end[p]
	ch := sources.Chunk{Partition: p, From: offset, Next: offset, End: end}
	for _, r := range w.log[p] {
		if r.Offset >= offset && (len(ch.Records) == 0 || maxBytes > 1 && len(ch.Records) < cmp.Or(w.chunk, 3)) {
			ch.Records = append(ch.Records, r)
			ch.Next = r.Offset + 1
			w.handedOut += int64(len(r.Value))
		}
	}
	w.mu.Unlock()
	switch {
	case offset < start || offset > end:
		return ch, &sources.OutOfRangeError{Asked: offset, Start: start, End: end}
	case len(ch.Records) == 0 && offset < end:
		ch.Next = end // only holes left
	case offset == end:
		<-ctx.Done()
		return ch, ctx.Err()
	}
	return ch, nil
}

func (w *world) Commit(_ context.Context, next map[int]int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.order = append(w.order, "commit")
	if w.commitFails {
		w.stop()
		return sources.ErrGenerationEnded
	}
	maps.Copy(w.committed, next)
	if w.done(w) {
		w.stop()
	}
	return nil
}

func (w *world) Prepare(b *sinks.Batch) (sinks.Prepared, error) { return &fakePrepared{w, b}, nil }

type fakePrepared struct {
	w *world
	b *sinks.Batch
}

func place1(o audit.Origin) string { return fmt.Sprintf("%d/%d/%d", o.Epoch, o.Partition, o.Offset) }

func (f *fakePrepared) Send(context.Context) error {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries++
	if w.sendFails > 0 || time.Now().Before(w.downUntil) {
		w.sendFails--
		return audit.E("fake", audit.KindUnavailable, errors.New("down"))
	}
	for _, r := range f.b.Records {
		if w.refuse[r.Interaction.Response] {
			return audit.E("fake", audit.KindInvalid, errors.New("refused"))
		}
	}
	for _, r := range f.b.Records {
		w.rows[place1(r.Origin)] = r
	}
	for _, r := range f.b.Rejected {
		w.rejected[place1(r.Origin)] = r
	}
	if len(f.b.Markers) > 0 {
		w.order = append(w.order, "marker")
		w.markers = append(w.markers, f.b.Markers...)
	}
	return nil
}

func (w *world) Markers(_ context.Context, _ string, p int, from int64) (ms []sinks.Marker, epoch int32, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.markers {
		if m.Partition == p {
			epoch = max(epoch, m.Epoch)
		}
	}
	for _, m := range w.markers {
		if m.Partition == p && m.Epoch == epoch && m.Hi >= from {
			ms = append(ms, m)
		}
	}
	return ms, epoch, nil
}

func (w *world) Events(_ context.Context, m sinks.Marker) (evs []audit.StreamEvent, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o := m.Lo; o <= m.Hi; o++ {
		if r, ok := w.rows[place1(audit.Origin{Epoch: m.Epoch, Partition: m.Partition, Offset: o})]; ok {
			evs = append(evs, r.Event())
		}
	}
	return evs, nil
}

func (w *world) Publish(_ context.Context, evs []audit.StreamEvent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.publishBad > 0 {
		w.publishBad--
		return audit.E("fake", audit.KindInvalid, errors.New("refused"))
	}
	w.order = append(w.order, "publish")
	for _, e := range evs {
		w.published = append(w.published, e.AuditID.String())
	}
	return nil
}

func (w *world) DeadLetter(_ context.Context, rs []audit.Rejected) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.publishBad > 0 {
		w.publishBad--
		return audit.E("fake", audit.KindInvalid, errors.New("refused"))
	}
	w.order = append(w.order, "dead")
	for _, r := range rs {
		w.letters = append(w.letters, string(r.Value))
	}
	return nil
}

func (w *world) Written(*sinks.Batch, Stats)    {}
func (w *world) Retried(string, audit.Kind)     {}
func (w *world) Gap(p int, lo, hi int64)        { w.gaps = append(w.gaps, fmt.Sprintf("%d:%d-%d", p, lo, hi)) }
func (w *world) LogReplaced(_ int, epoch int32) { w.replacedAt = append(w.replacedAt, epoch) }
func (w *world) Skipped(int, int64, int64)      { w.skippedN++ }

// tiles fails unless the markers of each partition's epochs cover [0, end) without gap or overlap.
func (w *world) tiles(t *testing.T, epoch int32, part int, from int64) {
	t.Helper()
	next := from
	for _, m := range w.markers {
		if m.Partition != part || m.Epoch != epoch {
			continue
		}
		if m.Lo != next {
			t.Errorf("marker begins at %d, want %d", m.Lo, next)
		}
		if got := int64(m.Rows) + int64(m.Rejected) + int64(m.Skipped); got != m.Hi-m.Lo+1 {
			t.Errorf("marker [%d,%d] accounts for %d offsets", m.Lo, m.Hi, got)
		}
		if m.Reason == "" && (m.End <= m.Hi || m.End > w.end[part]) {
			t.Errorf("marker [%d,%d] says that the log ended at %d, it ends at %d", m.Lo, m.Hi, m.End, w.end[part])
		}
		next = m.Hi + 1
	}
	if next != w.end[part] {
		t.Errorf("markers reach %d of %d", next, w.end[part])
	}
}
