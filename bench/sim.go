package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/evenhand/evenhand/alarm"
	"github.com/evenhand/evenhand/alarm/sim"
)

// compared are the schemes that the simulation sets beside the policies that are shipped.
var compared = []struct{ name, yaml string }{
	{"binomial + BH q=1 %, 24 h, gap 24 h, weight 200", "ticket: {long_window: 0h, in_a_row: 1}, baseline: {long_gap: 0h, max_weight: 0}"},
	{"the same, 2 in a row", "ticket: {long_window: 0h}, baseline: {long_gap: 0h, max_weight: 0}"},
	{"the same, or CUSUM p1 = 3 p0, h = ln 1e6", "ticket: {long_window: 0h}, baseline: {long_gap: 0h, max_weight: 0}, cusum: {h: 13.815510557964274}"},
	{"shipped, or CUSUM p1 = 3 p0, h = ln 1e6", "cusum: {h: 13.815510557964274}"},
}

// simulated is the last line: the medians of the policies that are shipped.
type simulated struct {
	FalsePerDay float64   `json:"false_per_day"`
	X3Hours     int       `json:"x3_hours"`
	X5Hours     int       `json:"x5_hours"`
	X3Found     string    `json:"x3_found"`
	X5Found     string    `json:"x5_found"`
	Seeds       int       `json:"seeds"`
	Cells       int       `json:"cells"`
	Days        int       `json:"days_without_change"`
	Rows        []sim.Row `json:"rows"`
}

// simulate prints how often alarms are false and how long they take, beside rules of thumb.
func simulate(ctx context.Context, o options) error {
	c := sim.DefaultConfig()
	c.Seeds, c.Spread = o.seeds, o.spread
	var list []sim.Named
	for i, v := range append([]struct{ name, yaml string }{{"shipped policies", "off: false"}}, compared...) {
		p, err := alarm.ParsePolicies([]byte("version: 1\ndefaults: {" + v.yaml + "}\n"))
		if err != nil {
			return err
		}
		if i == 0 || o.compare {
			list = append(list, sim.Named{Name: v.name, Policies: p})
		}
	}
	cells := c.Cells()
	fmt.Printf("%d cells at %.1f %%, about %.0f interactions an hour each, evaluated hourly; %d days without change, then %d cells rise; %d seeds\n\n", cells, 100*c.Rate, c.PerHour, c.Quiet, c.Rising, c.Seeds)
	rows, err := sim.Run(ctx, c, list, func(done string) { fmt.Fprintln(os.Stderr, done) })
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RULE\tFALSE A DAY\tX3\tFOUND\tFALSE\tX5\tFOUND\tFALSE")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.3g", r.Rule, r.FalsePerDay)
		for _, x := range r.Rises {
			median := "not found"
			if x.Hours >= 0 {
				median = fmt.Sprintf("%d h", x.Hours)
			}
			fmt.Fprintf(t, "\t%s\t%d/%d\t%d", median, x.Found, x.Of, x.Others)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Printf("\nX3, X5: median hours from the rise of %d cells to the end of the evaluation that opened a breach; FALSE beside it: alarms on other cells in those %d days.\n", c.Rising, c.After)
	r := rows[0]
	found := func(x sim.Rise) string { return fmt.Sprintf("%d/%d", x.Found, x.Of) }
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(simulated{r.FalsePerDay, r.Rises[0].Hours, r.Rises[1].Hours, found(r.Rises[0]), found(r.Rises[1]), c.Seeds, cells, c.Quiet, rows})
}
