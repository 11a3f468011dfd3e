package facts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/repair"
	"github.com/evenhand/evenhand/sinks"
	sink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		os.Exit(worker())
	}
	enginetest.Main(m, func() error { return goleak.Find() })
}

// paper keeps what was published; while down it takes nothing.
type paper struct {
	mu       sync.Mutex
	down     bool
	events   []audit.StreamEvent
	opinions []audit.Opinion
}

var errDown = audit.E("test", audit.KindUnavailable, errors.New("down"))

func (p *paper) Publish(_ context.Context, es []audit.StreamEvent) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return errDown
	}
	p.events = append(p.events, es...)
	return nil
}

func (p *paper) Opinions(_ context.Context, os []audit.Opinion) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return errDown
	}
	p.opinions = append(p.opinions, os...)
	return nil
}

// tally counts what became of calls.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) Fact(kind, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[kind+" "+outcome]++
}

func (c *tally) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

// absent is a read model that cannot be written.
type absent struct{}

func (absent) Follow(context.Context, ...store.Key) error { return errDown }

type fixture struct {
	*testing.T
	cfg   chconn.Config
	conn  driver.Conn
	db    string
	st    *store.Store
	sink  *sink.Sink
	mend  *repair.Repairer
	paper *paper
	tally *tally
	w     *Writer
	sent  int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	f := &fixture{T: t, cfg: cfg, conn: enginetest.Conn(t, cfg), db: cfg.Database, paper: &paper{}, tally: &tally{}}
	f.st, f.sink, f.mend = store.New(f.conn, f.db), sink.New(f.conn, f.db, sink.Options{}), repair.New(f.conn, f.db)
	f.w = f.writer(nil)
	return f
}

func (f *fixture) writer(change func(*Parts)) *Writer {
	f.Helper()
	p := Parts{Store: f.st, Rows: f.sink, Current: f.mend, Stream: f.paper, Opinions: f.paper, RevealsPerHour: 3, Observer: f.tally}
	if change != nil {
		change(&p)
	}
	w, err := New(p)
	if err != nil {
		f.Fatal(err)
	}
	return w
}

var noon = time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour)

// event makes the record of an event; even ones are biased.
func (f *fixture) event(tenant string, n int) audit.Record {
	at := noon.Add(time.Duration(n) * time.Minute)
	in := &audit.Interaction{
		ID: audit.DeriveID(tenant, fmt.Sprint(n)), Tenant: tenant, Time: at, TraceID: fmt.Sprintf("%032x", n+1), Domain: audit.HR, Application: "app", Provider: "p", Model: "m", Status: "success",
		Prompt: "Who?", Response: fmt.Sprint("She is bad at it ", n), UserID: "u", Digest: sha256.Sum256(fmt.Append(nil, tenant, n)),
	}
	v := &audit.Verdict{ResultID: audit.HotResultID(tenant, in.ID, in.Digest), Analyzer: audit.HotAnalyzer, RuleSet: "r1", Status: audit.Done, Action: audit.NoAction, Threshold: 300_000, Time: at}
	if n%2 == 0 {
		v.Findings = []audit.Finding{{Kind: "charter.sex", Rule: "sex.a", RuleVersion: "7", Ground: audit.Sex, Severity: audit.High, Score: 600_000, Confidence: 700_000, Side: audit.Output, Span: audit.Span{End: 3}}}
		v.Detected, v.BiasTypes, v.BiasSum, v.Flagged, v.MaxSeverity, v.Confidence, v.Mitigation = true, []string{"charter.sex"}, 600_000, true, 3, 700_000, audit.MitigationReview
		v.Scores = []audit.NamedScore{{Name: audit.ScoreBias, Value: 600_000}}
	}
	f.sent++
	return audit.Record{Origin: audit.Origin{Topic: "llm.interactions", Offset: f.sent - 1, BrokerTime: at.Add(time.Second)}, Interaction: in, Verdict: v}
}

// write stores events as the hot path does.
func (f *fixture) write(rs ...audit.Record) {
	f.Helper()
	lo := rs[0].Origin.Offset
	b := &sinks.Batch{Records: rs, Markers: []sinks.Marker{{Topic: "llm.interactions", Lo: lo, Hi: lo + int64(len(rs)) - 1, Rows: uint32(len(rs)), Generation: 1}}}
	p, err := f.sink.Prepare(b)
	if err == nil {
		err = p.Send(f.Context())
	}
	if err != nil {
		f.Fatal(err)
	}
}

// events stores n events of acme and gives their ids.
func (f *fixture) events(n int) (ids []audit.ID) {
	f.Helper()
	var rs []audit.Record
	for i := range n {
		rs = append(rs, f.event("acme", i))
		ids = append(ids, rs[i].Interaction.ID)
	}
	f.write(rs...)
	return ids
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if err := f.conn.Exec(f.Context(), strings.ReplaceAll(sql, "{{db}}", f.db), args...); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) count(sql string) (n uint64) {
	f.Helper()
	if err := f.conn.QueryRow(f.Context(), strings.ReplaceAll(sql, "{{db}}", f.db)).Scan(&n); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
	return n
}

// text is a query's rows without its names.
func (f *fixture) text(sql string) string {
	f.Helper()
	var b strings.Builder
	if err := store.WriteTSV(f.Context(), &b, f.conn, strings.ReplaceAll(sql, "{{db}}", f.db)); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
	_, rows, _ := strings.Cut(b.String(), "\n")
	return strings.TrimSuffix(rows, "\n")
}

// checked proves the store at rest.
func (f *fixture) checked() {
	f.Helper()
	rep, err := f.st.CheckWith(f.Context(), store.CheckOptions{AtRest: true})
	if err != nil || !rep.OK() {
		f.Errorf("check: %v %+v", err, rep.Faults)
	}
}

// unshown counts the faults of a check at rest.
func (f *fixture) unshown() (n uint64) {
	f.Helper()
	rep, err := f.st.CheckWith(f.Context(), store.CheckOptions{AtRest: true})
	if err != nil {
		f.Fatal(err)
	}
	for _, fault := range rep.Faults {
		n += fault.Count
	}
	return n
}

func who(subject string) *auth.Principal { return &auth.Principal{Tenant: "acme", Subject: subject} }

// says tells that an error is the caller's and names what it should.
func says(t *testing.T, err error, wants ...string) {
	t.Helper()
	if audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("%v is no fault of the caller", err)
		return
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

// migrated runs the migrations once more.
func migrated(f *fixture) { migratetest.Run(f.T, f.cfg) }
