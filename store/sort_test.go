package store_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

var sorts = map[store.SortKey]string{
	store.ByTime: "0", store.ByBiasScore: "bias_sum", store.ByConfidence: "confidence", store.BySeverity: "max_severity", store.ByFindingsCount: "n_findings",
	store.BySafety: "safety_sum", store.ByToxicity: "toxicity", store.ByPII: "pii", store.ByHallucination: "hallucination",
}

// randomRow is a version of an event with made-up values, few of each so that many are equal.
func randomRow(rnd *rand.Rand, e event) row {
	r := e.flatRow()
	for _, c := range []string{"bias_sum", "safety_sum", "toxicity", "pii", "hallucination"} {
		r[c] = int64(rnd.IntN(5) * 300_000)
	}
	r["confidence"], r["max_severity"], r["n_findings"] = int32(rnd.IntN(4)*250_000), uint8(rnd.IntN(5)), uint16(rnd.IntN(4))
	for _, c := range []string{"flagged", "unsafe", "gated", "bias_detected"} {
		r[c] = uint8(rnd.IntN(2))
	}
	r["review"] = []string{"", "confirmed", "dismissed"}[rnd.IntN(3)]
	return r
}

// plain reads what FINAL over everything gives.
func (f *fixture) plain(where, order string) (out []string) {
	f.Helper()
	rows, err := f.conn.Query(f.Context(), "SELECT toString(event_id) || '/' || lower(hex(substring(content_digest, 1, 2))) FROM "+f.db+".audit_current FINAL WHERE tenant_id = 'acme' AND "+
		strings.ReplaceAll(where, "{{db}}", f.db)+" ORDER BY "+order)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			f.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		f.Fatal(err)
	}
	return out
}

func orderOf(s store.Sort) string {
	switch {
	case s.By == store.ByTime && s.Ascending:
		return "sort_ts, event_id, content_digest"
	case s.By == store.ByTime:
		return "sort_ts DESC, event_id DESC, content_digest DESC"
	case s.Ascending:
		return sorts[s.By] + " ASC, sort_ts DESC, event_id DESC, content_digest DESC"
	}
	return sorts[s.By] + " DESC, sort_ts DESC, event_id DESC, content_digest DESC"
}

// randomTable writes events in several versions, a part of them at one instant; no two versions are alike.
func (f *fixture) randomTable(rnd *rand.Rand, n int) []event {
	f.keepUnmerged()
	es := series("acme", n)
	for i := range es {
		if rnd.IntN(5) == 0 { // without a time of its own: the day's start
			es[i].at = noon.Truncate(24 * time.Hour)
		}
	}
	var users, events []row
	for _, e := range es {
		events = append(events, e.factRow())
		users = append(users, row{"tenant_id": e.tenant, "user_id": e.user, "event_day": e.at, "event_id": e.id.String(), "sort_ts": e.at, "version": e.origin().Version()})
	}
	f.insert("interaction_users", users...)
	f.insert("interactions", events...)
	for facts := 1; facts <= 3; facts++ {
		var rows []row
		for _, e := range es {
			if facts == 1 || rnd.IntN(3) == 0 {
				e.facts = facts
				rows = append(rows, randomRow(rnd, e))
			}
		}
		f.insert("audit_current", rows...)
	}
	f.insert("audit_current", randomRow(rnd, sample("beta", 1)))
	return es
}

// Pages joined are the whole that plain FINAL gives, whatever the order, the filter and the page's size.
func TestSortsEqualPlainFinal(t *testing.T) {
	f := newFixture(t)
	rnd := rand.New(rand.NewPCG(7, 8))
	f.randomTable(rnd, 150)
	tenant := f.WithTenant("acme")
	ctx, count := store.CountStatements(t.Context())
	pages := 0
	for _, by := range slices.Sorted(mapsKeys(sorts)) {
		for _, ascending := range []bool{false, true} {
			s := store.Sort{By: by, Ascending: ascending}
			for range 3 {
				tc := filters[rnd.IntN(len(filters))]
				want := f.plain(tc.sql, orderOf(s))
				limit := []int{1 + rnd.IntN(40), 50, store.MaxLimit}[rnd.IntN(3)]
				if len(want) > 60 {
					limit = max(limit, 20)
				}
				got, n := sorted(t, ctx, tenant, tc.filter, s, limit)
				if pages += n; !slices.Equal(got, want) {
					t.Errorf("%q ascending %t, %s, limit %d: got %d rows, want %d\n%v\n%v", by, ascending, tc.name, limit, len(got), len(want), head(got), head(want))
				}
				offset := rnd.IntN(len(want) + 2)
				res, err := tenant.List(ctx, tc.filter, store.Page{Limit: limit, Offset: offset, Sort: s})
				if err != nil {
					t.Fatal(err)
				}
				if part := want[min(offset, len(want)):min(offset+limit, len(want))]; !slices.Equal(ids(res.Items), part) {
					t.Errorf("%q ascending %t, %s, from %d: %v, want %v", by, ascending, tc.name, offset, head(ids(res.Items)), head(part))
				}
			}
		}
	}
	t.Logf("%d pages, %d statements", pages, count())
}

func mapsKeys[K cmp.Ordered, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// sorted reads a whole list by cursors, through their text, and checks the cursor of each item.
func sorted(t *testing.T, ctx context.Context, tenant *store.Tenant, f store.Filter, s store.Sort, limit int) (out []string, pages int) { //nolint:revive // t first
	t.Helper()
	for page := (store.Page{Limit: limit, Sort: s}); ; pages++ {
		res, err := tenant.List(ctx, f, page)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ids(res.Items)...)
		if res.Next == nil {
			return out, pages + 1
		}
		back, err := store.ParseCursor(res.Next.String())
		if err != nil || back != *res.Next || back != res.Items[len(res.Items)-1].Cursor() {
			t.Fatalf("cursor %v came back as %v, %v", res.Next, back, err)
		}
		page.After = &back
	}
}

// Rows that come in while pages are turned neither repeat nor hide others, in any order.
func TestSortedCursorIsStableUnderInserts(t *testing.T) {
	f := newFixture(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	es := f.randomTable(rnd, 60)
	tenant := f.WithTenant("acme")
	for i, s := range []store.Sort{{}, {Ascending: true}, {By: store.ByToxicity}, {By: store.BySeverity, Ascending: true}} {
		before := f.plain("1", orderOf(s))
		var seen []string
		for page := (store.Page{Limit: 9, Sort: s}); ; {
			res, err := tenant.List(t.Context(), store.Filter{}, page)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, ids(res.Items)...)
			if page.After = res.Next; res.Next == nil {
				break
			}
			var more []row
			for range 5 {
				e := es[rnd.IntN(len(es))]
				e.id, e.content = audit.NewID(e.at), fmt.Sprint(i, rnd.Uint64())
				more = append(more, randomRow(rnd, e))
			}
			f.insert("audit_current", more...)
		}
		once := slices.Clone(seen)
		slices.Sort(once)
		if len(slices.Compact(once)) != len(seen) {
			t.Errorf("%+v: a row was shown twice", s)
		}
		if kept := slices.DeleteFunc(slices.Clone(seen), func(id string) bool { return !slices.Contains(before, id) }); !slices.Equal(kept, before) {
			t.Errorf("%+v: of %d rows that were there all the time %d were shown, or in another order", s, len(before), len(kept))
		}
	}
}

func TestCursorsOfOtherLists(t *testing.T) {
	f := newFixture(t)
	f.write(series("acme", 5)...)
	tenant := f.WithTenant("acme")
	first, err := tenant.List(t.Context(), store.Filter{Domain: audit.HR}, store.Page{Limit: 1, Sort: store.Sort{By: store.BySafety}})
	if err != nil || len(first.Items) != 1 {
		t.Fatal(first, err)
	}
	cursor := first.Items[0].Cursor()
	for _, tc := range []struct {
		name   string
		tenant *store.Tenant
		filter store.Filter
		sort   store.Sort
		want   string
	}{
		{"order", tenant, store.Filter{Domain: audit.HR}, store.Sort{}, "cursor: it belongs to a list in another order"},
		{"direction", tenant, store.Filter{Domain: audit.HR}, store.Sort{By: store.BySafety, Ascending: true}, "cursor: it belongs to a list in another order"},
		{"filter", tenant, store.Filter{Domain: audit.Finance}, store.Sort{By: store.BySafety}, "cursor: it belongs to a list with another filter"},
		{"flag", tenant, store.Filter{Domain: audit.HR, Gated: new(false)}, store.Sort{By: store.BySafety}, "cursor: it belongs to a list with another filter"},
		{"reviews", tenant, store.Filter{Domain: audit.HR, Decision: "confirmed"}, store.Sort{By: store.BySafety}, "cursor: it belongs to a list with another filter"},
		{"reviewer", tenant, store.Filter{Domain: audit.HR, NotReviewedBy: "ann"}, store.Sort{By: store.BySafety}, "cursor: it belongs to a list with another filter"},
		{"differ", tenant, store.Filter{Domain: audit.HR, Differ: new(false)}, store.Sort{By: store.BySafety}, "cursor: it belongs to a list with another filter"},
		{"tenant", f.WithTenant("beta"), store.Filter{Domain: audit.HR}, store.Sort{By: store.BySafety}, "cursor: it belongs to a list with another filter"},
		{"sort", tenant, store.Filter{}, store.Sort{By: "tenant_id"}, `sort: "tenant_id" is not one of the keys`},
		{"both", tenant, store.Filter{}, store.Sort{}, ""},
	} {
		page := store.Page{After: &cursor, Sort: tc.sort}
		if tc.want == "" {
			page.Offset, tc.want = 3, "offset: does not go with a cursor"
		}
		if _, err := tc.tenant.List(t.Context(), tc.filter, page); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	for _, offset := range []int{-1, store.MaxOffset + 1} {
		if _, err := tenant.List(t.Context(), store.Filter{}, store.Page{Offset: offset}); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "offset: ") {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	// The window of the first page is kept: one that opened later would lose its end.
	if second, err := tenant.List(t.Context(), store.Filter{Domain: audit.HR}, store.Page{After: &cursor, Sort: store.Sort{By: store.BySafety}}); err != nil || second.Window != first.Window && second.Window.String() != first.Window.String() {
		t.Errorf("%v, %v; want %v", second, err, first.Window)
	}
}

// A user's list by places: over more days than are looked at first, many events of one instant, several contents
// under one id, and a place whose row of audit_current is not there yet, in both directions and in any page.
func TestListOfAUserByPlaces(t *testing.T) {
	f := newFixture(t)
	f.keepUnmerged()
	whole := store.Window{From: noon.AddDate(0, 0, -40), To: noon.AddDate(0, 0, 1)}
	var es []event
	for i := range 60 {
		e := sample("acme", i)
		e.user, e.at = "ann", noon.Add(-time.Duration(i)*16*time.Hour) // 40 days
		if i%3 == 0 {
			e.at = noon.AddDate(0, 0, -3) // more than a page at once
		}
		e.id = audit.NewID(e.at)
		es = append(es, e)
		if i%5 == 0 {
			e.content, e.part = "other content", 1
			es = append(es, e)
		}
	}
	f.write(es...)
	late := sample("acme", 0)
	f.insert("interaction_users", row{"tenant_id": "acme", "user_id": "ann", "event_day": late.at, "event_id": audit.NewID(late.at).String(), "sort_ts": late.at, "version": uint64(1)})
	for _, s := range []store.Sort{{}, {Ascending: true}} {
		want := f.plain("1", orderOf(s))
		if len(want) != 72 {
			t.Fatalf("%d rows", len(want))
		}
		for _, limit := range []int{1, 7, store.MaxLimit} {
			filter := store.Filter{Window: whole, UserID: "ann"}
			if got, _ := sorted(t, t.Context(), f.WithTenant("acme"), filter, s, limit); !slices.Equal(got, want) {
				t.Errorf("ascending %t, limit %d: got %d rows, want %d", s.Ascending, limit, len(got), len(want))
			}
			res, err := f.WithTenant("acme").List(t.Context(), filter, store.Page{Limit: limit, Offset: 30, Sort: s})
			if err != nil || !slices.Equal(ids(res.Items), want[30:min(30+limit, len(want))]) {
				t.Errorf("ascending %t, limit %d, from 30: %v, %v", s.Ascending, limit, head(ids(res.Items)), err)
			}
		}
	}
}
