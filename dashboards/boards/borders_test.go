package boards

import (
	"testing"
	"time"

	"github.com/evenhand/evenhand/dashboards/expand"
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
