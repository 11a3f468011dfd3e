package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/rollup"
	"github.com/evenhand/evenhand/store"
)

type rollupsCmd struct {
	Status  rollupsStatusCmd  `cmd:"" help:"Show how far the rollups reach."`
	Rebuild rollupsRebuildCmd `cmd:"" help:"Count the hours of some days again."`
}

func (rollupsCmd) Help() string {
	return `Counts by event hour and day, which trends and alarms read. The job rollup keeps them up to date; 'evenhand check' compares them
with a new count.

Examples:
  evenhand rollups status
  evenhand rollups rebuild --from 2026-11-01 --to 2026-11-08`
}

type rollupsStatusCmd struct {
	storeFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run shows the state of the rollups.
func (cmd *rollupsStatusCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	st, err := store.New(conn, s.ClickHouse.Database).RollupStatus(ctx)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(std.out).Encode(st)
	}
	printRollups(std.out, st)
	return nil
}

func printRollups(out io.Writer, st store.RollupStatus) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if st.Watermark.IsZero() {
		fmt.Fprintln(t, "counted until\tnever: the job rollup has not run yet; evenhand jobs run rollup")
	} else {
		fmt.Fprintf(t, "counted until\t%s (%s ago)\n", st.Watermark.Format(time.RFC3339), time.Duration(st.Behind*float64(time.Second)).Round(time.Second))
	}
	if !st.NewestHour.IsZero() {
		fmt.Fprintf(t, "newest hour\t%s\n", st.NewestHour.Format(time.RFC3339))
	}
	fmt.Fprintf(t, "dirty hours\t%d\nrows\t%d of hours, %d of days\n", st.DirtyHours, st.Hourly, st.Daily)
	for _, m := range st.Frozen {
		fmt.Fprintf(t, "frozen\t%s of %s, %d rows, since %s\n", m.Month, m.Tenant, m.Rows, m.FrozenAt.Format(time.RFC3339))
	}
	_ = t.Flush()
}

type rollupsRebuildCmd struct {
	storeFlags
	From string `help:"First event day." required:"" placeholder:"YYYY-MM-DD"`
	To   string `help:"Day after the last one; today is counted too when not given." placeholder:"YYYY-MM-DD"`
	JSON bool   `help:"Print the outcome as JSON." name:"json"`
}

func (rollupsRebuildCmd) Help() string {
	return `For days whose rows were deleted or restored behind the program's back; what is written by the program is found by the job.
Only cells that differ are written. Frozen months stay as they are. It may run beside the job.

Examples:
  evenhand rollups rebuild --from 2026-11-01 --to 2026-11-08`
}

// Run counts days again.
func (cmd *rollupsRebuildCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	from, err := time.Parse(time.DateOnly, cmd.From)
	if err != nil {
		return &settingsError{fmt.Errorf("--from: %q is not a day such as 2026-11-01", cmd.From)}
	}
	to := time.Now().UTC().Add(48 * time.Hour) // events may be dated a day ahead
	if cmd.To != "" {
		if to, err = time.Parse(time.DateOnly, cmd.To); err != nil || !to.After(from) {
			return &settingsError{fmt.Errorf("--to: %q is not a day after --from, such as 2026-11-08", cmd.To)}
		}
	}
	s, conn, err := cmd.open(c, engine.Writer)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	shown := time.Now()
	out, err := rollup.New(conn, s.ClickHouse.Database).Rebuild(ctx, from, to, func(done, total int) {
		if time.Since(shown) > 2*time.Second {
			shown = time.Now()
			fmt.Fprintf(std.err, "%d of %d days\n", done, total)
		}
	})
	if err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(std.out).Encode(rollupFigures(out))
	}
	fmt.Fprintf(std.out, "%d hours of %s counted again: %d cells differed, %d of them became empty\n", out.Hours, count(out.Days, "day"), out.Rows, out.Zeros)
	return nil
}

func rollupFigures(o rollup.Outcome) map[string]int64 {
	return map[string]int64{"hours": int64(o.Hours), "days": int64(o.Days), "rows": int64(o.Rows), "zeros": int64(o.Zeros), "behind_seconds": int64(o.Behind.Seconds())}
}
