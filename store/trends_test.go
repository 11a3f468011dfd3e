package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// cell is a row of a rollup by hour.
type cell struct {
	tenant, dim      string
	hour             time.Time
	app, domain, mod string
	value            string
	n, k             uint64
}

func (f *fixture) cells(cs ...cell) {
	f.Helper()
	var hours []row
	for i, c := range cs {
		hours = append(hours, row{"tenant_id": c.tenant, "dim": c.dim, "hour": c.hour, "app": c.app, "domain": c.domain, "model": c.mod, "rule_set": "r1",
			"value": c.value, "severity": uint8(i % 2), "version": uint64(2), "n": c.n, "k": c.k})
	}
	f.insert("rollup_hourly", hours...)
	var old []row // what was there before counts no more
	for _, r := range hours {
		r = row(cloneRow(r))
		r["version"], r["n"], r["k"] = uint64(1), uint64(1000), uint64(1000)
		old = append(old, r)
	}
	f.insert("rollup_hourly", old...)
	f.exec(`INSERT INTO {{db}}.rollup_daily (tenant_id, dim, day, app, domain, model, rule_set, value, severity, version, n, k)
		SELECT tenant_id, dim, toDate(hour), app, domain, model, rule_set, value, severity, max(version), sum(n), sum(k) FROM {{db}}.rollup_hourly FINAL
		GROUP BY tenant_id, dim, toDate(hour), app, domain, model, rule_set, value, severity`)
}

func cloneRow(r row) row {
	out := row{}
	maps.Copy(out, r)
	return out
}

func TestTrend(t *testing.T) {
	f := newFixture(t)
	begin := time.Date(2026, 3, 30, 0, 0, 0, 0, time.UTC) // a Monday, two days before a month ends
	rnd := rand.New(rand.NewPCG(1, 2))
	var cs []cell
	for h := range 24 * 16 {
		at := begin.Add(time.Duration(h) * time.Hour)
		if at.Day() == 3 { // a hole
			continue
		}
		for i, domain := range []string{"hr", "finance"} {
			c := cell{tenant: "acme", hour: at, app: fmt.Sprint("app-", h%2), domain: domain, mod: "m"}
			n := uint64(10 + rnd.IntN(20))
			add := func(dim, value string, n, k uint64) {
				c.dim, c.value, c.n, c.k = dim, value, n, k
				cs = append(cs, c)
			}
			add("all", "", n, n+1)
			add("outcome", "detected", 0, uint64(1+i*3+rnd.IntN(3)))
			add("outcome", "flagged", 0, 1)
			add("kind", "charter.sex", 0, uint64(2+rnd.IntN(2)))
			add("kind", "safety.violence", 0, 1)
			add("bias", "charter.sex", 0, 7)
		}
	}
	f.cells(append(cs, cell{tenant: "beta", dim: "all", hour: begin, n: 5, k: 5, domain: "hr"})...)
	tenant := f.WithTenant("acme")
	w := store.Window{From: begin.Add(90 * time.Minute), To: begin.AddDate(0, 0, 14)}

	// expect adds up the cells in Go.
	expect := func(q store.TrendQuery, start func(time.Time) time.Time, group func(cell) string) string {
		n, k := map[string]map[time.Time]uint64{}, map[string]map[time.Time]uint64{}
		put := func(m map[string]map[time.Time]uint64, g string, at time.Time, v uint64) {
			if m[g] == nil {
				m[g] = map[time.Time]uint64{}
			}
			m[g][at] += v
		}
		from, end := start(w.From), w.To
		for _, c := range cs {
			if c.hour.Before(from) || !c.hour.Before(end) || q.Domain != "" && c.domain != string(q.Domain) || q.App != "" && c.app != q.App {
				continue
			}
			at := start(c.hour)
			switch {
			case c.dim == "all" && q.Group == store.ByFindings:
				for _, g := range []string{"charter.sex", "safety.violence"} {
					put(n, g, at, c.n)
				}
			case c.dim == "all":
				put(n, group(c), at, c.n)
			case c.dim == "outcome" && c.value == string(q.Measure), c.dim == "kind" && q.Measure == store.OfKind && (c.value == q.Kind || q.Kind == ""):
				put(k, group(c), at, c.k)
			}
		}
		var lines []string
		for g := range n {
			for at, v := range n[g] {
				lines = append(lines, fmt.Sprint(g, " ", at.Format(time.RFC3339), " ", k[g][at], "/", v))
			}
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	day := func(t time.Time) time.Time { return t.Truncate(24 * time.Hour) }
	one := func(cell) string { return "" }
	for _, tc := range []struct {
		name  string
		q     store.TrendQuery
		start func(time.Time) time.Time
		group func(cell) string
		count int // of points in a series
	}{
		{"a day", store.TrendQuery{}, day, one, 14},
		{"an hour", store.TrendQuery{Bucket: store.Hour, Measure: store.Flagged}, func(t time.Time) time.Time { return t.Truncate(time.Hour) }, one, 14*24 - 1},
		{"a week", store.TrendQuery{Bucket: store.Week}, func(t time.Time) time.Time { return t.Truncate(7 * 24 * time.Hour) }, one, 2}, // Go's zero time was a Monday
		{"of a domain and app", store.TrendQuery{Domain: "hr", App: "app-1"}, day, one, 14},
		{"by domain", store.TrendQuery{Group: store.ByDomain}, day, func(c cell) string { return c.domain }, 14},
		{"by app", store.TrendQuery{Group: store.ByApp}, day, func(c cell) string { return c.app }, 14},
		{"of a kind", store.TrendQuery{Measure: store.OfKind, Kind: "charter.sex"}, day, one, 14},
		{"by kind", store.TrendQuery{Measure: store.OfKind, Group: store.ByFindings}, day, func(c cell) string { return c.value }, 14},
		{"a kind by domain", store.TrendQuery{Measure: store.OfKind, Kind: "safety.violence", Group: store.ByDomain}, day, func(c cell) string { return c.domain }, 14},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.q.Window = w
			series, at, err := tenant.Trend(t.Context(), tc.q)
			if err != nil {
				t.Fatal(err)
			}
			if tc.q.Measure == "" {
				tc.q.Measure = store.Detected
			}
			var got []string
			sum := ^uint64(0)
			for _, s := range series {
				var found uint64
				if len(s.Points) != tc.count || !s.Points[0].At.Equal(at.From) {
					t.Errorf("%q: %d points from %v, want %d from %v", s.Group, len(s.Points), s.Points[0].At, tc.count, at.From)
				}
				for i, p := range s.Points {
					if i > 0 && !p.At.After(s.Points[i-1].At) {
						t.Errorf("%v after %v", p.At, s.Points[i-1].At)
					}
					if found += p.K; p.N > 0 {
						got = append(got, fmt.Sprint(s.Group, " ", p.At.Format(time.RFC3339), " ", p.K, "/", p.N))
						if p.Rate != store.RateOf(p.K, p.N) {
							t.Errorf("rate %+v", p.Rate)
						}
					}
				}
				if found > sum {
					t.Errorf("%q comes late", s.Group)
				}
				sum = found
			}
			slices.Sort(got)
			if want := expect(tc.q, tc.start, tc.group); strings.Join(got, "\n") != want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
			}
		})
	}
	t.Run("a month", func(t *testing.T) {
		series, at, err := tenant.Trend(t.Context(), store.TrendQuery{Window: w, Bucket: store.Month})
		if err != nil || len(series) != 1 || len(series[0].Points) != 2 || at.From.Day() != 1 || at.To.Format(time.DateOnly) != "2026-05-01" {
			t.Errorf("%+v, %v, %v", series, at, err)
		}
	})
	t.Run("of nothing", func(t *testing.T) {
		series, _, err := f.WithTenant("nobody").Trend(t.Context(), store.TrendQuery{})
		if err != nil || len(series) != 1 || len(series[0].Points) < 30 || series[0].Points[3].N != 0 || series[0].Points[3].Upper != 1 {
			t.Errorf("%+v, %v", series, err)
		}
		if series, _, err = f.WithTenant("nobody").Trend(t.Context(), store.TrendQuery{Group: store.ByDomain}); err != nil || len(series) != 0 {
			t.Errorf("%+v, %v", series, err)
		}
	})
	for name, q := range map[string]store.TrendQuery{
		"bucket":        {Bucket: "year"},
		"measure":       {Measure: "n; DROP TABLE x"},
		"group":         {Group: "tenant_id"},
		"kind missing":  {Measure: store.OfKind},
		"kind beside":   {Kind: "charter.sex"},
		"kinds, one":    {Measure: store.OfKind, Kind: "charter.sex", Group: store.ByFindings},
		"kinds":         {Group: store.ByFindings},
		"range":         {Window: store.Window{From: w.To, To: w.From}},
		"many an hour":  {Bucket: store.Hour, Window: store.Window{From: w.From.AddDate(-3, 0, 0), To: w.To}},
		"nothing to do": {Window: store.Window{From: time.Now().AddDate(1, 0, 0)}},
	} {
		if _, _, err := tenant.Trend(t.Context(), q); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
