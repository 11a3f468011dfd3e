package retention_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/retention"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
)

// A hold that is placed while an erasure is at work keeps the texts, or says that they may be gone: when the person is
// erased, and days later, when a run takes out what came again.
func TestHoldsAndErasuresCannotMissEachOther(t *testing.T) {
	const person = "person-17"
	w := newWorld(t)
	mine := of(person, w.event("acme", 0, 0))
	w.write([]audit.Record{mine}, nil)
	place := func(texts uint64) (days []time.Time, release func()) {
		t.Helper()
		r := w.retention(short())
		h, days, err := r.Place(t.Context(), retention.Hold{Tenant: "acme", Events: []audit.ID{mine.Interaction.ID}, Reason: "case-1", By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if n := w.texts("acme", mine); n != texts {
			t.Errorf("%d texts when the hold was placed, want %d", n, texts)
		}
		return days, func() {
			if _, err := r.Release(t.Context(), h.ID, "ann"); err != nil {
				t.Fatal(err)
			}
		}
	}
	erase := func(r *retention.Retention) {
		t.Helper()
		if _, _, err := r.Erase(t.Context(), retention.Erasure{Tenant: "acme", Reason: "request-1", By: "ann"}, person, func(int, int) {}, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	again := func(r *retention.Retention) { t.Helper(); w.run(r) }
	for i, take := range []func(*retention.Retention){erase, again} {
		w.on(1 + 5*i)
		if i > 0 {
			w.write([]audit.Record{mine}, nil) // a log that is read again
		}
		var days []time.Time
		var release func()
		r := w.retention(short())
		r.Meanwhile("looked for interaction_texts", func() { days, release = place(4) })
		if take(r); len(days) != 0 || w.texts("acme", mine) != 4 {
			t.Errorf("%d: of a hold that was placed before it began %d texts are left, want 4; it was told of %v", i, w.texts("acme", mine), days)
		}
		w.check()
		if release(); i == 0 {
			w.run(w.retention(short()))
			continue
		}
		r = w.retention(short())
		r.Meanwhile("erasing interaction_texts", func() { days, release = place(4) })
		if take(r); !slices.Equal(days, []time.Time{day0}) || w.texts("acme", mine) != 0 {
			t.Errorf("%d: a hold that was placed when it had begun was told of %v, want that day; %d texts are left", i, days, w.texts("acme", mine))
		}
		w.check()
		release()
	}
	if n := w.count("SELECT count() FROM {db}.retention_runs FINAL WHERE state = 'begun'"); n != 0 {
		t.Errorf("%d steps read as begun", n)
	}
}

// What a tenant with a longer limit delivers late, while the partition of all is dropped, stays: texts and rows. Parts that
// are merged meanwhile go all the same.
func TestADropTakesNothingThatComesMeanwhile(t *testing.T) {
	cfg := short()
	cfg.Tenants = map[string]retention.Override{"long": {TextDays: 300, RowDays: 400}}
	for _, table := range []string{"interaction_texts", "interactions"} {
		w := newWorld(t)
		w.days(0, 1, 1, 2, "acme")
		w.days(0, 1, 1, 2, "beta")
		w.rollups()
		for _, day := range []int{31, firstMonthEnds + 61} { // the months' rows are frozen first
			if w.on(day); table == "interactions" {
				w.run(w.retention(cfg))
			}
		}
		if table == "interaction_texts" {
			w.on(31)
		} else {
			w.on(firstMonthEnds + 63)
		}
		var late audit.Record
		r := w.retention(cfg)
		for _, x := range []string{"interaction_users", "verdicts"} {
			r.Meanwhile("picked "+x, func() { w.exec("OPTIMIZE TABLE {db}." + x + " FINAL") })
		}
		r.Meanwhile("picked "+table, func() {
			late = w.event("long", 0, 5)
			w.write([]audit.Record{late}, nil)
		})
		out := w.run(r)
		if (out.Partitions != 1 || out.Mutations != 1) && table == "interaction_texts" || out.Partitions != 3 && table == "interactions" {
			t.Errorf("%+v", out)
		}
		if texts, rows := w.texts("long", late), w.count("SELECT count() FROM {db}.interactions FINAL WHERE event_id = toUUID('"+late.Interaction.ID.String()+"')"); texts != 4 || rows != 1 {
			t.Errorf("%s: of what came %d texts and %d rows are left, want 4 and 1; %+v", table, texts, rows, out)
		}
		if n := w.count("SELECT count() FROM {db}." + table + " WHERE tenant_id != 'long'"); n != 0 {
			t.Errorf("%s: %d rows of the others are left", table, n)
		}
		w.check()
	}
}

// What comes of a due day while its rows are deleted from a partition of several tenants goes, too; where it comes once more, the run
// does all else and says so, and the next one takes it.
func TestADeletionTakesWhatComesMeanwhile(t *testing.T) {
	cfg := short()
	cfg.Tenants = map[string]retention.Override{"long": {TextDays: 300, RowDays: 400}}
	for _, times := range []int{1, 2} {
		w := newWorld(t)
		w.days(0, 1, 1, 2, "acme")
		w.days(0, 1, 1, 2, "long")
		w.on(31)
		r, came := w.retention(cfg), 0
		var meanwhile func()
		meanwhile = func() {
			if came++; came < times {
				r.Meanwhile("dropped interaction_texts", meanwhile)
			}
			w.write([]audit.Record{w.event("acme", 0, 4+came)}, nil)
		}
		r.Meanwhile("dropped interaction_texts", meanwhile)
		_, err := r.Run(t.Context(), func(int, int) {})
		if (err != nil) != (times == 2) || err != nil && !strings.Contains(err.Error(), "4 rows are still there: they came meanwhile, and the next run takes them") {
			t.Errorf("%d times: %v", times, err)
		}
		left := func(table string) uint64 {
			return w.count("SELECT count() FROM {db}." + table + " FINAL WHERE tenant_id = 'acme'")
		}
		if texts, users := left("interaction_texts"), left("interaction_users"); texts != uint64(4*(times-1)) || users != 0 {
			t.Errorf("%d times: %d texts and %d users are left", times, texts, users)
		}
		w.run(w.retention(cfg))
		if texts := left("interaction_texts"); texts != 0 {
			t.Errorf("%d times: %d texts are left after the next run", times, texts)
		}
		if n := w.count("SELECT count() FROM {db}.retention_runs FINAL WHERE state = 'begun'"); n != 0 {
			t.Errorf("%d times: %d steps read as begun", times, n)
		}
		w.check()
	}
}

// What a run records of a month is what goes: a check explains that many later facts by it and no more, also when a hold is
// placed or released while the run is at it.
func TestARunRecordsWhatGoes(t *testing.T) {
	for _, released := range []bool{true, false} {
		w := newWorld(t)
		events := []audit.Record{w.event("acme", 0, 0), w.event("acme", 0, 1)}
		w.write(events, nil)
		for _, x := range events {
			in, at := x.Interaction, x.Interaction.Time.Add(time.Hour)
			if err := w.sink.Feedback(t.Context(), chsink.Fact{ID: audit.NewID(at), Tenant: in.Tenant, Day: in.Day(), Event: in.ID, Digest: in.Digest, By: "ann", At: at}, nil); err != nil {
				t.Fatal(err)
			}
		}
		w.rollups()
		held := events[0].Interaction.ID
		place := func() (id audit.ID) {
			h, _, err := w.retention(short()).Place(t.Context(), retention.Hold{Tenant: "acme", Events: []audit.ID{held}, Reason: "case-1", By: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			return h.ID
		}
		r := w.retention(short())
		meanwhile := func() { place() }
		if released {
			id := place()
			meanwhile = func() {
				if _, err := r.Release(t.Context(), id, "ann"); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, day := range []int{31, firstMonthEnds + 61} {
			w.on(day)
			w.run(r)
		}
		w.on(firstMonthEnds + 63)
		r.Meanwhile("kept feedback", meanwhile)
		w.run(r)
		left, want := w.count("SELECT count() FROM {db}.feedback FINAL"), uint64(1)
		if released {
			want = 0
		}
		if left != want {
			t.Errorf("released %t: %d later facts are left, want %d", released, left, want)
		}
		w.check()
		w.exec("ALTER TABLE {db}.feedback DELETE WHERE 1 SETTINGS mutations_sync = 2")
		if got := uint64(len(w.checked().Faults)); got != want {
			t.Errorf("released %t: a check finds %d faults when what is left is deleted by hand, want %d", released, got, want)
		}
	}
}
