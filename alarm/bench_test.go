package alarm

import (
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

// 1,920 cells with 36 days of hours, each of them with findings: reading them and one evaluation.
func BenchmarkEvaluation(b *testing.B) {
	cfg := enginetest.Database(b)
	migratetest.Run(b, cfg)
	conn := enginetest.Conn(b, cfg)
	const insert = "INSERT INTO rollup_hourly (tenant_id, dim, hour, app, domain, model, rule_set, value, severity, version, n, k) "
	const domain = "['general', 'hr', 'finance', 'healthcare', 'education'][1 + intDiv(number, 24) % 5]"
	for _, sql := range []string{
		insert + "SELECT concat('t', toString(number % 24)), 'all', toDateTime('2026-03-01', 'UTC') + INTERVAL intDiv(number, 120) HOUR, 'a', " + domain + ", 'm', 'r', '', 0, 1, 20, 20 FROM numbers(120 * 866)",
		insert + "SELECT concat('t', toString(number % 24)), 'bias', toDateTime('2026-03-01', 'UTC') + INTERVAL intDiv(number, 1920) HOUR, 'a', " + domain + ", 'm', 'r', concat('charter.k', toString(intDiv(number, 120) % 16)), 3, 1, 0, 1 FROM numbers(1920 * 866)",
	} {
		if err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	p := policies(b, "")
	tables := NewTables(conn, cfg.Database)
	var read, evaluated time.Duration
	for b.Loop() {
		t := time.Now()
		h, err := tables.History(b.Context(), at(0), at(866))
		if err != nil {
			b.Fatal(err)
		}
		read += time.Since(t)
		t = time.Now()
		if r := Evaluate(Input{History: h, Policies: p, At: at(866)}); r.Figures.Cells != 1920 {
			b.Fatalf("%+v", r.Figures)
		}
		evaluated += time.Since(t)
	}
	b.ReportMetric(float64(read.Milliseconds())/float64(b.N), "read-ms/op")
	b.ReportMetric(float64(evaluated.Milliseconds())/float64(b.N), "evaluate-ms/op")
}
