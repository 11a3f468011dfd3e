package boards

import (
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// cell is a row of rollup_hourly, and summed up one of rollup_daily.
type cell struct {
	tenant, dim, app, domain, model, value string
	severity                               uint8
	at                                     time.Time
	n, k                                   uint64
	cost                                   int64
}

// demo gives the cells of two tenants: of every hour of the last 30 hours and every sixth hour of the
// 70 days before. The model of beta is 20 hours old.
func demo(now time.Time) (out []cell) {
	now = now.UTC().Truncate(time.Hour)
	hours := []time.Time{}
	for h := range 31 {
		hours = append(hours, now.Add(-time.Duration(h)*time.Hour))
	}
	for h := 36; h <= 70*24; h += 6 {
		hours = append(hours, now.Add(-time.Duration(h)*time.Hour))
	}
	for i, at := range hours {
		for j, c := range []cell{
			{tenant: "acme", app: "hr-bot", domain: "hr", model: "gpt-4o"},
			{tenant: "acme", app: "hr-bot", domain: "hr", model: "claude"},
			{tenant: "acme", app: "advisor", domain: "finance", model: "gpt-4o"},
			{tenant: "beta", app: "tutor", domain: "education", model: "mistral"},
		} {
			if c.tenant == "beta" && now.Sub(at) > 20*time.Hour {
				continue
			}
			c.at = at
			n := uint64(100 + 7*(i%11) + 13*j)
			add := func(dim, value string, severity uint8, n, k uint64, cost int64) {
				c.dim, c.value, c.severity, c.n, c.k, c.cost = dim, value, severity, n, k, cost
				out = append(out, c)
			}
			add("all", "", 0, n, n+uint64(i%4)+50, int64(n)*1500)
			add("status", "done", 0, 0, n, 0)
			add("status", "failed", 0, 0, uint64(i%4), 0)
			add("status", "skipped", 0, 0, 50, 0)
			add("outcome", "detected", 0, 0, uint64(9+i%5+j), 0)
			add("outcome", "flagged", 0, 0, uint64(4+j), 0)
			add("outcome", "unsafe", 0, 0, uint64(1+i%2), 0)
			add("outcome", "gated", 0, 0, 1, 0)
			for _, dim := range []string{"kind", "bias"} {
				add(dim, "charter.age", 2, 0, uint64(3+i%3), 0)
				add(dim, "charter.age", 3, 0, 1, 0)
				if j != 2 {
					add(dim, "charter.sex", 3, 0, uint64(5+j), 0)
				}
				add(dim, "terms.gender", 1, 0, 2, 0)
			}
			add("kind", "safety.violence", 4, 0, uint64(1+i%2), 0)
			add("kind", "gate.financial", 3, 0, 1, 0)
			add("mitigation", "REPHRASE_RESPONSE", 0, 0, 3, 0)
		}
	}
	return out
}

// byDay sums cells up as the rollup job does.
func byDay(cells []cell) (out []cell) {
	at := map[cell]int{}
	for _, c := range cells {
		key := c
		key.at, key.n, key.k, key.cost = c.at.Truncate(24*time.Hour), 0, 0, 0
		i, ok := at[key]
		if !ok {
			i, at[key], out = len(out), len(out), append(out, key)
		}
		out[i].n, out[i].k, out[i].cost = out[i].n+c.n, out[i].k+c.k, out[i].cost+c.cost
	}
	return out
}

// write inserts cells and, below them, rows of an earlier run with other counts, which FINAL must hide.
func write(t *testing.T, conn driver.Conn, table, column string, cells []cell) {
	t.Helper()
	for version := range uint64(2) {
		b, err := conn.PrepareBatch(t.Context(), "INSERT INTO "+table+" (tenant_id, dim, "+column+", app, domain, model, rule_set, value, severity, version, n, k, late, cost_micro_usd)")
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cells {
			wrong := (1 - version) * uint64(17+i%3)
			if err := b.Append(c.tenant, c.dim, c.at, c.app, c.domain, c.model, "rs1", c.value, c.severity, version+1, c.n+wrong, c.k+wrong, uint64(0), c.cost); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Send(); err != nil {
			t.Fatal(err)
		}
	}
}

// sum adds up what a condition picks among the cells of a range, its end outside: of hours up to two weeks, else of days.
func sum(cells []cell, from, to time.Time, what func(cell) uint64) (total uint64) {
	step := time.Hour
	if to.Sub(from) > 14*24*time.Hour {
		step = 24 * time.Hour
	}
	for _, c := range cells {
		if at := c.at.Truncate(step); !at.Before(from.UTC().Truncate(step)) && at.Before(to) {
			total += what(c)
		}
	}
	return total
}

// among tells whether a value is chosen.
func among(value string, chosen []string) bool {
	return slices.Equal(chosen, []string{"$__all"}) || slices.Contains(chosen, value)
}
