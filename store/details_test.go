package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

func pointers(items []store.Item) (out []*store.Item) {
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}

// padded is a fact's id as source_id holds it.
func padded(id audit.ID) string { return string(id[:]) + strings.Repeat("\x00", 16) }

func (f *fixture) text(e event, kind, source, text string) {
	f.Helper()
	f.insert("interaction_texts", row{"tenant_id": e.tenant, "event_day": e.at, "event_id": e.id.String(), "kind": kind, "source_id": source, "version": uint64(1), "text": text})
}

func (f *fixture) review(e event, by, decision string, at time.Time) audit.ID {
	f.Helper()
	id, d := audit.DeriveID(e.tenant, by+decision), e.digest()
	f.insert("reviews", row{"tenant_id": e.tenant, "event_day": e.at, "event_id": e.id.String(), "content_digest": string(d[:]), "review_id": id.String(),
		"version": uint64(at.UnixMilli()), "reviewer": by, "decision": decision, "tags": []string{"charter.sex"}, "reviewed_at": at})
	return id
}

// outside writes a verdict of an outside analyzer.
func (f *fixture) outside(e event, by string, at time.Time) audit.ID {
	f.Helper()
	id := audit.DeriveID(e.tenant, by+at.String())
	r := e.verdictRow()
	r["analyzer"], r["analyzer_version"], r["result_id"], r["analysis_ts"], r["version"] = "external", by, id.String(), at, uint64(at.UnixMilli())
	f.insert("verdicts", r)
	return id
}

func TestDetailsOfAList(t *testing.T) {
	f := newFixture(t)
	es := series("acme", 12)
	f.write(es...)
	f.write(series("beta", 3)...)
	twin := es[4] // other content under the same id, on the same day
	twin.content, twin.prompt, twin.part, twin.broker = "twin", "Another prompt", 1, twin.broker.Add(time.Minute)
	f.write(twin)
	first := f.outside(es[0], "acme-tool", noon.Add(time.Hour))
	second := f.outside(es[0], "other-tool", noon.Add(2*time.Hour))
	f.text(es[0], "outside_report", padded(first), `{"a":1}`)
	f.text(es[0], "outside_mitigation", padded(second), `{"type":"x"}`)
	old := f.review(es[1], "ann", "confirmed", noon.Add(time.Hour))
	back := f.review(es[1], "ann", "withdrawn", noon.Add(2*time.Hour))
	f.text(es[1], "review_note", padded(old), "a note")
	f.text(es[1], "reveal_reason", padded(back), "not for here")
	f.exec("DELETE FROM {{db}}.interaction_texts WHERE event_id = '" + es[2].id.String() + "'")

	tenant := f.WithTenant("acme")
	ctx, count := store.CountStatements(t.Context())
	items := all(t, tenant, store.Filter{}, 0)
	if len(items) != 13 {
		t.Fatalf("%d items", len(items))
	}
	facts, err := tenant.Facts(ctx, pointers(items))
	if err != nil || len(facts) != 13 {
		t.Fatalf("%d facts, %v", len(facts), err)
	}
	texts, err := tenant.Texts(ctx, pointers(items))
	if err != nil || len(texts) != 13 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	verdicts, err := tenant.Verdicts(ctx, pointers(items))
	if err != nil || len(verdicts) != 13 {
		t.Fatalf("%d verdicts, %v", len(verdicts), err)
	}
	reviews, err := tenant.Reviews(ctx, pointers(items))
	if err != nil || len(reviews) != 1 {
		t.Fatalf("%d reviews, %v", len(reviews), err)
	}
	if n := count(); n != 4 {
		t.Errorf("%d statements for four tables", n)
	}
	for i := range items { // as the record by id
		it := &items[i]
		if it.EventID == es[4].id {
			continue
		}
		r, err := tenant.Get(t.Context(), it.EventID)
		if err != nil {
			t.Fatal(err)
		}
		in, k := facts[it.Key()], it.Key()
		x := texts[k].Interaction
		in.Prompt, in.Query, in.Response, in.UserID, in.UserEmail, in.UserRole = x.Prompt, x.Query, x.Response, x.UserID, x.UserEmail, x.UserRole
		if d := cmp.Diff(r.Interaction, in); d != "" || texts[k].State != r.TextState {
			t.Errorf("%s, %s (-get +list):\n%s", it.EventID, texts[k].State, d)
		}
		var current []audit.Verdict
		for _, v := range verdicts[k] {
			if v.Current {
				current = append(current, v.Verdict)
			}
		}
		slices.SortFunc(current, func(a, b audit.Verdict) int { return strings.Compare(b.Analyzer, a.Analyzer) })
		if d := cmp.Diff(r.Verdicts, current); d != "" {
			t.Errorf("%s: current verdicts (-get +list):\n%s", it.EventID, d)
		}
	}
	key := func(e event) store.Key {
		return store.Key{Tenant: e.tenant, Day: e.at.Truncate(24 * time.Hour), ID: e.id, Digest: e.digest()}
	}
	if texts[key(es[2])].State != store.TextDropped || texts[key(es[4])].Interaction.Prompt != es[4].prompt || texts[key(twin)].Interaction.Prompt != twin.prompt {
		t.Errorf("texts: %+v", texts)
	}
	if d := cmp.Diff(map[audit.ID]store.Outside{first: {Report: `{"a":1}`}, second: {Mitigation: `{"type":"x"}`}}, texts[key(es[0])].Outside); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[audit.ID]string{old: "a note"}, texts[key(es[1])].Notes); d != "" {
		t.Error(d)
	}
	var got []string
	for _, v := range verdicts[key(es[0])] {
		got = append(got, fmt.Sprint(v.Analyzer, "/", v.Version, " ", v.Current))
	}
	if want := []string{"external/other-tool true", "external/acme-tool false", "hot/ true"}; !slices.Equal(got, want) {
		t.Errorf("verdicts %q, want %q", got, want)
	}
	if r := reviews[key(es[1])]; len(r) != 2 || r[0].ID != back || r[0].Decision != "withdrawn" || r[1].Reviewer != "ann" || !r[1].At.Equal(noon.Add(time.Hour)) || len(r[1].Tags) != 1 {
		t.Errorf("reviews: %+v", r)
	}

	t.Run("by id", func(t *testing.T) {
		ids := []audit.ID{es[7].id, audit.NewID(noon), es[4].id, sample("beta", 1).id, es[0].id, es[7].id}
		got, err := tenant.Items(t.Context(), ids)
		if err != nil || len(got) != 3 || got[0].EventID != es[7].id || got[1].Digest != es[4].digest() || !got[1].IDConflict || got[2].EventID != es[0].id {
			t.Errorf("%v, %v", ids, err)
		}
		if d := cmp.Diff(got, []store.Item{*find(items, es[7]), *find(items, es[4]), *find(items, es[0])}, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".IDConflict" || p.Last().String() == ".list" }, cmp.Ignore())); d != "" {
			t.Error(d)
		}
	})
	t.Run("another tenant", func(t *testing.T) {
		beta := f.WithTenant("beta")
		facts, err := beta.Facts(t.Context(), pointers(items))
		texts, terr := beta.Texts(t.Context(), pointers(items))
		verdicts, verr := beta.Verdicts(t.Context(), pointers(items))
		if len(facts)+len(texts)+len(verdicts) != 0 || err != nil || terr != nil || verr != nil {
			t.Errorf("%v %v %v, %v %v %v", facts, texts, verdicts, err, terr, verr)
		}
		if got, err := beta.Items(t.Context(), []audit.ID{es[0].id}); len(got) != 0 || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		forged := items[0]
		forged.Tenant = "beta" // the id of acme with beta's name
		if facts, err := beta.Facts(t.Context(), []*store.Item{&forged}); len(facts) != 0 || err != nil {
			t.Errorf("%v, %v", facts, err)
		}
	})
	t.Run("too many", func(t *testing.T) {
		if _, err := tenant.Facts(t.Context(), make([]*store.Item, store.MaxLimit+1)); audit.KindOf(err) != audit.KindInvalid {
			t.Error(err)
		}
		if m, err := tenant.Texts(t.Context(), nil); len(m) != 0 || err != nil {
			t.Errorf("of none: %v, %v", m, err)
		}
	})
}

func find(items []store.Item, e event) *store.Item {
	for i := range items {
		if items[i].EventID == e.id && items[i].Digest == e.digest() {
			return &items[i]
		}
	}
	return &store.Item{}
}

func TestCount(t *testing.T) {
	f := newFixture(t)
	f.keepUnmerged()
	es := series("acme", 60)
	f.write(es...)
	f.write(series("beta", 9)...)
	again := es[0]
	again.facts, again.flagged = 2, false
	f.insert("audit_current", again.flatRow())
	for _, tc := range filters {
		n, err := f.WithTenant("acme").Count(t.Context(), tc.filter)
		if want := uint64(len(all(t, f.WithTenant("acme"), tc.filter, store.MaxLimit))); err != nil || n != want {
			t.Errorf("%s: %d, %v; want %d", tc.name, n, err, want)
		}
	}
}

// Nothing is skipped and nothing lost, however many rows bear one time.
func TestFlaggedSince(t *testing.T) {
	f := newFixture(t)
	f.keepUnmerged()
	write := func(at time.Time, es ...event) {
		for _, e := range es {
			r := e.flatRow()
			r["written_at"] = at
			f.insert("audit_current", r)
		}
	}
	start := time.Now().UTC().Truncate(time.Millisecond).Add(-time.Hour)
	es := series("acme", 80) // every fourth is flagged
	write(start, es[:4]...)
	write(start.Add(time.Second), es[4:60]...)
	write(start.Add(2*time.Second), es[60:]...)
	write(start.Add(2*time.Second), series("beta", 8)...)
	again := es[8] // reviewed later: no longer flagged
	again.facts, again.flagged = 2, false
	write(start.Add(3*time.Second), again)
	late := es[12] // delivered again: the row that loses says nothing new
	late.broker = late.broker.Add(time.Hour)
	write(start.Add(3*time.Second), late)
	write(time.Now().UTC().Add(time.Minute), func() event { e := sample("acme", 0); e.id = audit.NewID(noon); return e }()) // not settled yet

	tenant := f.WithTenant("acme")
	var got []store.Item
	from := start
	for range 20 {
		items, through, err := tenant.FlaggedSince(t.Context(), store.Filter{}, from, 5)
		if err != nil || through.Before(from) {
			t.Fatal(from, through, err)
		}
		if len(items) == 0 && through.After(start.Add(time.Minute)) {
			break
		}
		got, from = append(got, items...), through
	}
	var want []string
	for i := 4; i < 80; i += 4 {
		if i != 8 {
			want = append(want, ids([]store.Item{{EventID: es[i].id, Digest: es[i].digest()}})...)
		}
	}
	seen := ids(got)
	slices.Sort(seen)
	slices.Sort(want)
	if !slices.Equal(seen, want) {
		t.Errorf("got %d, want %d:\n%v\n%v", len(seen), len(want), seen, want)
	}
	if items, _, err := tenant.FlaggedSince(t.Context(), store.Filter{Domain: audit.HR}, start, 100); err != nil || len(items) == 0 || slices.ContainsFunc(items, func(it store.Item) bool { return it.Domain != audit.HR }) {
		t.Errorf("by domain: %v, %v", items, err)
	}
	if items, through, err := tenant.FlaggedSince(t.Context(), store.Filter{}, time.Time{}, 0); err != nil || len(items) != 0 || time.Since(through) > time.Minute {
		t.Errorf("from now: %v, %v, %v", items, through, err)
	}
}

func TestTaxonomy(t *testing.T) {
	f := newFixture(t)
	f.insert("bias_taxonomy", row{"id": uint32(900), "bias_key": "a.first", "description": "Old.", "severity_level": uint8(2), "version": uint64(1)})
	f.insert("bias_taxonomy", row{"id": uint32(900), "bias_key": "a.first", "description": "New.", "severity_level": uint8(3), "version": uint64(2)})
	got, err := f.Taxonomy(t.Context())
	if err != nil || len(got) == 0 || got[0] != (store.TaxonomyEntry{ID: 900, Key: "a.first", Description: "New.", Severity: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
}
