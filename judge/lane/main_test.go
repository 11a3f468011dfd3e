package lane

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/judge"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/repair"
	"github.com/evenhand/evenhand/sinks"
	sink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

// model answers as texts say: "stereotype" is one, "hang", "garbage", "reject" and "panic" do so, "costly" gives no verdict for two calls; "falter" fails
// and "relapse" is costly when it is asked the second time.
type model struct {
	mu    sync.Mutex
	down  bool
	shut  bool            // its server takes the key no more
	spent map[string]bool // tenants without budget
	asked map[string]int  // texts
	given map[string]int  // answers
	turn  int
	hold  chan struct{} // each answer takes one; nil: none does
}

var errDown = audit.E("model", audit.KindUnavailable, errors.New("away"))

func (m *model) Evaluate(ctx context.Context, in compliance.Input) (*compliance.Result, error) {
	m.mu.Lock()
	if m.asked == nil {
		m.asked, m.given = map[string]int{}, map[string]int{}
	}
	m.asked[in.Text]++
	times := m.asked[in.Text]
	m.turn++
	turn, down, shut, spent := m.turn, m.down, m.shut, m.spent[in.Tenant]
	m.mu.Unlock()
	if m.hold != nil {
		select {
		case <-m.hold:
		case <-ctx.Done():
			return nil, audit.E("model", audit.KindUnavailable, ctx.Err())
		}
	}
	switch {
	case down:
		return nil, errDown
	case shut:
		return nil, audit.E("model", audit.KindInvalid, errors.New("HTTP 401"))
	case spent:
		return nil, audit.E("model", audit.KindOverloaded, llm.ErrBudget)
	case strings.Contains(in.Text, "hang"):
		<-ctx.Done()
		return nil, audit.E("model", audit.KindUnavailable, ctx.Err())
	case strings.Contains(in.Text, "costly"), strings.Contains(in.Text, "relapse") && times == 2:
		return &compliance.Result{Model: "gpt", PromptVersion: "1", Calls: 2, Usage: llm.Usage{Input: 200, Output: 60}, CostUSD: 0.000_4}, audit.E("model", audit.KindInvalid, compliance.ErrAnswer)
	case strings.Contains(in.Text, "busy"), strings.Contains(in.Text, "falter") && times == 2:
		return nil, errDown
	case strings.Contains(in.Text, "garbage"):
		return nil, audit.E("model", audit.KindInternal, errors.New("no JSON"))
	case strings.Contains(in.Text, "reject"):
		return nil, audit.E("model", audit.KindInvalid, errors.New("too long"))
	case strings.Contains(in.Text, "panic"):
		panic(in.Text)
	}
	m.set(func() { m.given[in.Text]++ })
	r := &compliance.Result{Model: "gpt", PromptVersion: "1", Verdict: &compliance.Verdict{}, Calls: 1, Usage: llm.Usage{Input: 100, Output: 50}, CostUSD: 0.000_25, Confidence: 900_000}
	r.Verdict.Overall.Assessment = "compliant"
	r.Scores = []audit.NamedScore{{Name: "judge", Value: 0}}
	if strings.Contains(in.Text, "stereotype") || strings.Contains(in.Text, "doubtful") && turn%2 == 0 {
		r.Detected, r.Verdict.Overall.Assessment = true, "non_compliant"
		r.Scores[0].Value = 700_000
		r.Findings = []audit.Finding{{Kind: "judge.stereotype", Rule: "judge.stereotype", RuleVersion: "1", Ground: audit.Sex, Severity: audit.Medium, Score: 700_000, Confidence: 900_000, Side: audit.Output, Span: audit.Span{Start: 0, End: 3}}}
	}
	return r, nil
}

func (m *model) set(f func()) { m.mu.Lock(); defer m.mu.Unlock(); f() }

func (m *model) askedFor(text string) int { m.mu.Lock(); defer m.mu.Unlock(); return m.asked[text] }

// total is how many texts were asked about.
func (m *model) total() int { m.mu.Lock(); defer m.mu.Unlock(); return len(m.asked) }

// paper keeps what was published.
type paper struct {
	mu     sync.Mutex
	down   bool
	events []audit.StreamEvent
	dead   []audit.Rejected
	told   []audit.Record
}

func (p *paper) Publish(_ context.Context, es []audit.StreamEvent) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return audit.E("paper", audit.KindUnavailable, errors.New("away"))
	}
	p.events = append(p.events, es...)
	return nil
}

func (p *paper) DeadLetter(_ context.Context, rs []audit.Rejected) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = append(p.dead, rs...)
	return nil
}

func (p *paper) hear(r *audit.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, *r)
}

// heard are the verdicts that were told of an interaction, as "status reason".
func (p *paper) heard(id audit.ID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, r := range p.told {
		if r.Interaction.ID == id {
			out = append(out, strings.TrimSpace(string(r.Verdict.Status)+" "+r.Verdict.Reason))
		}
	}
	return strings.Join(out, ", ")
}

// newest is the last message on an interaction.
func (p *paper) newest(id audit.ID) (e audit.StreamEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.events {
		if p.events[i].AuditID == id {
			e = p.events[i]
		}
	}
	return e
}

// published is how many interactions the stream was told of.
func (p *paper) published() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := map[audit.ID]bool{}
	for i := range p.events {
		ids[p.events[i].AuditID] = true
	}
	return len(ids)
}

// tally counts what an observer is told.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *tally) add(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	t.n[what] += n
}

func (t *tally) of(what string) int { t.mu.Lock(); defer t.mu.Unlock(); return t.n[what] }

func (t *tally) Judged(why, outcome, reason string, _ time.Duration) {
	t.add(strings.TrimSpace(outcome+" "+reason), 1)
	t.add(outcome+" for "+why, 1)
}
func (t *tally) JudgeSpent(calls, in, out int, _ float64) {
	t.add("calls", calls)
	t.add("tokens", in+out)
}
func (t *tally) JudgeOdd(what string, n int) { t.add(what, n) }
func (t *tally) JudgeAgainst(rules, judge bool) {
	t.add(fmt.Sprintf("rules %v judge %v", rules, judge), 1)
}

type fixture struct {
	*testing.T
	conn   driver.Conn
	db     string
	kafka  kafkaconn.Config
	store  *store.Store
	model  *model
	paper  *paper
	tally  *tally
	asker  *Asker
	lane   *Lane
	later  atomic.Int64 // nanoseconds by which the lane's clock is ahead
	sent   int64
	tenant string // of what is taken in; "": acme
}

func newFixture(t *testing.T, cfg Config, choose judge.Config) *fixture {
	t.Helper()
	at := enginetest.Database(t)
	migratetest.Run(t, at)
	f := &fixture{T: t, conn: enginetest.Conn(t, at), db: at.Database, kafka: brokertest.Start(t), model: &model{}, paper: &paper{}, tally: &tally{}}
	f.store = store.New(f.conn, f.db)
	if _, err := kafkaconn.Ensure(t.Context(), f.kafka, kafkaconn.Topics(2), 1); err != nil {
		t.Fatal(err)
	}
	pub, err := bus.NewPublisher(f.kafka, bus.DefaultPublisherOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pub.Close() })
	sel, err := judge.NewSelector(choose)
	if err != nil {
		t.Fatal(err)
	}
	f.asker = &Asker{Selector: sel, Publisher: pub, Asked: func(why judge.Reason, n int) { f.tally.add("asked "+string(why), n) }, Lost: func(n int) { f.tally.add("lost", n) }, Logger: nothing}
	f.lane = f.newLane(cfg, "gpt/1")
	return f
}

func (f *fixture) newLane(cfg Config, version string) *Lane {
	f.Helper()
	l, err := New(cfg, Parts{Store: f.store, Evaluator: f.model, Version: version, Selector: f.asker.Selector, Rows: sink.New(f.conn, f.db, sink.Options{}),
		Current: repair.New(f.conn, f.db), Stream: f.paper, Bury: f.paper.DeadLetter, Told: f.paper.hear, Observer: f.tally, Now: f.now})
	if err != nil {
		f.Fatal(err)
	}
	l.quick = time.Millisecond
	return l
}

func (f *fixture) now() time.Time { return time.Now().Add(time.Duration(f.later.Load())) }

// hot takes in responses as the pipeline would, asks the judge when ask is set, and gives the records.
func (f *fixture) hot(ask bool, domain audit.Domain, responses ...string) []audit.Record {
	f.Helper()
	b := &sinks.Batch{}
	lo := f.sent
	for _, response := range responses {
		now := time.Now().UTC().Truncate(time.Millisecond)
		in := &audit.Interaction{
			ID: audit.NewID(now), Tenant: cmp.Or(f.tenant, "acme"), Time: now, TraceID: fmt.Sprintf("%032x", f.sent+1), SpanID: "00f067aa0ba902b7", Metadata: `{"gen_ai.response.id":"r1"}`, Domain: domain, Provider: "p", Model: "m", Status: "success",
			Prompt: "Who?", Query: "Who?", Response: response, Digest: sha256.Sum256([]byte(response)),
			PromptTokens: audit.Unknown, ResponseTokens: audit.Unknown, LatencyMS: audit.Unknown, CostMicroUSD: audit.Unknown,
		}
		v := &audit.Verdict{Analyzer: audit.HotAnalyzer, ResultID: audit.HotResultID(in.Tenant, in.ID, in.Digest), Status: audit.Done, Action: audit.NoAction, RuleSet: "r1", Threshold: 300_000, Time: now}
		if strings.Contains(response, "grey") {
			v.Detected, v.BiasSum, v.BiasTypes = true, 250_000, []string{"charter.age"}
			v.Findings = []audit.Finding{{Kind: "charter.age", Rule: "age.x", RuleVersion: "1", Ground: audit.Age, Severity: audit.Low, Score: 250_000, Side: audit.Output}}
			v.Scores, v.Confidence, v.MaxSeverity = []audit.NamedScore{{Name: "bias", Value: 250_000}}, 500_000, 1
		}
		b.Records = append(b.Records, audit.Record{Origin: audit.Origin{Topic: "llm.interactions", Offset: f.sent, BrokerTime: now}, Interaction: in, Verdict: v})
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
	if ask {
		f.asker.Ask(f.Context(), b.Records)
	}
	return b.Records
}

// run runs a lane until the returned function is called, or the test ends.
func (f *fixture) run(l *Lane) (stop func()) {
	f.Helper()
	opt := bus.DefaultSubscriberOptions()
	opt.RetryMin, opt.RetryMax, opt.Drain, opt.Ahead = 5*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond, Ahead
	sub, err := bus.NewSubscriber(f.kafka, opt)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, sub) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.Error(err)
		}
	})
	f.Cleanup(stop)
	return stop
}

// until waits for a condition.
func (f *fixture) until(what string, is func() bool) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 15*time.Minute) // test machines are busy
	defer cancel()
	for !is() {
		if !wait.For(ctx, 20*time.Millisecond) {
			f.tally.mu.Lock()
			defer f.tally.mu.Unlock()
			f.Fatalf("%s did not come about: %v", what, f.tally.n)
		}
	}
}

// judged are the judge's verdicts on an interaction, as "attempt status reason".
func (f *fixture) judged(id audit.ID) string {
	f.Helper()
	var out []string
	rows, err := f.conn.Query(f.Context(), "SELECT concat(analyzer_version, ' ', status, ' ', reason) FROM "+f.db+".verdicts FINAL WHERE analyzer = 'judge' AND event_id = toUUID(?) ORDER BY analysis_ts", id.String())
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
	return strings.Join(out, ", ")
}

// count counts rows.
func (f *fixture) count(sql string) (n uint64) {
	f.Helper()
	from := f.db + "." + sql
	if strings.HasPrefix(sql, "(") {
		from = strings.ReplaceAll(sql, "{db}", f.db)
	}
	if err := f.conn.QueryRow(f.Context(), "SELECT count() FROM "+from).Scan(&n); err != nil {
		f.Fatal(err)
	}
	return n
}

func (f *fixture) checked() {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute) // what is stored is shown a moment later
	defer cancel()
	for {
		rep, err := f.store.Check(f.Context())
		if err == nil && rep.OK() {
			return
		}
		if !wait.For(ctx, 50*time.Millisecond) {
			f.Errorf("%v %+v", err, rep)
			return
		}
	}
}

// published waits until so many messages are on the stream: then the read model shows what they say.
func (f *fixture) published(n int) {
	f.Helper()
	f.until("messages", func() bool { f.paper.mu.Lock(); defer f.paper.mu.Unlock(); return len(f.paper.events) >= n })
}

// tuned are settings for tests.
func tuned() Config {
	c := DefaultConfig()
	c.PerSecond = 5000
	return c
}

// all chooses everything.
func all() judge.Config { return judge.Config{Band: 0.5, RandomPercent: 100} }

func (f *fixture) exec(sql string) {
	f.Helper()
	if err := f.conn.Exec(f.Context(), strings.ReplaceAll(sql, "{db}", f.db)); err != nil {
		f.Fatal(err)
	}
}

// aged has the judge's rows written earlier.
func (f *fixture) aged(by string) {
	f.Helper()
	f.exec("INSERT INTO {db}.verdicts SELECT * REPLACE (written_at - " + by + " AS written_at) FROM {db}.verdicts FINAL WHERE analyzer = 'judge'")
}

// swept sweeps from the beginning and compares what it found.
func (f *fixture) swept(w *Sweeper, lost, again int) {
	f.Helper()
	out, err := w.Sweep(f.Context(), time.Time{})
	if err != nil || out.Lost != lost || out.Again != again || out.Through.IsZero() {
		f.Errorf("swept %+v %v, want %d lost, %d again", out, err, lost, again)
	}
}
