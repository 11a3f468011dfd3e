package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

// newPoliced is a store in an engine of its own, and what the account of the API sees of it.
func newPoliced(t *testing.T, l store.Limits) (f *fixture, reader *store.Store, e *engine.Engine) {
	t.Helper()
	e = enginetest.StartWith(t, engine.Options{Bound: store.TenantTables, Common: store.CommonTables})
	cfg := e.Config(engine.Writer)
	migratetest.Run(t, cfg)
	conn := enginetest.Conn(t, cfg)
	f = &fixture{TB: t, conn: conn, db: cfg.Database, Store: store.New(conn, cfg.Database)}
	return f, store.NewReader(enginetest.Conn(t, e.Config(engine.API)), cfg.Database, l, true), e
}

// asked runs every method of a tenant and prints what it gave, or the kind of its error.
func asked(ctx context.Context, tenant *store.Tenant, e event) map[string]string {
	out := map[string]string{}
	say := func(name string, v any, err error) {
		if err != nil {
			v = fmt.Sprintf("%s (code %d)", audit.KindOf(err), chconn.Code(err))
		}
		out[name] = fmt.Sprintf("%+v", v)
	}
	list := func(name string, f store.Filter, p store.Page) []store.Item {
		res, err := tenant.List(ctx, f, p)
		if err != nil {
			say(name, nil, err)
			return nil
		}
		say(name, ids(res.Items), nil)
		return res.Items
	}
	items := list("list", store.Filter{}, store.Page{})
	list("list of a user", store.Filter{UserID: e.user}, store.Page{})
	list("list by value", store.Filter{}, store.Page{Sort: store.Sort{By: store.BySeverity}})
	list("list from an offset", store.Filter{}, store.Page{Offset: 2})
	r, err := tenant.Get(ctx, e.id)
	if r != nil {
		say("get", r.Interaction.Prompt, err)
	} else {
		say("get", nil, err)
	}
	of := []*store.Item{{Tenant: e.tenant, EventID: e.id, Digest: e.digest(), Time: e.at}}
	if len(items) > 0 {
		of = pointers(items)
	}
	facts, err := tenant.Facts(ctx, of)
	say("facts", len(facts), err)
	texts, err := tenant.Texts(ctx, of)
	say("texts", len(texts), err)
	verdicts, err := tenant.Verdicts(ctx, of)
	say("verdicts", len(verdicts), err)
	reviews, err := tenant.Reviews(ctx, of)
	say("reviews", len(reviews), err)
	byID, err := tenant.Items(ctx, []audit.ID{e.id})
	say("items", ids(byID), err)
	n, err := tenant.Count(ctx, store.Filter{})
	say("count", n, err)
	flagged, _, err := tenant.FlaggedSince(ctx, store.Filter{}, time.Now().Add(-time.Hour), 100)
	say("flagged since", ids(flagged), err)
	trend, _, err := tenant.Trend(ctx, store.TrendQuery{Window: store.Window{From: noon.Add(-time.Hour), To: noon}})
	say("trend", trend, err)
	breaches, _, err := tenant.Breaches(ctx, store.BreachFilter{}, 0, "")
	say("breaches", breaches, err)
	history, err := tenant.BreachHistory(ctx, []audit.ID{audit.DeriveID("acme", "breach0"), audit.DeriveID("beta", "breach0")})
	say("history", history, err)
	tickets, err := tenant.Tickets(ctx, []audit.ID{audit.DeriveID("acme", "breach0"), audit.DeriveID("beta", "breach0")})
	say("tickets", len(tickets), err)
	gates, _, err := tenant.Gates(ctx, store.GateFilter{}, 0, "")
	say("gates", len(gates), err)
	since, _, err := tenant.GatesSince(ctx, time.Now().Add(-time.Hour))
	say("gates since", len(since), err)
	rates, err := tenant.Rates(ctx, store.Window{})
	say("rates", rates, err)
	top, err := tenant.TopFindings(ctx, store.Window{}, 5)
	say("top", len(top), err)
	coverage, err := tenant.Coverage(ctx, store.Window{})
	say("coverage", coverage, err)
	return out
}

// twoTenants writes rows of two tenants into every table that is read.
func (f *fixture) twoTenants() {
	for tenant, n := range map[string]int{"acme": 9, "beta": 7} {
		es := series(tenant, n)
		f.write(es...)
		f.review(es[0], "ann", "confirmed", noon)
		d := es[0].digest()
		for _, table := range []string{"reveals", "feedback"} {
			f.insert(table, row{"tenant_id": tenant, "event_day": es[0].at, "event_id": es[0].id.String(), "content_digest": string(d[:]), "version": uint64(1), "subject": "ann"})
		}
		id := f.breach(tenant, 0, 1, audit.BreachOpen, noon)
		f.insert("tickets", row{"tenant_id": tenant, "breach_id": id.String(), "ticket_id": id.String(), "version": uint64(1), "created_at": noon})
		f.insert("rejected", row{"topic": "t", "offset": int64(n), "tenant_id": tenant, "version": uint64(1), "broker_ts": noon, "event_day": noon})
		f.insert("gates", row{"tenant_id": tenant, "event_day": noon, "gate_id": id.String(), "version": uint64(1), "opened_at": noon, "state": "open"})
		f.cells(cell{tenant: tenant, dim: "all", hour: noon, n: uint64(n), k: 3})
	}
}

// The second belt: whatever a query forgets, the server shows the account of the API the rows of the
// tenant that it named, and nothing when it named none.
func TestRowPolicies(t *testing.T) {
	f, reader, e := newPoliced(t, store.DefaultLimits())
	f.twoTenants()
	api := enginetest.Conn(t, e.Config(engine.API))
	deadline := time.Now().Add(20 * time.Second) // until the rows have settled
	for _, tenant := range []string{"acme", "beta"} {
		for n := 0; n == 0 && time.Now().Before(deadline); {
			items, _, err := f.WithTenant(tenant).FlaggedSince(t.Context(), store.Filter{}, time.Now().Add(-time.Hour), 100)
			if n = len(items); err != nil {
				t.Fatal(err)
			}
		}
	}

	t.Run("the same as without", func(t *testing.T) {
		for _, tenant := range []string{"acme", "nobody"} {
			who := sample(tenant, 0)
			want := asked(t.Context(), f.WithTenant(tenant), who)
			if d := cmp.Diff(want, asked(t.Context(), reader.WithTenant(tenant), who)); d != "" {
				t.Errorf("%s (-writer +reader):\n%s", tenant, d)
			}
			if tenant == "acme" && (!strings.Contains(want["get"], "hire") || want["count"] != "9" || want["tickets"] != "1") {
				t.Errorf("%v", want)
			}
		}
	})
	t.Run("the condition cut out", func(t *testing.T) {
		whole := asked(t.Context(), f.WithTenant("acme"), sample("acme", 0))
		if d := cmp.Diff(whole, asked(t.Context(), reader.Unbound("acme"), sample("acme", 0))); d != "" {
			t.Errorf("(-bound +cut out):\n%s", d)
		}
		if n, _ := f.Unbound("acme").Count(t.Context(), store.Filter{}); n != 16 {
			t.Errorf("without policies either: %d rows, want those of both tenants", n)
		}
		for name, got := range asked(t.Context(), reader.Unbound(""), sample("", 0)) {
			if !strings.Contains(got, "code 115") {
				t.Errorf("%s without a tenant gives %s", name, got)
			}
		}
		if _, err := reader.AllTenants().Rates(t.Context(), store.Window{}); chconn.Code(err) != 115 {
			t.Errorf("all tenants: %v", err)
		}
	})
	t.Run("plain SQL", func(t *testing.T) {
		as := func(tenant string) context.Context {
			return clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{chconn.TenantSetting: chconn.OfTenant(tenant)}))
		}
		for _, table := range append([]string{"current_verdicts"}, store.TenantTables...) {
			var of []string
			if err := api.QueryRow(as("beta"), "SELECT groupUniqArray(tenant_id) FROM evenhand."+table+" WHERE 1 OR tenant_id = 'acme'").Scan(&of); err != nil || cmp.Diff([]string{"beta"}, of) != "" {
				t.Errorf("%s shows %q (%v)", table, of, err)
			}
			for _, sql := range []string{"SELECT count() FROM evenhand." + table, "SELECT count() FROM merge('evenhand', '^" + table + "$')", "SELECT tenant_id FROM evenhand." + table + " LIMIT 1"} {
				if err := api.Exec(t.Context(), sql); chconn.Code(err) != 115 {
					t.Errorf("%s without a tenant: %v", sql, err)
				}
			}
			var n uint64
			if err := api.QueryRow(as("' OR 1 = 1 OR tenant_id = '"), "SELECT count() FROM evenhand."+table).Scan(&n); err != nil || n != 0 {
				t.Errorf("%s, a tenant with quotes: %d, %v", table, n, err)
			}
		}
		for sql, code := range map[string]int{
			"SELECT count() FROM evenhand.legal_holds": 497, "SELECT count() FROM evenhand.ingest_batches": 497, "SELECT * FROM evenhand.llm_interaction_audit": 497,
			"INSERT INTO evenhand.reviews (tenant_id) VALUES ('beta')": 497, "SELECT count() FROM evenhand.texts_held": 497, "SELECT count() FROM evenhand.bias_taxonomy": 0,
		} {
			if err := api.Exec(as("beta"), sql); chconn.Code(err) != code && !(code == 497 && chconn.Code(err) == 164) {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	t.Run("every table with tenants", func(t *testing.T) { // is bound, or closed to the account
		rows, err := f.conn.Query(t.Context(), "SELECT DISTINCT table FROM system.columns WHERE database = 'evenhand' AND name IN ('tenant_id', 'tenant') ORDER BY table")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var table string
			if err := rows.Scan(&table); err != nil {
				t.Fatal(err)
			}
			if err := api.Exec(t.Context(), "SELECT 1 FROM evenhand."+table+" LIMIT 1"); chconn.Code(err) != 115 && chconn.Code(err) != 497 {
				t.Errorf("%s is open: %v", table, err)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	})
}
