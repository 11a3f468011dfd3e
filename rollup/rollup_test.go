package rollup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/repair"
	"github.com/evenhand/evenhand/sinks"
	sink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

// fixture is a store and, beside it, what was done to it: the rollups are counted from that in Go.
type fixture struct {
	*testing.T
	rand   *rand.Rand
	conn   driver.Conn
	db     string
	r      *Roller
	mend   *repair.Repairer
	sink   *sink.Sink
	mark   time.Time // watermark of the last run
	events []*event
	sent   int64
	rules  string
	frozen map[string]bool // tenants whose month is frozen
	kept   map[string]figures
}

// event is an interaction of the model.
type event struct {
	rec     audit.Record // the first delivery
	retries int
	current *audit.Verdict
	review  string
	gone    bool
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	at := enginetest.Database(t)
	migratetest.Run(t, at)
	f := &fixture{T: t, rand: rand.New(rand.NewPCG(7, 11)), conn: enginetest.Conn(t, at), db: at.Database, rules: "r1"}
	f.r, f.mend, f.sink = New(f.conn, f.db), repair.New(f.conn, f.db), sink.New(f.conn, f.db, sink.Options{})
	f.r.overlap = 5 * time.Millisecond // so that what is not found as dirty shows
	return f
}

var today = time.Now().UTC().Truncate(24 * time.Hour)

func pick[T any](f *fixture, of ...T) T { return of[f.rand.IntN(len(of))] }

// make gives a new event of the days before today, edges of days and hours among them.
func (f *fixture) make() *event {
	at := today.Add(-time.Duration(1+f.rand.IntN(60)) * time.Hour).Add(time.Duration(f.rand.IntN(3_600_000)) * time.Millisecond)
	switch f.rand.IntN(6) {
	case 0:
		at = today.AddDate(0, 0, -1).Add(-time.Millisecond)
	case 1:
		at = today.AddDate(0, 0, -1)
	}
	tenant, n := pick(f, "acme", "borealis", "o'hara"), f.sent
	in := &audit.Interaction{
		ID: audit.DeriveID(tenant, fmt.Sprint(n)), Tenant: tenant, Time: at, TraceID: fmt.Sprintf("%032x", n+1), Domain: pick(f, audit.HR, audit.Finance),
		Application: pick(f, "", "app"), Provider: "p", Model: pick(f, "m1", "m2"), Status: "success", Response: fmt.Sprint(n), Digest: sha256.Sum256(fmt.Append(nil, n)),
		CostMicroUSD: pick(f, int64(-1), 0, 2500), TimeAssumed: f.rand.IntN(3) == 0,
	}
	broker := at.Add(time.Duration(f.rand.IntN(5000)) * time.Millisecond)
	if in.TimeAssumed {
		broker = at
	} else if f.rand.IntN(5) == 0 {
		broker = at.Add(48*time.Hour + time.Duration(f.rand.IntN(3)-1)*time.Millisecond) // at the limit
	}
	e := &event{rec: audit.Record{Interaction: in, Verdict: f.verdict(in, at), Origin: f.origin(broker)}}
	e.current = e.rec.Verdict
	f.events = append(f.events, e)
	return e
}

func (f *fixture) origin(at time.Time) audit.Origin {
	f.sent++
	return audit.Origin{Topic: "llm.interactions", Offset: f.sent, BrokerTime: at}
}

// verdict makes one of any findings.
func (f *fixture) verdict(in *audit.Interaction, at time.Time) *audit.Verdict {
	v := &audit.Verdict{ResultID: audit.HotResultID(in.Tenant, in.ID, in.Digest), Analyzer: audit.HotAnalyzer, RuleSet: f.rules, Time: at,
		Status: pick(f, audit.Done, audit.Done, audit.Done, audit.Partial, audit.Failed, audit.Skipped), Action: audit.NoAction}
	if v.Status == audit.Failed || v.Status == audit.Skipped {
		return v
	}
	for range f.rand.IntN(4) {
		x := audit.Finding{Kind: pick(f, "charter.sex", "charter.age", "safety.violence", "terms.gender", "gate.pay"), Rule: "r", Side: pick(f, audit.Output, audit.Output, audit.Input)}
		if !strings.HasPrefix(x.Kind, "gate") && !strings.HasPrefix(x.Kind, "terms") {
			x.Severity = pick(f, audit.Low, audit.Medium, audit.High, audit.Critical)
		}
		v.Findings = append(v.Findings, x)
		if x.Side != audit.Output {
			continue
		}
		switch {
		case strings.HasPrefix(x.Kind, "gate"):
			v.Gated = true
		case strings.HasPrefix(x.Kind, "safety"):
			v.Unsafe = x.Severity == audit.Critical
		default:
			v.BiasTypes, v.Detected, v.Flagged = append(v.BiasTypes, x.Kind), true, x.Severity == audit.High
		}
		v.MaxSeverity, v.Mitigation = max(v.MaxSeverity, x.Severity.Level()), pick(f, "", audit.MitigationRephrase, audit.MitigationBlock)
	}
	slices.Sort(v.BiasTypes)
	v.BiasTypes = slices.Compact(v.BiasTypes)
	return v
}

// figures are n, k, late and cost of a cell.
type figures [4]int64

// cells counts an event into the cells it belongs to, as the comment of the tables says.
func (e *event) cells(into map[string]figures, layout string) {
	in, v := e.rec.Interaction, e.current
	looked := v.Status == audit.Done || v.Status == audit.Partial
	late := int64(0)
	if e.rec.Origin.BrokerTime.Sub(in.Time) > 48*time.Hour {
		late = 1
	}
	add := func(dim, value string, severity uint8, x figures) {
		key := fmt.Sprint(in.Tenant, "|", dim, "|", in.Time.Format(layout), "|", in.Application, "|", in.Domain, "|", in.Model, "|", v.RuleSet, "|", value, "|", severity)
		sum := into[key]
		for i := range x {
			sum[i] += x[i]
		}
		into[key] = sum
	}
	all := figures{0, 1, 0, max(0, in.CostMicroUSD)}
	if looked {
		all[0], all[2] = 1, late
	}
	add("all", "", 0, all)
	one := figures{0, 1, late, 0}
	add("status", string(v.Status), 0, one)
	if !looked {
		return
	}
	bias := e.review != "dismissed"
	for name, on := range map[string]bool{"detected": v.Detected && bias, "flagged": v.Flagged && bias, "unsafe": v.Unsafe, "gated": v.Gated} {
		if on {
			add("outcome", name, 0, one)
		}
	}
	strongest, other := map[string]uint8{}, false
	for _, x := range v.Findings {
		if x.Side == audit.Output {
			strongest[x.Kind] = max(strongest[x.Kind], x.Severity.Level())
		}
	}
	for kind, severity := range strongest {
		isBias := slices.Contains(v.BiasTypes, kind)
		other = other || !isBias
		if bias || !isBias {
			add("kind", kind, severity, one)
		}
		if bias && isBias {
			add("bias", kind, severity, one)
		}
	}
	if v.Mitigation != "" && (bias || other) {
		add("mitigation", v.Mitigation, 0, one)
	}
}

// want counts the model.
func (f *fixture) want(layout string) map[string]figures {
	out := map[string]figures{}
	for _, e := range f.events {
		if !e.gone && !f.frozen[e.rec.Interaction.Tenant] {
			e.cells(out, layout)
		}
	}
	maps.Copy(out, f.kept)
	return out
}

// have reads a rollup without the rows of zeros.
func (f *fixture) have(table, at string) map[string]figures {
	f.Helper()
	rows, err := f.conn.Query(f.Context(), "SELECT concat(tenant_id, '|', dim, '|', "+at+", '|', app, '|', domain, '|', model, '|', rule_set, '|', value, '|', toString(severity)), toInt64(n), toInt64(k), toInt64(late), cost_micro_usd FROM "+
		f.db+"."+table+" FINAL WHERE n + k + late + abs(cost_micro_usd) > 0")
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	out := map[string]figures{}
	for rows.Next() {
		var key string
		var x figures
		if err := rows.Scan(&key, &x[0], &x[1], &x[2], &x[3]); err != nil {
			f.Fatal(err)
		}
		out[key] = x
	}
	if err := rows.Err(); err != nil {
		f.Fatal(err)
	}
	return out
}

// equal holds both rollups against the model.
func (f *fixture) equal(step string) {
	f.Helper()
	for _, x := range []struct{ table, at, layout string }{
		{"rollup_hourly", "formatDateTime(hour, '%Y-%m-%dT%H')", "2006-01-02T15"}, {"rollup_daily", "toString(day)", time.DateOnly},
	} {
		have, want := f.have(x.table, x.at), f.want(x.layout)
		n := 0
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if have[key] != want[key] {
				f.Errorf("%s: %s: %s is %v, want %v", step, x.table, key, have[key], want[key])
				n++
			}
		}
		for _, key := range slices.Sorted(maps.Keys(have)) {
			if _, ok := want[key]; !ok {
				f.Errorf("%s: %s: %s is %v, want nothing", step, x.table, key, have[key])
				n++
			}
		}
		if n > 0 {
			f.FailNow()
		}
	}
}

func (f *fixture) write(rs ...audit.Record) {
	f.Helper()
	p, err := f.sink.Prepare(&sinks.Batch{Records: rs})
	if err == nil {
		err = p.Send(f.Context())
	}
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if err := f.conn.Exec(f.Context(), strings.ReplaceAll(sql, "{{db}}", f.db), args...); err != nil {
		f.Fatal(err)
	}
}

// fill writes some new events.
func (f *fixture) fill(n int) {
	f.Helper()
	var rs []audit.Record
	for range n {
		rs = append(rs, f.make().rec)
	}
	f.write(rs...)
}

// run brings the read model and the rollups up to date.
func (f *fixture) run() Outcome {
	f.Helper()
	f.repaired()
	out, err := f.r.Since(f.Context(), f.mark, func(int, int) {})
	if err != nil || out.Through.IsZero() {
		f.Fatalf("%+v %v", out, err)
	}
	f.mark = out.Through
	return out
}

func (f *fixture) repaired() {
	f.Helper()
	var keys []store.Key
	for _, e := range f.events {
		if in := e.rec.Interaction; !e.gone && (e.review != "" || e.retries > 0) {
			keys = append(keys, store.Key{Tenant: in.Tenant, Day: in.Day(), ID: in.ID, Digest: in.Digest})
		}
	}
	if len(keys) > 0 {
		if err := f.mend.Rewrite(f.Context(), keys, false); err != nil {
			f.Fatal(err)
		}
	}
}

// again delivers events once more, later or earlier than what is known.
func (f *fixture) again() {
	var rs []audit.Record
	for range 6 {
		e := pick(f, f.events...)
		if e.gone {
			continue
		}
		shift := time.Duration(f.rand.IntN(7_200_000)-3_600_000) * time.Millisecond
		r := audit.Record{Origin: f.origin(e.rec.Origin.BrokerTime.Add(shift)), Interaction: e.rec.Interaction, Verdict: e.rec.Verdict}
		if r.Interaction.TimeAssumed { // dated by its delivery, of the same day
			in := *r.Interaction
			if in.Time = r.Origin.BrokerTime; in.Time.Truncate(24*time.Hour) != e.rec.Interaction.Time.Truncate(24*time.Hour) {
				continue
			}
			r.Interaction = &in
		}
		rs = append(rs, r)
		if r.Origin.Version() > e.rec.Origin.Version() {
			e.rec = r
		}
	}
	if len(rs) > 0 {
		f.write(rs...)
	}
}

// judge analyses events again, as a retry does.
func (f *fixture) judge() {
	var rs []audit.Record
	for range 4 {
		e := pick(f, f.events...)
		if e.gone {
			continue
		}
		in := e.rec.Interaction
		e.retries++
		v := f.verdict(in, e.current.Time.Add(time.Hour))
		v.Attempt, v.ResultID = e.retries, audit.RetryResultID(in.Tenant, in.ID, in.Digest, e.retries)
		e.current = v
		rs = append(rs, audit.Record{Origin: e.rec.Origin, Interaction: in, Verdict: v})
	}
	if err := f.sink.Results(f.Context(), rs); err != nil {
		f.Fatal(err)
	}
}

// review has people say something; unsure takes back what was said before.
func (f *fixture) review() {
	for i := range 5 {
		e, said := pick(f, f.events...), pick(f, "dismissed", "dismissed", "confirmed", "unsure")
		if e.gone {
			continue
		}
		in := e.rec.Interaction
		f.sent++
		f.exec("INSERT INTO {{db}}.reviews (tenant_id, event_day, event_id, content_digest, review_id, version, reviewer, decision, reviewed_at) SELECT ?, toDate(?), ?, unhex(?), ?, 1, 'r', ?, fromUnixTimestamp64Milli(toInt64(?))",
			in.Tenant, in.Day().Format(time.DateOnly), in.ID.String(), fmt.Sprintf("%x", in.Digest), audit.DeriveID("review", fmt.Sprint(f.sent)).String(), said, f.sent*1000+int64(i))
		if e.review = said; said == "unsure" {
			e.review = " " // rewritten all the same
		}
	}
}

// remove deletes events and asks for their hours.
func (f *fixture) remove() {
	f.Helper()
	for range 3 {
		e := pick(f, f.events...)
		in := e.rec.Interaction
		e.gone = true
		for _, table := range []string{"audit_current", "interactions", "verdicts", "reviews"} {
			f.exec("DELETE FROM {{db}}."+table+" WHERE event_id = ?", in.ID.String())
		}
		if _, err := f.r.Rebuild(f.Context(), in.Time, in.Time.Add(time.Millisecond), func(int, int) {}); err != nil {
			f.Fatal(err)
		}
	}
}

// Whatever happens to events, the rollups are what a count of the events gives.
func TestEqualToARecount(t *testing.T) {
	f := newFixture(t)
	f.fill(60)
	f.exec("SYSTEM STOP MERGES {{db}}.rollup_hourly") // versions of a cell stay apart
	if out := f.run(); out.Rows == 0 || out.Zeros != 0 || out.Hours == 0 || out.Days < 3 || out.Behind != 0 {
		t.Errorf("first run: %+v", out)
	}
	f.equal("first")
	if out := f.run(); out.Rows != 0 || out.Hours != 0 || out.Zeros != 0 {
		t.Errorf("nothing new: %+v", out)
	}
	var zeros uint64
	for i, step := range []struct {
		name string
		do   func()
	}{
		{"more", func() { f.fill(20) }}, {"delivered again", f.again}, {"judged again", f.judge}, {"reviewed", f.review}, {"delivered again", f.again},
		{"another rule set", func() { f.rules = "r2"; f.fill(10); f.judge() }}, {"removed", f.remove}, {"reviewed", f.review}, {"all at once", func() { f.fill(5); f.again(); f.judge(); f.review() }},
	} {
		step.do()
		out := f.run()
		f.equal(fmt.Sprint(i, " ", step.name))
		zeros += out.Zeros
	}
	if zeros == 0 {
		t.Error("no cell became empty")
	}
	out, err := f.r.Rebuild(t.Context(), today.AddDate(0, 0, -10), today, func(int, int) {})
	if err != nil || out.Rows != 0 || out.Hours == 0 {
		t.Errorf("a rebuild of what is right: %+v %v", out, err)
	}
}

// A run that ends between any two statements is made up for by the next one.
func TestBrokenOffAnywhere(t *testing.T) {
	f := newFixture(t)
	f.fill(30)
	f.run()
	for at := range 6 {
		f.fill(8)
		f.again()
		f.review()
		f.repaired()
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		f.r.between = func() error {
			if n++; n > at {
				cancel()
			}
			return ctx.Err()
		}
		out, err := f.r.Since(ctx, f.mark, func(int, int) {})
		if !errors.Is(err, context.Canceled) || !out.Through.IsZero() {
			t.Fatalf("at %d: %+v %v", at, out, err)
		}
		cancel()
		f.r.between = func() error { return nil }
		f.run()
		f.equal(fmt.Sprint("broken off at ", at))
	}
}

// The first run of a day finds what was seen long after it was written.
func TestTheFirstRunOfADayLooksFurtherBack(t *testing.T) {
	f := newFixture(t)
	f.fill(20)
	f.exec("CREATE TABLE {{db}}.old AS {{db}}.audit_current")
	f.exec("INSERT INTO {{db}}.old SELECT * REPLACE (fromUnixTimestamp64Milli(toInt64(?)) AS written_at) FROM {{db}}.audit_current", today.Add(-12*time.Hour).UnixMilli())
	f.exec("EXCHANGE TABLES {{db}}.old AND {{db}}.audit_current")
	f.mark = today.Add(time.Second)
	if out := f.run(); out.Hours != 0 {
		t.Errorf("seen too late for a run of the same day: %+v", out)
	}
	f.mark = today.Add(-time.Second)
	f.run()
	f.equal("the day after")
}

// Two processes at once, while events come in, end with the same.
func TestTwoAtOnce(t *testing.T) {
	f := newFixture(t)
	f.fill(30)
	f.run()
	stop := make(chan struct{})
	var g errgroup.Group
	for range 2 {
		r := New(f.conn, f.db)
		g.Go(func() error {
			for mark := f.mark; ; {
				out, err := r.Since(t.Context(), mark, func(int, int) {})
				if err != nil {
					return err
				}
				mark = out.Through
				select {
				case <-stop:
					return nil
				default:
				}
			}
		})
	}
	for range 5 {
		f.fill(8)
		f.again()
		f.judge()
		f.repaired()
	}
	close(stop)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	f.r.overlap = store.RollupOverlap // what a slow statement wrote from an older state is found
	f.run()
	f.equal("two at once")
}

// A frozen month stays what it was, though its rows are gone and new ones come.
func TestFrozen(t *testing.T) {
	f := newFixture(t)
	f.fill(40)
	f.run()
	f.equal("before")
	f.frozen, f.kept = map[string]bool{"acme": true}, map[string]figures{}
	hours, days := map[string]figures{}, map[string]figures{}
	for _, e := range f.events {
		if e.rec.Interaction.Tenant == "acme" {
			e.cells(hours, "2006-01-02T15")
			e.cells(days, time.DateOnly)
		}
	}
	f.exec("INSERT INTO {{db}}.rollup_frozen (tenant_id, month, version, frozen_at) SELECT 'acme', toStartOfMonth(toDate(arrayJoin([?, ?]))), 1, now64(3)", today.Format(time.DateOnly), today.AddDate(0, 0, -4).Format(time.DateOnly))
	f.exec("DELETE FROM {{db}}.audit_current WHERE tenant_id = 'acme'")
	f.exec("DELETE FROM {{db}}.interactions WHERE tenant_id = 'acme'")
	f.fill(20)
	f.run()
	if _, err := f.r.Rebuild(t.Context(), today.AddDate(0, 0, -10), today.AddDate(0, 0, 1), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	check := func(table, at, layout string, kept map[string]figures) {
		t.Helper()
		f.kept = kept
		have, want := f.have(table, at), f.want(layout)
		if !maps.Equal(have, want) {
			t.Errorf("%s: %d cells, want %d", table, len(have), len(want))
		}
	}
	check("rollup_hourly", "formatDateTime(hour, '%Y-%m-%dT%H')", "2006-01-02T15", hours)
	check("rollup_daily", "toString(day)", time.DateOnly, days)
	// Rows with the highest bit win, whoever recomputes them.
	f.exec("DELETE FROM {{db}}.rollup_frozen WHERE 1")
	f.exec("INSERT INTO {{db}}.rollup_hourly SELECT * REPLACE (bitOr(version, bitShiftLeft(toUInt64(1), 63)) AS version) FROM {{db}}.rollup_hourly FINAL WHERE tenant_id = 'acme'")
	var before, after string
	digest := "SELECT toString(sum(cityHash64(* EXCEPT (written_at)))) FROM " + f.db + ".rollup_hourly FINAL WHERE tenant_id = 'acme' AND version >= bitShiftLeft(toUInt64(1), 63)"
	if err := f.conn.QueryRow(t.Context(), digest).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if _, err := f.r.Rebuild(t.Context(), today.AddDate(0, 0, -10), today.AddDate(0, 0, 1), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if err := f.conn.QueryRow(t.Context(), digest).Scan(&after); err != nil || cmp.Compare(before, after) != 0 {
		t.Errorf("frozen rows changed: %v", err)
	}
}
