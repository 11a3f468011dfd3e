package alarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/breaches"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

// stand is a database with all tables and a log of decisions.
type stand struct {
	domain string // of events, hr when empty
	*testing.T
	conn   driver.Conn
	db     string
	broker kafkaconn.Config
	tables *Tables
	now    time.Time
}

func newStand(t *testing.T) *stand {
	t.Helper()
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	s := &stand{T: t, conn: enginetest.Conn(t, cfg), db: cfg.Database, broker: brokertest.Start(t)}
	s.tables = NewTables(s.conn, s.db)
	if _, err := kafkaconn.Ensure(t.Context(), s.broker, kafkaconn.Topics(1), 1); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stand) arbiter() *arbiter.Kafka {
	s.Helper()
	rules, err := arbiter.NewRules(arbiter.States(breaches.Kind, audit.BreachStates))
	if err != nil {
		s.Fatal(err)
	}
	a, err := arbiter.Open(s.Context(), s.broker, arbiter.Options{Rules: rules, Store: arbiter.NewStore(s.conn, s.db)})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = a.Close(context.Background()) })
	return a
}

func (s *stand) runner(log breaches.Proposer) *Runner {
	s.Helper()
	return NewRunner(s.tables, policies(s.T, short24), log, func() time.Time { return s.now })
}

func (s *stand) exec(sql string, args ...any) {
	s.Helper()
	if err := s.conn.Exec(s.Context(), strings.ReplaceAll(sql, "{{db}}", s.db), args...); err != nil {
		s.Fatal(err)
	}
}

func (s *stand) list(sql string) string {
	s.Helper()
	var list []string
	if err := s.conn.QueryRow(s.Context(), "SELECT groupArray(toString(x)) FROM (SELECT "+strings.ReplaceAll(sql, "{{db}}", s.db)+")").Scan(&list); err != nil {
		s.Fatal(err)
	}
	return strings.Join(list, ", ")
}

func (s *stand) run(r *Runner) Outcome {
	s.Helper()
	out, err := r.Run(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return out
}

// rollups writes 41 days of 100 interactions an hour of acme in hr, of which one has charter.sex, and
// in the last day three more.
func (s *stand) rollups() {
	s.Helper()
	const insert = "INSERT INTO {{db}}.rollup_hourly (tenant_id, dim, hour, app, domain, model, rule_set, value, severity, version, n, k, late) "
	s.exec(insert + "SELECT 'acme', 'all', toDateTime('2026-03-01', 'UTC') + INTERVAL number HOUR, 'a', 'hr', 'm', 'r1', '', 0, 1, 60, 66, 0 FROM numbers(984)")
	s.exec(insert + "SELECT 'acme', 'all', toDateTime('2026-03-01', 'UTC') + INTERVAL number HOUR, 'b', 'hr', 'm', 'r1', '', 0, 1, 45, 45, 5 FROM numbers(984)") // 5 of them late
	s.exec(insert + "SELECT 'acme', 'status', toDateTime('2026-03-01', 'UTC') + INTERVAL number HOUR, 'a', 'hr', 'm', 'r1', 'skipped', 0, 1, 0, 6, 0 FROM numbers(984)")
	s.exec(insert + "SELECT 'acme', 'bias', toDateTime('2026-03-01', 'UTC') + INTERVAL number HOUR, 'a', 'hr', 'm', 'r1', 'charter.sex', 3, 1, 0, 1, 0 FROM numbers(984)")
	s.exec(insert + "SELECT 'acme', 'bias', toDateTime('2026-03-01', 'UTC') + INTERVAL number HOUR, 'b', 'hr', 'm', 'r1', 'charter.sex', 4, 1, 0, 5, 2 FROM numbers(960, 24)") // 2 late
	s.exec(insert + "SELECT 'acme', 'kind', toDateTime('2026-03-01', 'UTC') + INTERVAL number HOUR, 'b', 'hr', 'm', 'r1', 'charter.sex', 4, 1, 0, 50, 0 FROM numbers(960, 24)")
	s.exec(insert + "SELECT 'acme', 'kind', toDateTime('2026-03-01', 'UTC') + INTERVAL number HOUR, 'b', 'hr', 'm', 'r1', 'gate.financial', 4, 1, 0, 50, 0 FROM numbers(960, 24)")
	s.exec(insert + "SELECT 'acme', 'outcome', toDateTime('2026-03-01', 'UTC') + INTERVAL number HOUR, 'b', 'hr', 'm', 'r1', 'detected', 0, 1, 0, 1, 0 FROM numbers(984)")
	// What came later than 48 hours is in the baseline, here at the usual rate, and never alarms.
	s.exec(insert + "SELECT 'acme', 'bias', toDateTime('2026-03-01', 'UTC') + INTERVAL number HOUR, 'b', 'hr', 'm', 'r1', 'charter.sex', 2, 1, 0, 1, 1 FROM numbers(984) WHERE number % 20 = 0")
	s.exec(insert + "SELECT 'acme', 'bias', toDateTime('2026-03-01', 'UTC') + INTERVAL number HOUR, 'b', 'hr', 'm', 'r1', 'charter.age', 3, 1, 0, 40, 40 FROM numbers(960, 24)")
	s.now = time.Date(2026, 4, 11, 0, 20, 0, 0, time.UTC)
}

// event is one interaction with a finding, as the pipeline stores it.
func (s *stand) event(n int, tenant, kind, rule string, severity int, when time.Time) audit.ID {
	s.Helper()
	id := audit.DeriveID("event", fmt.Sprint(n))
	stamp := when.Format("2006-01-02 15:04:05.000")
	day := when.Format(time.DateOnly)
	s.exec("INSERT INTO {{db}}.audit_current (tenant_id, event_day, sort_ts, event_id, version, event_ts, broker_ts, domain, app, model, analysis_status, bias_detected, bias_types, kinds, max_severity, mitigation) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, 'm', 'done', 1, [?], [?], ?, 'REPHRASE_RESPONSE')",
		tenant, day, stamp, id.String(), stamp, stamp, cmp.Or(s.domain, "hr"), fmt.Sprint("app-", n%2), kind, kind, severity)
	s.exec("INSERT INTO {{db}}.verdicts (tenant_id, event_day, event_id, analyzer, version, status, max_severity, analysis_ts, findings.kind, findings.rule, findings.rule_version, findings.ground, findings.severity, findings.score, findings.confidence, findings.side, findings.start, findings.end, findings.abusive, findings.entity) VALUES (?, ?, ?, 'hot', 1, 'done', ?, ?, [?, 'charter.birth'], [?, 'in.prompt'], ['1', '1'], ['', ''], [?, 4], [1, 1], [1, 1], ['output', 'input'], [0, 0], [1, 1], [0, 0], ['', ''])",
		tenant, day, id.String(), severity, stamp, kind, rule, severity)
	return id
}

func TestRowsToBreaches(t *testing.T) {
	s := newStand(t)
	s.rollups()
	for n := range 12 {
		s.event(n, "acme", "charter.sex", []string{"sex.a", "sex.b", "sex.c"}[n%3%2], 3, at(970).Add(time.Duration(n)*time.Minute))
	}
	s.domain = "finance" // where no rate is told, for it would mute this
	for n := range 13 {
		s.event(100+n, "acme", "charter.sex", "sex.a", 3, at(970))
	}
	s.domain = ""
	s.event(50, "acme", "charter.age", "age.a", 3, at(970))
	s.event(51, "other", "charter.sex", "sex.x", 4, at(970))
	strong := s.event(52, "acme", "charter.sex", "sex.b", 4, at(961))
	r := s.runner(s.arbiter())
	out := s.run(r)
	if out.Cells != 3 || out.Opened != 2 || out.Open != 2 || out.OpenBy[audit.TierRate] != 1 || out.OpenBy[audit.TierMitigation] != 1 || out.Warnings != 1 || out.Muted != 1 || len(out.Events) != 2 || !out.At.Equal(at(984)) {
		t.Errorf("%+v", out)
	}
	list, err := s.tables.List(t.Context(), Filter{})
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	i := slices.IndexFunc(list, func(b audit.Breach) bool { return b.Tier == audit.TierRate })
	b := list[i]
	if b.N != 2400 || b.K != 96 || b.Kind != "charter.sex" || b.Severity != audit.Critical || b.Seq != 1 || b.State != audit.BreachOpen || b.RuleSet != "r1" || b.From != at(960) || b.To != at(984) || b.Baseline < 0.0099 || b.Baseline > 0.0101 {
		t.Errorf("%+v", b)
	}
	if b.Mitigation != "REPHRASE_RESPONSE" || len(b.Events) != 10 || b.Events[0] != strong || b.Changed.IsZero() || b.Opened != at(984) {
		t.Errorf("%+v", b)
	}
	if d := gocmp.Diff([]audit.RuleCount{{Rule: "sex.a", Interactions: 8}, {Rule: "sex.b", Interactions: 5}}, b.TopRules); d != "" {
		t.Error(d)
	}
	if d := gocmp.Diff([]audit.Behind{{Of: "application", Value: "app-0", Interactions: 7}, {Of: "application", Value: "app-1", Interactions: 6}, {Of: "model", Value: "m", Interactions: 13}}, b.Split); d != "" {
		t.Error(d)
	}
	if m := list[1-i]; m.K != 13 || m.N != 13 || m.Mitigation != "REPHRASE_RESPONSE" || m.Kind != "charter.sex" || m.Domain != audit.Finance {
		t.Errorf("%+v", m)
	}
	// Again: nothing is wanted, nothing is written.
	if out := s.run(r); out.Opened+out.Resolved+out.Repeated+out.Repaired != 0 || out.Open != 2 {
		t.Errorf("%+v", out)
	}
	if got := s.list("count() || ' ' || sum(active) AS x FROM {{db}}.alarm_warnings"); got != "1 1" {
		t.Error(got)
	}
	// An hour on it is all the same.
	s.now = s.now.Add(time.Hour)
	if out := s.run(r); out.Opened+out.Resolved+out.Repeated != 0 {
		t.Errorf("%+v", out)
	}
	if got := s.list("concat(toString(hour), ' ', toString(active), ' ', toString(k)) AS x FROM {{db}}.alarm_warnings FINAL ORDER BY hour"); got != "2026-04-11 00:00:00 1 96, 2026-04-11 01:00:00 1 92" {
		t.Error(got)
	}
}

// What another process opened within the hour is not resolved by what this one had read before.
func TestABreachOfAnotherProcessStaysOpen(t *testing.T) {
	s := newStand(t)
	s.rollups()
	s.domain = "finance"
	a := s.arbiter()
	here, there := s.runner(a), s.runner(a)
	s.run(here)
	for n := range 13 { // late, and still of the hour that was evaluated
		s.event(100+n, "acme", "charter.sex", "sex.a", 3, at(983))
	}
	if out := s.run(there); out.OpenBy[audit.TierMitigation] != 1 {
		t.Fatalf("%+v", out)
	}
	if out := s.run(here); out.Resolved != 0 || out.OpenBy[audit.TierMitigation] != 1 {
		t.Errorf("%+v", out)
	}
	list, err := s.tables.List(t.Context(), Filter{})
	i := slices.IndexFunc(list, func(b audit.Breach) bool { return b.Tier == audit.TierMitigation })
	if err != nil || i < 0 || list[i].State != audit.BreachOpen || list[i].K != 13 {
		t.Errorf("%+v %v", list, err)
	}
}

func TestWarningsThatHoldNoMore(t *testing.T) {
	s := newStand(t)
	w := Warning{Cell: Cell{"acme", audit.HR, "charter.sex"}, Policy: "default", From: at(0), To: at(24), N: 100, K: 5}
	for i, list := range [][]Warning{{w}, {w}, {}, {w}} {
		if err := s.tables.WriteWarnings(t.Context(), at(24), list, uint64(i+1)); err != nil {
			t.Fatal(err)
		}
		if got, want := s.list("toString(active) AS x FROM {{db}}.alarm_warnings FINAL"), fmt.Sprint(len(list)); got != want {
			t.Errorf("look %d: %s", i, got)
		}
	}
}

// A process ends after a decision and before its row: the next run writes the row and decides nothing
// anew, whether the table of decisions knows it yet or not.
func TestEndBetweenDecisionAndRow(t *testing.T) {
	for _, projected := range []bool{true, false} {
		t.Run(fmt.Sprint("projected ", projected), func(t *testing.T) {
			s := newStand(t)
			s.rollups()
			a := s.arbiter()
			r := s.runner(a)
			killed := errors.New("killed")
			r.write = func(_ context.Context, list []audit.Breach) error {
				if len(list) > 0 {
					return killed
				}
				return nil
			}
			if _, err := r.Run(t.Context()); !errors.Is(err, killed) {
				t.Fatal(err)
			}
			if got := s.list("count() AS x FROM {{db}}.breaches"); got != "0" {
				t.Fatal(got)
			}
			if projected {
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- a.Project(ctx) }()
				for s.list("count() AS x FROM {{db}}.decisions") != "1" {
					if ctx.Err() != nil {
						t.Fatal("it is not projected")
					}
				}
				stop()
				<-ended
			}
			out := s.run(s.runner(s.arbiter()))
			if want := map[bool]int{true: 1}[projected]; out.Repaired != want || out.Open != 1 {
				t.Errorf("%+v", out)
			}
			if got := s.list("concat(state, ' ', toString(seq)) AS x FROM {{db}}.breaches FINAL"); got != "open 1" {
				t.Error(got)
			}
			id := s.list("toString(breach_id) AS x FROM {{db}}.breaches FINAL")
			h, err := a.History(t.Context(), arbiter.Key{Kind: breaches.Kind, ID: id})
			if err != nil || len(h) != 1 {
				t.Errorf("%v %v", h, err)
			}
		})
	}
}

// Eight evaluators at once come to one transition each time: opened, then resolved.
func TestEightEvaluators(t *testing.T) {
	s := newStand(t)
	s.rollups()
	var rs []*Runner
	for range 8 {
		rs = append(rs, s.runner(s.arbiter()))
	}
	race := func() (won int) {
		outs := make([]Outcome, len(rs))
		var wg sync.WaitGroup
		for i, r := range rs {
			wg.Go(func() {
				var err error
				if outs[i], err = r.Run(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, o := range outs {
			if o.Refused != 0 {
				t.Errorf("%+v", o)
			}
		}
		return len(outs)
	}
	race()
	if got := s.list("concat(state, ' ', reason, ' ', toString(seq)) AS x FROM {{db}}.breaches FINAL ORDER BY seq"); got != "open breached 1" {
		t.Error(got)
	}
	// The rate falls: usual for two days.
	s.exec("INSERT INTO {{db}}.rollup_hourly SELECT * REPLACE (hour + INTERVAL 3 DAY AS hour) FROM {{db}}.rollup_hourly FINAL WHERE dim IN ('all', 'status') AND hour >= toDateTime('2026-04-08', 'UTC')")
	s.exec("INSERT INTO {{db}}.rollup_hourly SELECT * REPLACE (hour + INTERVAL 3 DAY AS hour) FROM {{db}}.rollup_hourly FINAL WHERE dim = 'bias' AND severity = 3 AND value = 'charter.sex' AND hour >= toDateTime('2026-04-08', 'UTC')")
	s.now = s.now.Add(3 * 24 * time.Hour)
	race()
	if got := s.list("concat(state, ' ', reason, ' ', toString(seq)) AS x FROM {{db}}.breaches FINAL ORDER BY seq"); got != "open breached 1, resolved near_baseline 2" {
		t.Error(got)
	}
	id := s.list("DISTINCT toString(breach_id) AS x FROM {{db}}.breaches FINAL")
	h, err := s.arbiter().History(t.Context(), arbiter.Key{Kind: breaches.Kind, ID: id})
	if err != nil || len(h) != 2 {
		t.Errorf("%v %v", h, err)
	}
}

func TestReviewsOpenBreaches(t *testing.T) {
	s := newStand(t)
	s.now = time.Date(2026, 4, 11, 12, 20, 0, 0, time.UTC)
	when := s.now.Add(-30 * time.Hour)
	review := func(n, id int, reviewer, decision string, when time.Time) {
		t.Helper()
		s.exec("INSERT INTO {{db}}.reviews (tenant_id, event_day, event_id, review_id, version, reviewer, decision, reviewed_at) SELECT tenant_id, event_day, event_id, ?, 1, ?, ?, ? FROM {{db}}.audit_current WHERE event_id = ?",
			audit.DeriveID("review", fmt.Sprint(id)).String(), reviewer, decision, when.Format("2006-01-02 15:04:05.000"), audit.DeriveID("event", fmt.Sprint(n)).String())
	}
	confirmed := s.event(1, "acme", "charter.sex", "sex.slur", 4, when)
	s.event(2, "acme", "charter.age", "age.slur", 4, when) // dismissed
	s.event(3, "acme", "charter.race", "race.slur", 4, when)
	s.event(4, "acme", "charter.color", "color.hint", 3, when) // not critical
	s.event(5, "acme", "charter.birth", "birth.slur", 4, when) // first confirmed, then thought over
	s.event(6, "acme", "charter.property", "late.slur", 4, when)
	s.exec("INSERT INTO {{db}}.audit_current SELECT * REPLACE (2 AS version, broker_ts + INTERVAL 49 HOUR AS broker_ts) FROM {{db}}.audit_current WHERE kinds = ['charter.property']")
	for n, word := range map[int]string{1: "confirmed", 2: "dismissed", 4: "confirmed", 6: "confirmed"} {
		review(n, n, "ann", word, s.now.Add(-time.Hour))
	}
	review(5, 50, "ann", "confirmed", s.now.Add(-2*time.Hour))
	review(5, 51, "ann", "unsure", s.now.Add(-time.Hour))
	// Of several people's the newest with a decision holds; one that was taken back is none.
	both := s.event(7, "acme", "charter.language", "language.slur", 4, when)
	s.event(8, "acme", "charter.religion", "religion.slur", 4, when)
	back := s.event(9, "acme", "charter.nationality", "nationality.slur", 4, when)
	for i, r := range []struct {
		event          int
		reviewer, word string
	}{{7, "ron", "dismissed"}, {7, "rita", "confirmed"}, {8, "rita", "confirmed"}, {8, "ron", "dismissed"}, {9, "rita", "confirmed"}, {9, "ron", "dismissed"}, {9, "ron", "withdrawn"}, {7, "ulf", "unsure"}, {8, "ulf", "unsure"}} {
		review(r.event, 70+i, r.reviewer, r.word, s.now.Add(time.Duration(i-60)*time.Minute))
	}
	r := s.runner(s.arbiter())
	s.run(r)
	breaches := "concat(kind, ' ', tier, ' ', toString(k), ' ', arrayStringConcat(top_rules.rule, ','), ' ', toString(event_ids), ' ', decided_by, ' ', toString(dateDiff('minute', confirmed_at, toDateTime64('" + s.now.Format("2006-01-02 15:04:05.000") + "', 3, 'UTC')))) AS x FROM {{db}}.breaches FINAL WHERE tier = 'policy' ORDER BY kind"
	if got, want := s.list(breaches), "charter.language policy 1 language.slur ['"+both.String()+"'] rita 59, charter.nationality policy 1 nationality.slur ['"+back.String()+"'] rita 56, charter.sex policy 1 sex.slur ['"+confirmed.String()+"'] ann 60"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// Unconfirmed ones too, where the policy wants them; not what was dismissed, nor what came late.
	r = NewRunner(s.tables, policies(t, "defaults: {critical: {unconfirmed: true}}"), s.arbiter(), func() time.Time { return s.now })
	s.run(r)
	if got := s.list("kind AS x FROM {{db}}.breaches FINAL WHERE tier = 'policy' ORDER BY kind"); got != "charter.birth, charter.language, charter.nationality, charter.race, charter.sex" {
		t.Error(got)
	}
	// Frequent mitigation counts by the same rule.
	mitigated, err := s.tables.Mitigations(t.Context(), s.now, 7*24*time.Hour)
	var kinds []string
	for _, m := range mitigated {
		kinds = append(kinds, m.Kind)
	}
	if got := strings.Join(kinds, ", "); err != nil || got != "charter.birth, charter.color, charter.language, charter.nationality, charter.race, charter.sex" {
		t.Error(got, err)
	}
}

func TestBreachRowHoldsAll(t *testing.T) {
	s := newStand(t)
	b := audit.Breach{ID: audit.ID{1}, Seq: 3, Tenant: "acme", Policy: "p", Tier: audit.TierRate, Domain: audit.HR, Kind: sex, Group: "g", Generation: 2, State: audit.BreachMitigated, Reason: "completed",
		Opened: at(1), Changed: at(2), From: at(0), To: at(1), N: 10, K: 5, Rate: 0.5, Lower: 0.2, Upper: 0.8, Baseline: 0.1, BaselineN: 1000, P: 1e-9, Severity: audit.High, RuleSet: "r", Mitigation: "m", By: "ann", Confirmed: at(1), Split: []audit.Behind{{Of: "model", Value: "m-1", Interactions: 5}},
		TopRules: []audit.RuleCount{{Rule: "a", Interactions: 4}}, Events: []audit.ID{{7}}}
	if err := breaches.Write(t.Context(), s.tables.conn, s.tables.db, b); err != nil {
		t.Fatal(err)
	}
	list, err := s.tables.Breach(t.Context(), b.ID)
	if d := gocmp.Diff([]audit.Breach{b}, list); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	if list, err := s.tables.List(t.Context(), Filter{Tenant: "acme", State: audit.BreachOpen}); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
}
