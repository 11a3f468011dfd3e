package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

// TestNoAccountReadsFiles holds every account to its tables: no function, format, table or dictionary opens a file.
func TestNoAccountReadsFiles(t *testing.T) {
	dir := t.TempDir()
	e := enginetest.StartWith(t, engine.Options{Dir: dir, Tenants: []string{"acme"}})
	const words = "words of a file"
	beside := filepath.Join(t.TempDir(), "secret")
	within := filepath.Join(dir, "data", "user_defined", "secret")
	link := filepath.Join(dir, "data", "link")
	for _, path := range []string{beside, within} {
		if err := os.WriteFile(path, []byte(words), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(beside, link); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", strings.Count(dir, "/")+2)
	paths := []string{"/etc/passwd", "/proc/self/environ", "/proc/self/cwd/evenhand.password", filepath.Join(dir, "users.xml"), "grafana.password",
		beside, "file://" + beside, up + beside, "/proc/self/root" + beside, within, "secret", "user_defined/secret", link, "link"}
	ways := []string{
		"SELECT file(%s)", "SELECT file(%s, '')", "SELECT `file`(%s)", `SELECT "\x66ile"(%s)`, "SELECT arrayMap(file, [%s])", "SELECT arrayMap(x -> file(x), [%s])",
		"SELECT * APPLY(file) FROM (SELECT %s)", "SELECT * APPLY file FROM (SELECT %s)", "SELECT 1 WHERE notEmpty(file(%s))", "SELECT 1 LIMIT length(file(%s))",
		"WITH file(%s) AS f SELECT f", "SELECT * FROM view(SELECT file(%s))", "SELECT * FROM numbers(length(file(%s)))", "SELECT * FROM values('x String', toString(file(%s)))",
		"SELECT * FROM file(%s, 'LineAsString')", "SELECT * FROM fileCluster('default', %s, 'LineAsString')", "SELECT * FROM url(%s, 'LineAsString')", "SELECT * FROM filesystem(%s)",
		"SELECT * FROM executable(%s, 'LineAsString', 's String')", "SELECT * FROM sqlite(%s, 't')", "SELECT * FROM icebergLocal(%s)", "SELECT * FROM deltaLakeLocal(%s)", "SELECT * FROM paimonLocal(%s)",
		"SELECT catboostEvaluate(%s, 1)", "SELECT 1 FORMAT Template SETTINGS format_template_row = %s", "SELECT 1 FORMAT Template SETTINGS format_template_resultset = %s",
		"SELECT 1 AS x FORMAT Protobuf SETTINGS format_schema = %s", "SELECT 1 AS x FORMAT Protobuf SETTINGS output_format_schema = %s",
		"CREATE TABLE t (s String) ENGINE = File('LineAsString', %s)", "CREATE TABLE t (s String) ENGINE = URL(%s, 'LineAsString')", "CREATE TABLE t (s String) ENGINE = Executable(%s, 'LineAsString')",
		"CREATE TABLE t (s String) ENGINE = MySQL(%s, 'd', 't', 'u', 'p')", "CREATE TABLE t (s String) ENGINE = FileLog(%s, 'LineAsString')", "CREATE TABLE t (s String) ENGINE = SQLite(%s, 't')",
		"CREATE DATABASE f ENGINE = Filesystem(%s)", "ATTACH TABLE t FROM %s (s String) ENGINE = MergeTree ORDER BY s", "BACKUP DATABASE evenhand TO File(%s)",
		"INSERT INTO FUNCTION file(%s, 'LineAsString') SELECT 'x'",
	}
	admin := enginetest.Conn(t, e.Config(engine.Writer))
	mustExec(t, admin.Exec, "CREATE DICTIONARY d (s String) PRIMARY KEY s SOURCE(FILE(path '"+beside+"' format 'LineAsString')) LAYOUT(COMPLEX_KEY_HASHED()) LIFETIME(0)")
	for _, user := range []engine.User{engine.Writer, engine.Reader, engine.Grafana, engine.API, engine.GrafanaOf("acme")} {
		conn := enginetest.Conn(t, e.Config(user))
		refused := func(sql string) {
			t.Helper()
			err := conn.Exec(t.Context(), sql)
			if chconn.Code(err) == noCode || strings.Contains(err.Error(), words) {
				t.Errorf("%s: %s: %v", user, sql, err)
			}
		}
		for _, path := range paths {
			for _, way := range ways {
				if inFolder := strings.HasPrefix(way, "BACKUP") || strings.HasPrefix(way, "ATTACH"); inFolder && path[0] != '/' && path[0] != '.' {
					continue // a name in a folder of the engine's own
				}
				refused(fmt.Sprintf(way, "'"+path+"'"))
			}
			refused("SELECT * FROM default.`" + path + "`")
		}
		refused("SELECT * FROM dictionary('d')")
		refused("SELECT dictHas('d', 'x')")
		for _, sql := range []string{"DROP FUNCTION file", "CREATE OR REPLACE FUNCTION file AS p -> p", "CREATE USER u"} {
			refused(sql)
		}
		if user == engine.Writer {
			continue // whose own store it is
		}
		for _, table := range []string{"users", "grants", "processes", "query_log", "text_log", "server_settings", "disks", "row_policies", "named_collections", "warnings"} {
			refused("SELECT * FROM system." + table)
		}
		refused("SELECT addressToLine(1) SETTINGS allow_introspection_functions = 1")
		refused("SELECT aiGenerate('c', 'x') SETTINGS allow_experimental_ai_functions = 1")
	}
}

// TestFunctionsAreKnown names what this engine has that could reach out of the database or round grants; a
// new engine that has more fails here, and someone looks.
func TestFunctionsAreKnown(t *testing.T) {
	conn := enginetest.Conn(t, enginetest.Shared(t).Config(engine.Writer))
	for _, tc := range []struct {
		what, sql string
		want      []string
	}{
		{"table functions that ask for no grant of their own", "SELECT name FROM system.table_functions WHERE allow_readonly", []string{
			"SQLStandardValues", "cluster", "clusterAllReplicas", "eval", "fuzzJSON", "fuzzQuery", "generateRandom", "generateSeries", "generate_series", "input", "merge",
			"mergeTreeAnalyzeIndexes", "mergeTreeAnalyzeIndexesUUID", "mergeTreeIndex", "mergeTreeProjection", "mergeTreeTextIndex",
			"null", "numbers", "numbers_mt", "primes", "values", "view", "viewIfPermitted"}},
		{"functions that tell of the server", `SELECT DISTINCT name FROM system.functions WHERE NOT is_aggregate
			AND match(name, '(?i)(file|disk|certif|setting|macro|header|environ|config|evaluate|model|secret|password|dictget$|joinget|^ai|address)')`, []string{
			"AIClassify", "AIExtract", "AIGenerate", "AITranslate", "addressToLine", "addressToLineWithInlines", "addressToSymbol", "aiClassify", "aiEmbed", "aiExtract", "aiGenerate", "aiTranslate",
			"catboostEvaluate", "currentProfiles", "defaultProfiles", "dictGet", "enabledProfiles", "file", "filesystemAvailable", "filesystemCapacity", "filesystemUnreserved",
			"getClientHTTPHeader", "getMacro", "getMergeTreeSetting", "getServerSetting", "getSetting", "getSettingOrDefault", "isIPAddressInRange", "joinGet", "joinGetOrNull", "showCertificate"}},
		{"settings that name files", "SELECT name FROM system.settings WHERE match(name, '_path$|_schema$|_schema_source$|template_(row|resultset)$|registry_url$')", []string{
			"format_avro_schema_registry_url", "format_schema", "format_schema_source", "format_template_resultset", "format_template_row",
			"input_format_record_errors_file_path", "output_format_schema", "s3queue_default_zookeeper_path",
			"compatibility_s3_presigned_url_query_in_path", "format_capn_proto_use_autogenerated_schema", "format_protobuf_use_autogenerated_schema"}},
		{"settings that are fixed", "SELECT name FROM system.settings WHERE readonly", []string{
			"allow_experimental_ai_functions", "format_avro_schema_registry_url", "format_schema", "format_schema_source", "format_template_resultset", "format_template_row",
			"input_format_record_errors_file_path", "output_format_schema"}},
	} {
		var got []string
		rows, err := conn.Query(t.Context(), tc.sql)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				t.Fatal(err)
			}
			got = append(got, name)
		}
		slices.Sort(got)
		slices.Sort(tc.want)
		if err := rows.Err(); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v\n got %q\nwant %q", tc.what, err, got, tc.want)
		}
	}
}
