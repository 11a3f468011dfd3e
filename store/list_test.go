package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

func ids(items []store.Item) (out []string) {
	for _, it := range items {
		out = append(out, fmt.Sprintf("%s/%x", it.EventID, it.Digest[:2]))
	}
	return out
}

// all reads a whole list page by page.
func all(t *testing.T, tenant *store.Tenant, f store.Filter, limit int) (items []store.Item) {
	t.Helper()
	for page := (store.Page{Limit: limit}); ; {
		res, err := tenant.List(t.Context(), f, page)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, res.Items...)
		if res.Next == nil {
			return items
		}
		back, err := store.ParseCursor(res.Next.String())
		if err != nil || back != *res.Next {
			t.Fatalf("cursor %v came back as %v, %v", res.Next, back, err)
		}
		page.After = &back
	}
}

// filters holds each filter alone, with the SQL that says the same.
var filters = []struct {
	name   string
	filter store.Filter
	sql    string
}{
	{"none", store.Filter{}, "1"},
	{"provider", store.Filter{Provider: "mistral"}, "provider = 'mistral'"},
	{"model", store.Filter{Model: "m-2"}, "model = 'm-2'"},
	{"sensitivity", store.Filter{Sensitivity: "high"}, "sensitivity_score = 'high'"},
	{"domain", store.Filter{Domain: audit.HR}, "domain = 'hr'"},
	{"app", store.Filter{App: "app-1"}, "app = 'app-1'"},
	{"bias detected", store.Filter{BiasDetected: new(true)}, "bias_detected = 1"},
	{"not detected", store.Filter{BiasDetected: new(false)}, "bias_detected = 0"},
	{"flagged", store.Filter{Flagged: new(true)}, "flagged = 1"},
	{"reviewed", store.Filter{HumanReviewed: new(true)}, "human_reviewed = 1"},
	{"bias type", store.Filter{BiasType: "charter.sex"}, "has(bias_types, 'charter.sex')"},
	{"kind", store.Filter{Kind: "charter.sex"}, "has(kinds, 'charter.sex')"},
	{"nothing of that kind", store.Filter{Kind: "charter.age"}, "has(kinds, 'charter.age')"},
	{"user", store.Filter{UserID: "user-2"}, "event_id IN (SELECT event_id FROM {{db}}.interaction_users WHERE user_id = 'user-2' AND tenant_id = 'acme')"},
	{"trace", store.Filter{TraceID: trace(sample("acme", 7).id)}, "trace_id = '" + trace(sample("acme", 7).id) + "'"},
	{"event", store.Filter{EventID: sample("acme", 8).id}, "event_id = '" + sample("acme", 8).id.String() + "'"},
	{"unsafe", store.Filter{Unsafe: new(true)}, "unsafe = 1"},
	{"not unsafe", store.Filter{Unsafe: new(false)}, "unsafe = 0"},
	{"gated", store.Filter{Gated: new(true)}, "gated = 1"},
	{"effective", store.Filter{Effective: new(true)}, "(bias_detected = 1 AND review != 'dismissed' OR review = 'confirmed')"},
	{"not effective", store.Filter{Effective: new(false)}, "NOT (bias_detected = 1 AND review != 'dismissed' OR review = 'confirmed')"},
	{"least severity", store.Filter{MinSeverity: 3}, "max_severity >= 3"},
	{"least bias", store.Filter{MinBiasScore: 500_000}, "bias_sum >= 500000"},
	{"least confidence", store.Filter{MinConfidence: 800_000}, "confidence >= 800000"},
	{"analysis status", store.Filter{AnalysisStatus: audit.Partial}, "analysis_status = 'partial'"},
	{"status", store.Filter{Status: "error"}, "status = 'error'"},
	{"action", store.Filter{Action: "block"}, "action = 'block'"},
	{"window", store.Filter{Window: store.Window{From: noon.Add(-90 * time.Minute), To: noon.Add(-30 * time.Minute)}},
		fmt.Sprintf("event_ts >= '%s' AND event_ts < '%s'", noon.Add(-90*time.Minute).Format(time.DateTime), noon.Add(-30*time.Minute).Format(time.DateTime))},
}

// The list by candidates gives what plain FINAL gives, with three versions of many rows unmerged.
func TestListEqualsPlainFinal(t *testing.T) {
	f := newFixture(t)
	f.keepUnmerged()
	const n = 260
	first, other := series("acme", n), series("beta", 50)
	f.write(first...)
	f.write(other...)
	var second, third []row
	for i, e := range first {
		if i%3 == 0 { // more facts: the review turns the flag round and moves rows between filters
			e.facts, e.reviewed, e.flagged = 2, true, !e.flagged
			second = append(second, e.flatRow())
		}
		if i%5 == 0 { // delivered again later: loses to the first
			e.facts, e.reviewed, e.flagged, e.provider, e.broker = 1, false, true, "mistral", e.broker.Add(time.Hour)
			third = append(third, e.flatRow())
		}
	}
	f.insert("audit_current", second...)
	f.insert("audit_current", third...)
	for i := range 5 { // one instant, told apart by id and digest only
		e := sample("acme", 3)
		e.id, e.content = audit.NewID(e.at), fmt.Sprint("same instant ", i)
		f.write(e)
	}
	if raw := f.count("SELECT count() FROM {{db}}.audit_current"); raw <= n+55 {
		t.Fatalf("%d rows: nothing is unmerged", raw)
	}
	for _, tc := range filters {
		t.Run(tc.name, func(t *testing.T) {
			var want []string
			rows, err := f.conn.Query(t.Context(), strings.ReplaceAll("SELECT toString(event_id) || '/' || lower(hex(substring(content_digest, 1, 2))) FROM {{db}}.audit_current FINAL WHERE tenant_id = 'acme' AND "+tc.sql+
				" ORDER BY sort_ts DESC, event_id DESC, content_digest DESC", "{{db}}", f.db))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				var s string
				if err := rows.Scan(&s); err != nil {
					t.Fatal(err)
				}
				want = append(want, s)
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
			for _, limit := range []int{37, store.MaxLimit} {
				if got := ids(all(t, f.WithTenant("acme"), tc.filter, limit)); !slices.Equal(got, want) {
					t.Errorf("limit %d: got %d rows, want %d\n%v\n%v", limit, len(got), len(want), head(got), head(want))
				}
			}
		})
	}
}

func head(s []string) []string { return s[:min(len(s), 5)] }

// The key serves the order, whatever the filter: no sort of the window.
func TestListReadsInOrder(t *testing.T) {
	f := newFixture(t)
	f.write(series("acme", 20)...)
	rows, err := f.conn.Query(t.Context(), strings.ReplaceAll(`EXPLAIN actions = 1 SELECT sort_ts FROM {{db}}.audit_current WHERE tenant_id = 'acme' AND event_day >= '2020-01-01' AND provider = 'mistral'
		ORDER BY tenant_id DESC, event_day DESC, sort_ts DESC, event_id DESC, content_digest DESC LIMIT 200`, "{{db}}", f.db))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if !strings.Contains(plan.String(), "InReverseOrder") {
		t.Errorf("the plan sorts:\n%s", plan.String())
	}
}

// Rows that come in while somebody turns pages neither repeat nor hide others.
func TestCursorIsStableUnderInserts(t *testing.T) {
	f := newFixture(t)
	es := series("acme", 60)
	var even, odd []event
	for i, e := range es {
		if i%2 == 0 {
			even = append(even, e)
		} else {
			odd = append(odd, e)
		}
	}
	f.write(even...)
	tenant := f.WithTenant("acme")
	res, err := tenant.List(t.Context(), store.Filter{}, store.Page{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	seen := res.Items
	f.write(odd...) // before and behind the cursor
	newer := sample("acme", 0)
	newer.id, newer.at = audit.NewID(newer.at), newer.at.Add(time.Hour)
	f.write(newer)
	for res.Next != nil {
		if res, err = tenant.List(t.Context(), store.Filter{}, store.Page{Limit: 10, After: res.Next}); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, res.Items...)
	}
	got := ids(seen)
	slices.Sort(got)
	if compact := slices.Compact(slices.Clone(got)); len(compact) != len(got) {
		t.Error("a row was shown twice")
	}
	for _, e := range even {
		if d := e.digest(); !slices.Contains(got, fmt.Sprintf("%s/%x", e.id, d[:2])) {
			t.Errorf("%s was there all the time and never shown", e.id)
		}
	}
	last := seen[9]
	for _, it := range seen[10:] {
		if it.SortTime.After(last.SortTime) {
			t.Errorf("%s lies before the page that was already shown", it.EventID)
		}
		last = it
	}
}

func TestListShowsOneTenant(t *testing.T) {
	f := newFixture(t)
	f.write(series("acme", 5)...)
	f.write(series("beta", 3)...)
	for tenant, want := range map[string]int{"acme": 5, "beta": 3, "": 0, "nobody": 0, "acme' OR 1 = 1 --": 0} {
		if got := all(t, f.WithTenant(tenant), store.Filter{}, 0); len(got) != want {
			t.Errorf("tenant %q sees %d interactions, want %d", tenant, len(got), want)
		}
	}
	// An id or a user of another tenant is not there.
	if got := all(t, f.WithTenant("beta"), store.Filter{EventID: sample("acme", 1).id}, 0); len(got) != 0 {
		t.Errorf("beta sees acme's event: %v", got)
	}
}

// Who names an event or a trace is shown it however old it is; a start that was given still restricts.
func TestNamedEventsHaveNoWindow(t *testing.T) {
	f := newFixture(t)
	f.write(series("acme", 5)...)
	old, older := sample("acme", 2), sample("acme", 9)
	old.at, old.id = noon.AddDate(0, 0, -21), audit.NewID(noon.AddDate(0, 0, -21))
	older.at, older.id, older.user = noon.AddDate(0, 0, -120), audit.NewID(noon.AddDate(0, 0, -120)), old.user
	f.write(old, older)
	tenant := f.WithTenant("acme")
	for name, tc := range map[string]struct {
		filter store.Filter
		want   int
	}{
		"an event":                {store.Filter{EventID: old.id}, 1},
		"an older one":            {store.Filter{EventID: older.id}, 1},
		"a trace":                 {store.Filter{TraceID: trace(old.id)}, 1},
		"an older one's trace":    {store.Filter{TraceID: trace(older.id)}, 1},
		"of the user":             {store.Filter{EventID: older.id, UserID: old.user}, 1},
		"a trace of the user":     {store.Filter{TraceID: trace(older.id), UserID: old.user}, 1},
		"of another user":         {store.Filter{EventID: older.id, UserID: "nobody"}, 0},
		"both":                    {store.Filter{EventID: old.id, TraceID: trace(old.id)}, 1},
		"of different events":     {store.Filter{EventID: old.id, TraceID: trace(older.id)}, 0},
		"with an end":             {store.Filter{EventID: older.id, Window: store.Window{To: noon}}, 1},
		"with an end before it":   {store.Filter{EventID: old.id, Window: store.Window{To: older.at.AddDate(0, 0, 1)}}, 0},
		"with a start behind it":  {store.Filter{EventID: old.id, Window: store.Window{From: old.at.AddDate(0, 0, 1)}}, 0},
		"with a start":            {store.Filter{TraceID: trace(old.id), Window: store.Window{From: older.at}}, 1},
		"a user without an event": {store.Filter{UserID: old.user, Provider: "nobody"}, 0},
	} {
		for _, sort := range []store.Sort{{}, {By: store.BySeverity}} {
			res, err := tenant.List(t.Context(), tc.filter, store.Page{Sort: sort})
			if err != nil || len(res.Items) != tc.want {
				t.Errorf("%s, %v: %v, %v, want %d", name, sort, res, err, tc.want)
			}
		}
		if n, err := tenant.Count(t.Context(), tc.filter); err != nil || int(n) != tc.want {
			t.Errorf("%s: counted %d, %v, want %d", name, n, err, tc.want)
		}
	}
	if got := all(t, tenant, store.Filter{UserID: old.user}, 0); len(got) != 1 {
		t.Errorf("the user's last seven days: %d", len(got))
	}
}

func TestListRefuses(t *testing.T) {
	tenant := store.New(nil, "evenhand").WithTenant("acme") // nothing reaches the server
	for _, tc := range []struct {
		name   string
		filter store.Filter
		page   store.Page
	}{
		{"negative limit", store.Filter{}, store.Page{Limit: -1}},
		{"limit above the most", store.Filter{}, store.Page{Limit: store.MaxLimit + 1}},
		{"trace id", store.Filter{TraceID: "abc"}, store.Page{}},
		{"range backwards", store.Filter{Window: store.Window{From: noon, To: noon.Add(-time.Hour)}}, store.Page{}},
	} {
		if _, err := tenant.List(t.Context(), tc.filter, tc.page); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, err := store.ParseCursor("not a cursor"); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("cursor: %v", err)
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add(store.Cursor{SortTS: noon, EventID: audit.NewID(noon)}.String())
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := store.ParseCursor(s)
		if err != nil {
			return
		}
		if back, err := store.ParseCursor(c.String()); err != nil || back != c {
			t.Errorf("%v became %v, %v", c, back, err)
		}
	})
}
