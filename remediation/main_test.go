package remediation

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/breaches"
	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sinks/linear"
	"github.com/evenhand/evenhand/sinks/linear/lineartest"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(childVariable); spec != "" {
		os.Exit(child(spec))
	}
	enginetest.Main(m, func() error { return goleak.Find() })
}

const secret = "lin_wh_0123456789abcdef"

// fixture is an installation: store, log, Linear.
type fixture struct {
	*testing.T
	conn    driver.Conn
	db      string
	kafka   kafkaconn.Config
	stub    *lineartest.Stub
	gate    *gate // between us and the stub
	outbox  *Outbox
	arbiter *arbiter.Kafka
	pub     *bus.Publisher
	later   atomic.Int64 // nanoseconds by which our clock is ahead

	sweeps sync.Mutex
	from   time.Time // of the next sweep
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	stub := lineartest.Start(t)
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	f := &fixture{T: t, conn: enginetest.Conn(t, cfg), db: cfg.Database, kafka: brokertest.Start(t), stub: stub, gate: newGate(t, stub.URL)}
	f.outbox = NewOutbox(f.conn, f.db)
	if _, err := kafkaconn.Ensure(t.Context(), f.kafka, kafkaconn.Topics(1), 1); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.arbiter, err = arbiter.Open(t.Context(), f.kafka, arbiter.Options{Rules: rules(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.arbiter.Close(context.Background()) })
	if f.pub, err = bus.NewPublisher(f.kafka, bus.DefaultPublisherOptions()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.pub.Close() })
	return f
}

func rules(t *testing.T) *arbiter.Rules {
	t.Helper()
	r, err := arbiter.NewRules(arbiter.States("breach", audit.BreachStates))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (f *fixture) now() time.Time { return time.Now().Add(time.Duration(f.later.Load())) }

// gate is a way to the stub that can be shut.
type gate struct {
	*httptest.Server
	shut atomic.Bool
}

func newGate(t *testing.T, to string) *gate {
	t.Helper()
	u, err := url.Parse(strings.TrimSuffix(to, "/graphql"))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) },
		ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { drop(w) }}
	g := &gate{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.shut.Load() {
			drop(w)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { g.Close(); transport.CloseIdleConnections() })
	return g
}

// drop cuts the connection.
func drop(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func policy() Policy {
	p := DefaultPolicy()
	p.Review = "https://evenhand.example.com/review?tenant={tenant}&domain={domain}&kind={kind}&from={from}&to={to}"
	p.Grafana = "https://grafana.example.com/d/bias?var-tenant={tenant}&var-domain={domain}&from={from_ms}&to={to_ms}"
	return p
}

// linearTo is the tracker of tests: it gives up early.
func linearTo(t *testing.T, url string) *linear.Tracker {
	t.Helper()
	c := linear.DefaultConfig()
	c.APIKey, c.Team, c.Endpoint, c.Timeout = lineartest.Key, lineartest.Team, url, 400*time.Millisecond
	tr, err := linear.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

func quick(now func() time.Time) Options {
	o := DefaultOptions()
	o.RetryMin, o.RetryMax, o.Quick, o.RestMax, o.PerSecond, o.Now = 10*time.Millisecond, 50*time.Millisecond, 5*time.Millisecond, 20*time.Millisecond, 2000, now
	return o
}

// service is one that sends to Linear by way of the gate.
func (f *fixture) service() *Service { return f.serviceFor(linearTo(f.T, f.gate.URL+"/graphql")) }

func (f *fixture) serviceFor(trackers ...sinks.Tracker) *Service {
	f.Helper()
	var targets []Target
	for _, tr := range trackers {
		targets = append(targets, Target{tr, policy()})
	}
	s, err := New(f.outbox, f.pub, quick(f.now), targets...)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// run runs a service's router until the returned function is called, or the test ends.
func (f *fixture) run(s *Service) (stop func()) {
	f.Helper()
	opt := bus.DefaultSubscriberOptions()
	opt.RetryMin, opt.RetryMax, opt.Drain = 5*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond
	tickets, issues, err := subscribers(f.kafka, opt)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, tickets, issues, f.arbiter) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.Error(err)
		}
	})
	f.Cleanup(stop)
	return stop
}

// subscribers are those of a router.
func subscribers(conn kafkaconn.Config, opt bus.SubscriberOptions) (tickets, issues *bus.Subscriber, err error) {
	if tickets, err = bus.NewSubscriber(conn, opt); err != nil {
		return nil, nil, err
	}
	opt.Group += IssuesGroup
	issues, err = bus.NewSubscriber(conn, opt)
	return tickets, issues, err
}

// until sweeps and looks until ok holds.
func (f *fixture) until(s *Service, what string, ok func() bool) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	for !ok() {
		f.sweep(s)
		if !wait.For(ctx, 50*time.Millisecond) {
			list, _ := f.outbox.List(context.Background(), Filter{})
			b, _ := json.MarshalIndent(list, "", " ")
			f.Fatalf("%s did not come about; the outbox is\n%s", what, b)
		}
	}
}

func (f *fixture) sweep(s *Service) Outcome {
	f.Helper()
	f.sweeps.Lock()
	defer f.sweeps.Unlock()
	out, err := s.Sweep(f.Context(), f.from)
	if err != nil {
		f.Fatal(err)
	}
	f.from = out.Through
	return out
}

// settled tells whether every ticket was sent, at least n of them.
func (f *fixture) settled(n int) func() bool {
	return func() bool {
		list, err := f.outbox.List(f.Context(), Filter{})
		if err != nil {
			f.Fatal(err)
		}
		for i := range list {
			if list[i].State != Sent {
				return false
			}
		}
		return len(list) >= n
	}
}

// breach is an open one of a kind.
func breach(kind string) audit.Breach {
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	return audit.Breach{
		ID: audit.DerivedV4("breach", "acme", "default", "hr", kind, "", "1"), Tenant: "acme", Policy: "default", Tier: audit.TierRate, Domain: "hr", Kind: kind,
		Generation: 1, State: audit.BreachOpen, Reason: "breached", Opened: at, From: at.Add(-24 * time.Hour), To: at, N: 2000, K: 82, Rate: 0.041, Lower: 0.033168, Upper: 0.050568,
		Baseline: 0.012, BaselineN: 40000, P: 3.1e-19, Severity: audit.High, RuleSet: "9f8a3c",
		TopRules:   []audit.RuleCount{{Rule: "age.older.too_old", Interactions: 61}, {Rule: "age.younger.too_young", Interactions: 21}},
		Events:     []audit.ID{audit.DerivedV4("event", "1"), audit.DerivedV4("event", "2")},
		Mitigation: audit.MitigationRephrase,
		Split:      []audit.Behind{{Of: "application", Value: "careers", Interactions: 60}, {Of: "application", Value: "desk", Interactions: 22}, {Of: "model", Value: "m-2", Interactions: 82}},
	}
}

// decide puts a transition of a breach to the arbiter and projects it, as alarms do.
func (f *fixture) decide(b audit.Breach, state audit.BreachState, reason string) audit.Breach {
	f.Helper()
	key := arbiter.Key{Kind: breaches.Kind, ID: b.ID.String()}
	history, err := f.arbiter.History(f.Context(), key)
	if err != nil {
		f.Fatal(err)
	}
	b.State, b.Reason, b.Seq = state, reason, uint32(len(history)+1)
	value, err := json.Marshal(b)
	if err != nil {
		f.Fatal(err)
	}
	d, err := f.arbiter.Propose(f.Context(), arbiter.Proposal{Key: key, Seq: b.Seq, Value: value})
	if err != nil {
		f.Fatal(err)
	}
	row, err := breaches.Of(&d)
	if err == nil {
		err = breaches.Write(f.Context(), f.outbox.conn, f.outbox.db, row)
	}
	if err != nil {
		f.Fatal(err)
	}
	b.Changed = d.Time
	return b
}

// newest is a breach's newest state by the arbiter.
func (f *fixture) newest(b audit.Breach) audit.Breach {
	f.Helper()
	d, ok, err := f.arbiter.Winner(f.Context(), arbiter.Key{Kind: breaches.Kind, ID: b.ID.String()})
	if err != nil || !ok {
		f.Fatal(ok, err)
	}
	got, err := breaches.Of(&d)
	if err != nil {
		f.Fatal(err)
	}
	return got
}

// exactly checks what Linear holds of breaches: one issue each, its comments in the order of the
// transitions, each once, and its two links.
func (f *fixture) exactly(comments map[audit.ID][]string) {
	f.Helper()
	s := f.stub.State(f.T)
	if len(s.Issues) != len(comments) {
		f.Errorf("%d issues of %d breaches", len(s.Issues), len(comments))
	}
	ids := map[string]audit.ID{}
	links := map[string]int{}
	for id := range comments {
		ids[issueID(linear.Name, &audit.Breach{ID: id}).String()] = id
	}
	keys := map[string]string{}
	for _, i := range s.Issues {
		if ids[i.ID].IsZero() {
			f.Errorf("issue %s is nobody's", i.Identifier)
		}
		keys[i.Identifier] = i.ID
	}
	for _, a := range s.Attachments {
		links[keys[a.Issue]]++
	}
	said := map[string][]string{}
	for _, c := range s.Comments {
		said[c.IssueID] = append(said[c.IssueID], c.Body)
	}
	for issue, id := range ids {
		if links[issue] != 2 {
			f.Errorf("issue of %s has %d links", id, links[issue])
		}
		if got, want := said[issue], comments[id]; len(got) != len(want) {
			f.Errorf("issue of %s has %d comments, not %d: %q", id, len(got), len(want), got)
		} else {
			for n := range want {
				if !strings.Contains(got[n], want[n]) {
					f.Errorf("comment %d of %s is %q, not %q", n, id, got[n], want[n])
				}
			}
		}
	}
}

// Words by which comments are told apart.
const (
	goesOn   = "The breach goes on"
	returned = "**The breach has returned** after this issue was closed"
	near     = "has stayed near its baseline"
)

// inbox serves the webhook door and has the stub deliver to it.
func (f *fixture) inbox() *httptest.Server {
	f.Helper()
	server := httptest.NewServer(&Inbox{Outbox: f.outbox, Publisher: f.pub, Target: linear.Name, Secret: secret, Logger: slog.New(slog.DiscardHandler)})
	f.Cleanup(server.Close)
	f.stub.Hook(f.T, server.URL, secret)
	return server
}
