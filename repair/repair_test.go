package repair

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/sinks"
	sink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

type fixture struct {
	*testing.T
	conn driver.Conn
	db   string
	st   *store.Store
	r    *Repairer
	sent int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	at := enginetest.Database(t)
	migratetest.Run(t, at)
	f := &fixture{T: t, conn: enginetest.Conn(t, at), db: at.Database}
	f.st, f.r = store.New(f.conn, f.db), New(f.conn, f.db)
	f.r.settling = -time.Second // rows of now count
	return f
}

var noon = time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour)

// event makes the record of an event of one of three tenants; content stands for the whole content.
func (f *fixture) event(n int, content string, at time.Time) audit.Record {
	tenant := fmt.Sprintf("t'%d", n%3)
	in := &audit.Interaction{
		ID: audit.DeriveID(tenant, fmt.Sprint(n)), Tenant: tenant, Time: at, TraceID: fmt.Sprintf("%032x", n+1), Domain: audit.HR, Application: "app", Provider: "p", Model: "m", Status: "success",
		Prompt: "Who?", Response: content, Digest: sha256.Sum256([]byte(content)),
		TimeAssumed: n == 5, // or else its content, the time included, could not come again on another day
	}
	v := &audit.Verdict{ResultID: audit.HotResultID(tenant, in.ID, in.Digest), Analyzer: audit.HotAnalyzer, RuleSet: "r1", Status: audit.Done, Action: audit.NoAction, Threshold: 300_000, Time: at}
	if n%2 == 0 {
		v.Findings = []audit.Finding{{Kind: "charter.sex", Rule: "r", Ground: audit.Sex, Severity: audit.High, Score: 600_000, Confidence: 700_000, Side: audit.Output, Span: audit.Span{End: 3}},
			{Kind: "safety.violence", Rule: "s", Severity: audit.Low, Score: 1, Side: audit.Input, Span: audit.Span{End: 3}}}
		v.Detected, v.BiasTypes, v.BiasSum, v.Flagged, v.MaxSeverity, v.Confidence, v.Action, v.Mitigation = true, []string{"charter.sex"}, 600_000, true, 3, 700_000, audit.Warn, audit.MitigationBlock
		v.Scores = []audit.NamedScore{{Name: audit.ScoreBias, Value: 600_000}, {Name: audit.ScoreToxicity, Value: 250_000}}
	}
	o := audit.Origin{Topic: "llm.interactions", Offset: f.sent, BrokerTime: at.Add(time.Second)}
	f.sent++
	return audit.Record{Origin: o, Interaction: in, Verdict: v}
}

func (f *fixture) write(rs ...audit.Record) {
	f.Helper()
	b := &sinks.Batch{Records: rs}
	lo := rs[0].Origin.Offset
	b.Markers = []sinks.Marker{{Topic: "llm.interactions", Lo: lo, Hi: lo + int64(len(rs)) - 1, Rows: uint32(len(rs)), Generation: 1}}
	p, err := sink.New(f.conn, f.db, sink.Options{}).Prepare(b)
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

func (f *fixture) list(sql string) string {
	f.Helper()
	var s []string
	if err := f.conn.QueryRow(f.Context(), "SELECT groupArray(toString(x)) FROM (SELECT "+strings.ReplaceAll(sql, "{{db}}", f.db)+")").Scan(&s); err != nil {
		f.Fatal(err)
	}
	return strings.Join(s, ", ")
}

// repaired repairs everything and asks how many rows were rewritten.
func (f *fixture) repaired(want int) Outcome {
	f.Helper()
	var told int
	out, err := f.r.Since(f.Context(), time.Time{}, func(done, _ int) { told = done })
	if err != nil || out.Rewritten != want || out.Through.IsZero() || (out.Looked > 0) != (told > 0) {
		f.Errorf("%+v %v, want %d rewritten", out, err, want)
	}
	return out
}

func (f *fixture) checked() {
	f.Helper()
	rep, err := f.st.Check(f.Context())
	if err != nil || !rep.OK() {
		f.Errorf("%v %+v", err, rep.Faults)
	}
}

func TestRepair(t *testing.T) {
	const wrong = "INSERT INTO {{db}}.audit_current SELECT * REPLACE (version + bitShiftLeft(toUInt64(1), 54) AS version, %s) FROM {{db}}.audit_current FINAL WHERE offset %% 5 = 0"
	for _, tc := range []struct {
		name  string
		spoil func(f *fixture, rs []audit.Record)
		want  int
	}{
		{"nothing is wrong", func(*fixture, []audit.Record) {}, 0},
		{"a fact differs", func(f *fixture, _ []audit.Record) { f.exec(fmt.Sprintf(wrong, "'another' AS model")) }, 4},
		{"a figure of the verdict differs", func(f *fixture, _ []audit.Record) {
			f.exec(fmt.Sprintf(wrong, "toUInt8(1 - flagged) AS flagged"))
		}, 4},
		{"action differs", func(f *fixture, _ []audit.Record) { f.exec(fmt.Sprintf(wrong, "'gate' AS action")) }, 4},
		{"another delivery", func(f *fixture, _ []audit.Record) {
			f.exec(fmt.Sprintf(wrong, "broker_ts + 1 AS broker_ts"))
		}, 4},
		{"rows are missing", func(f *fixture, _ []audit.Record) {
			f.exec("DELETE FROM {{db}}.audit_current WHERE offset IN (3, 4)")
		}, 2},
		{"analysed again under other rules", func(f *fixture, rs []audit.Record) { // the range is written again after a crash, before which no marker came
			f.exec("TRUNCATE TABLE {{db}}.ingest_batches")
			for i := range rs {
				v := *rs[i].Verdict
				v.Time = v.Time.Add(time.Hour)
				v.Flagged = i == 6 // was true of even ones
				rs[i].Verdict = &v
			}
			if err := sink.New(f.conn, f.db, sink.Options{}).Results(f.Context(), rs); err != nil {
				f.Fatal(err)
			}
		}, 9},
		{"a later verdict", func(f *fixture, rs []audit.Record) {
			v := *rs[2].Verdict
			v.Attempt, v.ResultID, v.Time, v.Status, v.Action = 1, audit.RetryResultID("x", rs[2].Interaction.ID, rs[2].Interaction.Digest, 1), v.Time.Add(time.Hour), audit.Abandoned, audit.Block
			rs[2].Verdict = &v
			if err := sink.New(f.conn, f.db, sink.Options{}).Results(f.Context(), rs[2:3]); err != nil {
				f.Fatal(err)
			}
		}, 1},
		{"a verdict is missing", func(f *fixture, _ []audit.Record) { // check's business
			f.exec("DELETE FROM {{db}}.verdicts WHERE event_id IN (SELECT event_id FROM {{db}}.interactions WHERE offset = 3)")
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			var rs []audit.Record
			for n := range 20 {
				rs = append(rs, f.event(n, fmt.Sprint("content ", n), noon.Add(time.Duration(n)*time.Minute)))
			}
			f.write(rs...)
			tc.spoil(f, rs)
			f.repaired(tc.want)
			f.repaired(0)
			if tc.name != "a verdict is missing" {
				f.checked()
			}
			if got := f.list("countIf(version != 0) || '/' || uniqExact(event_id) AS x FROM {{db}}.audit_current FINAL"); got != "20/20" {
				t.Error(got)
			}
		})
	}
}

// human_reviewed follows the reviews: a row that says it without one is mended.
func TestReviewedWithoutAReview(t *testing.T) {
	f := newFixture(t)
	f.write(f.event(1, "a", noon))
	f.exec("INSERT INTO {{db}}.audit_current SELECT * REPLACE (version + bitShiftLeft(toUInt64(4), 54) AS version, toUInt8(1) AS human_reviewed) FROM {{db}}.audit_current FINAL")
	if rep, err := f.st.CheckWith(t.Context(), store.CheckOptions{AtRest: true}); err != nil || len(rep.Faults) != 1 || strings.Join(rep.Faults[0].Columns, " ") != "human_reviewed" {
		t.Errorf("%+v %v", rep.Faults, err)
	}
	f.repaired(1)
	if got := f.list("toString((bitShiftRight(version, 54), human_reviewed)) AS x FROM {{db}}.audit_current FINAL"); got != "(6,0)" {
		t.Error(got)
	}
	f.checked()
}

// A review is a fact like others: the newest holds, and unsure takes back what was said.
func TestReviews(t *testing.T) {
	f := newFixture(t)
	rs := []audit.Record{f.event(1, "a", noon), f.event(2, "b", noon), f.event(3, "c", noon)}
	f.write(rs...)
	f.repaired(0)
	said := 0
	review := func(n int, decision string, at time.Time) {
		in := rs[n].Interaction
		said++
		f.exec("INSERT INTO {{db}}.reviews (tenant_id, event_day, event_id, content_digest, review_id, version, decision, reviewed_at) SELECT ?, toDate(?), ?, unhex(?), ?, 1, ?, fromUnixTimestamp64Milli(toInt64(?))",
			in.Tenant, in.Day().Format(time.DateOnly), in.ID.String(), fmt.Sprintf("%x", in.Digest), audit.DeriveID("review", fmt.Sprint(said)).String(), decision, at.UnixMilli())
	}
	const reviews = "concat(toString(offset), ' ', review) AS x FROM {{db}}.audit_current FINAL ORDER BY offset"
	review(0, "dismissed", noon)
	review(1, "confirmed", noon)
	if rep, err := f.st.CheckWith(t.Context(), store.CheckOptions{AtRest: true}); err != nil || len(rep.Faults) != 1 || rep.Faults[0].Count != 2 || strings.Join(rep.Faults[0].Columns, " ") != "human_reviewed review" {
		t.Errorf("reviews that are not shown: %+v %v", rep.Faults, err)
	}
	f.checked() // one that was said just now waits for the repair
	f.repaired(2)
	if got := f.list(reviews); got != "0 dismissed, 1 confirmed, 2 " {
		t.Error(got)
	}
	review(0, "confirmed", noon.Add(-time.Hour)) // older
	f.repaired(0)
	review(0, "unsure", noon.Add(time.Hour))
	review(1, "dismissed", noon.Add(time.Hour))
	f.repaired(2)
	if got := f.list(reviews); got != "0 , 1 dismissed, 2 " {
		t.Error(got)
	}
	f.write(rs[1]) // delivered again
	f.repaired(0)
	if got := f.list(reviews); got != "0 , 1 dismissed, 2 " {
		t.Error(got)
	}
}

// Rows of a version without rule sets are found however old they are.
func TestRowsOfEarlierVersionsAreFilled(t *testing.T) {
	f := newFixture(t)
	f.write(f.event(1, "a", noon), f.event(2, "b", noon), f.event(4, "c", noon.AddDate(0, -2, 0)))
	for _, table := range []string{"interactions", "verdicts", "audit_current"} {
		f.exec("CREATE TABLE {{db}}.old AS {{db}}." + table)
		lacks := ""
		if table == "audit_current" {
			lacks = ", '' AS rule_set, [] AS severities, 0 AS cost_micro_usd"
		}
		f.exec("INSERT INTO {{db}}.old SELECT * REPLACE (now64(3) - INTERVAL 1 DAY AS written_at" + lacks + ") FROM {{db}}." + table)
		f.exec("EXCHANGE TABLES {{db}}.old AND {{db}}." + table)
		f.exec("DROP TABLE {{db}}.old SYNC")
	}
	out, err := f.r.Since(t.Context(), time.Now(), func(int, int) {})
	if err != nil || out.Rewritten != 3 {
		t.Fatalf("%+v %v", out, err)
	}
	if got := f.list("concat(rule_set, toString(severities)) AS x FROM {{db}}.audit_current FINAL ORDER BY offset"); got != "r1[], r1[3], r1[3]" {
		t.Error(got)
	}
	if out, err = f.r.Since(t.Context(), time.Now(), func(int, int) {}); err != nil || out.Rewritten != 0 {
		t.Errorf("%+v %v", out, err)
	}
	f.checked()
}

func TestOtherContentUnderOneID(t *testing.T) {
	f := newFixture(t)
	f.write(f.event(1, "a", noon), f.event(1, "b", noon.Add(time.Minute)), f.event(2, "c", noon), f.event(3, "d", noon), f.event(3, "e", noon.Add(24*time.Hour)), f.event(5, "f", noon), f.event(5, "f", noon.Add(24*time.Hour)))
	f.repaired(4) // ids 1 and 3, both contents; id 5 came again with the same content on the next day
	const flags = "concat(toString(offset), ' ', toString(id_conflict)) AS x FROM {{db}}.audit_current FINAL ORDER BY offset"
	if got := f.list(flags); got != "0 1, 1 1, 2 0, 3 1, 4 1, 5 0, 6 0" {
		t.Error(got)
	}
	f.repaired(0)
	f.checked()
	// The same content delivered again writes its row with one fact: the flag stays.
	f.write(f.event(1, "a", noon))
	f.repaired(0)
	// Far apart: the whole store tells.
	f.write(f.event(2, "g", noon.Add(-100*24*time.Hour)))
	f.repaired(0)
	d, err := f.st.Duplicates(t.Context())
	if err != nil || d.Conflicts != 3 || d.OtherDays != 3 || len(d.Unseen) != 2 || len(d.Events) != 3 || d.Again != 1 || d.Rows != 9 || d.Interactions != 8 {
		t.Fatalf("%+v %v", d, err)
	}
	if err := f.r.Rewrite(t.Context(), d.Unseen, true); err != nil {
		t.Fatal(err)
	}
	if got := f.list(flags); got != "0 1, 1 1, 2 1, 3 1, 4 1, 5 0, 6 0, 8 1" {
		t.Error(got)
	}
	if d, err = f.st.Duplicates(t.Context()); err != nil || len(d.Unseen) != 0 || d.Conflicts != 3 {
		t.Errorf("%+v %v", d, err)
	}
	f.checked()
}

func TestOnlyWhatWasWrittenSince(t *testing.T) {
	f := newFixture(t)
	f.write(f.event(1, "a", noon), f.event(2, "b", noon), f.event(3, "c", noon))
	f.exec("INSERT INTO {{db}}.audit_current SELECT * REPLACE (version + bitShiftLeft(toUInt64(1), 54) AS version, 'x' AS model) FROM {{db}}.audit_current FINAL")
	for _, table := range []string{"interactions", "verdicts"} { // 16 minutes ago, 14 minutes ago and, by the verdict alone, now
		now := ""
		if table == "verdicts" {
			now = " AND event_id NOT IN (SELECT event_id FROM {{db}}.interactions WHERE offset = 2)"
		}
		f.exec("INSERT INTO {{db}}." + table + " SELECT * REPLACE (written_at - INTERVAL if(event_id IN (SELECT event_id FROM {{db}}.interactions WHERE offset = 1), 14, 16) MINUTE AS written_at) FROM {{db}}." + table + " FINAL WHERE 1" + now)
		f.exec("OPTIMIZE TABLE {{db}}." + table + " FINAL")
	}
	out, err := f.r.Since(t.Context(), time.Now(), func(int, int) {})
	if err != nil || out.Rewritten != 2 {
		t.Fatalf("%+v %v", out, err)
	}
	if got := f.list("concat(toString(offset), ' ', model) AS x FROM {{db}}.audit_current FINAL ORDER BY offset"); got != "0 x, 1 m, 2 m" {
		t.Error(got)
	}
	f.r.settling = time.Hour // a batch under way is left alone
	if out, err := f.r.Since(t.Context(), time.Time{}, func(int, int) {}); err != nil || out.Rewritten != 0 || out.Looked != 0 {
		t.Errorf("%+v %v", out, err)
	}
}
