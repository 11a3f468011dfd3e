package retention_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/retention"
)

// of makes an interaction one of a user's.
func of(user string, r audit.Record) audit.Record {
	r.Interaction.UserID = user
	return r
}

// texts counts what is kept of a user's interactions of a tenant.
func (w *world) texts(tenant string, rs ...audit.Record) (n uint64) {
	w.Helper()
	for _, r := range rs {
		n += w.count("SELECT count() FROM {db}.interaction_texts FINAL WHERE tenant_id = '" + tenant + "' AND event_id = toUUID('" + r.Interaction.ID.String() + "')")
	}
	return n
}

func TestErase(t *testing.T) {
	const person = "person-17"
	w := newWorld(t)
	r := w.retention(short())
	first, second, held := of(person, w.event("acme", 0, 0)), of(person, w.event("acme", 1, 0)), of(person, w.event("acme", 1, 1))
	other, elsewhere := w.event("acme", 1, 2), of(person, w.event("beta", 1, 0))
	w.write([]audit.Record{first, second, held, other, elsewhere}, nil)
	w.on(2)
	hold, _, err := r.Place(t.Context(), retention.Hold{Tenant: "acme", Events: []audit.ID{held.Interaction.ID}, Reason: "case-1", By: "ann"})
	if err != nil {
		t.Fatal(err)
	}

	before := w.state()
	dry, err := r.Erasable(t.Context(), "acme", person)
	if want := (retention.Erased{Interactions: 2, Texts: 8, Held: 1}); err != nil || dry != want {
		t.Errorf("to be erased: %+v, %v, want %+v", dry, err, want)
	}
	if w.state() != before {
		t.Error("looking changed something")
	}
	for _, e := range []retention.Erasure{{Reason: "r", By: "ann"}, {Tenant: "acme", By: "ann"}, {Tenant: "acme", Reason: "two words", By: "ann"}, {Tenant: "acme", Reason: "r"}} {
		if _, _, err := r.Erase(t.Context(), e, person, func(int, int) {}, func() {}); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%+v: %v", e, err)
		}
	}

	done, total := 0, 0
	e, out, err := r.Erase(t.Context(), retention.Erasure{Tenant: "acme", Reason: "request-1", By: "ann"}, person, func(n, of int) { done, total = n, of }, func() {})
	if want := (retention.Erased{Interactions: 2, Texts: 8, Held: 1}); err != nil || out != want {
		t.Fatalf("erased %+v, %v, want %+v", out, err, want)
	}
	if n := w.texts("acme", first, second); n != 0 {
		t.Errorf("%d texts of the person are left", n)
	}
	// Two days, two tables: a mutation a table.
	if n := w.count("SELECT count() FROM system.mutations WHERE database = '{db}'"); n != 2 || done != 4 || total != 4 {
		t.Errorf("%d mutations, %d of %d partitions; want 2, and 4 of 4", n, done, total)
	}
	if a, b, c := w.texts("acme", held), w.texts("acme", other), w.texts("beta", elsewhere); a != 4 || b != 4 || c != 4 {
		t.Errorf("texts held %d, of another %d, of another tenant %d; want 4 of each", a, b, c)
	}
	if rec, err := w.store.WithTenant("acme").Get(t.Context(), first.Interaction.ID); err != nil || rec.TextState != "dropped" || len(rec.Verdicts) != 1 {
		t.Errorf("what is left of an interaction: %+v, %v", rec, err)
	}
	// Who it was stands in no statement that the server keeps, and in no table but where a hold keeps it or another tenant has it.
	if got := w.text("SELECT command FROM system.mutations WHERE database = '{db}'"); strings.Contains(got, person) || !strings.Contains(got, "SHA256") {
		t.Errorf("mutations: %s", got)
	}
	if n := w.count("SELECT count() FROM {db}.interaction_users FINAL WHERE user_id = '" + person + "'"); n != 2 {
		t.Errorf("%d rows name the person, want that of the hold and that of beta", n)
	}
	if x := w.check().Seals; x.TextsErased != 2 || x.Texts != 3 || x.TextsDropped != 0 {
		t.Errorf("seals: %+v; want the texts of two erased and three as they came", x)
	}

	// A log that is read again brings it back, until the next run; what came after the erasure stays.
	w.on(3)
	later := of(person, w.event("acme", 3, 0))
	w.write([]audit.Record{first, second, later}, nil)
	if n := w.texts("acme", first, second, later); n != 12 {
		t.Fatalf("%d texts after they came again, want 12", n)
	}
	if out := w.run(r); out.Texts != 10 || out.Inactive != 0 { // and two rows that say whose they were
		t.Errorf("the next run: %+v", out)
	}
	if gone, stay := w.texts("acme", first, second), w.texts("acme", later); gone != 0 || stay != 4 {
		t.Errorf("after the next run %d texts of before the erasure and %d of after it, want none and 4", gone, stay)
	}

	// A hold that is released lets go.
	if _, err := r.Release(t.Context(), hold.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	if w.run(r); w.texts("acme", held) != 0 {
		t.Error("the released hold still keeps texts")
	}
	if out := w.run(r); out.Texts != 0 || out.Mutations != 0 {
		t.Errorf("a run with nothing to do: %+v", out)
	}
	list, err := r.Erasures(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != e.ID || list[0].Reason != "request-1" || list[0].By != "ann" || !list[0].At.Equal(e.At) || e.Done.IsZero() || !list[0].Done.Equal(e.Done) {
		t.Errorf("erasures %+v, %v", list, err)
	}
	if st, err := r.Status(t.Context()); err != nil || st.Erasures != 1 || st.Interrupted != 0 {
		t.Errorf("status %+v, %v", st, err)
	}
}

// A hold of the person keeps all of it, and an erasure that was broken off is completed by the next run.
func TestEraseBrokenOff(t *testing.T) {
	const person = "person-17"
	for _, point := range []string{"erasing interaction_texts", "erasing interaction_users"} {
		w := newWorld(t)
		r := w.retention(short())
		mine := of(person, w.event("acme", 0, 0))
		w.write([]audit.Record{mine}, nil)
		w.on(1)
		hold, _, err := r.Place(t.Context(), retention.Hold{Tenant: "acme", User: person, Reason: "case-1", By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if _, out, err := r.Erase(t.Context(), retention.Erasure{Tenant: "acme", Reason: "request-1", By: "ann"}, person, func(int, int) {}, func() {}); err != nil || out != (retention.Erased{Held: 1}) {
			t.Errorf("held by user: %+v, %v", out, err)
		}
		if got := w.text("SELECT command FROM system.mutations WHERE database = '{db}'"); strings.Contains(got, person) {
			t.Errorf("mutations: %s", got)
		}
		if _, err := r.Release(t.Context(), hold.ID, "ann"); err != nil {
			t.Fatal(err)
		}
		r.BreakAt(point, errors.New("broken off"))
		if _, err := r.Run(t.Context(), func(int, int) {}); err == nil {
			t.Fatalf("%s: not broken off", point)
		}
		if w.run(w.retention(short())); w.texts("acme", mine) != 0 || w.count("SELECT count() FROM {db}.interaction_users FINAL") != 0 {
			t.Errorf("%s: the next run did not complete it", point)
		}
	}
}

// An erasure is under way until its texts are gone, whoever takes them out.
func TestErasureIsDoneWhenItIs(t *testing.T) {
	const person = "person-17"
	w := newWorld(t)
	r := w.retention(short())
	var mine []audit.Record
	for day := range 3 {
		mine = append(mine, of(person, w.event("acme", day, 0)))
	}
	w.write(mine, nil)
	w.on(3)
	for _, hold := range []retention.Hold{ // of a day and a half: each day has holds of its own
		{Tenant: "acme", From: day0, To: day0.AddDate(0, 0, 1), Reason: "case-1", By: "ann"},
		{Tenant: "acme", From: day0.AddDate(0, 0, 1), To: day0.AddDate(0, 0, 1).Add(time.Millisecond), Reason: "case-2", By: "ann"},
	} {
		if _, _, err := r.Place(t.Context(), hold); err != nil {
			t.Fatal(err)
		}
	}
	r.BreakAt("erasing interaction_users", errors.New("broken off"))
	if _, _, err := r.Erase(t.Context(), retention.Erasure{Tenant: "acme", Reason: "request-1", By: "ann"}, person, func(int, int) {}, func() {}); err == nil {
		t.Fatal("not broken off")
	}
	list, err := r.Erasures(t.Context())
	if err != nil || len(list) != 1 || !list[0].Done.IsZero() {
		t.Fatalf("broken off: %+v, %v", list, err)
	}
	r = w.retention(short())
	out := w.run(r)
	if list, err = r.Erasures(t.Context()); err != nil || list[0].Done.IsZero() {
		t.Errorf("completed: %+v, %v", list, err)
	}
	if held, gone := w.texts("acme", mine[0]), w.texts("acme", mine[1:]...); held != 4 || gone != 0 {
		t.Errorf("%d texts of a held day, %d of the others, after %+v; want 4 and none", held, gone, out)
	}
	before := w.text("SELECT toString(max(version)) FROM {db}.erasures")
	if w.run(r); w.text("SELECT toString(max(version)) FROM {db}.erasures") != before {
		t.Error("a done erasure was noted again")
	}
}
