package migrate_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/store/migrate"

	schema "github.com/evenhand/evenhand/schemas/clickhouse"
)

// keys says of each table what is expensive to get wrong: sorting key, partition, version.
var keys = map[string]struct{ sorting, partition, version string }{
	"interactions":      {"tenant_id, event_day, event_id, content_digest", "toYYYYMM(event_day)", "version"},
	"interaction_texts": {"tenant_id, retention_class, event_day, event_id, kind, source_id", "(retention_class, event_day)", "version"},
	"interaction_users": {"tenant_id, user_id, retention_class, event_day, event_id", "(retention_class, event_day)", "version"},
	"verdicts":          {"tenant_id, event_day, event_id, analyzer, analyzer_version, result_id", "toYYYYMM(event_day)", "version"},
	"audit_current":     {"tenant_id, event_day, sort_ts, event_id, content_digest", "toYYYYMM(event_day)", "version"},
	"ingest_batches":    {"topic, epoch, partition, lo, hi", "", "version"},
	"rejected":          {"topic, epoch, partition, offset", "", "version"},
	"bias_taxonomy":     {"bias_key", "", "version"},
	"decisions":         {"kind, key, seq, log_id", "", "version"},
	"job_runs":          {"job, started_at, run_id", "toYYYYMM(started_at)", "version"},
	"schema_migrations": {"version_id", "", "version"},
	"rollup_hourly":     {"tenant_id, dim, hour, app, domain, model, rule_set, value, severity", "toYYYYMM(hour)", "version"},
	"rollup_daily":      {"tenant_id, dim, day, app, domain, model, rule_set, value, severity", "toYear(day)", "version"},
	"rollup_frozen":     {"tenant_id, month", "", "version"},
	"rule_sets":         {"rule_set, kind", "", "version"},
	"reviews":           {"tenant_id, event_day, event_id, review_id", "toYYYYMM(event_day)", "version"},
	"reveals":           {"tenant_id, event_day, event_id, reveal_id", "toYYYYMM(event_day)", "version"},
	"feedback":          {"tenant_id, event_day, event_id, feedback_id", "toYYYYMM(event_day)", "version"},
	"gates":             {"tenant_id, event_day, gate_id", "toYYYYMM(event_day)", "version"},
	"alarm_warnings":    {"tenant_id, hour, domain, kind", "toYYYYMM(hour)", "version"},
	"breaches":          {"tenant_id, breach_id, seq", "", "version"},
	"tickets":           {"tenant_id, breach_id, ticket_id", "", "version"},
	"ticket_events":     {"target, delivery_id", "", "version"},
	"retention_classes": {"tenant_id, from_day, assigned_at", "", "version"},
	"legal_holds":       {"tenant_id, hold_id, fact", "", "version"},
	"texts_held":        {"hold_id, tenant_id, event_day, event_id, kind, source_id", "hold_id", "version"},
	"retention_runs":    {"object, class, period, tenant_id, drop_id", "", "version"},
	"retention_purged":  {"object, tenant_id, month, topic, epoch, partition", "", "version"},
	"erasures":          {"tenant_id, erasure_id", "", "version"},
	"texts_erased":      {"tenant_id, erasure_id, event_day, taken_id", "", "version"},
	"api_keys":          {"key_id", "", "version"},
	"fact_seals":        {"writer, n", "", "version"},
}

var (
	call       = regexp.MustCompile(`[A-Za-z0-9_]+\(`)
	identifier = regexp.MustCompile(`[a-z_][a-z0-9_]*`)
)

func TestKeysPartitionsAndVersions(t *testing.T) {
	db, o := open(t)
	if err := migrate.Run(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(t.Context(), `SELECT name, sorting_key, primary_key, partition_key, engine_full FROM system.tables
		WHERE database = ? AND engine LIKE '%MergeTree'`, o.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	seen := map[string]bool{}
	for rows.Next() {
		var name, sorting, primary, partition, engine string
		if err := rows.Scan(&name, &sorting, &primary, &partition, &engine); err != nil {
			t.Fatal(err)
		}
		seen[name] = true
		want, ok := keys[name]
		if !ok {
			t.Errorf("table %s has no expectation here", name)
			continue
		}
		if sorting != want.sorting || primary != sorting || partition != want.partition {
			t.Errorf("%s: ORDER BY %s PARTITION BY %s, want %s and %s", name, sorting, partition, want.sorting, want.partition)
		}
		if !strings.HasPrefix(engine, "ReplacingMergeTree("+want.version+")") {
			t.Errorf("%s: engine %s", name, engine)
		}
		// Two versions of a row must lie in one partition: the partition may depend on the key only.
		for _, column := range identifier.FindAllString(call.ReplaceAllString(partition, "("), -1) {
			if !slices.Contains(strings.Split(sorting, ", "), column) {
				t.Errorf("%s: partition by %s, which is not in ORDER BY (%s)", name, column, sorting)
			}
		}
		if name != "schema_migrations" && !(strings.Contains(engine, "fsync_after_insert = 1") && strings.Contains(engine, "fsync_part_directory = 1") && strings.Contains(engine, "old_parts_lifetime = 120")) {
			t.Errorf("%s: the embedded settings are missing in %s", name, engine)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for name := range keys {
		if !seen[name] {
			t.Errorf("table %s is missing", name)
		}
	}
	if n := count(t, db, "SELECT count() FROM system.columns WHERE database = ? AND name = 'version' AND type != 'UInt64'", o.Database); n != 0 {
		t.Errorf("%d version columns are not UInt64", n)
	}
	if n := count(t, db, "SELECT count() FROM system.columns WHERE database = ? AND table IN ('interactions', 'verdicts', 'audit_current') AND name = 'written_at' AND default_expression = 'now64(3)'", o.Database); n != 3 {
		t.Errorf("written_at stands in %d of 3 tables", n)
	}
	for _, index := range []string{"idx_audit_bias_detected", "idx_audit_bias_type", "idx_audit_bias_confidence", "idx_audit_trace_id", "idx_audit_event_id"} {
		if n := count(t, db, "SELECT count() FROM system.data_skipping_indices WHERE database = ? AND name = ?", o.Database, index); n != 1 {
			t.Errorf("index %s stands %d times", index, n)
		}
	}
}

// Text of people stands in interaction_texts, and what holds keep of it in texts_held, only: no other table
// has a column for it.
func TestTextStandsInOnePlace(t *testing.T) {
	db, o := open(t)
	if err := migrate.Run(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
	n := count(t, db, `SELECT count() FROM system.columns WHERE database = ? AND table IN (SELECT name FROM system.tables WHERE database = ? AND engine LIKE '%MergeTree')
		AND table NOT IN ('interaction_texts', 'texts_held') AND match(name, '^(text|prompt|response|query|messages|evidence|excerpt|email|user_email|user_role|context|metadata|error|error_message|notes)$')`, o.Database, o.Database)
	if n != 0 {
		t.Errorf("%d columns look like text outside interaction_texts", n)
	}
}

func TestRenderForACluster(t *testing.T) {
	db, _ := open(t)
	cluster := schema.Options{Database: "evenhand", Cluster: "main", Replicated: true}
	fsys, err := schema.Render(cluster)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(fsys, "*.sql")
	if err != nil || len(files) < 8 {
		t.Fatalf("%v, %v", files, err)
	}
	onCluster := regexp.MustCompile(`(?m)^(?:CREATE OR REPLACE VIEW|CREATE TABLE IF NOT EXISTS|ALTER TABLE) evenhand\.[a-z_]+ ON CLUSTER main\b`)
	for _, name := range files {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		tables, others := strings.Count(text, "CREATE TABLE"), strings.Count(text, "CREATE OR REPLACE VIEW")+strings.Count(text, "ALTER TABLE")
		if got := len(onCluster.FindAllString(text, -1)); got != tables+others || got == 0 {
			t.Errorf("%s: %d of %d statements run on the cluster", name, got, tables+others)
		}
		if got := strings.Count(text, "ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', version)"); got != tables {
			t.Errorf("%s: %d of %d tables are replicated", name, got, tables)
		}
		if strings.Contains(text, "fsync") || strings.Contains(text, "{{") {
			t.Errorf("%s: left over from the template:\n%s", name, text)
		}
		// The engine here has no Keeper, but it can read the statements.
		comment := regexp.MustCompile(`(?m)^--.*$`)
		for statement := range strings.SplitSeq(comment.ReplaceAllString(text, ""), ";\n") {
			if statement = strings.TrimSpace(statement); statement == "" {
				continue
			}
			if _, err := db.ExecContext(t.Context(), "EXPLAIN AST "+statement); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, bad := range []schema.Options{{}, {Database: "a b"}, {Database: "a", Cluster: "x'y"}, {Database: "a", Replicated: true, Embedded: true}} {
		if _, err := schema.Render(bad); err == nil || !strings.Contains(err.Error(), "clickhouse.") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
