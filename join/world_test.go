package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// world is a broker in memory with a clock. Whatever a joiner does to it is an effect, before and after which the
// joiner can be made to break down. A fetch at the end of a partition moves the clock on.
type world struct {
	logger    *slog.Logger // nil is quiet
	t         testing.TB
	mu        sync.Mutex
	now       time.Time
	step      time.Duration // of the clock, at a fetch that brings nothing
	most      int           // records a fetch
	log       [][]sources.Record
	committed map[int]int64
	events    []ingest.Message
	letters   []audit.Rejected
	counts    map[string]int
	left      int // effects and halves of them until the crash; below 0 never
	cancel    context.CancelFunc
	until     func(*world) bool // that the run is over; nil: all is committed
	cfg       Config
}

func newWorld(t testing.TB, partitions int) *world {
	w := &world{t: t, now: noon, step: time.Second, most: 3, log: make([][]sources.Record, partitions), committed: map[int]int64{}, counts: map[string]int{}, left: -1, cfg: DefaultConfig()}
	return w
}

var errCrash = errors.New("crash")

// effect does something unless the crash comes before it; the crash may come right after it too.
func (w *world) effect(do func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, half := range []func(){func() {}, do} {
		if w.left == 0 {
			w.cancel()
			return errCrash
		}
		if w.left > 0 {
			w.left--
		}
		half()
	}
	if w.left == 0 {
		w.cancel()
		return errCrash
	}
	return nil
}

// put appends a part as a Writer does; the clock goes on by gap.
func (w *world) put(gap time.Duration, p call.Part) {
	w.t.Helper()
	m, err := partMessage(&p)
	if err != nil {
		w.t.Fatal(err)
	}
	w.append(m)
	w.now = w.now.Add(gap)
}

func (w *world) append(m kafka.Message) {
	all := make([]int, len(w.log))
	for i := range all {
		all[i] = i
	}
	var balance kafka.Hash
	part := balance.Balance(m, all...)
	r := sources.Record{Offset: int64(len(w.log[part])), Time: w.now.Truncate(time.Millisecond), Key: m.Key, Value: m.Value}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, audit.Header{Key: h.Key, Value: h.Value})
	}
	w.log[part] = append(w.log[part], r)
}

// Now is the clock.
func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

type callsLog struct{ *world }

func (l callsLog) Produce(_ context.Context, ms []kafka.Message) error {
	return l.effect(func() {
		for _, m := range ms {
			l.append(m)
		}
	})
}

type eventLog struct{ *world }

func (l eventLog) Produce(_ context.Context, ms []ingest.Message) error {
	return l.effect(func() { l.events = append(l.events, ms...) })
}

func (w *world) bury(_ context.Context, rs []audit.Rejected) error {
	return w.effect(func() { w.letters = append(w.letters, rs...) })
}

// Run implements sources.Source: one generation over all partitions.
func (w *world) Run(ctx context.Context, serve func(context.Context, sources.Generation) error) error {
	return serve(ctx, w)
}

func (w *world) ID() int32     { return 1 }
func (w *world) Topic() string { return kafkaconn.Calls }
func (w *world) Claims() (cs []sources.Claim) {
	for part := range w.log {
		at, ok := w.committed[part]
		if !ok {
			at = -1
		}
		cs = append(cs, sources.Claim{Partition: part, Committed: at})
	}
	return cs
}

func (w *world) Bounds(_ context.Context, part int) (int64, int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return 0, int64(len(w.log[part])), nil
}

func (w *world) Fetch(ctx context.Context, part int, offset int64, _ int) (sources.Chunk, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return sources.Chunk{}, ctx.Err()
	}
	end := int64(len(w.log[part]))
	c := sources.Chunk{Partition: part, From: offset, Next: min(offset+int64(w.most), end), End: end}
	c.Records = append(c.Records, w.log[part][offset:c.Next]...)
	if len(c.Records) > 0 {
		return c, nil
	}
	w.now = w.now.Add(w.step)
	over := w.now.After(noon.Add(24 * time.Hour)) // a joiner that never ends
	if w.until != nil {
		over = over || w.until(w)
	} else {
		all := true
		for part := range w.log {
			all = all && w.committed[part] == int64(len(w.log[part]))
		}
		over = over || all
	}
	if over {
		w.cancel()
	}
	return c, nil
}

func (w *world) Commit(_ context.Context, next map[int]int64) error {
	return w.effect(func() {
		for part, at := range next {
			if at < w.committed[part] {
				w.t.Errorf("partition %d: the position goes back from %d to %d", part, w.committed[part], at)
			}
			w.committed[part] = at
		}
	})
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

func (w *world) Part(format, kind string) { w.count("part " + format + " " + kind) }
func (w *world) Called(format string)     { w.count("called " + format) }
func (w *world) Late(outcome string)      { w.count("late " + outcome) }
func (w *world) Withheld()                { w.count("withheld") }
func (w *world) Forced()                  { w.count("forced") }
func (w *world) Retried(step string, kind audit.Kind) {
	w.count("retried " + step + " " + string(kind))
}
func (w *world) Refused(reason string) { w.count("refused " + reason) }
func (w *world) Gap(from, to int64)    { w.count(fmt.Sprintf("gap %d %d", from, to)) }

func (w *world) options() Options {
	return Options{Decoder: ingest.NewDecoder(ingest.Options{DefaultTenant: "default"}), Producer: eventLog{w}, DefaultTenant: "default", Observer: w, Logger: w.logger, Now: w.Now, Limit: kafkaconn.MaxMessage}
}

// join runs a joiner until everything is told and committed, or until the crash.
func (w *world) join() {
	w.t.Helper()
	j, err := NewJoiner(w.cfg, w.options(), w, callsLog{w}, w.bury)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.cancel = cancel
	if err := j.Run(ctx); err != nil {
		w.t.Fatal(err)
	}
	if w.now.After(noon.Add(24 * time.Hour)) {
		w.t.Fatal("the joiner never ended")
	}
}

// told gives the events as "tenant id: prompt → answer" lines would: by id, each distinct value once.
func (w *world) told() map[string][]event {
	w.t.Helper()
	seen, out := map[string]bool{}, map[string][]event{}
	for _, m := range w.events {
		if seen[string(m.Value)] {
			continue
		}
		seen[string(m.Value)] = true
		var e event
		if err := json.Unmarshal(m.Value, &e); err != nil {
			w.t.Fatal(err)
		}
		e.truncated = slices.ContainsFunc(m.Headers, func(h audit.Header) bool { return h.Key == ingest.HeaderTruncated })
		out[string(m.Key)] = append(out[string(m.Key)], e)
	}
	return out
}

// event is what tests read of a native event.
type event struct {
	ID          string          `json:"id"`
	Tenant      string          `json:"tenant_id"`
	Domain      string          `json:"domain"`
	Application string          `json:"application"`
	Model       string          `json:"model"`
	Timestamp   string          `json:"timestamp"`
	Cost        *float64        `json:"estimated_cost_usd"`
	Messages    []call.Message  `json:"messages"`
	Response    json.RawMessage `json:"response"`
	Metadata    map[string]any  `json:"metadata"`
	truncated   bool            // by the header
}

// text is "role:content" of the messages and the response behind them.
func (e *event) text() string {
	var s strings.Builder
	for _, m := range e.Messages {
		var c string
		_ = json.Unmarshal(m.Content, &c)
		s.WriteString(m.Role + ":" + c + " ")
	}
	var r string
	if json.Unmarshal(e.Response, &r) != nil {
		r = string(e.Response)
	}
	return s.String() + "→ " + r
}

func user(text string) []call.Message  { return []call.Message{call.Text("user", text)} }
func reply(text string) []call.Message { return []call.Message{call.Text("assistant", text)} }

func withCancel(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}

// outside is a log whose first seven records are gone.
type outside struct{ *world }

func (outside) Bounds(context.Context, int) (int64, int64, error) { return 7, 9, nil }
func (outside) Fetch(_ context.Context, _ int, offset int64, _ int) (sources.Chunk, error) {
	return sources.Chunk{}, fmt.Errorf("fetch: %w", &sources.OutOfRangeError{Asked: offset, Start: 7, End: 9})
}
