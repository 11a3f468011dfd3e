package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/rollup"
)

// rollupHour times the rollup of one hour of o.n events beside five times as many on other hours.
func rollupHour(ctx context.Context, o options) error {
	o.set += ",jobs.enabled=false"
	up, conn, err := startUp(ctx, o)
	if err != nil {
		return err
	}
	defer up.stop()
	defer func() { _ = conn.Close() }()
	hour := time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour)
	if err := fillHours(ctx, conn, 0, 5*o.n, hour.Add(-50*time.Hour), 50*time.Hour, time.Hour); err != nil {
		return err
	}
	engine := engineOf(up.cmd.Process.Pid)
	r, from := rollup.New(conn, "evenhand"), time.Time{}
	measured := func(what string) error {
		before, began := usageOf(engine), time.Now()
		out, err := r.Since(ctx, from, func(int, int) {})
		took, after := time.Since(began), usageOf(engine)
		fmt.Printf("%-40s %6.2f s, %6.2f s CPU, engine at most %d MiB: %d hours, %d days, %d rows, %d zeros\n",
			what, took.Seconds(), (after.cpu - before.cpu).Seconds(), after.peak, out.Hours, out.Days, out.Rows, out.Zeros)
		from = out.Through
		return err
	}
	if err := measured(fmt.Sprintf("%d events on 50 hours", 5*o.n)); err != nil {
		return err
	}
	if err := fillHours(ctx, conn, 5*o.n, o.n, hour, time.Hour, 0); err != nil {
		return err
	}
	for _, what := range []string{fmt.Sprintf("%d events in one hour", o.n), "the same again: nothing differs"} {
		if err := measured(what); err != nil {
			return err
		}
	}
	from = time.Now().Add(time.Hour)
	if err := measured("nothing was written"); err != nil {
		return err
	}
	for _, table := range []string{"rollup_hourly", "rollup_daily"} {
		rows, err := scalar[uint64](ctx, conn, "SELECT count() FROM "+table+" FINAL")
		if err != nil {
			return err
		}
		bytes, err := scalar[uint64](ctx, conn, "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'evenhand' AND table = ?", table)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d rows, %d bytes\n", table, rows, bytes)
	}
	n, err := scalar[uint64](ctx, conn, "SELECT sum(k) FROM rollup_hourly FINAL WHERE dim = 'all' AND hour = toDateTime(?, 'UTC')", hour.Unix())
	if err == nil && n != uint64(o.n) {
		err = fmt.Errorf("the hour has %d interactions in the rollup, %d were written", n, o.n)
	}
	return err
}

// fillHours writes n rows of audit_current inside the engine, evenly over a span of event time, as if
// they were written some time ago, and waits until merges rest.
func fillHours(ctx context.Context, conn driver.Conn, first, n int, from time.Time, span, age time.Duration) error {
	const atOnce = 500_000
	share := func(of int) time.Duration { return time.Duration(float64(span) * float64(of) / float64(n)) }
	insert := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_insert_threads": 1}))
	for done := 0; done < n; done += atOnce {
		more := min(atOnce, n-done)
		if err := fill(insert, conn, generateSQL, "rollup_rows", map[string]int64{"First": int64(first + done), "N": int64(more), "From": from.Add(share(done)).UnixMilli(),
			"Span": share(more).Milliseconds(), "Age": int64(age.Seconds())}); err != nil {
			return err
		}
	}
	return mergesRest(ctx, conn)
}
