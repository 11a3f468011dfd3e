package gates_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(racerEnv) != "" {
		os.Exit(racer())
	}
	enginetest.Main(m, func() error { return goleak.Find() })
}

// world is a store and a log; processes on it come and go.
type world struct {
	*testing.T
	tenant string
	cfg    chconn.Config
	conn   driver.Conn
	db     string
	kafka  kafkaconn.Config
	store  *store.Store
	sink   *clickhouse.Sink
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	w := &world{T: t, tenant: "acme", cfg: cfg, conn: enginetest.Conn(t, cfg), db: cfg.Database, kafka: brokertest.Start(t)}
	w.store, w.sink = store.New(w.conn, w.db), clickhouse.New(w.conn, w.db, clickhouse.Options{})
	return w
}

// on is the world for a part of a test, with a tenant of its own.
func (w *world) on(t *testing.T, tenant string) *world {
	out := *w
	out.T, out.tenant = t, tenant
	return &out
}

// process is one that serves gates.
type process struct {
	*gates.Service
	log  *arbiter.Kafka
	stop func()
}

// start begins a process; change may be nil. It ends with the test, or by stop.
func (w *world) start(c gates.Config, change func(*gates.Parts)) *process {
	w.Helper()
	rules, err := arbiter.NewRules(arbiter.Once(gates.Kind))
	if err != nil {
		w.Fatal(err)
	}
	log, err := arbiter.Open(w.Context(), w.kafka, arbiter.Options{Proposer: "test", Rules: rules, Store: arbiter.NewStore(w.conn, w.db)})
	if err != nil {
		w.Fatal(err)
	}
	p := gates.Parts{Store: w.store, Rows: w.sink, Log: log}
	if change != nil {
		change(&p)
	}
	s, err := gates.New(c, p)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	ended := false
	stop := func() {
		if !ended {
			ended = true
			cancel()
			<-done
			s.Close()
			if err := log.Close(context.Background()); err != nil {
				w.Error(err)
			}
		}
	}
	w.Cleanup(stop)
	return &process{s, log, stop}
}

// tally counts what became of gates.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) Gate(outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[outcome]++
}

// asking is a configuration whose gates wait for people.
func asking() gates.Config {
	c := gates.DefaultConfig()
	c.Approvers = true
	return c
}

// transfer is seed 001's example.
func (w *world) transfer() gates.Request {
	return gates.Request{
		Tenant: w.tenant, Rule: gates.Rule{ID: "financial", Description: "Financial transaction", Pattern: "transfer", Category: "financial"},
		MatchedText: "transfer $5,000 to account", Provider: "openai", Method: "chat.completions.create", Requester: "svc-1", User: "u-7", Timestamp: time.UnixMilli(1_760_000_000_123),
	}
}

func (w *world) open(p *process, r gates.Request) audit.ID {
	w.Helper()
	id, err := p.Open(w.Context(), r)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *world) wait(p *process, id audit.ID) gates.Decision {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
	defer cancel()
	d, err := p.Wait(ctx, id)
	if err != nil {
		w.Fatal(err)
	}
	return d
}

func (w *world) decide(p *process, id audit.ID, by *auth.Principal, a gates.Answer) *audit.HumanGate {
	w.Helper()
	g, mine, err := p.Decide(w.Context(), id, by, a)
	if err != nil || !mine {
		w.Fatalf("%+v %v %v", g, mine, err)
	}
	return g
}

func (w *world) count(sql string) (n uint64) {
	w.Helper()
	if err := w.conn.QueryRow(w.Context(), strings.ReplaceAll(sql, "{{db}}", w.db)).Scan(&n); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return n
}

// who makes a caller who may answer.
func (w *world) who(subject string) *auth.Principal { return approver(w.tenant, subject) }

func approver(tenant, subject string) *auth.Principal {
	return &auth.Principal{Tenant: tenant, Subject: subject, Roles: []auth.Role{auth.Approver}, May: auth.Grants(auth.Approver), Verified: true}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func gateKey(id audit.ID) arbiter.Key { return arbiter.Key{Kind: gates.Kind, ID: id.String()} }

// eventually waits for what happens beside the test.
func eventually(t *testing.T, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
		<-time.After(10 * time.Millisecond)
	}
}
