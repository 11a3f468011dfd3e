package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
	"github.com/google/uuid"
)

func TestZZPerf(t *testing.T) {
	f := newFixture(t)
	const n, parts = 800_000, 8
	t0 := time.Now()
	for p := range parts {
		f.exec(fmt.Sprintf(`INSERT INTO {{db}}.audit_current (tenant_id, event_day, sort_ts, event_id, content_digest, version, event_ts, broker_ts, trace_id, app, domain, provider, model,
    status, analysis_status, bias_detected, flagged, bias_types, kinds, max_severity, n_findings, confidence, bias_sum, threshold, action, topic, offset)
SELECT if(number %% 2 = 0, 'acme', 'beta'), toDate(ts), now64(3) - INTERVAL rand64(1) %% (14*86400000) MILLISECOND AS ts, generateUUIDv4(), toFixedString(hex(rand64(3))||hex(rand64(4)), 32), 1, ts, ts,
    lower(hex(rand64(5))||hex(rand64(6))) , 'app', ['general', 'hr', 'finance', 'healthcare', 'education'][rand(7) %% 5 + 1], ['a','b','c'][rand(9)%%3+1], 'm'||toString(rand(8)%%20),
    'success', 'done', rand(10) %% 20 = 0, rand(11) %% 1000 = 0,
    if(rand(10) %% 20 = 0, ['charter.sex'], []) AS types, types, 0, length(types), 800000, 600000, 300000, 'none', 'llm.interactions', number
FROM numbers(%d, %d) WHERE length(lower(hex(rand64(5))||hex(rand64(6)))) = 32`, p*n/parts, n/parts))
	}
	t.Log("fill", time.Since(t0), f.count("SELECT count() FROM {{db}}.audit_current"), "parts", f.count("SELECT count() FROM system.parts WHERE active AND database = '{{db}}'"))
	tenant := f.WithTenant("acme")
	var id uuid.UUID
	var tr, model string
	if err := f.conn.QueryRow(t.Context(), "SELECT event_id, trace_id, model FROM "+f.db+".audit_current WHERE tenant_id = 'acme' LIMIT 1 OFFSET 70000").Scan(&id, &tr, &model); err != nil {
		t.Fatal(err)
	}
	_ = id
	time4w := store.Window{From: time.Now().Add(-28 * 24 * time.Hour)}
	for name, fl := range map[string]store.Filter{"none": {}, "provider": {Provider: "b"}, "model": {Model: "m7"}, "flagged 0.1%": {Flagged: ptr(true)}, "detected": {BiasDetected: ptr(true)},
		"domain": {Domain: audit.HR}, "type": {BiasType: "charter.sex"}, "type none": {BiasType: "charter.age"}, "reviewed none": {HumanReviewed: ptr(true)}, "trace 28d": {TraceID: tr, Window: time4w}, "event 28d": {EventID: audit.ID(id), Window: time4w}} {
		var ds []time.Duration
		rows := 0
		for range 9 {
			t1 := time.Now()
			res, err := tenant.List(t.Context(), fl, store.Page{})
			if err != nil {
				t.Fatal(name, err)
			}
			rows = len(res.Items)
			ds = append(ds, time.Since(t1))
		}
		slices.Sort(ds)
		t.Logf("%-14s rows %3d p50 %v max %v", name, rows, ds[4], ds[8])
	}

	f.exec("SYSTEM FLUSH LOGS")
	rows, err := f.conn.Query(t.Context(), "SELECT query_duration_ms, read_rows, ProfileEvents['SelectedMarks'] m, ProfileEvents['SelectedParts'] p, ProfileEvents['UserTimeMicroseconds'] us, ProfileEvents['RealTimeMicroseconds'] rt, ProfileEvents['FilteringMarksWithPrimaryKeyMicroseconds'], position(query,'FINAL')>0 fin, substring(query, 1, 40) FROM system.query_log WHERE type='QueryFinish' AND query LIKE '%"+f.db+".audit_current%newest%' OR type='QueryFinish' AND query LIKE 'SELECT%"+f.db+".audit_current%ORDER BY tenant_id DESC%' ORDER BY event_time_microseconds DESC LIMIT 40")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var a, b, c, d, e, g, h uint64
		var x string
		var fin uint8
		if err := rows.Scan(&a, &b, &c, &d, &e, &g, &h, &fin, &x); err != nil {
			t.Fatal(err)
		}
		t.Log("ms", a, "rows", b, "marks", c, "parts", d, "user_us", e, "real_us", g, "pk_us", h, "final", fin)
	}
	rows.Close()
}
