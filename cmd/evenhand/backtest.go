package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/evenhand/evenhand/alarm"
	"github.com/evenhand/evenhand/internal/embedded/engine"
)

type alarmsBacktestCmd struct {
	storeFlags
	From   string `help:"First hour, as 2026-10-01 or 2026-10-01T08:00:00Z; 30 days before --to when not given." placeholder:"TIME"`
	To     string `help:"End; now when not given." placeholder:"TIME"`
	Policy string `help:"File of policies to replay instead of those that hold." type:"existingfile" placeholder:"FILE"`
	JSON   bool   `help:"Print one JSON object." name:"json"`
}

func (alarmsBacktestCmd) Help() string {
	return `Evaluates every hour of the past as the job would have, with the rates as they are known today, and prints the breaches that would
have been opened; below, how often naive rules would have fired on the same cells. Nothing is written. Critical findings and
mitigations are not replayed. The baseline needs rollups from before --from; below stands how many cells had one and how many were
still learning.

Examples:
  evenhand alarms backtest
  evenhand alarms backtest --from 2026-10-01 --to 2026-11-01 --policy mine.yaml --json`
}

// backtested is what the command prints as JSON.
type backtested struct {
	From     time.Time       `json:"from"`
	To       time.Time       `json:"to"`
	Hours    int             `json:"hours"`
	Episodes []alarm.Episode `json:"episodes"`
	Warnings int             `json:"warning_hours"`
	Muted    int             `json:"muted_hours"`
	Cells    int             `json:"cells"`    // compared with a baseline, the most in an hour
	Learning int             `json:"learning"` // whose past was too small for one, the most in an hour
	Late     uint64          `json:"late"`     // analysed interactions of these hours that came over 48 hours late and never alarm
	Naive    map[string]int  `json:"naive"`    // alarms of rules of thumb
}

// Run replays.
func (cmd *alarmsBacktestCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	policies, err := s.alarmPolicies()
	if cmd.Policy != "" {
		policies, err = readPolicies("--policy", cmd.Policy)
	}
	if err != nil {
		return &settingsError{err}
	}
	from, to, err := cmd.window(time.Now())
	if err != nil {
		return &settingsError{err}
	}
	h, err := alarm.NewTables(conn, s.ClickHouse.Database).History(ctx, from.Add(-policies.Reach()), to)
	if err != nil {
		return err
	}
	r := alarm.Replay(h, policies, from, to, true, func() bool { return ctx.Err() != nil })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out := backtested{From: from, To: to, Hours: r.Hours, Episodes: r.Episodes, Warnings: r.Warnings, Muted: r.Muted, Cells: r.Cells, Learning: r.Learning, Late: h.Late(from, to), Naive: map[string]int{}}
	for i, rule := range alarm.NaiveRules {
		out.Naive[rule.Name] = len(r.Naive[i])
	}
	if cmd.JSON {
		if out.Episodes == nil {
			out.Episodes = []alarm.Episode{}
		}
		return json.NewEncoder(std.out).Encode(out)
	}
	printBacktest(std.out, &out)
	return nil
}

func (cmd *alarmsBacktestCmd) window(now time.Time) (from, to time.Time, err error) {
	parse := func(flag, s string, other time.Time) time.Time {
		if s == "" {
			return other
		}
		for _, layout := range []string{time.DateOnly, time.RFC3339} {
			if t, e := time.Parse(layout, s); e == nil {
				return t.UTC().Truncate(time.Hour)
			}
		}
		if err == nil {
			err = fmt.Errorf("%s: %q is neither a day such as 2026-10-01 nor a time such as 2026-10-01T08:00:00Z", flag, s)
		}
		return other
	}
	to = parse("--to", cmd.To, now.UTC().Add(-alarm.Settle).Truncate(time.Hour))
	from = parse("--from", cmd.From, to.AddDate(0, 0, -30))
	if err == nil && !from.Before(to) {
		err = fmt.Errorf("--from: %s is not before --to (%s)", from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return from, to, err
}

func printBacktest(out io.Writer, r *backtested) {
	late := ""
	if r.Late > 0 {
		late = fmt.Sprintf("%s of these hours came over 48 hours after they happened, as imports do: they are part of baselines and never alarm\n", count(int(r.Late), "analysed interaction"))
	}
	if len(r.Episodes)+r.Cells+r.Learning == 0 {
		why := "the rollups hold no analysed interactions"
		if r.Late > 0 {
			why = "no analysed interaction came in time"
		}
		fmt.Fprintf(out, "There was nothing to look at in %d hours: %s from %s to %s, or the policies switch their cells off\n%s",
			r.Hours, why, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), late)
		return
	}
	const stamp = "2006-01-02 15:04"
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TENANT\tDOMAIN\tKIND\tTIER\tREASON\tWINDOW FROM\tOPENED\tDELAY\tRESOLVED\tFOUND\tOF\tRATE\tWILSON 95 %\tBASELINE")
	for i := range r.Episodes {
		e := &r.Episodes[i]
		kind, resolved := e.Kind, "open"
		if kind == "" {
			kind = "any bias"
		}
		if e.Resolved != nil {
			resolved = e.Resolved.Format(stamp)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d h\t%s\t%d\t%d\t%.2f %%\t%.2f – %.2f %%\t%.2f %%\n", e.Tenant, e.Domain, kind, e.Tier, e.Reason,
			e.From.Format(stamp), e.Opened.Format(stamp), e.DelayHours, resolved, e.K, e.N, 100*e.Rate, 100*e.Lower, 100*e.Upper, 100*e.Baseline)
	}
	_ = t.Flush()
	fmt.Fprintf(out, "\nBreaches: %d in %d hours; %d warnings (cells and hours), %d muted\n", len(r.Episodes), r.Hours, r.Warnings, r.Muted)
	fmt.Fprintf(out, "Cells: %d compared with a baseline, %d still learning (the most in an hour)\n%s\nThe same cells under naive rules:\n", r.Cells, r.Learning, late)
	for _, rule := range alarm.NaiveRules {
		fmt.Fprintf(out, "  %6d  %s\n", r.Naive[rule.Name], rule.Name)
	}
}
