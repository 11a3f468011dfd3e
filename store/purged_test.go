package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/store"
)

// A deleted month is counted as it was: before, while and after its rows go.
func TestCheckOfADeletedMonth(t *testing.T) {
	f := newFixture(t)
	es := sound(f)
	log := logOf(es)
	month := noon.AddDate(0, 0, 1-noon.Day())
	purged := func(done uint8) {
		var rows []row
		for _, x := range []struct {
			object string
			part   int32
			rows   uint64
			lo, hi int64
		}{{"interactions", 0, 10, 0, 9}, {"interactions", 1, 10, 0, 9}, {"rejected", 0, 1, 10, 10}} {
			rows = append(rows, row{"object": x.object, "tenant_id": "acme", "month": month, "topic": "llm.interactions", "partition": x.part,
				"version": uint64(1 + done), "rows": x.rows, "lo": x.lo, "hi": x.hi, "done": done})
		}
		f.insert("retention_purged", rows...)
	}
	sane := func(when string, interactions uint64) {
		t.Helper()
		r := f.checkAtRest(log)
		if !r.OK() || r.Rows != 20 || r.Interactions != interactions || r.Purged != 20 || r.Rejected != 1 || r.Duplicates != 0 || r.InFlight != 0 {
			t.Errorf("%s: %+v", when, r)
		}
	}
	remove := func(tables ...string) {
		for _, table := range tables {
			f.exec("ALTER TABLE {{db}}." + table + " DELETE WHERE 1 SETTINGS mutations_sync = 2")
		}
	}
	purged(0)
	sane("before", 20)
	remove("audit_current")
	sane("in the midst", 20)
	remove("interaction_texts", "interaction_users", "verdicts", "interactions", "rejected")
	sane("after", 0)
	if r := f.checkAtRest(log); r.Log.Purged != 21 {
		t.Errorf("%d messages of the log are of the deleted month, want 21", r.Log.Purged)
	}
	purged(1)
	sane("done", 0)

	// A higher generation over a part of a range: what the rest held cannot be counted any more.
	f.mark(0, 2, 6, 8, 3, 0)
	if r := f.checkAtRest(log); !r.OK() {
		t.Errorf("overlapped: %+v", r.Faults)
	}
	// Rows of a month that was done are judged as all others.
	late := es[0]
	late.part, late.offset, late.broker = 1, 10, late.broker.Add(time.Hour)
	f.write(late)
	f.mark(1, 1, 10, 10, 1, 0)
	f.exec("ALTER TABLE {{db}}.audit_current DELETE WHERE 1 SETTINGS mutations_sync = 2")
	if got := codes(f.checkAtRest(nil)); got != "audit_current_missing" {
		t.Errorf("late without its flat row: %q", got)
	}
	// More than the markers say is a fault still.
	f.exec("INSERT INTO {{db}}.retention_purged SELECT * REPLACE (toUInt64(50) AS rows, toUInt64(3) AS version) FROM {{db}}.retention_purged FINAL WHERE object = 'interactions' AND partition = 1")
	if got := codes(f.checkAtRest(nil)); got != "audit_current_missing rows_missing" {
		t.Errorf("more than the markers say: %q", got)
	}
}

// Months that retention deleted are named wherever a window touches them: figures there hold nothing of them.
func TestDeletedMonths(t *testing.T) {
	f := newFixture(t)
	month := time.Date(2025, time.September, 1, 0, 0, 0, 0, time.UTC)
	for tenant, m := range map[string]time.Time{"acme": month, "beta": month.AddDate(0, 1, 0)} {
		for part := range int32(2) {
			f.insert("retention_purged", row{"object": "interactions", "tenant_id": tenant, "month": m, "topic": "t", "partition": part, "version": uint64(1), "rows": uint64(3), "done": uint8(part)})
		}
		f.insert("retention_purged", row{"object": "rejected", "tenant_id": tenant, "month": m.AddDate(0, 3, 0), "topic": "t", "version": uint64(1), "rows": uint64(3), "done": uint8(1)})
	}
	next := month.AddDate(0, 1, 0)
	for _, tc := range []struct {
		tenant   string
		from, to time.Time
		want     string
	}{
		{"acme", month, noon, "2025-09"},
		{"beta", month, noon, "2025-10"},
		{"", month, noon, "2025-09 2025-10"},
		{"nobody", month, noon, ""},
		{"acme", next.Add(-time.Millisecond), noon, "2025-09"},
		{"acme", next, noon, ""},
		{"acme", month.AddDate(0, -1, 0), month.Add(time.Millisecond), "2025-09"},
		{"acme", month.AddDate(0, -1, 0), month, ""},
	} {
		months, err := f.DeletedMonths(t.Context(), tc.tenant, store.Window{From: tc.from, To: tc.to})
		if got := strings.Join(months, " "); err != nil || got != tc.want {
			t.Errorf("%q from %v to %v: %q, %v; want %q", tc.tenant, tc.from, tc.to, got, err, tc.want)
		}
	}
}
