package retention_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/retention"
)

// trends is what rollups say by month.
const trends = `SELECT tenant_id, dim, value, severity, toStartOfMonth(hour) AS m, sum(n), sum(k), sum(late) FROM {db}.rollup_hourly FINAL GROUP BY tenant_id, dim, value, severity, m
	ORDER BY tenant_id, dim, value, severity, m`

func (w *world) rows(tenant string) uint64 {
	return w.count("SELECT sum(n) FROM (" + strings.Join([]string{
		"SELECT count() AS n FROM {db}.interactions WHERE tenant_id = '" + tenant + "'", "SELECT count() FROM {db}.verdicts WHERE tenant_id = '" + tenant + "'",
		"SELECT count() FROM {db}.audit_current WHERE tenant_id = '" + tenant + "'", "SELECT count() FROM {db}.reviews WHERE tenant_id = '" + tenant + "'"}, " UNION ALL ") + ")")
}

// firstMonthEnds is the last simulated day of the month of day 0.
var firstMonthEnds = int(time.Date(day0.Year(), day0.Month()+1, 1, 0, 0, 0, 0, time.UTC).Sub(day0)/(24*time.Hour)) - 1

func TestRowsGoOnceTheirRollupsAreFrozen(t *testing.T) {
	w := newWorld(t)
	cfg := short()
	cfg.Tenants = map[string]retention.Override{"long": {RowDays: 300}}
	r := w.retention(cfg)
	w.days(0, firstMonthEnds+3, 1, 2, "acme", "beta", "long")
	w.exec("INSERT INTO {db}.reviews (tenant_id, event_day, event_id, review_id, version, reviewer, decision) SELECT tenant_id, event_day, event_id, generateUUIDv4(), 1, 'r', 'confirmed' FROM {db}.interactions WHERE tenant_id = 'acme' LIMIT 1")
	held := audit.DeriveID("year", "beta", "0", "1")
	if _, _, err := r.Place(t.Context(), retention.Hold{Tenant: "beta", Events: []audit.ID{held}, Reason: "case-1", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	whole := w.check()

	w.on(firstMonthEnds + 60)
	w.run(r)
	if n := w.count("SELECT count() FROM {db}.rollup_frozen"); n != 0 {
		t.Fatalf("%d months are frozen before their limit", n)
	}
	w.on(firstMonthEnds + 61)
	// Without rollups nothing goes.
	out := w.run(r)
	p := w.plan(r, time.Time{})
	if out.Frozen != 0 || out.Blocked != 2 || len(p.Waiting) != 2 || !strings.Contains(p.Waiting[0].Why, "the rollups differ from the rows") {
		t.Fatalf("%+v %+v", out, p.Waiting)
	}
	w.rollups()
	before := w.text(trends)
	if p := w.plan(r, time.Time{}); steps(p, "rollups") != "freeze rollups "+monthOf(day0)+" rows "+strconv.Itoa(2*(firstMonthEnds+1))+" held 0\nfreeze rollups "+monthOf(day0)+" rows "+strconv.Itoa(2*(firstMonthEnds+1))+" held 0" {
		t.Errorf("plan %s", steps(p, "rollups"))
	}
	if out := w.run(r); out.Frozen != 2 || out.Rows != 0 {
		t.Fatalf("%+v", out)
	}
	if n := w.count("SELECT countIf(version < 9223372036854775808) FROM {db}.rollup_hourly FINAL WHERE tenant_id != 'long' AND hour < addMonths(toStartOfMonth(toDate('" + day0.Format(time.DateOnly) + "')), 1)"); n != 0 {
		t.Errorf("%d rollup rows of frozen months can be overridden", n)
	}
	// A recomputation that comes too late does not change what is frozen.
	w.exec("INSERT INTO {db}.rollup_hourly (tenant_id, dim, hour, app, domain, model, rule_set, value, severity, version, n, k) SELECT tenant_id, dim, hour, app, domain, model, rule_set, value, severity, 4611686018427387904, 0, 0 FROM {db}.rollup_hourly FINAL WHERE tenant_id = 'acme' AND hour < addMonths(toStartOfMonth(toDate('" + day0.Format(time.DateOnly) + "')), 1)")
	if out := w.run(r); out.Rows != 0 || out.Waiting != 2 {
		t.Errorf("rows went on the day of the freeze: %+v", out)
	}
	long, beta := w.rows("long"), w.rows("beta")
	w.on(firstMonthEnds + 63)
	predicted := w.plan(r, time.Time{})
	out = w.run(r)
	var planned uint64
	for _, s := range predicted.Steps {
		if s.Object == "interactions" || s.Object == "verdicts" || s.Object == "audit_current" || s.Object == "reviews" || s.Object == "rejected" {
			planned += s.Rows
		}
	}
	// acme: 3 rows an event and one review; beta: but the held one. Dead letters need no proof and went before.
	events := uint64(2 * (firstMonthEnds + 1))
	if want := 3*events + 1 + 3*(events-1); out.Rows != want || planned != want {
		t.Errorf("%d rows went, %d were planned, want %d", out.Rows, planned, want)
	}
	if w.rows("long") != long || w.rows("beta") != beta-3*(events-1) || w.count("SELECT count() FROM {db}.interactions WHERE event_id = toUUID('"+held.String()+"')") != 1 {
		t.Error("rows of another limit, or held ones, went too")
	}
	if after := w.text(trends); after != before {
		t.Errorf("trends differ\n%s\n%s", before, after)
	}
	rep := w.check()
	if rep.Duplicates != whole.Duplicates || rep.Rows != whole.Rows || rep.Rejected != whole.Rejected || rep.InFlight != 0 || rep.Purged != 2*events {
		t.Errorf("check %+v, before %+v", rep, whole)
	}
	if out := w.run(r); out.Rows != 0 || out.Mutations+out.Partitions != 0 {
		t.Errorf("the next run found %+v", out)
	}
	if st, err := r.Status(t.Context()); err != nil || st.PurgedRows != 2*events-1 { // the held one is there
		t.Errorf("status %+v %v", st, err)
	}
	if d, err := w.store.Duplicates(t.Context()); err != nil || d.Again != 0 || d.InFlight != 0 {
		t.Errorf("duplicates %+v %v", d, err)
	}
	// A range that a higher generation covers in part cannot be recounted any more: that is no fault.
	w.exec("INSERT INTO {db}.ingest_batches (topic, partition, lo, hi, generation, version, rows, rejected, skipped) VALUES ('llm.interactions', 0, 0, 1, 2, 2, 2, 0, 0)")
	w.check()
}

// A run that dies after the mark, the freeze, or in the midst of the tables is completed; nothing is lost.
func TestABrokenDeletionIsCompleted(t *testing.T) {
	died := errors.New("died")
	for _, point := range []string{"marked", "kept audit_current", "dropped verdicts", "dropped interactions"} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			r := w.retention(short())
			w.days(0, firstMonthEnds+2, 1, 1, "acme")
			w.rollups()
			before, whole := w.text(trends), w.check()
			r.BreakAt(point, died)
			broken := false
			for _, d := range []int{61, 62, 63, 64, 65} {
				w.on(firstMonthEnds + d)
				if _, err := r.Run(t.Context(), func(int, int) {}); errors.Is(err, died) {
					broken = true
					w.check() // half done is no fault
				} else if err != nil {
					t.Fatal(err)
				}
				if d == 63 {
					r.BreakAt("", nil)
				}
			}
			if after := w.text(trends); after != before {
				t.Errorf("trends differ\n%s\n%s", before, after)
			}
			if n := w.count("SELECT count() FROM {db}.interactions WHERE event_day < addMonths(toStartOfMonth(toDate('" + day0.Format(time.DateOnly) + "')), 1)"); n != 0 || !broken {
				t.Errorf("%d interactions are left, broken %t", n, broken)
			}
			if rep := w.check(); rep.Rows != whole.Rows || rep.Duplicates != 0 || rep.Purged != uint64(firstMonthEnds+1) {
				t.Errorf("check %+v", rep)
			}
			st, err := r.Status(t.Context())
			if err != nil || w.interrupted(r) != 0 || st.PurgedRows != uint64(firstMonthEnds+1) {
				t.Errorf("status %+v %v", st, err)
			}
			for _, x := range st.Totals {
				if x.Object == "interactions" && x.Rows != uint64(firstMonthEnds+1) || x.Object == "rollups" && x.Steps != 1 {
					t.Errorf("%+v", x)
				}
			}
		})
	}
}

func monthOf(t time.Time) string { return t.Format("2006-01") + "-01" }
