package remediation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/alarm"
	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

// The commands of a ticket count what the alarm counted: not what came late, was dismissed, failed or lies outside of the window.
func TestTicketsCountAsAlarmsDo(t *testing.T) {
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	conn := enginetest.Conn(t, cfg)
	end := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	n := 0
	add := func(count int, when time.Time, late time.Duration, status, kind, mitigation, review string) {
		for range count {
			n++
			if err := conn.Exec(t.Context(), "INSERT INTO audit_current (tenant_id, event_day, sort_ts, event_id, version, event_ts, broker_ts, domain, analysis_status, bias_detected, bias_types, kinds, mitigation, review) "+
				"SELECT 'acme', toDate(?), toDateTime64(?, 3, 'UTC') AS at, ?, 1, at, at + INTERVAL ? SECOND, 'hr', ?, kind != '', if(kind = '', [], [kind]) AS kinds, kinds, ?, ? FROM (SELECT ? AS kind)",
				when.Format(time.DateOnly), when.Format("2006-01-02 15:04:05"), audit.DeriveID("event", fmt.Sprint(n)).String(), int(late.Seconds()), status, mitigation, review, kind); err != nil {
				t.Fatal(err)
			}
			if review == "dismissed" {
				if err := conn.Exec(t.Context(), "INSERT INTO reviews (tenant_id, event_day, event_id, reviewer, review_id, reviewed_at, decision) VALUES ('acme', ?, ?, 'ann', ?, now64(3), 'dismissed')",
					when.Format(time.DateOnly), audit.DeriveID("event", fmt.Sprint(n)).String(), audit.DeriveID("review", fmt.Sprint(n)).String()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	day := end.Add(-24 * time.Hour)
	add(6, day, 0, "done", "charter.sex", "REPHRASE_RESPONSE", "")
	add(2, day, 0, "done", "charter.sex", "REPHRASE_RESPONSE", "dismissed")
	add(3, day, 0, "done", "charter.sex", "", "")
	add(20, day, 48*time.Hour, "partial", "", "", "")
	add(5, day, 49*time.Hour, "done", "charter.sex", "REPHRASE_RESPONSE", "")
	add(7, day, 49*time.Hour, "done", "", "", "")
	add(4, day, 0, "failed", "", "", "")
	add(9, day, 0, "skipped", "", "", "")
	add(3, end, 0, "done", "charter.sex", "REPHRASE_RESPONSE", "") // the window's end is outside
	add(3, end.AddDate(0, 0, -8), 0, "done", "charter.sex", "REPHRASE_RESPONSE", "")

	list, err := alarm.NewTables(conn, cfg.Database).Mitigations(t.Context(), end, 7*24*time.Hour)
	if err != nil || len(list) != 1 || list[0].K != 6 || list[0].N != 31 || list[0].Late != 12 {
		t.Fatalf("%+v %v", list, err)
	}
	for _, c := range []struct {
		tier          audit.BreachTier
		kind          string
		k, n, missing uint64
	}{{audit.TierMitigation, "charter.sex", 6, 31, 12}, {audit.TierRate, "charter.sex", 9, 31, 12}, {audit.TierRate, "", 9, 31, 12}, {audit.TierBlind, "", 4, 47, 0}} {
		b := breach(c.kind)
		b.Tier, b.From, b.To = c.tier, end.AddDate(0, 0, -7), end
		issue := Derive("linear", policy(), &b, "")[0].Body
		var listed, k, of, late uint64
		into := []any{&k, &of}
		if c.tier != audit.TierBlind {
			into = append(into, &late)
		}
		q, count := query(&b), tally(&b)
		if !strings.Contains(issue, q) || !strings.Contains(issue, count) {
			t.Errorf("%s: the issue has other commands:\n%s", c.tier, issue)
		}
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM ("+q+")").Scan(&listed); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), count).Scan(into...); err != nil {
			t.Fatal(err)
		}
		if listed != c.k || k != c.k || of != c.n || late != c.missing {
			t.Errorf("%s %s: %d listed, %d of %d, %d late, want %d of %d, %d", c.tier, c.kind, listed, k, of, late, c.k, c.n, c.missing)
		}
	}
}
