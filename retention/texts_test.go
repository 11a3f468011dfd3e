package retention_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/retention"
)

func short() retention.Config {
	c := retention.DefaultConfig()
	c.TextDays, c.RowDays = 30, 60
	return c
}

// steps are a plan's steps over the tables of texts as text.
func steps(p *retention.Plan, tables ...string) string {
	var out []string
	for _, s := range p.Steps {
		for _, t := range tables {
			if s.Object == t {
				out = append(out, fmt.Sprintf("%s rows %d held %d", s.String(), s.Rows, s.Held))
			}
		}
	}
	return strings.Join(out, "\n")
}

func TestTextsGoAtTheirLimit(t *testing.T) {
	w := newWorld(t)
	w.days(0, 3, 1, 2, "acme", "beta")
	r := w.retention(short())
	w.on(30)
	if out := w.run(r); out.Partitions != 0 || out.OldestDays != 30 {
		t.Fatalf("on the last day of the limit: %+v", out)
	}
	w.on(31)
	before := w.state()
	p := w.plan(r, time.Time{})
	if after := w.state(); after != before {
		t.Errorf("a plan changed something:\n%s\n%s", before, after)
	}
	d := day0.Format(time.DateOnly)
	// 4 kinds of text in 4 interactions and 2 dead letters; 4 users.
	if got, want := steps(p, "interaction_texts", "interaction_users"), "drop interaction_texts std "+d+" rows 18 held 0\ndrop interaction_users std "+d+" rows 4 held 0"; got != want {
		t.Errorf("plan\n%s\nwant\n%s", got, want)
	}
	out := w.run(r)
	if out.Partitions != 2 || out.Texts != 22 || out.Inactive != 0 || out.OldestDays != 30 || out.Bytes == 0 {
		t.Errorf("%+v", out)
	}
	for _, table := range []string{"interaction_texts", "interaction_users"} {
		if n := w.count("SELECT count() FROM {db}." + table + " WHERE event_day = '" + d + "'"); n != 0 {
			t.Errorf("%s: %d rows are left", table, n)
		}
		if n := w.count("SELECT count() FROM system.parts WHERE database = '{db}' AND table = '" + table + "' AND NOT active AND partition = '(\\'std\\',\\'" + d + "\\')'"); n != 0 {
			t.Errorf("%s: %d old parts are on the disk", table, n)
		}
	}
	if got := w.text("SELECT object, class, tenant_id, action, state, rows, held FROM {db}.retention_runs FINAL ORDER BY object, tenant_id"); got !=
		"object\tclass\ttenant_id\taction\tstate\trows\theld\ninteraction_texts\tstd\tacme\tdrop\tdone\t9\t0\ninteraction_texts\tstd\tbeta\tdrop\tdone\t9\t0\n"+
			"interaction_users\tstd\tacme\tdrop\tdone\t2\t0\ninteraction_users\tstd\tbeta\tdrop\tdone\t2\t0\n" {
		t.Errorf("records\n%s", got)
	}
	// What readers see of an interaction without its text.
	rec, err := w.store.WithTenant("acme").Get(t.Context(), w.event("acme", 0, 0).Interaction.ID)
	if err != nil || rec.TextState != "dropped" || rec.Interaction.Prompt != "" || len(rec.Verdicts) != 1 || rec.Evidence(rec.Verdicts[0].Findings[0]) != "" {
		t.Errorf("record %+v, %v", rec, err)
	}
	view := w.text("SELECT DISTINCT text_state, original_query, llm_response, user_id, position(bias_report_summary, 'canary') FROM {db}.llm_interaction_audit WHERE event_day = '" + d + "'")
	if view != "text_state\toriginal_query\tllm_response\tuser_id\tposition(bias_report_summary, 'canary')\ndropped\t[dropped]\t\\N\t\\N\t0\n" {
		t.Errorf("view\n%s", view)
	}
	w.check()
	if out := w.run(r); out.Partitions+out.Mutations != 0 {
		t.Errorf("the second run of a day found %+v", out)
	}
}

// Tenants with limits of their own: in a class they have partitions, else their rows are taken out of the
// partition of all.
func TestTenantsWithTheirOwnLimits(t *testing.T) {
	w := newWorld(t)
	cfg := short()
	cfg.Tenants = map[string]retention.Override{"early": {TextDays: 10}, "late": {TextDays: 40}}
	from := retention.FirstDay(time.Now())
	if _, err := w.classes.Assign(t.Context(), retention.Assignment{Tenant: "classed", Class: "brief", TextDays: 5, RowDays: 60, From: from, By: "test"}, cfg); err != nil {
		t.Fatal(err)
	}
	first := int(from.Sub(day0) / (24 * time.Hour))
	w.days(0, first+1, 1, 1, "early", "late", "other", "classed")
	r := w.retention(cfg)
	if got := w.text("SELECT DISTINCT retention_class, event_day FROM {db}.interaction_texts WHERE tenant_id = 'classed' ORDER BY event_day DESC LIMIT 2"); !strings.Contains(got, "brief\t"+from.Format(time.DateOnly)) || !strings.Contains(got, "std\t") {
		t.Errorf("classes of classed:\n%s", got)
	}
	texts := func(tenant string) uint64 {
		return w.count("SELECT uniqExact(event_day) FROM {db}.interaction_texts WHERE tenant_id = '" + tenant + "'")
	}
	all := uint64(first + 1)
	for _, tc := range []struct {
		day                         int
		early, late, other, classed uint64
	}{
		{first + 5, all, all, all, all},
		{first + 6, all, all, all, all - 1}, // the partition of the class
		{11 + first, 0, all, all, all - 1},  // mutations
		{31 + first, 0, all, 0, 0},          // std days of classed go with the default
		{41 + first, 0, 0, 0, 0},
	} {
		w.on(tc.day)
		out := w.run(r)
		if e, l, o, c := texts("early"), texts("late"), texts("other"), texts("classed"); e != tc.early || l != tc.late || o != tc.other || c != tc.classed {
			t.Errorf("day %d: early %d late %d other %d classed %d, want %+v", tc.day, e, l, o, c, tc)
		}
		if out.Inactive != 0 {
			t.Errorf("day %d: %d old parts are left", tc.day, out.Inactive)
		}
	}
	w.check()
}

func TestHoldsKeepTexts(t *testing.T) {
	w := newWorld(t)
	w.days(0, 2, 1, 3, "acme", "beta")
	r := w.retention(short())
	id := audit.DeriveID("year", "acme", "0", "1")
	d0 := day0
	holds := []retention.Hold{
		{Tenant: "acme", Events: []audit.ID{id}, Reason: "case-1", By: "ann"},
		{Tenant: "acme", From: d0.Add(9 * time.Hour), To: d0.Add(10 * time.Hour), Reason: "case-2", By: "ann"},
		{Tenant: "acme", User: "canary-acme-0-user-2", Reason: "case-3", By: "ann"},
		{Tenant: "beta", From: d0, To: d0.AddDate(0, 0, 1), Reason: "case-4", By: "ann"},
	}
	for i := range holds {
		var err error
		var late []time.Time
		if holds[i], late, err = r.Place(t.Context(), holds[i]); err != nil || len(late) != 0 {
			t.Fatal(err, late)
		}
	}
	nothing := []retention.Hold{
		{Tenant: "acme", Events: []audit.ID{audit.DeriveID("none")}}, {Tenant: "beta", Events: []audit.ID{id}}, {Tenant: "none", From: d0, To: d0.AddDate(0, 0, 1)},
		{Tenant: "acme", From: d0.AddDate(-1, 0, 0), To: d0}, {Tenant: "acme", User: "nobody", ByUser: true},
	}
	for i, h := range slices.Concat(holds, nothing) {
		want := uint64(0)
		if i < len(holds) {
			want = []uint64{1, 1, 1, 3}[i]
		}
		if n, err := r.Named(t.Context(), &h); err != nil || n != want {
			t.Errorf("%d: names %d interactions, want %d: %v", i, n, want, err)
		}
	}
	w.on(31)
	p := w.plan(r, time.Time{})
	d := d0.Format(time.DateOnly)
	// Of acme's three interactions all three are named, by different holds (4 texts each); of beta all and the dead letter.
	if got, want := steps(p, "interaction_texts"), "drop interaction_texts std "+d+" rows 26 held 25"; got != want {
		t.Errorf("plan %s, want %s", got, want)
	}
	if out := w.run(r); out.Held != 25 || out.Partitions != 2 {
		t.Errorf("%+v", out)
	}
	list, err := r.Holds(t.Context())
	if err != nil || len(list) != 4 {
		t.Fatal(err, list)
	}
	for _, h := range list {
		if want := map[string]uint64{"case-1": 4, "case-2": 4, "case-3": 4, "case-4": 13}[h.Reason]; h.Texts != want || !h.Active() {
			t.Errorf("hold %s keeps %d texts, want %d", h.Reason, h.Texts, want)
		}
	}
	if n := w.count("SELECT count() FROM {db}.texts_held WHERE kind = 'prompt' AND text = 'canary-acme-0-prompt-1'"); n != 1 {
		t.Errorf("%d copies of the held prompt", n)
	}
	// A released hold lets go at the next run, its user too.
	if h, err := r.Release(t.Context(), holds[2].ID, "bob"); err != nil || h.Active() {
		t.Fatal(err, h)
	}
	w.run(r)
	if got := w.text("SELECT count(), countIf(text LIKE '%acme-0-user-2%') FROM {db}.texts_held"); got != "count()\tcountIf(like(text, '%acme-0-user-2%'))\n21\t0\n" {
		t.Errorf("held after the release\n%s", got)
	}
	if _, err := r.Release(t.Context(), audit.DeriveID("none"), "bob"); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("releasing what is not there: %v", err)
	}
	if _, _, err := r.Place(t.Context(), retention.Hold{Tenant: "acme", User: "u", From: d0, Reason: "a story of a case", By: ""}); err == nil ||
		!strings.Contains(err.Error(), "filter") || !strings.Contains(err.Error(), "reason") || !strings.Contains(err.Error(), "by:") || !strings.Contains(err.Error(), "range") {
		t.Errorf("all faults at once: %v", err)
	}
}

// interrupted is how many steps a status says are broken off, some hours on.
func (w *world) interrupted(r *retention.Retention) uint64 {
	w.Helper()
	at := w.clock
	defer func() { w.clock = at }()
	w.clock = at.Add(2 * time.Hour)
	st, err := r.Status(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return st.Interrupted
}

// A step that was broken off before it took anything, and is not due any more, is under way for a day.
func TestABrokenStepThatIsNotDueAnyMore(t *testing.T) {
	died := errors.New("died")
	w := newWorld(t)
	w.days(0, 1, 1, 2, "acme")
	w.on(31)
	r := w.retention(short())
	r.BreakAt("picked interaction_texts", died)
	if _, err := r.Run(t.Context(), func(int, int) {}); !errors.Is(err, died) {
		t.Fatal(err)
	}
	longer := short()
	longer.TextDays, longer.RowDays = 50, 60
	for _, tc := range []struct {
		day  int
		want uint64
	}{{31, 1}, {33, 0}} {
		w.on(tc.day)
		if w.run(w.retention(longer)); w.interrupted(r) != tc.want {
			t.Errorf("day %d: %d steps are broken off, want %d", tc.day, w.interrupted(r), tc.want)
		}
	}
	if n := w.count("SELECT count() FROM {db}.interaction_texts FINAL"); n != 9 {
		t.Errorf("%d texts are left, want 9", n)
	}
	w.on(51)
	if w.run(w.retention(longer)); w.text("SELECT state, rows FROM {db}.retention_runs FINAL WHERE object = 'interaction_texts'") != "state\trows\ndone\t9\n" {
		t.Errorf("what went later: %s", w.text("SELECT * FROM {db}.retention_runs FINAL"))
	}
	w.check()
}

// A run that dies between the copy and the drop, or after the drop, is completed by the next.
func TestABrokenRunIsCompleted(t *testing.T) {
	died := errors.New("died")
	for _, point := range []string{"kept interaction_texts", "dropped interaction_texts"} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			w.days(0, 2, 1, 2, "acme")
			r := w.retention(short())
			if _, _, err := r.Place(t.Context(), retention.Hold{Tenant: "acme", User: "canary-acme-0-user-1", Reason: "case-1", By: "ann"}); err != nil {
				t.Fatal(err)
			}
			w.on(31)
			r.BreakAt(point, died)
			if _, err := r.Run(t.Context(), func(int, int) {}); !errors.Is(err, died) {
				t.Fatal(err)
			}
			r.BreakAt("", nil)
			if out := w.run(r); out.Inactive != 0 {
				t.Errorf("%+v", out)
			}
			if n := w.count("SELECT count() FROM {db}.texts_held FINAL WHERE kind != 'hold_user'"); n != 4 {
				t.Errorf("the hold keeps %d texts, want 4", n)
			}
			if n := w.count("SELECT (SELECT count() FROM {db}.interaction_texts WHERE event_day = '" + day0.Format(time.DateOnly) + "') + (SELECT count() FROM {db}.interaction_users WHERE event_day = '" + day0.Format(time.DateOnly) + "')"); n != 0 {
				t.Errorf("%d rows are left", n)
			}
			// What the broken run took is on record as done, once, and nothing as under way.
			if got, want := w.text("SELECT state, rows FROM {db}.retention_runs FINAL WHERE object = 'interaction_texts' AND period = '"+day0.Format(time.DateOnly)+"'"), "state\trows\ndone\t9\n"; got != want || w.interrupted(r) != 0 {
				t.Errorf("records %q, want %q; %d steps are broken off", got, want, w.interrupted(r))
			}
			w.check()
		})
	}
}

// The store is killed under a run, again and again: running until it works drops what is due, keeps what
// is held, and leaves the store sound.
func TestTheStoreDiesUnderARun(t *testing.T) {
	e := enginetest.Start(t)
	w := worldOn(t, e.Config(engine.Writer))
	w.days(0, 24, 1, 1, "acme")
	r := w.retention(short())
	if _, _, err := r.Place(t.Context(), retention.Hold{Tenant: "acme", From: day0, To: day0.AddDate(0, 0, 24), Reason: "case-1", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	texts := w.count("SELECT count() FROM {db}.interaction_texts FINAL")
	w.on(60)
	broken := 0
	for deadline := time.Now().Add(3 * time.Minute); ; {
		var kill *time.Timer
		if broken < 4 {
			kill = time.AfterFunc(time.Duration(60+150*broken)*time.Millisecond, func() { _ = syscall.Kill(e.Endpoint(engine.Writer).PID, syscall.SIGKILL) })
		}
		_, err := r.Run(t.Context(), func(int, int) {})
		if kill != nil && !kill.Stop() {
			broken++
		}
		if err == nil {
			break
		}
		if audit.KindOf(err) == audit.KindInvalid || time.Now().After(deadline) {
			t.Fatalf("%d: %v", broken, err)
		}
	}
	if n := w.count("SELECT (SELECT count() FROM {db}.interaction_texts) + (SELECT count() FROM {db}.interaction_users)"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if n := w.count("SELECT count() FROM {db}.texts_held FINAL"); n != texts {
		t.Errorf("the hold keeps %d texts of %d", n, texts)
	}
	if broken == 0 {
		t.Error("the run was never broken off")
	}
	t.Logf("the run was broken off %d times", broken)
	if n := w.interrupted(r); n != 0 {
		t.Errorf("%d steps are broken off after a run that was not", n)
	}
	w.check()
}

func TestTwoRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.days(0, 20, 1, 1, "acme", "beta")
	w.on(60)
	var wg sync.WaitGroup
	for range 2 {
		r := w.retention(short())
		wg.Go(func() {
			if _, err := r.Run(t.Context(), func(int, int) {}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := w.count("SELECT count() FROM {db}.interaction_texts"); n != 0 {
		t.Errorf("%d texts are left", n)
	}
	// Each partition is recorded once.
	if got, want := w.text("SELECT sum(rows), count() FROM {db}.retention_runs FINAL WHERE object = 'interaction_texts'"), "sum(rows)\tcount()\n164\t40\n"; got != want {
		t.Errorf("records %q, want %q", got, want)
	}
	w.check()
}
