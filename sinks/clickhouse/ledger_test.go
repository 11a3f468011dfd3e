package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/seal"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

// factTables are those whose rows are sealed one by one, with what tells such a row.
var factTables = map[string]string{
	"verdicts": "NOT (analyzer = 'hot' AND analyzer_version = '')", "reviews": "1", "feedback": "1", "reveals": "1", "gates": "1",
	"interaction_texts": "kind IN ('review_note', 'reveal_reason', 'feedback_note', 'gate', 'gate_note', 'outside_report', 'outside_mitigation', 'judge_verdict')",
}

// facts writes what comes later about the i-th interaction of sealedStore: of a table, or one of each for "" (two verdicts of others and a retry, a review,
// feedback, a reveal and a gate, the last two in two steps, with eight texts).
func facts(t *testing.T, s *chsink.Sink, i int, table string) {
	t.Helper()
	r := record(i, fmt.Sprint("answer ", i), int64(i))
	r.Interaction.Time = brokerTime.AddDate(0, 0, -i)
	in, at := r.Interaction, brokerTime
	of := func(what, kind string) chsink.Fact {
		f := chsink.Fact{ID: audit.DeriveID(what, fmt.Sprint(i)), Tenant: in.Tenant, Day: in.Day(), Event: in.ID, Digest: in.Digest, By: "ann", At: at}
		if kind != "" {
			f.Texts = []chsink.FactText{{Kind: kind, Text: "what ann said, ü\x00'\\"}}
		}
		return f
	}
	later := func(analyzer, source string, attempt int) audit.Record {
		v, x := *r.Verdict, r
		v.Analyzer, v.Source, v.Attempt, v.ResultID = analyzer, source, attempt, audit.DeriveID(analyzer, fmt.Sprint(i))
		x.Verdict = &v
		return x
	}
	helped := i%2 == 0
	g := &audit.HumanGate{ID: audit.DeriveID("gate", fmt.Sprint(i)), Event: in.ID, Tenant: in.Tenant, At: in.Time, Opened: in.Time, Expires: in.Time.Add(time.Hour), State: audit.GateOpen, TraceID: "t", Model: "m",
		Matches: []audit.GateMatch{{Rule: audit.GateRule{ID: "r1", Description: "moves money", Pattern: "pay", Category: "money"}, Text: "pay", Side: audit.Output, Span: audit.Span{Start: 1, End: 4}}}}
	decided := *g
	decided.State, decided.By, decided.Decided, decided.Proposal = audit.GateDenied, "bob", in.Time.Add(time.Minute), audit.NewID(at)
	for _, x := range []struct {
		table string
		write func() error
	}{
		{"", func() error { return s.Results(t.Context(), []audit.Record{later(audit.HotAnalyzer, "", 1)}) }},
		{"verdicts", func() error {
			return s.OutsideVerdict(t.Context(), later(audit.ExternalAnalyzer("vendor"), "vendor", 0), []string{"detected", "report"}, []chsink.FactText{{Kind: chsink.KindReport, Text: `{"a":1}`}, {Kind: chsink.KindMitigation, Text: `{"b":2}`}})
		}},
		{"", func() error {
			return s.Judged(t.Context(), later("judge", "1", 0), chsink.Judging{Input: in.Digest, Calls: 2, Tokens: [2]int{3, 4}, Cost: 5, Words: `{"c":3}`})
		}},
		{"reviews", func() error {
			return s.Review(t.Context(), of("review", chsink.KindReviewNote), "confirmed", []string{"language"})
		}},
		{"feedback", func() error { return s.Feedback(t.Context(), of("feedback", chsink.KindFeedbackNote), &helped) }},
		{"reveals", func() error { return s.Reveal(t.Context(), of("reveal", ""), true) }},
		{"interaction_texts", func() error { return s.Texts(t.Context(), of("reveal", chsink.KindRevealReason)) }},
		{"", func() error { return s.Gate(t.Context(), g) }},
		{"", func() error { return s.GateNote(t.Context(), g, decided.Proposal, "no, bob said") }},
		{"gates", func() error { return s.Gate(t.Context(), &decided) }},
	} {
		if table != "" && table != x.table {
			continue
		}
		if err := x.write(); err != nil {
			t.Fatal(err)
		}
	}
}

func factFaults(r *store.Report) string {
	var out []string
	for _, f := range r.Faults {
		if f.Code != store.FaultCurrentUnequal { // these tests do not show what they store
			out = append(out, strings.TrimSpace(fmt.Sprint(f.Code, " ", f.Table, " ", f.Count)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// Whatever column of what comes later is altered by hand, the check tells.
func TestEveryColumnOfFactsIsSealed(t *testing.T) {
	conn, db := fresh(t)
	var columns []column
	rows, err := conn.Query(t.Context(), "SELECT table, name, type FROM system.columns WHERE database = ? AND table IN ('verdicts', 'reviews', 'feedback', 'reveals', 'gates', 'interaction_texts') AND NOT is_in_sorting_key AND name NOT IN ('version', 'written_at')", db)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.table, &c.name, &c.kind); err != nil {
			t.Fatal(err)
		}
		columns = append(columns, c)
	}
	_ = rows.Close()
	if len(columns) < 75 {
		t.Fatalf("%d columns", len(columns))
	}
	s, exec, check, day := sealedStore(t, len(columns))
	for i, c := range columns {
		facts(t, s, i, c.table)
	}
	if r := check(); factFaults(r) != "" || r.FactSeals.Facts != uint64(len(columns))-1 || r.FactSeals.Signed != r.FactSeals.Rows || r.FactSeals.Unfinished+r.FactSeals.Unsealed != 0 {
		t.Fatalf("before: %+v %s", r.FactSeals, factFaults(r))
	}
	alterEach(exec, columns, func(i int) string { return "event_day = toDate('" + day(i) + "') AND " + factTables[columns[i].table] })
	r := check()
	for i, c := range columns {
		if !slices.ContainsFunc(r.Faults, func(f store.Fault) bool {
			return f.Code == store.FaultFactAltered && f.Table == c.table && f.Day == day(i) && f.Count > 0
		}) {
			t.Errorf("%s.%s was altered and the check did not tell", c.table, c.name)
		}
	}
}

// reviewLater writes a review without a seal two days after the first seals, which says that it was made at a time.
func reviewLater(reviewer, decision, at string) string {
	return "INSERT INTO {db}.reviews SELECT * REPLACE (generateUUIDv4() AS review_id, '" + reviewer + "' AS reviewer, '" + decision + "' AS decision, " + at + " AS reviewed_at, now64(3) + INTERVAL 2 DAY AS written_at) FROM (SELECT * FROM {db}.reviews WHERE reviewer = 'ann' AND event_day = toDate('{day}') LIMIT 1)"
}

// What is deleted, added, put back or altered behind the program's back is told, of facts and of their seals.
func TestFactSeals(t *testing.T) {
	const alter, sync = "ALTER TABLE {db}.", " SETTINGS mutations_sync = 1"
	for _, tc := range []struct{ name, do, want string }{
		{"nothing", "", ""},
		{"a review deleted", alter + "reviews DELETE WHERE event_day = toDate('{day}')" + sync, "fact_deleted reviews 1"},
		{"a reveal deleted", alter + "reveals DELETE WHERE event_day = toDate('{day}')" + sync, "fact_deleted reveals 1"},
		{"a judge's verdict deleted", alter + "verdicts DELETE WHERE analyzer = 'judge' AND event_day = toDate('{day}')" + sync, "fact_deleted verdicts 1"},
		{"a decision taken back", alter + "gates DELETE WHERE version > 1 AND event_day = toDate('{day}')" + sync, "fact_altered gates 1"},
		{"a reason altered", alter + "interaction_texts UPDATE text = 'none' WHERE kind = 'reveal_reason' AND event_day = toDate('{day}')" + sync, "fact_altered interaction_texts 1"},
		{"a reason deleted", alter + "interaction_texts DELETE WHERE kind = 'reveal_reason' AND event_day = toDate('{day}')" + sync, "fact_deleted interaction_texts 1"},
		{"a review added", "INSERT INTO {db}.reviews SELECT * REPLACE (generateUUIDv4() AS review_id, now64(3) + INTERVAL 2 DAY AS written_at) FROM {db}.reviews WHERE event_day = toDate('{day}')", "fact_added reviews 1"},
		{"reviews of before the seals, which a migration wrote again", strings.Join([]string{reviewLater("ann", "confirmed", "reviewed_at"), reviewLater("bob", "unsure", "reviewed_at")}, "; "), ""},
		{"a review added and dated back", reviewLater("bob", "dismissed", "reviewed_at"), "fact_added reviews 1"},
		{"reviews added to one that several looked at", strings.Join([]string{reviewLater("ann", "confirmed", "now64(3) + INTERVAL 2 DAY"), reviewLater("bob", "unsure", "now64(3) + INTERVAL 2 DAY")}, "; "), "fact_added reviews 2"},
		{"a verdict put over another", "INSERT INTO {db}.verdicts SELECT * REPLACE (version + 1 AS version, 0 AS flagged) FROM {db}.verdicts WHERE analyzer = 'judge' AND event_day = toDate('{day}')", "fact_altered verdicts 1"},
		{"texts that retention dropped", alter + "interaction_texts DELETE WHERE event_day = toDate('{day}')" + sync + "; INSERT INTO {db}.retention_runs (object, class, period, tenant_id, drop_id, version, action, state, at) " +
			"SELECT 'interaction_texts', 'std', toDate('{day}'), 'acme', generateUUIDv4(), 2, 'drop', 'done', now64(3)", ""},
		{"a month that retention deleted", alter + "reviews DELETE WHERE event_day = toDate('{day}')" + sync + "; INSERT INTO {db}.retention_runs (object, class, period, tenant_id, drop_id, version, action, state, rows, at) " +
			"SELECT 'reviews', '', toStartOfMonth(toDate('{day}')), 'acme', generateUUIDv4(), 2, 'delete', 'done', 1, now64(3)", ""},
		{"more than retention deleted", alter + "reviews DELETE WHERE 1" + sync + "; INSERT INTO {db}.retention_runs (object, class, period, tenant_id, drop_id, version, action, state, rows, at) " +
			"SELECT 'reviews', '', toStartOfMonth(toDate('{day}')), 'acme', generateUUIDv4(), 2, 'delete', 'done', 1, now64(3)", "fact_deleted reviews 1"},
		{"a row of seals deleted", alter + "fact_seals DELETE WHERE n = 2" + sync, "seal_missing fact_seals 1"},
		{"the first rows of seals deleted", alter + "fact_seals DELETE WHERE n < 3" + sync, "seal_missing fact_seals 2"},
		{"a row of seals altered", alter + "fact_seals UPDATE stored = stored + 1 WHERE n = 2" + sync, "seal_broken fact_seals 2"}, // itself, and what the next one says of it
		{"a signature taken away", alter + "fact_seals UPDATE signer = '', signature = '' WHERE n = 2" + sync, "seal_broken fact_seals 1, seal_unsigned fact_seals 1"},
		{"a row and its seal altered", alter + "reviews UPDATE decision = 'dismissed' WHERE event_day = toDate('{day}')" + sync + "; " + alter + "fact_seals UPDATE `seals.row` = " +
			"arrayMap((x, o) -> if(o = 'reviews', (SELECT any(" + seal.Facts[1].SQL(nil) + ") FROM {db}.reviews WHERE event_day = toDate('{day}')), x), `seals.row`, `seals.object`) WHERE has(`seals.object`, 'reviews')" + sync, "fact_altered reviews 1, seal_broken fact_seals 4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, exec, check, day := sealedStore(t, 3)
			facts(t, s, 1, "")
			facts(t, s, 2, "")
			for q := range strings.SplitSeq(tc.do, "; ") {
				if q != "" {
					exec(strings.ReplaceAll(q, "{day}", day(1)))
				}
			}
			got := check()
			var faults []string
			for f := range strings.SplitSeq(factFaults(got), ", ") {
				if !strings.HasPrefix(f, "text_") { // of interactions: see TestSeals
					faults = append(faults, f)
				}
			}
			if strings.Join(faults, ", ") != tc.want {
				t.Errorf("got %q, want %q: %+v %+v", faults, tc.want, got.FactSeals, got.Faults)
			}
		})
	}
}

// withKey makes a key to sign seals with, and what checks a store with it.
func withKey(t *testing.T, conn driver.Conn, db string) (*seal.Key, func() *store.Report) {
	t.Helper()
	key, err := seal.MakeKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	public := seal.Public{}
	public.Add(key.Public())
	return key, func() *store.Report {
		t.Helper()
		r, err := store.New(conn, db).CheckWith(t.Context(), store.CheckOptions{Keys: public, AtRest: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// Facts side by side share rows of seals, of one writer and of several; a later writer tells when the end of an earlier one is taken away.
func TestFactSealsSideBySide(t *testing.T) {
	conn, db := fresh(t)
	key, check := withKey(t, conn, db)
	sinks := []*chsink.Sink{chsink.New(conn, db, chsink.Options{Seal: key}), chsink.New(conn, db, chsink.Options{Seal: key})}
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() { facts(t, sinks[i%2], i/2, []string{"reviews", "feedback"}[i%2]) })
	}
	all.Wait()
	r := check()
	if x := r.FactSeals; factFaults(r) != "" || x.Facts != 24 || x.Texts != 24 || x.Writers != 2 || x.Signed != x.Rows || x.Rows >= 48 || x.Unfinished != 0 {
		t.Fatalf("%+v %s", x, factFaults(r))
	}
	facts(t, chsink.New(conn, db, chsink.Options{Seal: key}), 30, "reveals")
	if r := check(); factFaults(r) != "" || r.FactSeals.Writers != 3 {
		t.Fatalf("%+v %s", r.FactSeals, factFaults(r))
	}
	last := one[string](t, conn, "SELECT toString(writer) FROM "+db+".fact_seals GROUP BY writer ORDER BY count() DESC LIMIT 1")
	for _, q := range []string{
		"ALTER TABLE " + db + ".fact_seals DELETE WHERE writer = '" + last + "' AND n > 1 SETTINGS mutations_sync = 1",
		"ALTER TABLE " + db + ".fact_seals DELETE WHERE writer = '" + last + "' SETTINGS mutations_sync = 1",
	} {
		if err := conn.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if r := check(); faultOf(r, store.FaultSealMissing) == 0 {
			t.Errorf("%s: %s", q, factFaults(r))
		}
	}
}

// However many write at once, and however few connections there are, nobody waits for a connection that waits for another.
func TestWritersShareFewConnections(t *testing.T) {
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	cfg.MaxConns, cfg.IdleConns = 3, 3 // a batch has seven tables, a fact two
	conn := enginetest.Conn(t, cfg)
	var all sync.WaitGroup
	for w := range 2 {
		s := chsink.New(conn, cfg.Database, chsink.Options{})
		for i := range 20 {
			all.Go(func() { facts(t, s, 20*w+i, []string{"reviews", "feedback"}[i%2]) })
		}
		for i := range 10 {
			all.Go(func() {
				n := 100*w + i
				p, err := s.Prepare(batch([]audit.Record{record(n, "an answer", int64(2*n))}, audit.Rejected{Origin: audit.Origin{Topic: "llm.interactions", Partition: 1, Offset: int64(2*n + 1), BrokerTime: brokerTime}, Tenant: "acme", Reason: "bad_json", Value: []byte("{")}))
				if err == nil {
					err = p.Send(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if n := one[uint64](t, conn, "SELECT (SELECT count() FROM "+cfg.Database+".interactions) + (SELECT count() FROM "+cfg.Database+".reviews) + (SELECT count() FROM "+cfg.Database+".feedback)"); n != 60 && !t.Failed() {
		t.Errorf("%d rows", n)
	}
}

// A fact whose process ended between seal and row, or whose write failed, is unfinished until it is written again; nothing that is in is.
func TestUnfinishedFacts(t *testing.T) {
	s, exec, check, day := sealedStore(t, 3)
	expect := func(what string, facts, unfinished uint64, faults string) {
		t.Helper()
		if r := check(); factFaults(r) != faults || r.FactSeals.Facts != facts || r.FactSeals.Unfinished != unfinished {
			t.Errorf("%s: %+v %s", what, r.FactSeals, factFaults(r))
		}
	}
	exec("RENAME TABLE {db}.feedback TO {db}.away")
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Review(ended, chsink.Fact{ID: audit.DeriveID("none"), Tenant: "acme", Day: brokerTime.Truncate(24 * time.Hour)}, "unsure", nil); err == nil {
		t.Error("written for a caller that has left")
	}
	helped, f := true, chsink.Fact{ID: audit.DeriveID("feedback", "1"), Tenant: "acme", Day: brokerTime.AddDate(0, 0, -1).Truncate(24 * time.Hour), By: "ann", At: brokerTime}
	if err := s.Feedback(t.Context(), f, &helped); err == nil {
		t.Fatal("written without its table")
	}
	exec("RENAME TABLE {db}.away TO {db}.feedback")
	facts(t, s, 1, "reviews")
	if r := check(); factFaults(r) != "" || r.FactSeals.Facts != 1 || r.FactSeals.Unfinished < 1 {
		t.Errorf("failed: %+v %s", r.FactSeals, factFaults(r))
	}
	left := check().FactSeals.Unfinished
	if err := s.Feedback(t.Context(), f, &helped); err != nil {
		t.Fatal(err)
	}
	expect("written again", 2, left-1, "")
	exec("ALTER TABLE {db}.feedback DELETE WHERE event_day = toDate('" + day(1) + "') SETTINGS mutations_sync = 1")
	expect("deleted then", 1, left-1, "fact_deleted feedback 1")
	// As if the process had ended after the seal: neither the row nor the word that it is in.
	exec("ALTER TABLE {db}.fact_seals DELETE WHERE n = (SELECT max(n) FROM {db}.fact_seals) SETTINGS mutations_sync = 1")
	expect("killed", 1, left, "")
}

// That a fact is in is noted when the one that was under way beside it fails, and when its own caller leaves right then: else it could be deleted unnoticed.
func TestFactsThatAreInAreNoted(t *testing.T) {
	conn, db := fresh(t)
	begun, fail, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s := chsink.New(&hooked{Conn: conn, insert: func(sql string) error {
		if !strings.Contains(sql, ".feedback ") {
			return nil
		}
		close(begun)
		<-fail
		return errors.New("no such luck")
	}}, db, chsink.Options{})
	day := brokerTime.Truncate(24 * time.Hour)
	of := func(what string) chsink.Fact {
		return chsink.Fact{ID: audit.DeriveID(what), Tenant: "acme", Day: day, Event: audit.DeriveID("event", "1"), By: "ann", At: brokerTime}
	}
	go func() { failed <- s.Feedback(t.Context(), of("feedback"), nil) }()
	<-begun
	if err := s.Review(t.Context(), of("review"), "confirmed", nil); err != nil {
		t.Fatal(err)
	}
	close(fail)
	if err := <-failed; err == nil {
		t.Fatal("written")
	}
	const reveals = 6
	for i := range reveals { // each the only one of its writer
		ctx, leave := context.WithCancel(t.Context())
		s := chsink.New(&hooked{Conn: conn, sent: func(sql string) {
			if strings.Contains(sql, ".reveals ") {
				leave()
			}
		}}, db, chsink.Options{})
		if err := s.Reveal(ctx, of(fmt.Sprint("reveal", i)), true); err != nil {
			t.Error(err)
		}
	}
	for _, table := range []string{"reviews", "reveals"} {
		if err := conn.Exec(t.Context(), "ALTER TABLE "+db+"."+table+" DELETE WHERE 1 SETTINGS mutations_sync = 1"); err != nil {
			t.Fatal(err)
		}
	}
	r, err := store.New(conn, db).CheckWith(t.Context(), store.CheckOptions{AtRest: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := factFaults(r), fmt.Sprintf("fact_deleted reveals %d, fact_deleted reviews 1", reveals); got != want || r.FactSeals.Unfinished != 1 {
		t.Errorf("%q, want %q: %+v", got, want, r.FactSeals)
	}
}
