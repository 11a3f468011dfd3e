package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/evenhand/evenhand/dashboards/boards"
	"github.com/evenhand/evenhand/dashboards/expand"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	schema "github.com/evenhand/evenhand/schemas/clickhouse"
	"github.com/evenhand/evenhand/store/migrate"
)

//go:embed trends.sql
var trendsSQL string

const (
	trendHours  = 2 * 365 * 24
	warmSamples = 7
	coldSamples = 3
	inBrowser   = 6 // queries that a browser has on their way to one Grafana at a time
)

// trendSpan is what trends.sql is filled with.
type trendSpan struct {
	From, To, Hours, PerHour int
	End, Version             int64
}

// trends fills the rollups with two years of o.rows hourly rows and times what the dashboards ask of them.
func trends(ctx context.Context, o options) (err error) {
	e, err := engine.Start(ctx, engine.Options{Dir: filepath.Join(o.dir, "store"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	conn, err := chconn.Open(e.Config(engine.Writer))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := tables(ctx, e); err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	if n, err := scalar[uint64](ctx, conn, "SELECT count() FROM rollup_hourly"); err != nil {
		return err
	} else if n == 0 { // else a folder that was filled before
		if err := fillTrends(ctx, o, conn, now); err != nil {
			return err
		}
	}
	if err := sizes(ctx, conn); err != nil {
		return err
	}
	grafana, err := chconn.Open(e.Config(engine.Grafana))
	if err != nil {
		return err
	}
	defer func() { _ = grafana.Close() }()
	return timeBoards(ctx, filepath.Join(o.dir, "store", "data"), conn, grafana)
}

func tables(ctx context.Context, e *engine.Engine) error {
	cfg := e.Config(engine.Writer)
	opts, err := chconn.Options(cfg)
	if err != nil {
		return err
	}
	db := clickhouse.OpenDB(opts)
	defer func() { _ = db.Close() }()
	return migrate.Run(ctx, db, schema.Options{Database: cfg.Database, Embedded: true})
}

// fillTrends writes hours and days, and the last two days again as the rollup job does: six times over.
func fillTrends(ctx context.Context, o options, conn driver.Conn, end time.Time) error {
	began := time.Now()
	s := trendSpan{Hours: trendHours, PerHour: max(27, o.rows/trendHours/27*27), End: end.Unix(), Version: 1}
	const slice = 30 * 24
	for from := 0; from < trendHours; from += slice {
		s.From, s.To = from, min(from+slice, trendHours)
		if err := fill(ctx, conn, trendsSQL, "hourly", s); err != nil {
			return err
		}
	}
	hourly := time.Since(began)
	for s.Version = 2; s.Version < 8; s.Version++ {
		s.From, s.To = trendHours-48, trendHours
		if err := fill(ctx, conn, trendsSQL, "hourly", s); err != nil {
			return err
		}
	}
	if err := mergesRest(ctx, conn); err != nil {
		return err
	}
	startOfDay := int((end.Unix() % 86400) / 3600) // slices of the days begin at midnight
	for from := startOfDay - 24; from < trendHours; from += slice {
		s.From, s.To = max(0, from), min(from+slice, trendHours)
		if err := fill(ctx, conn, trendsSQL, "daily", s); err != nil {
			return err
		}
	}
	if err := mergesRest(ctx, conn); err != nil {
		return err
	}
	fmt.Printf("filled %d rows an hour for %d hours in %.0f s, days and merges after %.0f s\n", s.PerHour, trendHours, hourly.Seconds(), time.Since(began).Seconds())
	return nil
}

func sizes(ctx context.Context, conn driver.Conn) error {
	for _, table := range []string{"rollup_hourly", "rollup_daily"} {
		var rows, bytes, parts uint64
		if err := conn.QueryRow(ctx, "SELECT sum(rows), sum(bytes_on_disk), count() FROM system.parts WHERE active AND database = 'evenhand' AND table = '"+table+"'").Scan(&rows, &bytes, &parts); err != nil {
			return err
		}
		fmt.Printf("%-14s %12d rows %8.1f MB %6.2f bytes a row %4d parts\n", table, rows, float64(bytes)/1e6, float64(bytes)/float64(rows), parts)
	}
	return nil
}

// ask is one statement of a board over rollups.
type ask struct{ board, title, sql string }

func asks() (out []ask, err error) {
	all, err := boards.All()
	seen := map[string]bool{}
	for _, b := range all {
		for _, s := range b.Statements() {
			if strings.Contains(s.SQL, "rollup_") && !seen[s.SQL] { // boards share some
				seen[s.SQL] = true
				out = append(out, ask{b.UID, s.Kind + " " + s.Title, s.SQL})
			}
		}
	}
	return out, err
}

// rangeOf is a dashboard's range of time.
type rangeOf struct {
	name   string
	length time.Duration
}

func timeBoards(ctx context.Context, data string, conn, grafana driver.Conn) error {
	qs, err := asks()
	if err != nil {
		return err
	}
	const day = 24 * time.Hour
	fmt.Printf("\n%-6s %-64s %24s %24s %24s\n", "range", "ms, p50 p95 max", "cold", "warm", "warm, CPU of the engine")
	for _, r := range []rangeOf{{"24 h", day}, {"7 d", 7 * day}, {"90 d", 90 * day}, {"1 y", 365 * day}} {
		took, used := map[bool]map[int][]time.Duration{true: {}, false: {}}, map[int][]time.Duration{}
		for i := range coldSamples + warmSamples {
			cold := i < coldSamples
			for q := range qs {
				if cold {
					if err := cool(ctx, data, conn); err != nil {
						return err
					}
				}
				d, cpu, err := timeOne(ctx, grafana, qs[q], r, i)
				if err != nil {
					return err
				}
				took[cold][q] = append(took[cold][q], d)
				if !cold {
					used[q] = append(used[q], cpu)
				}
			}
		}
		report(r.name, qs, took, used)
		if err := wholeBoard(ctx, data, conn, grafana, qs, r); err != nil {
			return err
		}
	}
	return nil
}

// report prints a line for all statements, the slowest, and those over half a second.
func report(name string, qs []ask, took map[bool]map[int][]time.Duration, used map[int][]time.Duration) {
	line := func(first, what string, cold, warm, cpu []time.Duration) {
		fmt.Printf("%-6s %-64s %24s %24s %24s\n", first, what, quantiles(cold), quantiles(warm), quantiles(cpu))
	}
	var cold, warm, cpu []time.Duration
	slowest, at := time.Duration(0), 0
	for q := range qs {
		cold, warm, cpu = append(cold, took[true][q]...), append(warm, took[false][q]...), append(cpu, used[q]...)
		if d := quantileOf(used[q], 0.95); d > slowest {
			slowest, at = d, q
		}
	}
	line(name, fmt.Sprintf("all %d statements", len(qs)), cold, warm, cpu)
	line("", "most CPU: "+qs[at].name(), took[true][at], took[false][at], used[at])
	for q := range qs {
		if max(quantileOf(took[true][q], 0.95), quantileOf(took[false][q], 0.95)) > 500*time.Millisecond {
			line("", "over: "+qs[q].name(), took[true][q], took[false][q], used[q])
		}
	}
}

func (a ask) name() string { return strings.TrimPrefix(a.board, "evenhand-") + ", " + a.title }

// wholeBoard times the rollup statements of the board of bias rates asked at once, as a browser does.
func wholeBoard(ctx context.Context, data string, conn, grafana driver.Conn, qs []ask, r rangeOf) error {
	var took [2][]time.Duration
	n := 0
	for i := range 10 {
		if i%2 == 0 {
			if err := cool(ctx, data, conn); err != nil {
				return err
			}
		}
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(inBrowser)
		began := time.Now()
		n = 0
		for _, q := range qs {
			if q.board != "evenhand-bias-rates" {
				continue
			}
			n++
			g.Go(func() error { _, _, err := timeOne(gctx, grafana, q, r, 100+i); return err })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		took[i%2] = append(took[i%2], time.Since(began))
	}
	fmt.Printf("%-6s %-64s %24s %24s\n", "", fmt.Sprintf("the whole board of bias rates, %d statements, %d at a time", n, inBrowser), quantiles(took[0]), quantiles(took[1]))
	return nil
}

func quantileOf(ds []time.Duration, q float64) time.Duration {
	s := slices.Clone(ds)
	slices.Sort(s)
	return s[int(q*float64(len(s)-1)+0.5)]
}

// timeOne asks and reads the whole answer. Every second time one tenant is chosen, else all; the range
// moves on with each sample, as it does for people. CPU is the engine's over all threads of the query.
func timeOne(ctx context.Context, conn driver.Conn, q ask, r rangeOf, i int) (took, cpu time.Duration, err error) {
	choose := []string{expand.All}
	tenant := choose
	if i%2 == 1 {
		tenant = []string{fmt.Sprintf("tenant-%d", i%10)}
	}
	characteristic := choose
	if strings.Contains(q.title, "$characteristic") {
		characteristic = []string{"age"}
	}
	to := time.Now().Add(-time.Duration(i) * time.Second)
	sql, err := expand.Statement(q.sql, expand.View{From: to.Add(-r.length), To: to, Variables: map[string][]string{
		"tenant": tenant, "domain": choose, "app": choose, "model": choose, "characteristic": characteristic}})
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", q.title, err)
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithProfileEvents(func(events []clickhouse.ProfileEvent) {
		for _, e := range events {
			if e.Name == "UserTimeMicroseconds" || e.Name == "SystemTimeMicroseconds" {
				cpu += time.Duration(e.Value) * time.Microsecond
			}
		}
	}))
	began := time.Now()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", q.title, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
	}
	took = time.Since(began)
	return took, cpu, rows.Err()
}

// cool takes what was read out of the engine's caches and the system's.
func cool(ctx context.Context, data string, conn driver.Conn) error {
	for _, what := range []string{"MARK CACHE", "UNCOMPRESSED CACHE", "PRIMARY INDEX CACHE", "QUERY CONDITION CACHE"} {
		if err := conn.Exec(ctx, "SYSTEM DROP "+what); err != nil {
			return err
		}
	}
	return filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // a merge took it away
		}
		f, err := os.Open(path)
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		defer func() { _ = f.Close() }()
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}
