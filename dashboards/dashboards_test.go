package dashboards

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	schema "github.com/evenhand/evenhand/schemas/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate"
)

var update = flag.Bool("update", false, "rewrite the committed JSON")

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

func TestJSONIsUpToDate(t *testing.T) {
	want, err := BiasRates()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("bias-rates.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("bias-rates.json")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("bias-rates.json differs from what the code makes (%v): go test ./dashboards -update", err)
	}
}

type board struct {
	UID    string
	Panels []struct {
		ID         int
		Type       string
		Title      string
		Datasource struct{ Type, UID string }
		GridPos    struct{ X, Y, W, H int }
		Targets    []struct {
			RawSQL     string `json:"rawSql"`
			Format     int
			Datasource struct{ UID string }
		}
	}
	Templating struct {
		List []struct {
			Name  string
			Type  string
			Query json.RawMessage
		}
	}
}

func committed(t *testing.T) board {
	t.Helper()
	b, err := os.ReadFile("bias-rates.json")
	if err != nil {
		t.Fatal(err)
	}
	var d board
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPanelsAreWellFormed(t *testing.T) {
	d := committed(t)
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %q: id %d is zero or taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Datasource.UID != "${datasource}" || len(p.Targets) != 1 || p.Targets[0].Datasource.UID != "${datasource}" {
			t.Errorf("panel %q: data source", p.Title)
		}
		if (p.Type == "timeseries") != (p.Targets[0].Format == timeSeries) {
			t.Errorf("panel %q: format %d for a %s", p.Title, p.Targets[0].Format, p.Type)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, taken := cells[[2]int{x, y}]; taken || x >= 24 {
					t.Errorf("panel %q lies over %q or beyond the edge", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
}

// want is what each panel's statement gives: names and ClickHouse types.
var want = map[string]string{
	"Analysed interactions":             "analysed UInt64",
	"Bias detected":                     "rate Float64, lower Float64, upper Float64",
	"Flagged":                           "rate Float64, lower Float64, upper Float64",
	"Coverage":                          "coverage Float64",
	"Bias detected over time":           "time DateTime('UTC'), rate Float64, lower Float64, upper Float64",
	"Bias detected by characteristic":   "time DateTime('UTC'), characteristic String, rate Float64",
	"Rate by domain and characteristic": "domain LowCardinality(String), characteristic String, rate Float64",
	"Rates with intervals":              "domain LowCardinality(String), characteristic String, k UInt64, n UInt64, rate Float64, lower Float64, upper Float64",
	"Rules that fired most":             "rule String, kind LowCardinality(String), severity String, interactions UInt64, findings UInt64",
	"Analysis status":                   "time DateTime('UTC'), status String, interactions UInt64",
	"Latest flagged interactions": "time DateTime64(3, 'UTC'), tenant String, domain LowCardinality(String), app LowCardinality(String), model LowCardinality(String), event_id String, " +
		"kinds String, severity UInt8, score Float64, confidence Float64, action String, reviewed UInt8",
}

// Every statement runs on the engine as Grafana's own user and gives the columns that its panel reads.
func TestStatementsRunAsGrafana(t *testing.T) {
	e := enginetest.Start(t)
	writer := e.Config(engine.Writer)
	opts, err := chconn.Options(writer)
	if err != nil {
		t.Fatal(err)
	}
	db := clickhouse.OpenDB(opts)
	defer db.Close()
	if err := migrate.Run(t.Context(), db, schema.Options{Database: writer.Database, Embedded: true}); err != nil {
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
	conn := enginetest.Conn(t, e.Config(engine.Grafana))
	d := committed(t)
	if len(d.Panels) != len(want) {
		t.Errorf("%d panels, %d expectations", len(d.Panels), len(want))
	}
	for _, p := range d.Panels {
		t.Run(p.Title, func(t *testing.T) {
			columns, n := run(t, conn, substitute(t, p.Targets[0].RawSQL, time.Now()))
			if columns != want[p.Title] {
				t.Errorf("columns\n%s\nwant\n%s", columns, want[p.Title])
			}
			if n == 0 {
				t.Error("no rows")
			}
			if _, n := run(t, conn, substitute(t, p.Targets[0].RawSQL, time.Now().AddDate(-3, 0, 0))); p.Type != "stat" && n != 0 {
				t.Errorf("%d rows outside the time range", n)
			}
		})
	}
	t.Run("intervals are Wilson's", func(t *testing.T) {
		sql, err := statements()
		if err != nil {
			t.Fatal(err)
		}
		rows, err := conn.Query(t.Context(), "SELECT k, n, rate, lower, upper FROM ("+substitute(t, sql["rates"], time.Now())+")")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var k, n uint64
			var got store.Rate
			if err := rows.Scan(&k, &n, &got.Rate, &got.Lower, &got.Upper); err != nil {
				t.Fatal(err)
			}
			want := store.RateOf(k, n)
			if n == 0 || math.Abs(got.Rate-want.Rate)+math.Abs(got.Lower-want.Lower)+math.Abs(got.Upper-want.Upper) > 1e-9 {
				t.Errorf("%d of %d: %+v, want %+v", k, n, got, want)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	})
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		var q struct {
			RawSQL string `json:"rawSql"`
		}
		if err := json.Unmarshal(v.Query, &q); err != nil {
			t.Fatal(err)
		}
		if _, n := run(t, conn, q.RawSQL); n != map[string]int{"tenant": 2, "domain": 5}[v.Name] {
			t.Errorf("variable %s has %d values", v.Name, n)
		}
	}
}

func run(t *testing.T, conn driver.Conn, sql string) (columns string, n int) {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	defer rows.Close()
	var names []string
	for _, c := range rows.ColumnTypes() {
		names = append(names, c.Name()+" "+c.DatabaseTypeName())
	}
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return strings.Join(names, ", "), n
}

var macro = regexp.MustCompile(`\$(__\w+)(\([^)]*\))?|\$\{(\w+):singlequote\}`)

// substitute does what the data source's macros and Grafana's variables do over the day before now.
func substitute(t *testing.T, sql string, now time.Time) string {
	t.Helper()
	from, to := fmt.Sprintf("toDateTime(%d)", now.Add(-24*time.Hour).Unix()), fmt.Sprintf("toDateTime(%d)", now.Unix())
	return macro.ReplaceAllStringFunc(sql, func(m string) string {
		name, arg, _ := strings.Cut(strings.TrimSuffix(m, ")"), "(")
		switch name {
		case "$__fromTime":
			return from
		case "$__toTime":
			return to
		case "$__timeFilter":
			return arg + " >= " + from + " AND " + arg + " <= " + to
		case "$__timeInterval":
			return "toStartOfInterval(toDateTime(" + arg + "), INTERVAL 3600 second)"
		case "${tenant:singlequote}":
			return "'acme', 'beta'"
		case "${domain:singlequote}":
			return "'general', 'hr', 'finance', 'healthcare', 'education'"
		}
		t.Fatalf("%s is not a macro or variable that the test knows", m)
		return ""
	})
}

func TestProvisioningFits(t *testing.T) {
	for _, name := range []string{"provisioning/datasources/evenhand.yaml", "provisioning/dashboards/evenhand.yaml"} {
		b, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			APIVersion  int `yaml:"apiVersion"`
			Datasources []struct {
				Type     string         `yaml:"type"`
				JSONData map[string]any `yaml:"jsonData"`
			} `yaml:"datasources"`
		}
		if err := yaml.Unmarshal(b, &v); err != nil || v.APIVersion != 1 {
			t.Errorf("%s: %v", name, err)
		}
		for _, d := range v.Datasources {
			if d.Type != plugin || d.JSONData["username"] != string(engine.Grafana) || d.JSONData["defaultDatabase"] != engine.Database {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}
