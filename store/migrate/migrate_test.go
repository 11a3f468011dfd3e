package migrate_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	schema "github.com/evenhand/evenhand/schemas/clickhouse"
	"github.com/evenhand/evenhand/schemas/taxonomy"
	"github.com/evenhand/evenhand/store/migrate"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

func open(t *testing.T) (*sql.DB, schema.Options) {
	t.Helper()
	cfg := enginetest.Database(t)
	opts, err := chconn.Options(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := clickhouse.OpenDB(opts)
	t.Cleanup(func() { _ = db.Close() })
	return db, schema.Options{Database: cfg.Database, Embedded: true}
}

func count(t *testing.T, db *sql.DB, query string, args ...any) (n uint64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRunIsIdempotent(t *testing.T) {
	db, o := open(t)
	before, err := migrate.List(t.Context(), db, o)
	if err != nil || len(before) < 8 {
		t.Fatalf("%d migrations, %v", len(before), err)
	}
	for _, s := range before {
		if s.Applied {
			t.Errorf("%s counts as applied in an empty database", s.Name)
		}
	}
	for range 2 {
		if err := migrate.Run(t.Context(), db, o); err != nil {
			t.Fatal(err)
		}
	}
	after, err := migrate.List(t.Context(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range after {
		if !s.Applied || s.AppliedAt.IsZero() || s.Version != int64(i+1) {
			t.Errorf("%+v: want applied, numbers without holes", s)
		}
	}
	tax, err := taxonomy.Load()
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "SELECT count() FROM "+o.Database+".bias_taxonomy"); n != uint64(len(tax.Entries)) {
		t.Errorf("%d rows in bias_taxonomy, want %d written once", n, len(tax.Entries))
	}
}

// A store that a later program has migrated is not written to.
func TestALaterStoreIsRefused(t *testing.T) {
	db, o := open(t)
	if err := migrate.Run(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO "+o.Database+".schema_migrations (version_id, is_applied) SELECT number, 1 FROM numbers(980, 20)"); err != nil {
		t.Fatal(err)
	}
	if err := migrate.Run(t.Context(), db, o); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "migrated to 999 by a later version") {
		t.Errorf("%v", err)
	}
}

// A store made before settings were edited into old migrations gets those that can still be set; a fresh one has them.
func TestOldTablesGetLaterSettings(t *testing.T) {
	db, o := open(t)
	set := func() uint64 {
		return count(t, db, "SELECT count() FROM system.tables WHERE database = ? AND name = 'interaction_texts' AND engine_full LIKE '%merge_selector_base = 7%'", o.Database)
	}
	if err := migrate.Run(t.Context(), db, o); err != nil || set() != 1 {
		t.Fatalf("fresh: %d, %v", set(), err)
	}
	for _, q := range []string{"ALTER TABLE %.interaction_texts RESET SETTING merge_selector_base", "DELETE FROM %.schema_migrations WHERE version_id >= 28"} {
		if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(q, "%", o.Database)); err != nil {
			t.Fatal(err)
		}
	}
	if set() != 0 {
		t.Fatal("the old table has the setting")
	}
	if err := migrate.Run(t.Context(), db, o); err != nil || set() != 1 {
		t.Errorf("upgraded: %d, %v", set(), err)
	}
}

// Of a store from before migration 34, what several people reviewed and somebody was unsure about is written anew, so
// that the repair looks at it; other reviews stay as they are.
func TestReviewsOfSeveralPeopleAreLookedAtAgain(t *testing.T) {
	db, o := open(t)
	if err := migrate.Run(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
	const reviews = `INSERT INTO %.reviews (tenant_id, event_day, event_id, review_id, version, reviewer, decision, reviewed_at, written_at)
		SELECT 'acme', '2026-03-02', toUUID(concat('00000000-0000-0000-0000-00000000000', toString(c.1))), generateUUIDv4(c), 1, c.2, c.3, '2026-03-02 10:00:00', '2026-03-02 10:00:00'
		FROM (SELECT arrayJoin([(1, 'tom', 'dismissed'), (1, 'vik', 'unsure'), (2, 'tom', 'dismissed'), (2, 'tom', 'unsure'), (3, 'tom', 'confirmed'), (3, 'vik', 'dismissed')]) AS c)`
	for _, q := range []string{reviews, "DELETE FROM %.schema_migrations WHERE version_id >= 34"} {
		if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(q, "%", o.Database)); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrate.Run(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
	const anew = "SELECT count() FROM %.reviews FINAL WHERE written_at > '2026-03-03' AND toString(event_id) LIKE '%1'"
	if n := count(t, db, strings.Replace(anew, "%", o.Database, 1)); n != 2 {
		t.Errorf("%d reviews of the first interaction are written anew, want 2", n)
	}
	if n := count(t, db, "SELECT countIf(written_at > '2026-03-03') * 100 + count() FROM "+o.Database+".reviews FINAL"); n != 206 {
		t.Errorf("%d: want 2 of 6 written anew", n)
	}
}

func TestRunInTwoProcessesAtOnce(t *testing.T) {
	db, o := open(t)
	g, ctx := errgroup.WithContext(t.Context())
	for range 3 {
		g.Go(func() error { return migrate.Run(ctx, db, o) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	list, err := migrate.List(t.Context(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "SELECT count() FROM "+o.Database+".schema_migrations FINAL"); n != uint64(len(list))+1 {
		t.Errorf("%d versions, want %d and the zeroth", n, len(list))
	}
	if twice := count(t, db, "SELECT count() - uniqExact(bias_key) FROM "+o.Database+".bias_taxonomy FINAL"); twice != 0 {
		t.Errorf("%d taxonomy keys stand twice", twice)
	}
}

func TestErrorNamesTheMigration(t *testing.T) {
	db, o := open(t)
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE "+o.Database+".verdicts (tenant_id String) ENGINE = Memory"); err != nil {
		t.Fatal(err)
	}
	err := migrate.Run(t.Context(), db, o) // the views then lack columns
	if err == nil || !strings.Contains(err.Error(), "migration 00007_views.sql") {
		t.Errorf("%v", err)
	}
	if audit.KindOf(err) != audit.KindInternal {
		t.Errorf("kind %s", audit.KindOf(err))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := migrate.Run(ctx, db, o); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("ended context: %v", err)
	}
	if err := migrate.Run(t.Context(), db, schema.Options{Database: "no such name"}); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "clickhouse.database") {
		t.Errorf("bad name: %v", err)
	}
}

func TestTaxonomyKeepsWhatAdministratorsAdd(t *testing.T) {
	db, o := open(t)
	if err := migrate.Run(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
	exec := func(q string) error {
		_, err := db.ExecContext(t.Context(), strings.ReplaceAll(q, "{{db}}", o.Database))
		return err
	}
	if err := exec("INSERT INTO {{db}}.bias_taxonomy VALUES (1000, 'house.style', 'ours', 2, 1700000000000), (14, 'charter.age', 'changed', 5, 1700000000000)"); err != nil {
		t.Fatal(err)
	}
	if err := migrate.Run(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "SELECT count() FROM "+o.Database+".bias_taxonomy FINAL WHERE bias_key = 'house.style' OR bias_key = 'charter.age' AND severity_level = 5"); n != 2 {
		t.Errorf("%d of 2 rows survived", n)
	}
	for _, bad := range []string{"(1, 'a.b', '', 0, 1)", "(1, 'a.b', '', 6, 1)", "(1, 'A b', '', 3, 1)"} {
		if err := exec("INSERT INTO {{db}}.bias_taxonomy VALUES " + bad); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
