package boards

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/dashboards/expand"
	"github.com/evenhand/evenhand/store"
)

// figures compares what statements give with the same counted in Go.
func figures(t *testing.T, conn driver.Conn, cells []cell, v expand.View) {
	sql, err := load()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(name string, v expand.View) frame {
		t.Helper()
		s, err := expand.Statement(sql[name], v)
		if err != nil {
			t.Fatal(err)
		}
		return run(t, conn, s)
	}
	chosen := func(c cell) bool {
		return among(c.tenant, v.Variables["tenant"]) && among(c.domain, v.Variables["domain"]) && among(c.app, v.Variables["app"]) && among(c.model, v.Variables["model"])
	}
	total := func(of func(cell) uint64, and func(cell) bool) uint64 {
		return sum(cells, v.From, v.To, func(c cell) uint64 {
			if chosen(c) && and(c) {
				return of(c)
			}
			return 0
		})
	}
	n, k := func(c cell) uint64 { return c.n }, func(c cell) uint64 { return c.k }
	is := func(dim, value string) func(cell) bool {
		return func(c cell) bool { return c.dim == dim && (value == "" || c.value == value) }
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9*math.Max(1, math.Abs(want))) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	analysed := total(n, is("all", ""))
	near("analysed", ask("analysed", v).number(0, "analysed"), float64(analysed))
	near("coverage", ask("coverage", v).number(0, "coverage"), float64(analysed)/float64(total(k, is("all", ""))-total(k, is("status", "skipped"))))
	for _, outcome := range []string{"detected", "flagged", "unsafe", "gated"} {
		got, want := ask(outcome, v), store.RateOf(total(k, is("outcome", outcome)), analysed)
		near(outcome, got.number(0, "rate"), want.Rate)
		near(outcome+" lower", got.number(0, "lower"), want.Lower)
		near(outcome+" upper", got.number(0, "upper"), want.Upper)
	}
	near("cost", ask("cost_total", v).number(0, "usd"), float64(total(func(c cell) uint64 { return uint64(c.cost) }, is("all", "")))/1e6)

	lag := ask("lag", v) // partition 1 stays seven records behind, partition 0 none
	for i := range lag.rows {
		near("lag", lag.number(i, "records"), lag.number(i, "worst_partition"))
		if n := lag.number(i, "records"); n != 7 && n != 0 {
			t.Errorf("%v records behind, want 7 or 0", n)
		}
	}
	matrix, rates := ask("bias_matrix", v), ask("bias_rates", v)
	for i := range matrix.rows {
		domain, characteristic := matrix.value(i, "domain").(string), matrix.value(i, "characteristic").(string)
		here := func(c cell) bool { return c.domain == domain }
		found := total(k, func(c cell) bool { return here(c) && is("bias", "charter."+characteristic)(c) })
		of := total(n, func(c cell) bool { return here(c) && c.dim == "all" })
		near(domain+" "+characteristic, matrix.number(i, "rate"), float64(found)/float64(of))
		row := rates.find(t, map[string]any{"domain": domain, "characteristic": characteristic})
		want := store.RateOf(found, of)
		near("lower", rates.number(row, "lower"), want.Lower)
		near("upper", rates.number(row, "upper"), want.Upper)
	}
	if len(matrix.rows) != len(rates.rows) {
		t.Errorf("matrix has %d cells, table %d", len(matrix.rows), len(rates.rows))
	}

	step := time.Hour
	if v.To.Sub(v.From) > 14*24*time.Hour {
		step = 24 * time.Hour
	}
	at := func(when time.Time) func(cell) bool {
		return func(c cell) bool { return c.at.Truncate(step).Equal(when) }
	}
	trend := ask("bias_trend", v)
	var sums float64
	for i := range trend.rows {
		when := trend.value(i, "time").(time.Time)
		of := total(n, func(c cell) bool { return at(when)(c) && c.dim == "all" })
		want := store.RateOf(total(k, func(c cell) bool { return at(when)(c) && is("outcome", "detected")(c) }), of)
		near("trend at "+when.String(), trend.number(i, "rate"), want.Rate)
		near("its upper end", trend.number(i, "upper"), want.Upper)
		sums += float64(of)
	}
	near("all analysed are in the trend", sums, float64(analysed))
	each := ask("bias_by_characteristic", v)
	for i := range each.rows {
		when, name := each.value(i, "time").(time.Time), each.value(i, "characteristic").(string)
		found := total(k, func(c cell) bool { return at(when)(c) && is("bias", "charter."+name)(c) })
		near(name+" at "+when.String(), each.number(i, "rate"), float64(found)/float64(total(n, func(c cell) bool { return at(when)(c) && c.dim == "all" })))
	}
	if only := v.Variables["characteristic"]; len(only) == 1 && only[0] != expand.All {
		one := ask("bias_characteristic", v)
		if len(one.rows) != len(trend.rows) {
			t.Errorf("%d points of one characteristic, %d of all", len(one.rows), len(trend.rows))
		}
		row := each.find(t, map[string]any{"time": one.value(0, "time"), "characteristic": only[0]})
		near("repeated panel", one.number(0, "rate"), each.number(row, "rate"))
	}
	kinds := ask("kind_rates", v)
	for i := range kinds.rows {
		kind := kinds.value(i, "kind").(string)
		near(kind, kinds.number(i, "k"), float64(total(k, is("kind", kind))))
		if strings.HasPrefix(kind, "charter.") {
			t.Errorf("%s is on the other board", kind)
		}
	}

	// The judge's rows, see testdata/rows.sql: of every interaction below 240, by its place among its tenant's.
	said := func(is func(n, i int) bool) (total uint64) {
		for n := range 240 {
			if among([]string{"acme", "beta"}[n%2], v.Variables["tenant"]) && is(n, n/2%10) {
				total++
			}
		}
		return total
	}
	done := func(_, i int) bool { return i != 3 && i != 5 && i != 7 }
	judged := said(done)
	near("judged", ask("judge_judged", v).number(0, "judged"), float64(judged))
	near("to be asked again", ask("judge_waiting", v).number(0, "waiting"), float64(said(func(_, i int) bool { return i == 3 || i == 5 })))
	near("given up", ask("judge_abandoned", v).number(0, "abandoned"), float64(said(func(_, i int) bool { return i == 7 })))
	near("answered", ask("judge_coverage", v).number(0, "coverage"), 0.7)
	near("injections", ask("judge_injections", v).number(0, "attempts"), float64(said(func(_, i int) bool { return i == 1 })))
	near("the judge's cost", ask("judge_cost", v).number(0, "usd"), 0.0005*float64(said(func(int, int) bool { return true })))
	near("its time", ask("judge_p95", v).number(0, "seconds"), 2)
	rules := func(n int) bool { return n%3 == 0 && n%20 != 7 }
	agreed := store.RateOf(said(func(n, i int) bool { return done(n, i) && rules(n) == (i == 0) }), judged)
	agreement := ask("judge_agreement", v)
	near("agreement", agreement.number(0, "rate"), agreed.Rate)
	near("its lower end", agreement.number(0, "lower"), agreed.Lower)
	totals := func(name, column, by string) map[string]float64 {
		out := map[string]float64{}
		f := ask(name, v)
		for i := range f.rows {
			out[f.value(i, by).(string)] += f.number(i, column)
		}
		return out
	}
	results := totals("judge_results", "interactions", "verdict")
	for what, is := range map[string]func(n, i int) bool{
		"non-compliant": func(_, i int) bool { return i == 0 }, "needs review": func(_, i int) bool { return i == 1 }, "failed": func(_, i int) bool { return i == 3 },
		"skipped": func(_, i int) bool { return i == 5 }, "abandoned": func(_, i int) bool { return i == 7 }, "compliant": func(n, i int) bool { return done(n, i) && i > 1 },
	} {
		near(what, results[what], float64(said(is)))
	}
	beside := totals("judge_beside", "interactions", "beside")
	for what, is := range map[string]func(n, i int) bool{
		"both": func(n, i int) bool { return i == 0 && rules(n) }, "judge alone": func(n, i int) bool { return i == 0 && !rules(n) },
		"rules alone": func(n, i int) bool { return done(n, i) && i != 0 && rules(n) }, "neither": func(n, i int) bool { return done(n, i) && i != 0 && !rules(n) },
	} {
		near(what, beside[what], float64(said(is)))
	}
	shown := ask("judge_kinds", v)
	for kind, place := range map[string]int{"judge.stereotype": 0, "dei.person_first": 0, "judge.injection_attempt": 1, "offensive.profanity": 2} {
		row := shown.find(t, map[string]any{"kind": kind})
		near(kind, shown.number(row, "k"), float64(said(func(_, i int) bool { return i == place })))
		near(kind+" of", shown.number(row, "n"), float64(judged))
	}
	domains, all := ask("judge_domains", v), 0.0
	for i := range domains.rows {
		all += domains.number(i, "k")
	}
	near("judged by domain", all, float64(judged))
	models := ask("judge_models", v)
	near("verdicts with calls", models.number(0, "verdicts"), float64(judged))
	near("a thousand of them", models.number(0, "usd_a_thousand"), 0.5)

	// Breaches were opened ten minutes after their windows' ends, tickets sent ten minutes later; one was mitigated after 290, see testdata/rows.sql.
	acme := among("acme", v.Variables["tenant"])
	for name, is := range map[string]struct {
		there   bool
		minutes float64
	}{
		"time_to_detect": {acme && among("hr", v.Variables["domain"]), 10}, "time_to_ticket": {acme && among("hr", v.Variables["domain"]), 10},
		"time_to_mitigate": {acme && among("finance", v.Variables["domain"]), 290},
	} {
		if f := ask(name, v); is.there {
			near(name+" in minutes", math.Round(f.number(0, "seconds")/60), is.minutes) // windows end with a whole second
		}
	}
}
