package boards

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/dashboards"
	"github.com/evenhand/evenhand/dashboards/expand"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	schema "github.com/evenhand/evenhand/schemas/clickhouse"
	"github.com/evenhand/evenhand/store/migrate"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

// filled gives the engine with demo rows in every table, as Grafana's own user sees it, and the cells.
func filled(t *testing.T) (driver.Conn, []cell) {
	t.Helper()
	conn, cells, _ := filledEngine(t)
	return conn, cells
}

func writer(t *testing.T, e *engine.Engine) driver.Conn {
	return enginetest.Conn(t, e.Config(engine.Writer))
}

func filledEngine(t *testing.T) (driver.Conn, []cell, *engine.Engine) {
	t.Helper()
	e := enginetest.StartWith(t, engine.Options{Private: []string{"interaction_texts", "interaction_users", "texts_held"},
		Tenants: []string{"acme"}, Shared: dashboards.SharedTables, Filtered: dashboards.TenantTables})
	writer := e.Config(engine.Writer)
	opts, err := chconn.Options(writer)
	if err != nil {
		t.Fatal(err)
	}
	db := clickhouse.OpenDB(opts)
	defer func() { _ = db.Close() }()
	if err := migrate.Run(t.Context(), db, schema.Options{Database: writer.Database, Embedded: true}); err != nil {
		t.Fatal(err)
	}
	if err := e.ShowTenants(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile("testdata/rows.sql")
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(string(rows), ";\n") {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	cells, conn := demo(time.Now()), enginetest.Conn(t, writer)
	write(t, conn, "rollup_hourly", "hour", cells)
	write(t, conn, "rollup_daily", "day", byDay(cells))
	return enginetest.Conn(t, e.Config(engine.Grafana)), cells, e
}

// choices are what viewers choose: everything, some, one.
func choices() map[string]map[string][]string {
	all := []string{expand.All}
	return map[string]map[string][]string{
		"all":  {"tenant": all, "domain": all, "app": all, "model": all, "characteristic": all},
		"many": {"tenant": {"acme", "beta"}, "domain": {"hr", "finance", "education"}, "app": {"hr-bot", "advisor", "tutor"}, "model": {"gpt-4o", "claude", "mistral"}, "characteristic": {"age", "sex"}},
		"one":  {"tenant": {"acme"}, "domain": {"hr"}, "app": {"hr-bot"}, "model": {"gpt-4o"}, "characteristic": {"age"}},
	}
}

// frame is what a statement gives.
type frame struct {
	columns string
	names   []string
	rows    [][]any
}

func run(t *testing.T, conn driver.Conn, sql string) frame {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	defer func() { _ = rows.Close() }()
	var f frame
	var columns []string
	for _, c := range rows.ColumnTypes() {
		columns, f.names = append(columns, c.Name()+" "+c.DatabaseTypeName()), append(f.names, c.Name())
	}
	f.columns = strings.Join(columns, ", ")
	for rows.Next() {
		values := make([]any, len(columns))
		for i, c := range rows.ColumnTypes() {
			values[i] = reflect.New(c.ScanType()).Interface()
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		f.rows = append(f.rows, values)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return f
}
