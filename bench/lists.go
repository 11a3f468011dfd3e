package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/store"
)

// known are interactions of tenant-0 from all over the generated days, to ask for again.
type known struct {
	id          audit.ID
	trace, user string
}

// listQuery is a question and the page and order it is asked for.
type listQuery struct {
	question
	page store.Page
}

// question is one kind of filter with its condition in SQL.
type question struct {
	name string
	ask  func(i int) store.Filter
	sql  func(f store.Filter) string
}

// order is the list's in SQL.
func (q listQuery) order() string {
	column := map[store.SortKey]string{store.ByBiasScore: "bias_sum", store.ByConfidence: "confidence", store.BySeverity: "max_severity", store.ByFindingsCount: "n_findings",
		store.BySafety: "safety_sum", store.ByToxicity: "toxicity", store.ByPII: "pii", store.ByHallucination: "hallucination"}[q.page.Sort.By]
	switch {
	case column == "" && q.page.Sort.Ascending:
		return "sort_ts, event_id, content_digest"
	case column == "":
		return "sort_ts DESC, event_id DESC, content_digest DESC"
	case q.page.Sort.Ascending:
		return column + ", sort_ts DESC, event_id DESC, content_digest DESC"
	}
	return column + " DESC, sort_ts DESC, event_id DESC, content_digest DESC"
}

func lists(ctx context.Context, o options) error {
	up, conn, err := startUp(ctx, o)
	if err != nil {
		return err
	}
	defer up.stop()
	defer func() { _ = conn.Close() }()
	// As callers read: within the limits, and through the row policies.
	api, err := engine.Running(filepath.Join(o.dir, "store"), engine.API)
	if err != nil {
		return err
	}
	apiConn, err := chconn.Open(api.Config())
	if err != nil {
		return err
	}
	defer func() { _ = apiConn.Close() }()
	if n, err := scalar[uint64](ctx, conn, "SELECT count() FROM audit_current WHERE topic = 'generated'"); err != nil {
		return err
	} else if n == 0 { // else a folder that was filled before
		if err := generate(ctx, o, conn); err != nil {
			return err
		}
	}
	s := store.NewReader(apiConn, "evenhand", store.DefaultLimits(), true)
	if err := atRest(ctx, conn); err != nil {
		return err
	}
	ks, err := pick(ctx, conn)
	if err != nil {
		return err
	}
	qs := queries(ks)
	if o.only == "" {
		if err := compare(ctx, conn, s.WithTenant("tenant-0"), qs); err != nil {
			return err
		}
		if err := compareView(ctx, conn, s.WithTenant("tenant-0")); err != nil {
			return err
		}
	}
	qs = slices.DeleteFunc(qs, func(q listQuery) bool { return !strings.Contains(q.name, o.only) })
	idle, err := askAll(ctx, o, s, qs, ks)
	if err != nil {
		return err
	}
	busy, rate := idle, 0.0
	if o.load {
		if busy, rate, err = underIngest(ctx, o, conn, func() (map[string][]time.Duration, error) { return askAll(ctx, o, s, qs, ks) }); err != nil {
			return err
		}
	}
	fmt.Printf("%-36s %24s %30s\n", "ms, p50 p95 max", "idle", fmt.Sprintf("while %.0f events/s come in", rate))
	for _, q := range append(names(qs), others...) {
		if len(idle[q]) > 0 {
			fmt.Printf("%-36s %24s %30s\n", q, quantiles(idle[q]), quantiles(busy[q]))
		}
	}
	if o.only != "" {
		return nil
	}
	return figures(ctx, store.New(conn, "evenhand"))
}

func names(qs []listQuery) (out []string) {
	for _, q := range qs {
		out = append(out, q.name)
	}
	return out
}

func quantiles(ds []time.Duration) string {
	slices.Sort(ds)
	at := func(q float64) float64 { return float64(ds[int(q*float64(len(ds)-1)+0.5)].Microseconds()) / 1000 }
	return fmt.Sprintf("%6.1f %7.1f %7.1f", at(0.5), at(0.95), at(1))
}

// atRest waits until nothing comes in any more: a folder that was filled before may hold a backlog.
func atRest(ctx context.Context, conn driver.Conn) error {
	last, since := uint64(0), time.Now()
	return waitFor(ctx, "the backlog", 10*time.Minute, func() bool {
		n, err := scalar[uint64](ctx, conn, "SELECT sum(rows) FROM ingest_batches")
		if err != nil || n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 10*time.Second
	})
}

// pick finds interactions to ask for.
func pick(ctx context.Context, conn driver.Conn) (ks []known, err error) {
	users := map[uuid.UUID]string{}
	rows, err := conn.Query(ctx, "SELECT event_id, trace_id FROM audit_current WHERE tenant_id = 'tenant-0' AND topic = 'generated' AND cityHash64(offset) % 5000 = 0 ORDER BY offset LIMIT 400")
	if err != nil {
		return nil, err
	}
	var ids []string
	for rows.Next() {
		var id uuid.UUID
		var k known
		if err := rows.Scan(&id, &k.trace); err != nil {
			return nil, err
		}
		k.id = audit.ID(id)
		ks, ids = append(ks, k), append(ids, "'"+id.String()+"'")
	}
	if err := rows.Err(); err != nil || len(ks) == 0 {
		return nil, fmt.Errorf("no generated rows to ask for: %w", err)
	}
	rows, err = conn.Query(ctx, "SELECT event_id, user_id FROM interaction_users WHERE tenant_id = 'tenant-0' AND event_id IN ("+strings.Join(ids, ", ")+")")
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var id uuid.UUID
		var user string
		if err := rows.Scan(&id, &user); err != nil {
			return nil, err
		}
		users[id] = user
	}
	for i := range ks {
		ks[i].user = users[uuid.UUID(ks[i].id)]
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(ks), func(i, j int) { ks[i], ks[j] = ks[j], ks[i] })
	return ks, rows.Err()
}

func queries(ks []known) []listQuery {
	now := time.Now().UTC()
	whole := store.Window{From: now.AddDate(0, 0, -30), To: now.AddDate(0, 0, 1)}
	yes, no := true, false
	of := func(i int, vs ...string) string { return vs[i%len(vs)] }
	equal := func(column string, value func(store.Filter) string) func(store.Filter) string {
		return func(f store.Filter) string { return column + " = '" + value(f) + "'" }
	}
	const users = "event_id IN (SELECT event_id FROM interaction_users WHERE tenant_id = 'tenant-0' AND user_id = '%s')"
	fixed := func(s string) func(store.Filter) string { return func(store.Filter) string { return s } }
	user := func(f store.Filter) string { return fmt.Sprintf(users, f.UserID) }
	var qs []listQuery
	for _, q := range []question{
		{"no filter", func(int) store.Filter { return store.Filter{} }, fixed("1")},
		{"llmProvider", func(i int) store.Filter { return store.Filter{Provider: of(i, "openai", "anthropic", "mistral")} }, equal("provider", func(f store.Filter) string { return f.Provider })},
		{"llmModel", func(i int) store.Filter {
			return store.Filter{Model: of(i, "gpt-4o", "claude-x", "mistral-large", "no-such-model")}
		}, equal("model", func(f store.Filter) string { return f.Model })},
		{"sensitivityScore", func(i int) store.Filter { return store.Filter{Sensitivity: of(i, "low", "medium", "high")} }, equal("sensitivity_score", func(f store.Filter) string { return f.Sensitivity })},
		{"biasDetected", func(i int) store.Filter {
			if i%2 == 0 {
				return store.Filter{BiasDetected: &yes}
			}
			return store.Filter{BiasDetected: &no}
		}, func(f store.Filter) string {
			return fmt.Sprintf("bias_detected = %d", audit.TristateOf(*f.BiasDetected))
		}},
		{"humanReviewed (none is)", func(int) store.Filter { return store.Filter{HumanReviewed: &yes} }, fixed("human_reviewed = 1")},
		{"logTimestamp, a day of 28", func(i int) store.Filter {
			from := now.AddDate(0, 0, -1-i%27)
			return store.Filter{Window: store.Window{From: from, To: from.AddDate(0, 0, 1)}}
		}, fixed("1")},
		{"userId", func(i int) store.Filter { return store.Filter{UserID: ks[i%len(ks)].user} }, user},
		{"userId, 28 days", func(i int) store.Filter { return store.Filter{Window: whole, UserID: ks[i%len(ks)].user} }, user},
		{"kind", func(i int) store.Filter {
			return store.Filter{Kind: of(i, "charter.sex", "charter.age", "safety.harassment", "terms.gender", "charter.birth")}
		}, func(f store.Filter) string { return "has(kinds, '" + f.Kind + "')" }},
		{"biasType", func(i int) store.Filter {
			return store.Filter{BiasType: of(i, "charter.sex", "charter.age", "charter.ethnic_origin", "charter.birth")}
		}, func(f store.Filter) string { return "has(bias_types, '" + f.BiasType + "')" }},
		{"flagged", func(int) store.Filter { return store.Filter{Flagged: &yes} }, fixed("flagged = 1")},
		{"application", func(i int) store.Filter { return store.Filter{App: fmt.Sprint("app-", i%14)} }, equal("app", func(f store.Filter) string { return f.App })},
		{"domain", func(i int) store.Filter { return store.Filter{Domain: audit.Domains[i%len(audit.Domains)]} }, equal("domain", func(f store.Filter) string { return string(f.Domain) })},
		{"flagged, kind and domain, 28 days", func(i int) store.Filter {
			return store.Filter{Window: whole, Flagged: &yes, Kind: "charter.age", Domain: audit.Domains[i%len(audit.Domains)]}
		}, func(f store.Filter) string {
			return "flagged = 1 AND has(kinds, 'charter.age') AND domain = '" + string(f.Domain) + "'"
		}},
		{"traceId, 28 days", func(i int) store.Filter { return store.Filter{Window: whole, TraceID: ks[i%len(ks)].trace} }, equal("trace_id", func(f store.Filter) string { return f.TraceID })},
		{"eventId, 28 days", func(i int) store.Filter { return store.Filter{Window: whole, EventID: ks[i%len(ks)].id} }, equal("event_id", func(f store.Filter) string { return f.EventID.String() })},
		{"unsafe", func(int) store.Filter { return store.Filter{Unsafe: &yes} }, fixed("unsafe = 1")},
		{"gated (none is)", func(int) store.Filter { return store.Filter{Gated: &yes} }, fixed("gated = 1")},
		{"effectiveBias", func(int) store.Filter { return store.Filter{Effective: &yes} }, fixed("bias_detected = 1")},
		{"minSeverity", func(i int) store.Filter { return store.Filter{MinSeverity: uint8(1 + i%4)} }, func(f store.Filter) string { return fmt.Sprint("max_severity >= ", f.MinSeverity) }},
		{"minBiasScore", func(int) store.Filter { return store.Filter{MinBiasScore: 500_000} }, fixed("bias_sum >= 500000")},
		{"minConfidence", func(i int) store.Filter { return store.Filter{MinConfidence: audit.Score(700_000 + 10_000*(i%20))} }, func(f store.Filter) string { return fmt.Sprintf("confidence >= %d", int64(f.MinConfidence)) }},
		{"biasAnalysisStatus (none is)", func(int) store.Filter { return store.Filter{AnalysisStatus: audit.Failed} }, fixed("analysis_status = 'failed'")},
		{"action", func(i int) store.Filter { return store.Filter{Action: audit.Action(of(i, "log", "none"))} }, equal("action", func(f store.Filter) string { return string(f.Action) })},
		{"status", func(i int) store.Filter { return store.Filter{Status: of(i, "success", "error")} }, equal("status", func(f store.Filter) string { return f.Status })},
	} {
		qs = append(qs, listQuery{question: q})
	}
	qs = append(qs, []listQuery{
		{question{"offset 1,000", func(int) store.Filter { return store.Filter{} }, fixed("1")}, store.Page{Offset: 1000}},
		{question{"offset 10,000", func(int) store.Filter { return store.Filter{} }, fixed("1")}, store.Page{Offset: store.MaxOffset}},
		{question{"oldest first", func(int) store.Filter { return store.Filter{} }, fixed("1")}, store.Page{Sort: store.Sort{Ascending: true}}},
		{question{"by toxicity, of a domain", func(i int) store.Filter { return store.Filter{Domain: audit.Domains[i%len(audit.Domains)]} }, equal("domain", func(f store.Filter) string { return string(f.Domain) })}, store.Page{Sort: store.Sort{By: store.ByToxicity}}},
		{question{"by severity, biased", func(int) store.Filter { return store.Filter{BiasDetected: &yes} }, fixed("bias_detected = 1")}, store.Page{Sort: store.Sort{By: store.BySeverity}}},
		{question{"by toxicity, 28 days", func(int) store.Filter { return store.Filter{Window: whole} }, fixed("1")}, store.Page{Sort: store.Sort{By: store.ByToxicity}}},
	}...)
	for _, by := range []store.SortKey{store.ByBiasScore, store.ByConfidence, store.BySeverity, store.ByFindingsCount, store.BySafety, store.ByToxicity, store.ByPII, store.ByHallucination} {
		for _, up := range []bool{false, true} {
			name := "by " + string(by)
			if up {
				name += ", least first"
			}
			qs = append(qs, listQuery{question{name, func(int) store.Filter { return store.Filter{} }, fixed("1")}, store.Page{Sort: store.Sort{By: by, Ascending: up}}})
		}
	}
	return qs
}

// items is a page.
type items []store.Item

func (is items) pointers() (out []*store.Item) {
	for i := range is {
		out = append(out, &is[i])
	}
	return out
}

// yearly asks for a trend of a year, of what the rollups hold.
func yearly(ctx context.Context, t *store.Tenant) error {
	now := time.Now()
	_, _, err := t.Trend(ctx, store.TrendQuery{Window: store.Window{From: now.AddDate(-1, 0, 0), To: now}, Group: store.ByDomain})
	return err
}

// others are the questions that are no list.
var others = []string{"get by id", "find by id", "50 by id", "texts of a page", "verdicts of a page", "count, 7 days", "flagged in the last minute", "trend, a year by domain"}

// askAll asks every query as often as was said, with another value each time where there are others, and
// what else there is to ask.
func askAll(ctx context.Context, o options, s *store.Store, qs []listQuery, ks []known) (map[string][]time.Duration, error) {
	t := s.WithTenant("tenant-0")
	took := map[string][]time.Duration{}
	var ids []audit.ID
	for _, k := range ks[:min(50, len(ks))] {
		ids = append(ids, k.id)
	}
	res, err := t.List(ctx, store.Filter{}, store.Page{})
	if err != nil {
		return nil, err
	}
	page := items(res.Items)
	for i := range o.samples {
		for _, q := range qs {
			began := time.Now()
			if _, err := t.List(ctx, q.ask(i), q.page); err != nil {
				return nil, fmt.Errorf("%s: %w", q.name, err)
			}
			took[q.name] = append(took[q.name], time.Since(began))
		}
		k := ks[(i*7)%len(ks)]
		for _, x := range []struct {
			name string
			do   func() error
		}{{"get by id", func() error {
			r, err := t.Get(ctx, k.id)
			if err == nil && (r.EventID != k.id || len(r.Verdicts) != 1) {
				err = fmt.Errorf("%s with %d verdicts", r.EventID, len(r.Verdicts))
			}
			return err
		}},
			{"find by id", func() error { _, err := t.Find(ctx, k.id); return err }},
			{"50 by id", func() error { _, err := t.Items(ctx, ids); return err }},
			{"texts of a page", func() error { _, err := t.Texts(ctx, page.pointers()); return err }},
			{"verdicts of a page", func() error { _, err := t.Verdicts(ctx, page.pointers()); return err }},
			{"count, 7 days", func() error { _, err := t.Count(ctx, store.Filter{}); return err }},
			{"flagged in the last minute", func() error {
				_, _, err := t.FlaggedSince(ctx, store.Filter{}, time.Now().Add(-time.Minute), 100)
				return err
			}},
			{"trend, a year by domain", func() error { return yearly(ctx, t) }}} {
			if !strings.Contains(x.name, o.only) {
				continue
			}
			began := time.Now()
			if err := x.do(); err != nil {
				return nil, fmt.Errorf("%s: %w", x.name, err)
			}
			took[x.name] = append(took[x.name], time.Since(began))
		}
	}
	return took, nil
}

// compare holds a page of every query, and the page behind it, against plain FINAL over the window.
func compare(ctx context.Context, conn driver.Conn, t *store.Tenant, qs []listQuery) error {
	for i, q := range qs {
		f := q.ask(i)
		var got []string
		var window store.Window
		for page := (store.Page{Limit: store.MaxLimit, Sort: q.page.Sort}); len(got) < 2*store.MaxLimit; {
			res, err := t.List(ctx, f, page)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			for _, it := range res.Items {
				got = append(got, it.EventID.String())
			}
			if window, page.After = res.Window, res.Next; res.Next == nil {
				break
			}
		}
		var want []string
		sql := fmt.Sprintf("SELECT toString(event_id) FROM audit_current FINAL WHERE tenant_id = 'tenant-0' AND event_day >= toDate('%s') AND sort_ts >= fromUnixTimestamp64Milli(toInt64(%d)) AND sort_ts < fromUnixTimestamp64Milli(toInt64(%d)) AND %s"+
			" ORDER BY %s LIMIT %d", window.From.Format(time.DateOnly), window.From.UnixMilli(), window.To.UnixMilli(), q.sql(f), q.order(), 2*store.MaxLimit)
		rows, err := conn.Query(ctx, sql)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			want = append(want, id)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s: the list gives %d rows, plain FINAL %d, and they differ", q.name, len(got), len(want))
		}
	}
	fmt.Printf("two pages of each of %d filters are those of plain FINAL\n", len(qs))
	return nil
}

// compareView holds one page of the list against the view llm_interaction_audit.
func compareView(ctx context.Context, conn driver.Conn, t *store.Tenant) error {
	now := time.Now().UTC()
	res, err := t.List(ctx, store.Filter{Window: store.Window{From: now.AddDate(0, 0, -2), To: now.AddDate(0, 0, -1)}}, store.Page{})
	if err != nil {
		return err
	}
	var ids, days, want []string
	for _, it := range res.Items {
		ids, days = append(ids, "'"+it.EventID.String()+"'"), append(days, "'"+it.Time.Format(time.DateOnly)+"'")
		want = append(want, fmt.Sprint(it.EventID, " ", it.Time.UnixMilli(), " ", it.Provider, " ", it.Model, " ", it.Sensitivity, " ", it.Status, " ", it.BiasDetected, " ", it.BiasTypes, " ",
			it.TraceID, " ", it.App, " ", it.Domain, " ", it.AnalysisStatus))
	}
	slices.Sort(days)
	began := time.Now()
	rows, err := conn.Query(ctx, `SELECT id, log_timestamp, llm_provider, llm_model, sensitivity_score, status, bias_detected, bias_type, trace_id, application, domain, bias_analysis_status
		FROM llm_interaction_audit WHERE tenant_id = 'tenant-0' AND event_day IN (`+strings.Join(slices.Compact(days), ", ")+`) AND id IN (`+strings.Join(ids, ", ")+`) ORDER BY log_timestamp DESC, id DESC`)
	if err != nil {
		return fmt.Errorf("view: %w", err)
	}
	var got []string
	for rows.Next() {
		var id uuid.UUID
		var at time.Time
		var provider, model, status, trace, app, domain, analysis string
		var sensitivity *string
		var detected bool
		var types []string
		if err := rows.Scan(&id, &at, &provider, &model, &sensitivity, &status, &detected, &types, &trace, &app, &domain, &analysis); err != nil {
			return err
		}
		got = append(got, fmt.Sprint(id, " ", at.UnixMilli(), " ", provider, " ", model, " ", *sensitivity, " ", status, " ", detected, " ", types, " ", trace, " ", app, " ", domain, " ", analysis))
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("view: %w", err)
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		return fmt.Errorf("the view gives %d rows for a page of %d, or other ones:\n%v\n%v", len(got), len(want), first(got), first(want))
	}
	fmt.Printf("llm_interaction_audit gives the same %d rows of a page, in %d ms\n", len(got), time.Since(began).Milliseconds())
	return nil
}

func first(s []string) []string { return s[:min(1, len(s))] }

// figures times what reads a whole window, and the check of the whole store.
func figures(ctx context.Context, s *store.Store) error {
	t, began := s.WithTenant("tenant-0"), time.Now()
	took := func(what string) {
		fmt.Printf("%-36s %8.2f s\n", what, time.Since(began).Seconds())
		began = time.Now()
	}
	if _, err := t.Rates(ctx, store.Window{}); err != nil {
		return err
	}
	took("rates, 7 days")
	if _, err := t.Coverage(ctx, store.Window{}); err != nil {
		return err
	}
	took("coverage, 7 days")
	if _, err := t.TopFindings(ctx, store.Window{}, 10); err != nil {
		return err
	}
	took("top findings, 7 days")
	r, err := s.Check(ctx)
	if err != nil {
		return err
	}
	took(fmt.Sprintf("check of %d interactions", r.Interactions))
	if !r.OK() {
		return fmt.Errorf("check: %+v", r.Faults)
	}
	return nil
}

// underIngest keeps the pipeline busy while f runs: with events that it never catches up with, or o.pace a second.
func underIngest(ctx context.Context, o options, conn driver.Conn, f func() (map[string][]time.Duration, error)) (map[string][]time.Duration, float64, error) {
	const ahead = 100_000
	e, _ := readEndpoints(o.dir)
	stored := func() uint64 {
		n, _ := scalar[uint64](ctx, conn, "SELECT sum(rows) FROM ingest_batches WHERE topic != 'generated'")
		return n
	}
	before, started := stored(), time.Now()
	pctx, cancel := context.WithCancel(ctx)
	o.n = 1 << 40
	var wg sync.WaitGroup
	var perr error
	wg.Go(func() {
		perr = produce(pctx, e.Kafka, o, func(i int) {
			_ = waitFor(pctx, "the pipeline", time.Minute, func() bool {
				due := o.pace == 0 || float64(i) <= float64(o.pace)*time.Since(started).Seconds()
				return due && uint64(i) < stored()-before+ahead
			})
		})
	})
	err := waitFor(ctx, "the first events", time.Minute, func() bool { return stored()-before > ahead/10 })
	began, from := time.Now(), stored()
	var took map[string][]time.Duration
	if err == nil {
		took, err = f()
	}
	rate := float64(stored()-from) / time.Since(began).Seconds()
	cancel()
	wg.Wait()
	if err == nil && perr != nil && pctx.Err() == nil {
		err = perr
	}
	return took, rate, err
}
