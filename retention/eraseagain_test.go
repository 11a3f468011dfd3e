package retention_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/retention"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
)

// counting counts the statements of a connection.
type counting struct {
	driver.Conn
	n atomic.Int64
}

func (c *counting) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	c.n.Add(1)
	return c.Conn.Query(ctx, sql, args...)
}

func (c *counting) QueryRow(ctx context.Context, sql string, args ...any) driver.Row {
	c.n.Add(1)
	return c.Conn.QueryRow(ctx, sql, args...)
}

func (c *counting) Exec(ctx context.Context, sql string, args ...any) error {
	c.n.Add(1)
	return c.Conn.Exec(ctx, sql, args...)
}

func (c *counting) PrepareBatch(ctx context.Context, sql string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	c.n.Add(1)
	return c.Conn.PrepareBatch(ctx, sql, opts...)
}

// Erasures that are done cost a night no statement each, also of persons who go on using the service; what comes again of one is found.
func TestErasuresThatAreDoneCostNothing(t *testing.T) {
	w := newWorld(t)
	mine, later := of("person-17", w.event("acme", 0, 0)), of("person-18", w.event("acme", 1, 8))
	w.write([]audit.Record{mine, later}, nil)
	w.on(1)
	w.erase("acme", "person-17")
	w.erase("acme", "person-18") // who says more on this very day
	w.run(w.retention(short()))
	statements := func() int64 {
		t.Helper()
		c := &counting{Conn: w.conn}
		r, err := retention.New(c, w.db, short(), retention.Options{Now: func() time.Time { return w.clock }, DiskWait: time.Minute, Poll: 200 * time.Millisecond, Seal: w.key})
		if err != nil {
			t.Fatal(err)
		}
		if out := w.run(r); out.Mutations != 0 {
			t.Errorf("%+v", out)
		}
		return c.n.Load()
	}
	few := statements()
	w.exec(`INSERT INTO {db}.erasures (tenant_id, erasure_id, version, who, reason, by, at, done_at, interactions, texts)
		SELECT concat('t', toString(number % 3)), generateUUIDv4(), 2, SHA256(toString(number)), 'request-2', 'ann', '2026-01-01', '2026-01-02', 0, 0 FROM numbers(300)`)
	if many := statements(); many != few {
		t.Errorf("%d statements with 300 erasures more that are done, %d without them", many, few)
	}
	w.write([]audit.Record{mine, later}, nil) // a log that is read again
	if out := w.run(w.retention(short())); out.Texts != 5 || w.texts("acme", mine) != 0 || w.texts("acme", later) != 4 {
		t.Errorf("%+v; %d texts of the erased are left, %d of what was said later", out, w.texts("acme", mine), w.texts("acme", later))
	}
	w.check()
}

// Words about erased interactions that were on their way when the person was erased go at the next run, though nothing says
// any more whose they are; those about others stay, and why somebody looked.
func TestWordsThatComeAfterAnErasureGo(t *testing.T) {
	const person = "person-17"
	w := newWorld(t)
	mine, other := of(person, w.event("acme", 0, 0)), w.event("acme", 0, 1)
	w.write([]audit.Record{mine, other}, nil)
	w.on(1)
	w.erase("acme", person)
	w.run(w.retention(short()))
	for _, r := range []audit.Record{mine, other} {
		in, at := r.Interaction, w.clock
		f := func(kind string) chsink.Fact {
			return chsink.Fact{ID: audit.NewID(at), Tenant: in.Tenant, Day: in.Day(), Event: in.ID, Digest: in.Digest, By: "ann", At: at, Texts: []chsink.FactText{{Kind: kind, Text: "they said that"}}}
		}
		v := &audit.Verdict{ResultID: audit.NewID(at), Analyzer: audit.JudgeAnalyzer, Source: "attempt-1", Status: audit.Done, Action: audit.NoAction, Time: at}
		for _, err := range []error{
			w.sink.Judged(t.Context(), audit.Record{Origin: r.Origin, Interaction: in, Verdict: v}, chsink.Judging{Words: `{"reason":"they said that"}`}),
			w.sink.Feedback(t.Context(), f(chsink.KindFeedbackNote), nil),
			w.sink.Reveal(t.Context(), f(chsink.KindRevealReason), true),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if a, b := w.texts("acme", mine), w.texts("acme", other); a != 3 || b != 7 {
		t.Fatalf("%d texts of the erased and %d of another, want 3 and 7", a, b)
	}
	w.on(2)
	if out := w.run(w.retention(short())); out.Texts != 2 {
		t.Errorf("%+v", out)
	}
	if a, b := w.texts("acme", mine), w.texts("acme", other); a != 1 || b != 7 {
		t.Errorf("%d texts of the erased and %d of another are left, want the reason of the reveal and 7", a, b)
	}
	if rep := w.check(); rep.FactSeals.TextsErased != 2 {
		t.Errorf("%+v", rep.FactSeals)
	}
	if out := w.run(w.retention(short())); out.Texts+uint64(out.Mutations) != 0 {
		t.Errorf("the next run found %+v", out)
	}
}
