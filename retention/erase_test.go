package retention_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/retention"
	"github.com/evenhand/evenhand/store"
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

	if err := r.Stores(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
	if err := r.Stores(t.Context(), "acne"); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), `no interaction of "acne"`) {
		t.Errorf("a tenant of which nothing is stored: %v", err)
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
	if err != nil || len(list) != 1 || list[0].ID != e.ID || list[0].Reason != "request-1" || list[0].By != "ann" || list[0].Interactions == nil || *list[0].Interactions != 2 || *list[0].Texts != 8 || !list[0].At.Equal(e.At) || e.Done.IsZero() || !list[0].Done.Equal(e.Done) {
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
		w.check()
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
	w.check()
	r = w.retention(short())
	out := w.run(r)
	if list, err = r.Erasures(t.Context()); err != nil || list[0].Done.IsZero() {
		t.Errorf("completed: %+v, %v", list, err)
	}
	if held, gone := w.texts("acme", mine[0]), w.texts("acme", mine[1:]...); held != 4 || gone != 0 {
		t.Errorf("%d texts of a held day, %d of the others, after %+v; want 4 and none", held, gone, out)
	}
	if n := w.interrupted(r); n != 0 {
		t.Errorf("%d steps are broken off", n)
	}
	w.write(mine[2:], nil) // again
	if err := r.Stand(t.Context(), list); err != nil || list[0].Held != 1 || list[0].Left != 1 || !list[0].Of(person) || list[0].Of("person-18") {
		t.Errorf("what is there of the person: %+v, %v", list, err)
	}
	w.run(r)
	before := w.text("SELECT toString(max(version)) FROM {db}.erasures")
	if w.run(r); w.text("SELECT toString(max(version)) FROM {db}.erasures") != before {
		t.Error("a done erasure was noted again")
	}
}

// A clock that is ahead, or local time taken for UTC, dates interactions after their erasure: they go with the others, also when
// they come again. What the person says later stays. Ids that have the user's in them are told.
func TestAnErasureTakesWhatIsDatedAhead(t *testing.T) {
	const person = "person-17"
	w := newWorld(t)
	r := w.retention(short())
	ahead := of(person, w.event("acme", 1, 0))
	w.on(1) // three in the morning
	ahead.Origin.BrokerTime, ahead.Interaction.Time = w.clock.Add(-time.Minute), w.clock.Add(2*time.Hour)
	ahead.Interaction.Conversation = "chat of PERSON-17"
	w.write([]audit.Record{ahead}, nil)
	want := retention.Erased{Interactions: 1, Texts: 4, InIDs: 1}
	if out, err := r.Erasable(t.Context(), "acme", person); err != nil || out != want {
		t.Errorf("to be erased: %+v, %v, want %+v", out, err, want)
	}
	if _, out, err := r.Erase(t.Context(), retention.Erasure{Tenant: "acme", Reason: "request-1", By: "ann"}, person, func(int, int) {}, func() {}); err != nil || out != want || w.texts("acme", ahead) != 0 {
		t.Errorf("erased %+v, %v, want %+v", out, err, want)
	}
	again, later := of(person, w.event("acme", 1, 0)), of(person, w.event("acme", 1, 1))
	again.Interaction = ahead.Interaction
	again.Origin.BrokerTime, later.Origin.BrokerTime, later.Interaction.Time = w.clock.Add(time.Minute), w.clock.Add(time.Minute), w.clock.Add(2*time.Hour)
	w.write([]audit.Record{again, later}, nil)
	w.on(2)
	if out := w.run(r); out.Texts != 5 || w.texts("acme", ahead) != 0 || w.texts("acme", later) != 4 {
		t.Errorf("the next run: %+v; %d texts of before the erasure, %d of after it", out, w.texts("acme", ahead), w.texts("acme", later))
	}
	w.check()
}

// onDay is what a check finds of a day, as codes and counts.
func onDay(rep *store.Report, day int) string {
	var out []string
	for _, f := range rep.Faults {
		if f.Day == day0.AddDate(0, 0, day).Format(time.DateOnly) {
			out = append(out, fmt.Sprint(f.Code, " ", f.Count))
		}
	}
	return strings.Join(out, ", ")
}

// erase takes a person out of a tenant and does not wait for the disk.
func (w *world) erase(tenant, user string) {
	w.Helper()
	r, err := retention.New(w.conn, w.db, short(), retention.Options{Now: func() time.Time { return w.clock }, DiskWait: time.Millisecond, Poll: 200 * time.Millisecond, Seal: w.key})
	if err != nil {
		w.Fatal(err)
	}
	_, _, err = r.Erase(w.Context(), retention.Erasure{Tenant: tenant, Reason: "request-1", By: "ann"}, user, func(int, int) {}, func() {})
	if err != nil {
		w.Fatal(err)
	}
}

// byHand does what the case of a tenant and day says.
func (w *world) byHand(tenant string, day int, statements []string) {
	w.Helper()
	for _, sql := range statements {
		w.exec(strings.NewReplacer("{tenant}", "'"+tenant+"'", "{day}", "toDate('"+day0.AddDate(0, 0, day).Format(time.DateOnly)+"')").Replace(sql))
	}
}

// An erasure explains that the texts of the interactions are gone that it took, and nothing else that is done by hand.
func TestErasuresExplainOnlyWhatTheyTook(t *testing.T) {
	const (
		person  = "person-17"
		others  = "tenant_id = {tenant} AND event_id NOT IN (SELECT event_id FROM {db}.interactions WHERE conversation = 'mine') SETTINGS mutations_sync = 1, allow_nondeterministic_mutations = 1"
		deleted = "ALTER TABLE {db}.interaction_texts DELETE WHERE " + others
		all     = "(SELECT groupArray(event) FROM (SELECT `seals.event` AS event FROM {db}.ingest_batches ARRAY JOIN `seals.event`)) AS events"
		of17    = " FROM {db}.texts_erased WHERE tenant_id = {tenant}"
		run     = "INSERT INTO {db}.retention_runs (object, class, period, tenant_id, drop_id, version, action, state, rows, at) SELECT 'interaction_texts', 'std', {day}, {tenant}, generateUUIDv4(), 2, 'erase', 'done', "
	)
	cases := []struct {
		name string
		hand []string
		want string
	}{
		{"nothing", nil, ""},
		{"texts of others altered", []string{"ALTER TABLE {db}.interaction_texts UPDATE text = concat(text, '.') WHERE kind = 'response' AND " + others}, "text_altered 2"},
		{"some of the texts of others deleted", []string{"ALTER TABLE {db}.interaction_texts DELETE WHERE kind = 'response' AND " + others}, "text_altered 2"},
		{"texts of others deleted", []string{deleted}, "text_deleted 2"},
		{"and an erasure of the future noted", []string{deleted, run + "0, '2036-01-01'"}, "text_deleted 2"},
		{"and one of an older program", []string{deleted, "INSERT INTO {db}.erasures (tenant_id, erasure_id, version, at) VALUES ({tenant}, generateUUIDv4(), 2, '2026-01-01')", run + "100, '2026-01-01'"}, "text_deleted 2"},
		{"and named without a signature", []string{deleted, "INSERT INTO {db}.texts_erased SELECT * REPLACE (generateUUIDv4() AS taken_id, '2026-01-01' AS at, '' AS signer, '' AS signature, " + all + ")" + of17}, "text_deleted 2"},
		{"and named in what was signed", []string{deleted, "INSERT INTO {db}.texts_erased SELECT * REPLACE (2 AS version, " + all + ")" + of17}, "seal_broken 1, text_deleted 4"},
		{"and named with another key", []string{deleted, "INSERT INTO {db}.texts_erased SELECT * REPLACE (generateUUIDv4() AS taken_id, 'feedfeedfeedfeed' AS signer, " + all + ")" + of17}, "seal_unknown 1, text_deleted 2"},
		{"what it took is not written down", []string{"ALTER TABLE {db}.texts_erased DELETE WHERE tenant_id = {tenant} SETTINGS mutations_sync = 1"}, "text_deleted 2"},
		{"the erasure is deleted", []string{"ALTER TABLE {db}.erasures DELETE WHERE tenant_id = {tenant} SETTINGS mutations_sync = 1"}, "erasure_missing 1"},
	}
	w := newWorld(t)
	tenant := func(i int) string { return fmt.Sprint("t", i) }
	var records []audit.Record
	for i := range cases {
		for n := range 4 {
			r := w.event(tenant(i), i, n)
			if n < 2 {
				r = of(person, r)
				r.Interaction.Conversation = "mine"
			}
			records = append(records, r)
		}
	}
	w.write(records, nil)
	w.on(len(cases))
	for i := range cases {
		w.erase(tenant(i), person)
	}
	if x := w.check().Seals; x.TextsErased != uint64(2*len(cases)) || x.TextsErasedUnsigned != 0 {
		t.Errorf("%+v", x)
	}
	for i, tc := range cases {
		w.byHand(tenant(i), i, tc.hand)
	}
	rep := w.checked()
	for i, tc := range cases {
		if got := onDay(rep, i); got != tc.want {
			t.Errorf("%s: check finds %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Without a key what an erasure took is named, and counted apart; erasures of older programs explain so many as they had rows.
func TestErasuresWithoutAKey(t *testing.T) {
	const person, later = "person-17", "toDateTime64('2036-01-01', 3, 'UTC')"
	old := func(rows int, at string) []string {
		return []string{"ALTER TABLE {db}.texts_erased DELETE WHERE tenant_id = {tenant} SETTINGS mutations_sync = 1",
			"INSERT INTO {db}.erasures SELECT * REPLACE (3 AS version, -1 AS interactions, " + at + " AS at) FROM {db}.erasures FINAL WHERE tenant_id = {tenant}",
			fmt.Sprintf("INSERT INTO {db}.retention_runs SELECT * REPLACE (3 AS version, %d AS rows, %s AS at) FROM {db}.retention_runs FINAL WHERE tenant_id = {tenant}", rows, at)}
	}
	cases := []struct {
		name string
		hand []string
		want string
	}{
		{"named", nil, ""},
		{"named by one of the future", []string{"INSERT INTO {db}.texts_erased SELECT * REPLACE (2 AS version, " + later + " AS at) FROM {db}.texts_erased WHERE tenant_id = {tenant}"}, "text_deleted 2"},
		{"of an older program", old(4, "at"), ""},
		{"of an older program that took less", old(1, "at"), "text_deleted 1"},
		{"of an older program in the future", old(4, later), "text_deleted 2"},
	}
	w := newWorld(t)
	w.unsigned()
	tenant := func(i int) string { return fmt.Sprint("t", i) }
	var records []audit.Record
	for i := range cases {
		records = append(records, of(person, w.event(tenant(i), -2-i, 0)), of(person, w.event(tenant(i), -2-i, 1)), w.event(tenant(i), -2-i, 2))
	}
	w.write(records, nil)
	w.clock = time.Now()
	for i, tc := range cases {
		w.erase(tenant(i), person)
		w.byHand(tenant(i), -2-i, tc.hand)
	}
	rep := w.checked()
	for i, tc := range cases {
		if got := onDay(rep, -2-i); got != tc.want {
			t.Errorf("%s: check finds %q, want %q", tc.name, got, tc.want)
		}
	}
	if x := rep.Seals; x.TextsErased != 0 || x.TextsErasedUnsigned != 5 {
		t.Errorf("%+v; want 5 that unsigned erasures explain", x)
	}
}

// A store with signed seals is not erased from without the key.
func TestErasuresAreSigned(t *testing.T) {
	w := newWorld(t)
	mine := of("person-17", w.event("acme", -2, 0))
	w.write([]audit.Record{mine}, nil)
	w.unsigned()
	w.clock = time.Now()
	_, _, err := w.retention(short()).Erase(t.Context(), retention.Erasure{Tenant: "acme", Reason: "request-1", By: "ann"}, "person-17", func(int, int) {}, func() {})
	if audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "seal.key_file") || w.texts("acme", mine) != 4 || w.count("SELECT count() FROM {db}.erasures") != 0 {
		t.Errorf("%v", err)
	}
}
