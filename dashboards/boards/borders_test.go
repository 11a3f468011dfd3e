package boards

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/dashboards/expand"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

// The end of a range is outside, as in evenhand rates and in GraphQL; what a range begins or ends inside of, an hour or beyond two weeks a
// day, is counted whole.
func TestRangesEndBeforeTheirEnd(t *testing.T) {
	conn, cells := filled(t)
	sql, err := load()
	if err != nil {
		t.Fatal(err)
	}
	hour := time.Now().UTC().Truncate(time.Hour)
	day := hour.Truncate(24 * time.Hour)
	for name, c := range map[string]struct{ from, to, first, end time.Time }{ // first and end: of what is counted, the end outside
		"24 hours between full hours":          {hour.Add(-25 * time.Hour), hour.Add(-time.Hour), hour.Add(-25 * time.Hour), hour.Add(-time.Hour)},
		"one hour, as a breach's link":         {hour.Add(-time.Hour), hour, hour.Add(-time.Hour), hour},
		"a second into the next hour":          {hour.Add(-25 * time.Hour), hour.Add(-time.Hour + time.Second), hour.Add(-25 * time.Hour), hour},
		"a second short of the hour":           {hour.Add(-25 * time.Hour), hour.Add(-time.Hour - time.Second), hour.Add(-25 * time.Hour), hour.Add(-time.Hour)},
		"inside hours at both ends":            {hour.Add(-150 * time.Minute), hour.Add(-30 * time.Minute), hour.Add(-3 * time.Hour), hour},
		"a day":                                {day.Add(-24 * time.Hour), day, day.Add(-24 * time.Hour), day},
		"exactly two weeks":                    {day.AddDate(0, 0, -15), day.AddDate(0, 0, -1), day.AddDate(0, 0, -15), day.AddDate(0, 0, -1)},
		"a month from midnight to midnight":    {day.AddDate(0, 0, -31), day, day.AddDate(0, 0, -31), day},
		"a month that ends inside a day":       {day.AddDate(0, 0, -32), day.Add(-11 * time.Hour), day.AddDate(0, 0, -32), day},
		"a month to the first second of a day": {day.AddDate(0, 0, -32), day.Add(time.Second - 24*time.Hour), day.AddDate(0, 0, -32), day},
		"a month to the last second of a day":  {day.AddDate(0, 0, -32), day.Add(-time.Second), day.AddDate(0, 0, -32), day},
		"a month that begins inside a day":     {day.AddDate(0, 0, -32).Add(7 * time.Hour), day, day.AddDate(0, 0, -32), day},
	} {
		t.Run(name, func(t *testing.T) {
			view := expand.View{From: c.from, To: c.to, Variables: choices()["all"]}
			var want, cost float64
			for _, row := range cells {
				if row.dim == "all" && !row.at.Before(c.first) && row.at.Before(c.end) {
					want, cost = want+float64(row.n), cost+float64(row.cost)/1e6
				}
			}
			for statement, of := range map[string]struct {
				column string
				want   float64
			}{"analysed": {"analysed", want}, "cost_total": {"usd", cost}} {
				s, err := expand.Statement(sql[statement], view)
				if err != nil {
					t.Fatal(err)
				}
				got := run(t, conn, s)
				if n := got.number(0, of.column); n < of.want-1e-6 || n > of.want+1e-6 {
					t.Errorf("%s: %v, want %v", statement, n, of.want)
				}
			}
		})
	}
}

// The costs by application sum up to the stat beside them, however many there are.
func TestCostsOfAllApplications(t *testing.T) {
	_, cells, e := filledEngine(t)
	at := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)
	var more []cell
	for i := range 60 {
		more = append(more, cell{tenant: "acme", dim: "all", app: fmt.Sprintf("app-%02d", i), domain: "hr", model: "m", at: at, n: 10, k: 10, cost: int64(1000 * (i + 1))})
	}
	write(t, writer(t, e), "rollup_hourly", "hour", more)
	conn := enginetest.Conn(t, e.Config(engine.Grafana))
	sql, err := load()
	if err != nil {
		t.Fatal(err)
	}
	view := expand.View{From: at, To: at.Add(time.Hour), Variables: choices()["all"]}
	ask := func(name string) frame {
		s, err := expand.Statement(sql[name], view)
		if err != nil {
			t.Fatal(err)
		}
		return run(t, conn, s)
	}
	f := ask("cost_by_app")
	var usd, interactions float64
	for i := range f.rows {
		usd, interactions = usd+f.number(i, "usd"), interactions+f.number(i, "interactions")
	}
	want := sum(append(cells, more...), view.From, view.To, func(c cell) uint64 {
		if c.dim == "all" {
			return c.k
		}
		return 0
	})
	all := ask("cost_total").number(0, "usd")
	last := len(f.rows) - 1
	if len(f.rows) != 51 || f.value(last, "app") != "others" || f.value(last, "tenant") != "" || f.number(last, "interactions") != 140 || math.Abs(usd-all) > 1e-9 || interactions != float64(want) {
		t.Errorf("%d rows, the last %v with %v interactions; %v USD of %v, %v interactions of %d", len(f.rows), f.value(last, "app"), f.number(last, "interactions"), usd, all, interactions, want)
	}
}

// What is in other languages is a share of what was analysed, and ends where the range does.
func TestOtherLanguages(t *testing.T) {
	conn, _ := filled(t)
	sql, err := load()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Add(time.Second)
	for name, c := range map[string]struct {
		from time.Time
		want float64
	}{"all": {now.Add(-24 * time.Hour), 6.0 / 285}, "60 days": {now.AddDate(0, 0, -60), 6.0 / 285}} { // of 300 each twentieth failed
		s, err := expand.Statement(sql["other_languages"], expand.View{From: c.from, To: now, Variables: choices()["all"]})
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, conn, s).number(0, "rate"); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What a reviewer dismissed counts on the board no more than in the rates: among the rules and the flagged ones.
func TestDismissedIsNotShown(t *testing.T) {
	conn, _, e := filledEngine(t)
	sql, err := load()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Add(time.Second)
	ask := func(name string) frame {
		s, err := expand.Statement(sql[name], expand.View{From: now.Add(-24 * time.Hour), To: now, Variables: choices()["all"]})
		if err != nil {
			t.Fatal(err)
		}
		return run(t, conn, s)
	}
	rules := func() (n float64) {
		f := ask("bias_rules")
		return f.number(f.find(t, map[string]any{"rule": "charter.sex.rule"}), "interactions")
	}
	before := rules()
	const review = `INSERT INTO audit_current SELECT * REPLACE (2 AS version, 1 AS human_reviewed, transform(offset, [0, 3, 6], ['dismissed', 'dismissed', 'confirmed'], '') AS review)
		FROM audit_current FINAL WHERE offset IN (0, 3, 6, 9)`
	if err := writer(t, e).Exec(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	if got := rules(); got != before-2 {
		t.Errorf("%v interactions after 2 of %v were dismissed", got, before)
	}
	f := ask("latest_flagged")
	var said []string
	for i := range min(3, len(f.rows)) {
		said = append(said, f.value(i, "reviewed").(string)+" "+f.value(i, "decision").(string))
	}
	if got := strings.Join(said, ", "); got != "yes confirmed, yes unsure, no " {
		t.Errorf("the newest flagged are %q", got)
	}
}

// A breach leads to the board that shows its kind.
func TestBreachesLeadToTheirBoard(t *testing.T) {
	conn, _, e := filledEngine(t)
	sql, err := load()
	if err != nil {
		t.Fatal(err)
	}
	const safety = `INSERT INTO breaches SELECT * REPLACE (2 AS version, 'safety.self_harm' AS kind) FROM breaches FINAL WHERE tier = 'policy'`
	const anyBias = `INSERT INTO breaches SELECT * REPLACE (generateUUIDv4() AS breach_id, '' AS kind) FROM breaches FINAL WHERE tier = 'ticket' LIMIT 1`
	for _, add := range []string{safety, anyBias} {
		if err := writer(t, e).Exec(t.Context(), add); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().Add(time.Second)
	s, err := expand.Statement(sql["breach_history"], expand.View{From: now.Add(-24 * time.Hour), To: now, Variables: choices()["all"]})
	if err != nil {
		t.Fatal(err)
	}
	f := run(t, conn, s)
	for kind, board := range map[string]string{"any bias": "evenhand-bias-rates", "not analysed": "evenhand-bias-rates", "charter.age": "evenhand-bias-rates", "safety.self_harm": "evenhand-safety"} {
		f.find(t, map[string]any{"kind": kind, "board": board})
	}
}

// A breach of findings has no rate, and one of coverage is of no kind: neither its row nor its mark makes them up.
func TestBreachesWithoutRate(t *testing.T) {
	conn, _ := filled(t)
	sql, err := load()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Add(time.Second)
	for _, name := range []string{"breach_history", "breaches_now", "note_breaches"} {
		s, err := expand.Statement(sql[name], expand.View{From: now.Add(-24 * time.Hour), To: now, Variables: choices()["all"]})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		f := run(t, conn, s)
		for i := range f.rows {
			if name == "note_breaches" {
				text := f.value(i, "text").(string)
				tier := strings.Split(text, ", ")[1]
				seen[tier] = true
				if strings.Contains(text, " of 0 ") || strings.HasSuffix(text, " found") != (tier == "policy") || (f.value(i, "title") == "Breach: not analysed") != (tier == "blind") {
					t.Errorf("%s: %v: %s", name, f.value(i, "title"), text)
				}
				continue
			}
			tier := f.value(i, "tier").(string)
			seen[tier] = true
			for _, column := range []string{"n", "rate", "baseline"} {
				if got := fmt.Sprint(f.value(i, column)); (got == "<nil>") != (tier == "policy") {
					t.Errorf("%s: %s of tier %s is %v", name, column, tier, got)
				}
			}
			if (f.value(i, "kind") == "not analysed") != (tier == "blind") {
				t.Errorf("%s: kind of tier %s is %v", name, tier, f.value(i, "kind"))
			}
		}
		if !seen["blind"] || !seen["policy"] && name != "breaches_now" { // that of the fixture is closed
			t.Errorf("%s: tiers %v", name, seen)
		}
	}
}
