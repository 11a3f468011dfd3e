package retention_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/retention"
)

// canaries names what is found as tenant/day.
var canary = regexp.MustCompile(`canary-([a-z]+)-([0-9]+)-`)

type seen map[string]map[int]bool

func (s seen) add(tenant, day string) {
	d, err := strconv.Atoi(day)
	if err != nil {
		return
	}
	if s[tenant] == nil {
		s[tenant] = map[int]bool{}
	}
	s[tenant][d] = true
}

// inTables reads every column that can hold text, of every table.
func (w *world) inTables() seen {
	w.Helper()
	columns := map[string][]string{}
	w.each("SELECT table, name FROM system.columns WHERE database = '{db}' AND type LIKE '%String%' AND table IN (SELECT name FROM system.tables WHERE database = '{db}' AND engine LIKE '%MergeTree')", func(scan func(...any)) {
		var table, column string
		scan(&table, &column)
		columns[table] = append(columns[table], "toString(`"+column+"`)")
	})
	found := seen{}
	for table, names := range columns {
		w.each(`SELECT DISTINCT arrayJoin(arrayMap(x -> splitByChar('-', x), extractAll(concatWithSeparator(' ', `+strings.Join(names, ", ")+", ''), 'canary-[a-z]+-[0-9]+-'))) AS c FROM {db}."+table, func(scan func(...any)) {
			var c []string
			scan(&c)
			found.add(c[1], c[2])
		})
	}
	return found
}

// onDisk reads every file of a folder.
func onDisk(t *testing.T, dir string) seen {
	t.Helper()
	found := seen{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return nil //nolint:nilerr // a part that goes while it is looked at
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // the same
		}
		for _, m := range canary.FindAllSubmatch(raw, -1) {
			found.add(string(m[1]), string(m[2]))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestAYear plants canaries over 400 days in prompts, responses, users and dead letters of two tenants with
// different limits, with one hold, and steps the clock: at each step exactly what is within its limit is in
// the tables and on the disk, the plan says what the run then does, and the trends stay.
func TestAYear(t *testing.T) {
	if testing.Short() {
		t.Skip("a year takes minutes")
	}
	dir := t.TempDir()
	e := enginetest.StartWith(t, engine.Options{Dir: dir})
	w := worldOn(t, e.Config(engine.Writer))
	// Compressed text could hide on the disk.
	w.exec("ALTER TABLE {db}.interaction_texts MODIFY COLUMN text String CODEC(NONE)")
	w.exec("ALTER TABLE {db}.texts_held MODIFY COLUMN text String CODEC(NONE)")
	w.exec("ALTER TABLE {db}.interaction_users MODIFY COLUMN user_id String CODEC(NONE)")
	cfg := retention.DefaultConfig()
	cfg.Tenants = map[string]retention.Override{"brief": {TextDays: 60, RowDays: 200}}
	if _, err := w.classes.Assign(t.Context(), retention.Assignment{Tenant: "brief", Class: "two_months", TextDays: 60, RowDays: 200, From: retention.FirstDay(time.Now()), By: "test"}, cfg); err != nil {
		t.Fatal(err)
	}
	const days, apart, heldFrom, heldTo = 400, 10, 100, 113 // an event each tenth day
	for d := 0; d < days; d += 80 {
		w.days(d, d+80, apart, 1, "acme", "brief")
	}
	w.rollups()
	r := w.retention(cfg)
	hold, _, err := r.Place(t.Context(), retention.Hold{Tenant: "acme", From: day0.AddDate(0, 0, heldFrom), To: day0.AddDate(0, 0, heldTo), Reason: "case-7", By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	before, whole := w.text(trends), w.check()
	if found := onDisk(t, dir); len(found["acme"]) != days/apart || len(found["brief"]) != days/apart {
		t.Fatalf("the test cannot see texts on the disk: %d and %d days", len(found["acme"]), len(found["brief"]))
	}
	released := false
	for day := 40; day <= days+420; day += 97 {
		w.on(day)
		if day > 700 && !released {
			released = true
			if _, err := r.Release(t.Context(), hold.ID, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		state := w.state()
		p := w.plan(r, time.Time{})
		if w.state() != state {
			t.Errorf("day %d: the plan changed something", day)
		}
		out := w.run(r)
		var texts, rows uint64
		var frozen int
		for _, s := range p.Steps {
			switch {
			case s.Action == retention.Freeze:
				frozen++
			case strings.HasPrefix(s.Object, "interaction_") || s.Object == "texts_held":
				texts += s.Rows
			default:
				rows += s.Rows
			}
		}
		if out.Texts != texts || out.Rows != rows || out.Frozen != frozen || out.Partitions+out.Mutations+out.Frozen != len(p.Steps) || out.Inactive != 0 || out.Blocked != 0 {
			t.Errorf("day %d: the plan says %d texts, %d rows, %d months; the run did %+v", day, texts, rows, frozen, out)
		}
		for where, found := range map[string]seen{"tables": w.inTables(), "disk": onDisk(t, dir)} {
			for tenant, limit := range map[string]int{"acme": 180, "brief": 60} {
				for d := 0; d < days; d += apart {
					held := tenant == "acme" && d >= heldFrom && d < heldTo && !released
					if want := day <= d+limit || held; found[tenant][d] != want {
						t.Errorf("day %d: the text of %s of day %d in the %s: %t, want %t", day, tenant, d, where, found[tenant][d], want)
					}
				}
			}
		}
		if after := w.text(trends); after != before {
			t.Errorf("day %d: the trends changed", day)
		}
		if rep := w.check(); rep.Rows != whole.Rows || rep.Duplicates != 0 || rep.InFlight != 0 || rep.Rejected != whole.Rejected {
			t.Errorf("day %d: check %+v", day, rep)
		}
		if t.Failed() {
			return
		}
	}
	w.on(days + 500)
	w.run(r)
	w.on(days + 502)
	w.run(r)
	if n := w.count("SELECT (SELECT count() FROM {db}.interactions) + (SELECT count() FROM {db}.verdicts) + (SELECT count() FROM {db}.audit_current) + (SELECT count() FROM {db}.rejected) + (SELECT count() FROM {db}.texts_held)"); n != 0 {
		t.Errorf("%d rows are left after all limits", n)
	}
	if after := w.text(trends); after != before {
		t.Error("the trends changed")
	}
	w.check()
	t.Log(fmt.Sprint(w.text("SELECT object, action, count() AS steps, sum(rows) FROM {db}.retention_runs FINAL GROUP BY object, action ORDER BY object, action")))
}
