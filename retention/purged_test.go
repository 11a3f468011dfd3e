package retention_test

import (
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// What comes of a month whose rows have gone goes at the next run, and is noted before as all else: a check explains it, and
// nothing besides. What is delivered again of the month was noted already.
func TestWhatComesAfterItsMonthWentIsNoted(t *testing.T) {
	w := newWorld(t)
	w.exec("SYSTEM STOP MERGES {db}.interactions") // a duplicate that is merged has left no place
	first := []audit.Record{w.event("acme", 0, 0), w.event("acme", 0, 1)}
	w.write(first, nil)
	again := w.event("acme", 0, 1) // a duplicate that is sent before the month goes
	again.Origin.BrokerTime = again.Origin.BrokerTime.Add(time.Hour)
	w.write([]audit.Record{again}, nil)
	w.rollups()
	r := w.retention(short())
	gone := func(day int) {
		t.Helper()
		w.on(firstMonthEnds + day)
		if w.run(r); w.count("SELECT count() FROM {db}.interactions WHERE tenant_id = 'acme'") != 0 {
			t.Errorf("day %d: not all of the month went", day)
		}
	}
	notes := func(want string) {
		t.Helper()
		if got := w.text("SELECT rows, lo, hi, done FROM {db}.retention_purged FINAL WHERE object = 'interactions' AND tenant_id = 'acme' AND version > 0"); got != "rows\tlo\thi\tdone\n"+want+"\n" {
			t.Errorf("notes %q, want %q", got, want)
		}
	}
	w.on(firstMonthEnds + 61)
	w.run(r)
	gone(63)
	notes("2\t0\t2\t1")
	w.exec("SYSTEM START MERGES {db}.interactions")
	w.check()
	w.write([]audit.Record{w.event("acme", 0, 2), w.event("acme", 0, 3)}, nil) // a producer that had kept them
	w.check()
	gone(64)
	notes("4\t0\t4\t1")
	rep := w.check()
	if rep.Seals.Purged != 4 || rep.Purged != 4 {
		t.Errorf("%+v, %+v", rep, rep.Seals)
	}
	// The log is read again from its beginning: each row goes once more and is in the note already.
	var all []audit.Record
	w.offset = 0
	for _, i := range []int{0, 1, 1, 2, 3} {
		all = append(all, w.event("acme", 0, i))
	}
	w.write(all, nil)
	gone(65)
	notes("4\t0\t4\t1")
	w.exec("ALTER TABLE {db}.ingest_batches DELETE WHERE lo = 0 AND hi = 4 SETTINGS mutations_sync = 2")
	w.check()
	// Another tenant's row among them, which is deleted by hand, no note explains.
	other := w.event("beta", 40, 0)
	w.write([]audit.Record{other}, nil)
	w.write([]audit.Record{w.event("acme", 0, 4)}, nil)
	gone(66)
	notes("5\t0\t6\t1")
	w.check()
	for _, table := range []string{"interactions", "verdicts", "audit_current", "interaction_texts", "interaction_users"} {
		w.exec("ALTER TABLE {db}." + table + " DELETE WHERE tenant_id = 'beta' SETTINGS mutations_sync = 2")
	}
	if rep := w.checked(); len(rep.Faults) != 1 || rep.Faults[0].Code != store.FaultInteractionDeleted || rep.Faults[0].Count != 1 {
		t.Errorf("deleted by hand: %+v", rep.Faults)
	}
}
