package retention_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/seal"
	"github.com/evenhand/evenhand/retention"
	"github.com/evenhand/evenhand/rollup"
	"github.com/evenhand/evenhand/sinks"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

// world is a migrated database, a clock that stands, and the sink that writes as the pipeline does.
type world struct {
	testing.TB
	conn    driver.Conn
	db      string
	clock   time.Time
	classes *retention.Classes
	sink    *chsink.Sink
	store   *store.Store
	offset  int64
	key     *seal.Key // signs, as in production
}

// day0 is the first simulated day: today, so that all that is written lies before what the clock shows
// later.
var day0 = time.Now().UTC().Truncate(24 * time.Hour)

func newWorld(t testing.TB) *world {
	t.Helper()
	return worldOn(t, enginetest.Database(t))
}

func worldOn(t testing.TB, cfg chconn.Config) *world {
	t.Helper()
	migratetest.Run(t, cfg)
	conn := enginetest.Conn(t, cfg)
	key, err := seal.MakeKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, key: key, conn: conn, db: cfg.Database, clock: day0, store: store.New(conn, cfg.Database), classes: retention.NewClasses(conn, cfg.Database)}
	w.sink = chsink.New(conn, cfg.Database, chsink.Options{Classes: w.classes, Seal: key})
	for _, table := range w.tables() { // old parts leave the disk after a second instead of two minutes
		w.exec("ALTER TABLE {db}." + table + " MODIFY SETTING old_parts_lifetime = 1")
	}
	return w
}

func (w *world) tables() (names []string) {
	w.Helper()
	w.each("SELECT name FROM system.tables WHERE database = '{db}' AND engine LIKE '%MergeTree' ORDER BY name", func(scan func(...any)) {
		var n string
		scan(&n)
		names = append(names, n)
	})
	return names
}

func (w *world) exec(sql string) {
	w.Helper()
	if err := w.conn.Exec(w.Context(), strings.ReplaceAll(sql, "{db}", w.db)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) each(sql string, f func(scan func(...any))) {
	w.Helper()
	rows, err := w.conn.Query(w.Context(), strings.ReplaceAll(sql, "{db}", w.db))
	if err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		f(func(dest ...any) {
			w.Helper()
			if err := rows.Scan(dest...); err != nil {
				w.Fatal(err)
			}
		})
	}
	if err := rows.Err(); err != nil {
		w.Fatal(err)
	}
}

func (w *world) count(sql string) (n uint64) {
	w.Helper()
	if err := w.conn.QueryRow(w.Context(), strings.ReplaceAll(sql, "{db}", w.db)).Scan(&n); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return n
}

// text is a query as text.
func (w *world) text(sql string) string {
	w.Helper()
	var b strings.Builder
	if err := store.WriteTSV(w.Context(), &b, w.conn, strings.ReplaceAll(sql, "{db}", w.db)); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return b.String()
}

// state is what all tables hold, whatever their parts: a merge may go on long after what gave rise to it.
func (w *world) state() string {
	w.Helper()
	var of []string
	for table := range strings.FieldsSeq(w.text("SELECT name FROM system.tables WHERE database = '{db}' AND engine LIKE 'Replacing%' ORDER BY name")) {
		if table != "name" {
			of = append(of, "SELECT '"+table+"' AS table, count() AS rows, sum(cityHash64(*)) AS hash FROM {db}."+table+" FINAL")
		}
	}
	return w.text("SELECT * FROM (" + strings.Join(of, " UNION ALL ") + ") ORDER BY table")
}

// unsigned makes the world one without a key.
func (w *world) unsigned() {
	w.key, w.sink = nil, chsink.New(w.conn, w.db, chsink.Options{Classes: w.classes})
}

// retention applies a configuration with the world's clock.
func (w *world) retention(cfg retention.Config) *retention.Retention {
	w.Helper()
	r, err := retention.New(w.conn, w.db, cfg, retention.Options{Now: func() time.Time { return w.clock }, DiskWait: time.Minute, Poll: 200 * time.Millisecond, Seal: w.key})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) run(r *retention.Retention) retention.Outcome {
	w.Helper()
	out, err := r.Run(w.Context(), func(int, int) {})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func (w *world) plan(r *retention.Retention, at time.Time) *retention.Plan {
	w.Helper()
	p, err := r.Plan(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// on sets the clock to three in the morning of a simulated day.
func (w *world) on(day int) { w.clock = day0.AddDate(0, 0, day).Add(3 * time.Hour) }

// event makes the i-th interaction of a tenant's simulated day, with a canary in each text.
func (w *world) event(tenant string, day, i int) audit.Record {
	at := day0.AddDate(0, 0, day).Add(time.Duration(9+i) * time.Hour)
	canary := func(kind string) string { return fmt.Sprintf("canary-%s-%d-%s-%d", tenant, day, kind, i) }
	in := &audit.Interaction{
		ID: audit.DeriveID("year", tenant, fmt.Sprint(day), fmt.Sprint(i)), Tenant: tenant, Time: at, TraceID: fmt.Sprintf("%032x", day*100+i+1),
		Application: "app", Domain: audit.HR, Provider: "openai", Model: fmt.Sprint("m-", i%2), Status: "success",
		UserID: canary("user"), UserEmail: canary("email") + "@example.org", Prompt: canary("prompt"), Query: canary("prompt"), Response: canary("response"),
		Metadata: `{"note":"` + canary("meta") + `"}`, PromptTokens: 3, ResponseTokens: audit.Unknown, LatencyMS: 10, CostMicroUSD: 250,
		ContainedPII: -1, ContainedProprietary: -1, ContainedCustomerData: -1,
	}
	in.Digest = sha256.Sum256([]byte(in.Prompt))
	v := &audit.Verdict{ResultID: audit.HotResultID(tenant, in.ID, in.Digest), Analyzer: audit.HotAnalyzer, RuleSet: "r1", Status: audit.Done, Action: "none", Time: at}
	if (day+i)%3 == 0 {
		v.Detected, v.BiasTypes, v.MaxSeverity, v.Confidence = true, []string{"charter.sex"}, 3, 800_000
		v.Findings = []audit.Finding{{Kind: "charter.sex", Rule: "sex.a", RuleVersion: "1", Ground: audit.Sex, Severity: audit.High, Score: 600_000, Side: audit.Output, Span: audit.Span{End: 3}}}
	}
	w.offset++
	return audit.Record{Origin: audit.Origin{Topic: "llm.interactions", Offset: w.offset - 1, BrokerTime: at.Add(time.Second)}, Interaction: in, Verdict: v}
}

// refused makes a dead letter of a simulated day.
func (w *world) refused(tenant string, day int) audit.Rejected {
	w.offset++
	return audit.Rejected{Origin: audit.Origin{Topic: "llm.interactions", Offset: w.offset - 1, BrokerTime: day0.AddDate(0, 0, day).Add(20 * time.Hour)},
		Tenant: tenant, Reason: "bad_json", Detail: "not one JSON object", Value: fmt.Appendf(nil, "canary-%s-%d-rejected-0", tenant, day)}
}

// write stores a batch with its marker. Records and dead letters were made one after the other.
func (w *world) write(records []audit.Record, rejected []audit.Rejected) {
	w.Helper()
	n := int64(len(records) + len(rejected))
	m := sinks.Marker{Topic: "llm.interactions", Generation: 1, Rows: uint32(len(records)), Rejected: uint32(len(rejected)), Lo: w.offset - n, Hi: w.offset - 1}
	m.First = sinks.Edge{Offset: m.Lo, Time: records[0].Origin.BrokerTime, Hash: 1}
	m.Last = sinks.Edge{Offset: m.Hi, Time: records[len(records)-1].Origin.BrokerTime, Hash: 1}
	p, err := w.sink.Prepare(&sinks.Batch{Records: records, Rejected: rejected, Markers: []sinks.Marker{m}})
	if err != nil {
		w.Fatal(err)
	}
	if err := p.Send(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// days writes some events for each tenant on each day, or on some days apart, as one batch, and a dead
// letter each tenth day.
func (w *world) days(from, to, apart, each int, tenants ...string) {
	w.Helper()
	var records []audit.Record
	var rejected []audit.Rejected
	for d := from; d < to; d += apart {
		for _, t := range tenants {
			for i := range each {
				records = append(records, w.event(t, d, i))
			}
			if d%10 == 0 {
				rejected = append(rejected, w.refused(t, d))
			}
		}
	}
	w.write(records, rejected)
}

// rollups counts the rows as the rollup job does.
func (w *world) rollups() {
	w.Helper()
	if _, err := rollup.New(w.conn, w.db).Rebuild(w.Context(), day0, day0.AddDate(2, 0, 0), func(int, int) {}); err != nil {
		w.Fatal(err)
	}
}

// checked is what a check says of the store.
func (w *world) checked() *store.Report {
	w.Helper()
	public := seal.Public{}
	if w.key != nil {
		public.Add(w.key.Public())
	}
	rep, err := w.store.CheckWith(w.Context(), store.CheckOptions{AtRest: true, Keys: public})
	if err != nil {
		w.Fatal(err)
	}
	return rep
}

// check proves the store; nothing may be wrong.
func (w *world) check() *store.Report {
	w.Helper()
	rep := w.checked()
	if !rep.OK() {
		w.Errorf("check: %+v", rep.Faults)
	}
	return rep
}
