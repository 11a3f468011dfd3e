package retry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/repair"
	"github.com/evenhand/evenhand/sinks"
	sink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

// detector finds "bad", or panics while it is broken.
type detector struct {
	id     string
	broken atomic.Bool
}

func (d *detector) Info() detectors.Info {
	return detectors.Info{ID: d.id, Title: d.id, Family: detectors.Bias, Version: "1", Deterministic: true}
}

func (d *detector) Detect(_ context.Context, in *detectors.Input) ([]audit.Finding, error) {
	if d.broken.Load() {
		panic("broken")
	}
	if !strings.Contains(in.Interaction.Response, "bad") {
		return nil, nil
	}
	return []audit.Finding{{Kind: "charter.sex", Rule: d.id, Ground: audit.Sex, Severity: audit.High, Score: 600_000, Confidence: 800_000, Side: audit.Output, Span: audit.Span{Start: 0, End: 3}}}, nil
}

// paper keeps what was published.
type paper struct {
	mu     sync.Mutex
	down   bool
	events []audit.StreamEvent
}

func (p *paper) Publish(_ context.Context, es []audit.StreamEvent) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down && len(es) > 0 {
		return audit.E("paper", audit.KindUnavailable, errors.New("away"))
	}
	p.events = append(p.events, es...)
	return nil
}

func (p *paper) DeadLetter(context.Context, []audit.Rejected) error { return nil }

type fixture struct {
	*testing.T
	conn     driver.Conn
	db       string
	store    *store.Store
	first    *detector
	second   *detector
	analyzer *detectors.Analyzer
	paper    *paper
	began    time.Time
	later    time.Duration // the clock of all analyses stands at began and this
	retrier  *Retrier
	sent     int64
	telling  sync.Mutex
	told     []audit.Record
}

func newFixture(t *testing.T, cfg Config) *fixture {
	t.Helper()
	at := enginetest.Database(t)
	migratetest.Run(t, at)
	f := &fixture{T: t, conn: enginetest.Conn(t, at), db: at.Database, first: &detector{id: "first"}, second: &detector{id: "second"}, paper: &paper{}}
	f.store, f.began = store.New(f.conn, f.db), time.Now().UTC().Truncate(time.Millisecond)
	var err error
	if f.analyzer, err = detectors.NewAnalyzer(detectors.DefaultPolicy(), f.first, f.second); err != nil {
		t.Fatal(err)
	}
	f.retrier, err = New(cfg, Parts{Store: f.store, Analyze: f.analyze, Results: sink.New(f.conn, f.db, sink.Options{}), Current: repair.New(f.conn, f.db), Publisher: f.paper,
		Told: func(rs []audit.Record) {
			f.telling.Lock()
			defer f.telling.Unlock()
			f.told = append(f.told, rs...)
		},
		now: func() time.Time { return f.began.Add(f.later) }})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) analyze(ctx context.Context, in *audit.Interaction) *audit.Verdict {
	v := f.analyzer.Analyze(ctx, in)
	v.Time = f.began.Add(f.later)
	return v
}

// hot takes in interactions as the pipeline would, with whatever the detectors say now.
func (f *fixture) hot(responses ...string) (ids []audit.ID) {
	f.Helper()
	b := &sinks.Batch{}
	lo := f.sent
	for _, response := range responses {
		now := time.Now().UTC().Truncate(time.Millisecond)
		in := &audit.Interaction{
			ID: audit.NewID(now), Tenant: "acme", Time: now, TraceID: fmt.Sprintf("%032x", f.sent+1), Domain: audit.HR, Provider: "p", Model: "m", Status: "success",
			Prompt: "Who?", Query: "Who?", Response: response, Digest: sha256.Sum256([]byte(response)),
			PromptTokens: audit.Unknown, ResponseTokens: audit.Unknown, LatencyMS: audit.Unknown, CostMicroUSD: audit.Unknown,
		}
		o := audit.Origin{Topic: "llm.interactions", Offset: f.sent, BrokerTime: now}
		b.Records = append(b.Records, audit.Record{Origin: o, Interaction: in, Verdict: f.analyze(f.Context(), in)})
		ids = append(ids, in.ID)
		f.sent++
	}
	b.Markers = []sinks.Marker{{Topic: "llm.interactions", Lo: lo, Hi: f.sent - 1, Rows: uint32(len(b.Records)), Generation: 1}}
	p, err := sink.New(f.conn, f.db, sink.Options{}).Prepare(b)
	if err == nil {
		err = p.Send(f.Context())
	}
	if err != nil {
		f.Fatal(err)
	}
	return ids
}

func (f *fixture) run(want Outcome) Outcome {
	f.Helper()
	out, err := f.retrier.Run(f.Context(), time.Time{}, func(int, int) {})
	if err != nil {
		f.Fatal(err)
	}
	got := out
	got.Through = time.Time{}
	if got != want {
		f.Errorf("after %v: %+v, want %+v", f.later, got, want)
	}
	return out
}

// facts are the number of facts and the status of an event in the read model, and its verdict rows.
func (f *fixture) facts(id audit.ID) string {
	f.Helper()
	var out []string
	rows, err := f.conn.Query(f.Context(), "SELECT concat(toString(bitShiftRight(version, 54)), ' ', analysis_status, ' ', toString(bias_detected)) FROM "+f.db+
		".audit_current FINAL WHERE event_id = toUUID(?) UNION ALL SELECT concat(analyzer, ':', analyzer_version, ' ', status, ' ', reason) FROM (SELECT * FROM "+f.db+".verdicts FINAL ORDER BY analysis_ts) WHERE event_id = toUUID(?)", id.String(), id.String())
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			f.Fatal(err)
		}
		out = append(out, strings.TrimSpace(s))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (f *fixture) checked() {
	f.Helper()
	rep, err := f.store.Check(f.Context())
	if err != nil || !rep.OK() {
		f.Errorf("%v %+v", err, rep.Faults)
	}
}

func TestMended(t *testing.T) {
	f := newFixture(t, DefaultConfig())
	f.first.broken.Store(true)
	f.second.broken.Store(true)
	ids := f.hot("bad words", "fine words")
	f.first.broken.Store(false)
	f.second.broken.Store(false)
	f.hot("bad again")
	f.checked()

	f.run(Outcome{Waiting: 2}) // not due yet
	f.later = time.Minute
	f.run(Outcome{Analysed: 2, Mended: 2})
	if got, want := f.facts(ids[0]), "2 done 1, hot: failed panic, hot:retry-1 done"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := f.facts(ids[1]), "2 done 0, hot: failed panic, hot:retry-1 done"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	f.checked()
	if len(f.paper.events) != 2 || len(f.told) != 2 || f.told[0].Interaction.TraceID == "" || f.told[0].Verdict.Attempt != 1 {
		t.Fatalf("%d events, told %+v", len(f.paper.events), f.told)
	}
	e := f.paper.events[slices.IndexFunc(f.paper.events, func(e audit.StreamEvent) bool { return e.AuditID == ids[0] })]
	want := audit.RetryResultID("acme", ids[0], sha256.Sum256([]byte("bad words")), 1)
	if e.AuditID != ids[0] || e.ResultID != want || e.TraceID != fmt.Sprintf("%032x", 1) || !e.Detected || len(e.BiasTypes) != 1 {
		t.Errorf("%+v", e)
	}
	f.run(Outcome{})
}

func TestBackOffAndAbandon(t *testing.T) {
	f := newFixture(t, Config{Attempts: 3, Backoff: time.Minute})
	f.first.broken.Store(true)
	f.second.broken.Store(true)
	id := f.hot("bad words")[0]
	for _, step := range []struct {
		later time.Duration
		want  Outcome
	}{
		{59 * time.Second, Outcome{Waiting: 1}},
		{time.Minute, Outcome{Analysed: 1, Waiting: 1}},
		{5*time.Minute - time.Second, Outcome{Waiting: 1}},
		{5 * time.Minute, Outcome{Analysed: 1, Waiting: 1}},
		{21*time.Minute - time.Second, Outcome{Waiting: 1}},
		{21 * time.Minute, Outcome{Analysed: 1, Abandoned: 1}},
		{100 * time.Hour, Outcome{}},
	} {
		f.later = step.later
		f.run(step.want)
	}
	if got, want := f.facts(id), "4 abandoned 0, hot: failed panic, hot:retry-1 failed panic, hot:retry-2 failed panic, hot:retry-3 abandoned panic"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c, err := f.store.WithTenant("acme").Coverage(t.Context(), store.Window{})
	if err != nil || c.Abandoned != 1 || c.Failed != 0 || c.Analysed != 0 || c.Received != 1 {
		t.Errorf("%+v %v", c, err)
	}
	f.checked()
}

func TestAnAttemptNeverMakesARecordPoorer(t *testing.T) {
	f := newFixture(t, Config{Attempts: 2, Backoff: time.Minute})
	f.first.broken.Store(true)
	id := f.hot("bad words")[0]
	if got, want := f.facts(id), "1 partial 1, hot: partial panic"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	f.second.broken.Store(true)
	f.later = time.Hour
	f.run(Outcome{Analysed: 1, Waiting: 1})
	f.later = 2 * time.Hour
	f.run(Outcome{Analysed: 1, Abandoned: 1})
	if got, want := f.facts(id), "3 abandoned 1, hot: partial panic, hot:retry-1 partial panic, hot:retry-2 abandoned panic"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	f.checked()
}

func TestWithoutTextsThereIsNothingToAnalyse(t *testing.T) {
	f := newFixture(t, DefaultConfig())
	f.first.broken.Store(true)
	id := f.hot("bad words")[0]
	f.first.broken.Store(false)
	if err := f.conn.Exec(t.Context(), "TRUNCATE TABLE "+f.db+".interaction_texts"); err != nil {
		t.Fatal(err)
	}
	f.later = time.Hour
	f.run(Outcome{Analysed: 1, Abandoned: 1})
	if got, want := f.facts(id), "2 abandoned 1, hot: partial panic, hot:retry-1 abandoned text_dropped"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestCutShort: what a run stored but did not publish is published by a later one.
func TestCutShort(t *testing.T) {
	f := newFixture(t, DefaultConfig())
	f.first.broken.Store(true)
	id := f.hot("bad words")[0]
	f.first.broken.Store(false)
	f.later, f.paper.down = time.Hour, true
	if _, err := f.retrier.Run(t.Context(), time.Time{}, func(int, int) {}); audit.KindOf(err) != audit.KindUnavailable {
		t.Fatal(err)
	}
	f.paper.down = false
	f.run(Outcome{}) // it is current already and settles
	// A quarter of an hour later.
	if err := f.conn.Exec(t.Context(), "INSERT INTO "+f.db+".verdicts SELECT * REPLACE (written_at - INTERVAL 16 MINUTE AS written_at) FROM "+f.db+".verdicts FINAL WHERE analyzer_version != ''"); err != nil {
		t.Fatal(err)
	}
	out := f.run(Outcome{Again: 2}) // the first verdict and the attempt: the newest message is of the newest result
	digest := sha256.Sum256([]byte("bad words"))
	if len(f.paper.events) != 2 || f.paper.events[0].ResultID != audit.HotResultID("acme", id, digest) {
		t.Fatalf("%+v", f.paper.events)
	}
	if e := f.paper.events[1]; e.AuditID != id || e.ResultID != audit.RetryResultID("acme", id, digest, 1) || !e.Detected || e.TraceID != fmt.Sprintf("%032x", 1) || len(e.Scores) == 0 {
		t.Errorf("%+v", e)
	}
	again, err := f.retrier.Run(t.Context(), out.Through, func(int, int) {})
	if err != nil || again.Again != 0 {
		t.Errorf("published a third time: %+v %v", again, err)
	}
}

func TestTwoProcessesMakeOneAttempt(t *testing.T) {
	f := newFixture(t, DefaultConfig())
	f.first.broken.Store(true)
	ids := f.hot("bad words", "worse and bad", "fine")
	f.first.broken.Store(false)
	f.later = 2 * time.Minute
	due, err := f.store.Unfinished(t.Context(), store.Due{Now: f.began.Add(f.later), First: time.Minute, Most: time.Hour, Limit: 10})
	if err != nil || len(due) != 3 {
		t.Fatal(len(due), err)
	}
	var wg sync.WaitGroup
	for range 2 { // both have read the same
		wg.Go(func() {
			var out Outcome
			if err := f.retrier.attempt(t.Context(), slices.Clone(due), &out); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if got := f.facts(id); !strings.Contains(got, "hot: partial panic, hot:retry-1 done") || strings.Contains(got, "retry-2") {
			t.Error(got)
		}
	}
	f.checked()
}

func TestAnEndedContextIsNoVerdict(t *testing.T) {
	f := newFixture(t, DefaultConfig())
	f.first.broken.Store(true)
	id := f.hot("bad words")[0]
	f.later = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	f.retrier.Analyze = func(ctx context.Context, in *audit.Interaction) *audit.Verdict {
		cancel()
		return f.analyze(ctx, in)
	}
	if _, err := f.retrier.Run(ctx, time.Time{}, func(int, int) {}); audit.KindOf(err) != audit.KindUnavailable {
		t.Error(err)
	}
	if got, want := f.facts(id), "1 partial 1, hot: partial panic"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	if _, err := New(Config{}, Parts{}); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "jobs.verdict_retry.attempts") || !strings.Contains(err.Error(), "jobs.verdict_retry.backoff") {
		t.Error(err)
	}
}
