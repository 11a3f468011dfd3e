package engine_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

const (
	denied         = 497
	authFailed     = 516
	quotaExceeded  = 201
	readonly       = 164
	constraint     = 452
	tooManyRows    = 158
	resultTooLarge = 396
	noTable        = 636
	unknownTable   = 60
	badArguments   = 36
	noProjection   = 582
	noCode         = 0
)

// TestUsers holds what each account may do. Codes are ClickHouse's.
func TestUsers(t *testing.T) {
	dir := t.TempDir()
	e := enginetest.StartWith(t, engine.Options{Dir: dir, Private: []string{"texts"}})
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	for _, sql := range []string{
		"CREATE TABLE facts (s String) ENGINE = MergeTree ORDER BY s",
		"CREATE TABLE texts (s String) ENGINE = MergeTree ORDER BY s",
		"INSERT INTO facts VALUES ('a')",
		"SELECT sleep(0.06)", // long enough for query_log
		"SYSTEM FLUSH LOGS",
	} {
		mustExec(t, conn.Exec, sql)
	}
	// Past the guard, which does not let default in.
	byDefault := e.Config(engine.Writer)
	byDefault.Username, byDefault.Password, byDefault.Database = "default", "", ""

	for _, tc := range []struct {
		name string
		cfg  chconn.Config
		sql  string
		code int
	}{
		{"default, stop listening", byDefault, "SYSTEM STOP LISTEN TCP", quotaExceeded},
		{"default, our tables", byDefault, "SELECT * FROM evenhand.facts", denied},
		{"default, insert", byDefault, "INSERT INTO evenhand.facts SELECT 'x'", quotaExceeded},
		{"default, file", byDefault, "SELECT * FROM file('/etc/hostname', 'TSV', 's String')", denied},
		{"default, shutdown", byDefault, "SYSTEM SHUTDOWN", quotaExceeded},

		{"writer, file", e.Config(engine.Writer), "SELECT * FROM file('/etc/hostname', 'TSV', 's String')", denied},
		{"writer, url", e.Config(engine.Writer), "SELECT * FROM url('http://127.0.0.1:1/', 'TSV', 's String')", denied},
		{"writer, shutdown", e.Config(engine.Writer), "SYSTEM SHUTDOWN", denied},
		{"writer, alter", e.Config(engine.Writer), "ALTER TABLE facts ADD COLUMN n UInt8", noCode},
		{"writer, backup", e.Config(engine.Writer), "BACKUP TABLE facts TO File('one')", noCode},

		{"reader, read", e.Config(engine.Reader), "SELECT * FROM facts", noCode},
		{"reader, private table", e.Config(engine.Reader), "SELECT * FROM texts", noCode},
		{"reader, limits below ours", e.Config(engine.Reader), "SELECT 1 SETTINGS max_execution_time = 5, max_threads = 1", noCode},
		{"reader, no limits", e.Config(engine.Reader), "SELECT 1 SETTINGS max_execution_time = 0", constraint},
		{"reader, no readonly", e.Config(engine.Reader), "SELECT 1 SETTINGS readonly = 0", readonly},
		{"reader, insert", e.Config(engine.Reader), "INSERT INTO facts SELECT 'x'", denied},
		{"reader, create", e.Config(engine.Reader), "CREATE TABLE more (s String) ENGINE = Memory", denied},
		{"reader, drop", e.Config(engine.Reader), "DROP TABLE facts", denied},
		{"reader, file", e.Config(engine.Reader), "SELECT * FROM file('/etc/hostname', 'TSV', 's String')", denied},
		{"reader, url", e.Config(engine.Reader), "SELECT * FROM url('http://127.0.0.1:1/', 'TSV', 's String')", denied},
		{"reader, others' queries", e.Config(engine.Reader), "SELECT * FROM system.query_log", denied},

		{"grafana, read", e.Config(engine.Grafana), "SELECT * FROM facts", noCode},
		{"grafana, private table", e.Config(engine.Grafana), "SELECT * FROM texts", denied},
		{"grafana, insert", e.Config(engine.Grafana), "INSERT INTO facts SELECT 'x'", denied},
		{"grafana, time limit of the data source", e.Config(engine.Grafana), "SELECT 1 SETTINGS max_execution_time = 30", noCode},
		{"grafana, no time limit", e.Config(engine.Grafana), "SELECT 1 SETTINGS max_execution_time = 0", constraint},
		{"grafana, long", e.Config(engine.Grafana), "SELECT 1 SETTINGS max_execution_time = 61", constraint},
		{"grafana, other settings", e.Config(engine.Grafana), "SELECT 1 SETTINGS max_result_rows = 0", readonly},
		{"grafana, rows to read", e.Config(engine.Grafana), "SELECT 1 SETTINGS max_rows_to_read = 0", readonly},
		{"grafana, memory", e.Config(engine.Grafana), "SELECT 1 SETTINGS max_memory_usage = 0", readonly},
		{"grafana, no readonly", e.Config(engine.Grafana), "SELECT 1 SETTINGS readonly = 0", readonly},
		{"grafana, the setting it has", e.Config(engine.Grafana), "SELECT 1 SETTINGS do_not_merge_across_partitions_select_final = 1", noCode},
		{"grafana, many rows to read", e.Config(engine.Grafana), "SELECT sum(number) FROM numbers(1000000001)", tooManyRows},
		{"grafana, large answer", e.Config(engine.Grafana), "SELECT number FROM numbers(100001)", resultTooLarge},
		{"grafana, parts", e.Config(engine.Grafana), "SELECT count() FROM system.parts", noCode},
		{"grafana, parts of a private table", e.Config(engine.Grafana), "SELECT throwIf(count() > 0) FROM system.parts WHERE table = 'texts'", noCode},
		{"grafana, parts of its tables", e.Config(engine.Grafana), "SELECT throwIf(count() = 0) FROM system.parts WHERE table = 'facts'", noCode},
		{"grafana, others' queries", e.Config(engine.Grafana), "SELECT * FROM system.query_log", denied},
		{"grafana, create", e.Config(engine.Grafana), "CREATE TABLE more (s String) ENGINE = Memory", denied},
		{"grafana, temporary table", e.Config(engine.Grafana), "CREATE TEMPORARY TABLE more (s String)", denied},
		{"grafana, drop", e.Config(engine.Grafana), "DROP TABLE facts", denied},
		{"grafana, url", e.Config(engine.Grafana), "SELECT * FROM url('http://127.0.0.1:1/', 'TSV', 's String')", denied},
		{"grafana, remote", e.Config(engine.Grafana), "SELECT * FROM remote('127.0.0.1:1', system.one)", denied},
		{"grafana, the private table by another way", e.Config(engine.Grafana), "SELECT * FROM merge('evenhand', '^texts$')", noTable},
		{"grafana, file", e.Config(engine.Grafana), "SELECT * FROM file('/etc/hostname', 'TSV', 's String')", denied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := enginetest.Conn(t, tc.cfg).Exec(t.Context(), tc.sql)
			if code := chconn.Code(err); code != tc.code || (code == noCode) != (err == nil) {
				t.Errorf("code %d (%v), want %d", code, err, tc.code)
			}
		})
	}

	t.Run("http", func(t *testing.T) {
		at := e.Endpoint(engine.Grafana)
		for password, want := range map[string]string{at.Password: "1\n", "wrong": "AUTHENTICATION_FAILED"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at.HTTP+"/?query="+url.QueryEscape("SELECT count() FROM evenhand.facts"), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.SetBasicAuth(string(at.User), password)
			req.Close = true
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || !strings.Contains(string(body), want) {
				t.Errorf("%v %q, want %q", err, body, want)
			}
		}
	})
}

// TestLogsHoldNoTexts runs statements that fail with a person's words in them.
func TestLogsHoldNoTexts(t *testing.T) {
	dir := t.TempDir()
	e := enginetest.StartWith(t, engine.Options{Dir: dir})
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	const words = "Jane Doe lives here"
	for _, sql := range []string{
		"SELECT toUInt8('" + words + "')",
		"SELECT throwIf(n = 1, 'no') FROM (SELECT 1 AS n, '" + words + "' AS name) WHERE name = '" + words + "'",
		"SELECT * FROM nowhere WHERE name = '" + words + "'",
		"SELECT '" + words + "' broken (",
	} {
		err := conn.Exec(t.Context(), sql)
		if err == nil {
			t.Errorf("%s worked", sql)
		}
		if err := chconn.Wrap("test", err); strings.Contains(err.Error(), words) {
			t.Errorf("the error shows it: %v", err)
		}
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "log", "*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(b), words) {
			t.Errorf("%s holds the words (%v)", path, err)
		}
		if strings.Contains(string(b), "<Debug>") || strings.Contains(string(b), "<Trace>") {
			t.Errorf("%s is not held to warnings", path)
		}
	}
}

// TestTheLogIsQuiet: merges that wait for their turn are no news.
func TestTheLogIsQuiet(t *testing.T) {
	dir := t.TempDir()
	e := enginetest.StartWith(t, engine.Options{Dir: dir})
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	for _, table := range []string{"a", "b", "c"} {
		mustExec(t, conn.Exec, "CREATE TABLE "+table+" (n UInt64) ENGINE = MergeTree ORDER BY n")
		for range 60 {
			mustExec(t, conn.Exec, "INSERT INTO "+table+" SELECT number FROM numbers(1000)")
		}
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "log", "engine.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, noise := range []string{"Temporarily pause scheduling", "was not finalized"} {
		if n := strings.Count(string(b), noise); n > 0 {
			t.Errorf("%d lines say %q", n, noise)
		}
	}
}

// TestServerSettings asks the engine what it made of config.xml and users.xml: a name it does not
// know is ignored there without a word.
func TestServerSettings(t *testing.T) {
	e := enginetest.StartWith(t, engine.Options{MemoryBytes: 1 << 30})
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	for _, tc := range []struct{ table, name, want string }{
		{"server_settings", "max_server_memory_usage", "1073741824"},
		{"server_settings", "mark_cache_size", "33554432"},
		{"server_settings", "uncompressed_cache_size", "0"},
		{"server_settings", "background_pool_size", "2"},
		{"server_settings", "background_schedule_pool_size", "4"},
		{"merge_tree_settings", "number_of_free_entries_in_pool_to_lower_max_size_of_merge", "1"},
		{"merge_tree_settings", "number_of_free_entries_in_pool_to_execute_mutation", "1"},
		{"settings", "async_insert", "0"},
		{"settings", "max_partitions_per_insert_block", "100"},
		{"settings", "query_profiler_real_time_period_ns", "0"},
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT value FROM system."+tc.table+" WHERE name = '"+tc.name+"'").Scan(&got); err != nil || got != tc.want {
			t.Errorf("%s: %q (%v), want %q", tc.name, got, err, tc.want)
		}
	}
	mustExec(t, conn.Exec, "CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s")
	mustExec(t, conn.Exec, "INSERT INTO t SELECT toString(sleep(0.06))")
	mustExec(t, conn.Exec, "SYSTEM FLUSH LOGS")
	var logs, zone string
	var bounded uint64
	err := conn.QueryRow(t.Context(), `SELECT arrayStringConcat(arraySort(groupArray(name)), ' '),
		countIf(create_table_query LIKE '%TTL event_date + toIntervalDay(2)%'), any(timezone())
		FROM system.tables WHERE database = 'system' AND engine LIKE '%MergeTree'`).Scan(&logs, &bounded, &zone)
	if err != nil || logs != "part_log query_log" || bounded != 2 || zone != "UTC" {
		t.Errorf("log tables %q, %d of them bounded, time zone %s (%v)", logs, bounded, zone, err)
	}
}

// TestTenantsAccounts holds that an account of one tenant sees its rows only, through views too, and of
// all others' neither keys nor counts.
func TestTenantsAccounts(t *testing.T) {
	e := enginetest.StartWith(t, engine.Options{Tenants: []string{"acme", "Beta-2"}, Shared: []string{"words", "seen", "over"}, Filtered: []string{"facts"}, Private: []string{"texts"}})
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	for _, sql := range []string{
		"CREATE TABLE facts (tenant_id String, n UInt8, v UInt8, INDEX i n TYPE minmax, PROJECTION p (SELECT tenant_id ORDER BY n)) ENGINE = ReplacingMergeTree(v) ORDER BY (tenant_id, n) SETTINGS deduplicate_merge_projection_mode = 'rebuild'",
		"CREATE TABLE texts (tenant_id String) ENGINE = MergeTree ORDER BY tenant_id",
		"CREATE TABLE words (s String) ENGINE = MergeTree ORDER BY s",
		"CREATE TABLE others (s String) ENGINE = MergeTree ORDER BY s",
		"CREATE VIEW seen AS SELECT * FROM evenhand.facts FINAL",
		"CREATE VIEW over AS SELECT tenant_id, n FROM evenhand.seen LIMIT 1 BY tenant_id",
		"INSERT INTO facts VALUES ('acme', 1, 1), ('acme', 2, 1), ('Beta-2', 1, 1), ('gamma', 1, 1)",
		"INSERT INTO facts VALUES ('acme', 1, 2)",
		"INSERT INTO words VALUES ('a')",
	} {
		mustExec(t, conn.Exec, sql)
	}
	for range 2 { // at each start
		if err := e.ShowTenants(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustExec(t, conn.Exec, "ALTER TABLE facts ADD COLUMN IF NOT EXISTS later UInt8")
	}
	var uuid string
	if err := conn.QueryRow(t.Context(), "SELECT toString(uuid) FROM system.tables WHERE database = 'evenhand' AND name = 'facts'").Scan(&uuid); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		user  engine.User
		table string
		want  uint64
		code  int
	}{
		{engine.GrafanaOf("acme"), "facts FINAL", 2, noCode},
		{engine.GrafanaOf("acme"), "facts", 2, noCode},
		{engine.GrafanaOf("acme"), "facts FINAL WHERE tenant_id != 'acme' OR 1", 2, noCode},
		{engine.GrafanaOf("acme"), "facts WHERE throwIf(tenant_id != 'acme') = 0", 2, noCode},
		{engine.GrafanaOf("acme"), "seen WHERE throwIf(tenant_id != 'acme') = 0", 2, noCode},
		{engine.GrafanaOf("acme"), "facts WHERE intDiv(1, tenant_id = 'acme') = 1", 2, noCode},
		{engine.GrafanaOf("acme"), "facts WHERE later = 0", 2, noCode},
		{engine.GrafanaOf("acme"), "seen", 2, noCode},
		{engine.GrafanaOf("acme"), "over", 1, noCode},
		{engine.GrafanaOf("Beta-2"), "facts FINAL", 1, noCode},
		{engine.GrafanaOf("acme"), "words", 1, noCode},
		{engine.GrafanaOf("acme"), "others", 0, unknownTable},
		{engine.GrafanaOf("acme"), "texts", 0, unknownTable},
		{engine.GrafanaOf("acme"), "merge('evenhand_tenants', '^facts$')", 2, noCode},
		{engine.GrafanaOf("acme"), "merge('evenhand', '^facts$')", 0, noTable},
		{engine.GrafanaOf("acme"), "evenhand.facts", 0, denied},
		{engine.GrafanaOf("acme"), "evenhand.texts", 0, denied},
		{engine.GrafanaOf("acme"), "mergeTreeIndex('evenhand', 'facts')", 0, denied},
		{engine.GrafanaOf("acme"), "mergeTreeIndex('evenhand_tenants', 'facts')", 0, badArguments},
		{engine.GrafanaOf("acme"), "mergeTreeProjection('evenhand', 'facts', 'p')", 0, denied},
		{engine.GrafanaOf("acme"), "mergeTreeProjection('evenhand_tenants', 'facts', 'p')", 0, noProjection},
		{engine.GrafanaOf("acme"), "mergeTreeTextIndex('evenhand', 'facts', 'i')", 0, badArguments},
		{engine.GrafanaOf("acme"), "mergeTreeAnalyzeIndexes('evenhand', 'facts')", 0, denied},
		{engine.GrafanaOf("acme"), "mergeTreeAnalyzeIndexesUUID('" + uuid + "')", 0, denied},
		{engine.GrafanaOf("acme"), "system.parts", 0, denied},
		{engine.GrafanaOf("acme"), "system.parts_columns", 0, denied},
		{engine.GrafanaOf("acme"), "system.projection_parts", 0, denied},
		{engine.GrafanaOf("acme"), "system.tables WHERE database = 'evenhand'", 0, noCode},
		{engine.GrafanaOf("acme"), "system.tables WHERE total_rows > 0 OR total_bytes > 0", 0, noCode},
		{engine.GrafanaOf("acme"), "system.columns WHERE data_compressed_bytes > 0 OR database = 'evenhand'", 0, noCode},
		{engine.GrafanaOf("acme"), "system.data_skipping_indices", 0, denied},
		{engine.Grafana, "facts FINAL", 4, noCode},
		{engine.Writer, "facts FINAL", 4, noCode},
	} {
		var n uint64
		err := enginetest.Conn(t, e.Config(tc.user)).QueryRow(t.Context(), "SELECT count() FROM "+tc.table).Scan(&n)
		if code := chconn.Code(err); code != tc.code || n != tc.want {
			t.Errorf("%s, %s: %d rows, code %d (%v), want %d, %d", tc.user, tc.table, n, code, err, tc.want, tc.code)
		}
	}
	if _, err := engine.Start(t.Context(), engine.Options{Dir: t.TempDir(), Tenants: []string{"a' OR '1"}}); err == nil {
		t.Error("a tenant with a quotation mark was taken")
	}
}
