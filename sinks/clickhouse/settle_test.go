package clickhouse_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

// running starts a query under an id that runs for about as long as is asked, and returns once the
// server lists it.
func running(t *testing.T, conn driver.Conn, seconds int) (id string, ended chan error) {
	t.Helper()
	id, ended = uuid.NewString(), make(chan error, 1)
	go func() {
		ctx := clickhouse.Context(context.Background(), clickhouse.WithQueryID(id))
		ended <- conn.Exec(ctx, fmt.Sprintf("SELECT sleepEachRow(0.1) FROM numbers(%d) SETTINGS max_block_size = 1 FORMAT Null", 10*seconds))
	}()
	for deadline := time.Now().Add(20 * time.Second); one[uint64](t, conn, "SELECT count() FROM system.processes WHERE query_id = '"+id+"'") == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the query never started")
		}
	}
	return id, ended
}

// An insert of unknown outcome that still runs is killed before the range is written again, and the
// marker is not looked for before that either.
func TestAnInsertOfUnknownOutcomeIsEndedFirst(t *testing.T) {
	conn, db := fresh(t)
	for name, act := range map[string]func(*chsink.Sink) error{
		"write": func(s *chsink.Sink) error {
			send(t, s, batch([]audit.Record{record(1, "one", 0)}))
			return nil
		},
		"markers": func(s *chsink.Sink) error {
			_, _, err := s.Markers(t.Context(), "llm.interactions", 1, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := chsink.New(conn, db, chsink.Options{})
			id, ended := running(t, conn, 120)
			s.Begin(id)
			if err := act(s); err != nil {
				t.Fatal(err)
			}
			if s.Unsettled() != 0 || one[uint64](t, conn, "SELECT count() FROM system.processes WHERE query_id = '"+id+"'") != 0 {
				t.Error("the old insert still runs beside the new one")
			}
			if err := <-ended; chconn.Code(err) == 0 {
				t.Errorf("the old insert ended with %v, want it killed", err)
			}
		})
	}
}

// Into Replicated tables nothing is killed: the insert ends by itself.
func TestAnInsertIntoReplicatedTablesIsWaitedFor(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{Replicated: true})
	id, ended := running(t, conn, 3)
	s.Begin(id)
	send(t, s, batch([]audit.Record{record(1, "one", 0)}))
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the old insert ended with %v", err)
		}
	case <-time.After(5 * time.Second): // its answer is on its way
		t.Error("written beside an insert that still runs")
	}
}

// The server dies under inserts, again and again, and is restarted: sending until it works leaves
// every row once.
func TestTheServerDiesUnderAnInsert(t *testing.T) {
	e := enginetest.Start(t)
	cfg := e.Config(engine.Writer)
	migratetest.Run(t, cfg)
	conn := enginetest.Conn(t, cfg)
	s := chsink.New(conn, cfg.Database, chsink.Options{})
	const rounds, rows = 4, 3000
	for round := range rounds {
		var rs []audit.Record
		for i := range rows {
			n := round*rows + i
			rs = append(rs, record(n, fmt.Sprint("text ", n), int64(n)))
		}
		p, err := s.Prepare(batch(rs))
		if err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Duration(20+35*round)*time.Millisecond, func() { _ = syscall.Kill(e.Endpoint(engine.Writer).PID, syscall.SIGKILL) })
		deadline := time.Now().Add(time.Minute)
		for err = p.Send(t.Context()); err != nil; err = p.Send(t.Context()) {
			if k := audit.KindOf(err); k == audit.KindInvalid || time.Now().After(deadline) {
				t.Fatalf("%s: %v", k, err)
			}
		}
		kill.Stop()
	}
	rep, err := store.New(conn, cfg.Database).Check(t.Context())
	if err != nil || !rep.OK() || rep.Interactions != rounds*rows || rep.Rows != rounds*rows {
		t.Errorf("check: %v %+v", err, rep)
	}
	if s.Unsettled() != 0 {
		t.Errorf("%d inserts are still unsettled", s.Unsettled())
	}
}

func TestQuorumOptions(t *testing.T) {
	show := func(m map[string]any) string {
		var out []string
		for _, k := range slices.Sorted(maps.Keys(m)) {
			out = append(out, fmt.Sprint(k, "=", m[k]))
		}
		return strings.Join(out, " ")
	}
	const plain = "async_insert=0 insert_deduplicate=0"
	const rest = " materialize_skip_indexes_on_insert=0 optimize_on_insert=0"
	for _, tc := range []struct {
		name                 string
		opt                  chsink.Options
		inserts, reads, want string
	}{
		{"one server", chsink.Options{}, plain + rest, "", ""},
		{"replicas without a quorum", chsink.Options{Replicated: true, Cluster: "c"}, plain + rest, "", ""},
		{"a majority", chsink.Options{Replicated: true, InsertQuorum: "auto"}, plain + " insert_quorum=auto insert_quorum_parallel=1" + rest, "", ""},
		{"read from the quorum", chsink.Options{Replicated: true, InsertQuorum: "2", SequentialReads: true},
			plain + " insert_quorum=2 insert_quorum_parallel=0" + rest, "select_sequential_consistency=1", ""},
		{"nonsense", chsink.Options{InsertQuorum: "most", SequentialReads: true}, "", "",
			"clickhouse.insert_quorum: \"most\" is not empty, auto or a number of replicas from 2\n" +
				"clickhouse.insert_quorum: is set, but clickhouse.replicated is false; a quorum needs Replicated tables"},
		{"reads without a quorum", chsink.Options{Replicated: true, SequentialReads: true}, "", "",
			"clickhouse.sequential_reads: is true, but clickhouse.insert_quorum is empty; without a quorum no replica is known to have everything"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if err := tc.opt.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Fatalf("Validate:\n%s\nwant\n%s", got, tc.want)
			}
			if got != "" {
				return
			}
			if got := show(tc.opt.InsertSettings()); got != tc.inserts {
				t.Errorf("inserts go with %s, want %s", got, tc.inserts)
			}
			if got := show(tc.opt.ReadSettings()); got != tc.reads {
				t.Errorf("reads go with %q, want %q", got, tc.reads)
			}
			// A single server takes the settings; its plain tables have no quorum to wait for.
			conn, db := fresh(t)
			s := chsink.New(conn, db, chsink.Options{Replicated: tc.opt.Replicated, InsertQuorum: tc.opt.InsertQuorum, SequentialReads: tc.opt.SequentialReads})
			send(t, s, batch([]audit.Record{record(1, "one", 0)}))
			if ms, _, err := s.Markers(t.Context(), "llm.interactions", 1, 0); err != nil || len(ms) != 1 {
				t.Errorf("markers %v, %v", ms, err)
			}
		})
	}
}

// A server that hangs takes no bytes and gives no answer: Send ends with its context all the same, and
// once the server goes on the range is written, once.
func TestAHungServerHoldsNobody(t *testing.T) {
	e := enginetest.Start(t)
	cfg := e.Config(engine.Writer)
	migratetest.Run(t, cfg)
	s := chsink.New(enginetest.Conn(t, cfg), cfg.Database, chsink.Options{})
	var rs []audit.Record
	for i := range 5000 { // far more than the sockets' buffers take
		r := record(i, fmt.Sprint("text ", i), int64(i))
		r.Interaction.Response = strings.Repeat(fmt.Sprint("word ", i, " "), 800)
		rs = append(rs, r)
	}
	send(t, s, batch(rs[:10])) // connections are open
	p, err := s.Prepare(batch(rs[10:]))
	if err != nil {
		t.Fatal(err)
	}
	pid := e.Endpoint(engine.Writer).PID
	hang := time.AfterFunc(30*time.Millisecond, func() { _ = syscall.Kill(pid, syscall.SIGSTOP) })
	defer func() { hang.Stop(); _ = syscall.Kill(pid, syscall.SIGCONT) }()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := p.Send(ctx); err == nil || audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("Send to a hung server: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Send held on for %v after its context", took)
	}
	hang.Stop()
	_ = syscall.Kill(pid, syscall.SIGCONT)
	deadline := time.Now().Add(time.Minute)
	for err = p.Send(t.Context()); err != nil; err = p.Send(t.Context()) {
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	rep, err := store.New(enginetest.Conn(t, cfg), cfg.Database).Check(t.Context())
	if err != nil || !rep.OK() || rep.Interactions != 5000 {
		t.Errorf("check: %v %+v", err, rep)
	}
}
