package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// produce sends n events and returns the times of their acknowledgement when acked is not nil.
func produce(ctx context.Context, brokers string, o options, each func(i int)) error {
	ts, err := texts(o)
	if err != nil {
		return err
	}
	tmpl, err := templates(ts)
	if err != nil {
		return err
	}
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = []string{brokers}
	opt := kafkaconn.DefaultProducerOptions()
	p, err := kafkaconn.NewProducer(conn, opt)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close(context.WithoutCancel(ctx)) }()
	run, base := uint64(time.Now().UnixNano()), time.Now().UTC().Add(-time.Hour)
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, 4)
	const chunk = 1000
	for range 4 {
		wg.Go(func() {
			for {
				from := int(next.Add(chunk)) - chunk
				if from >= o.n || ctx.Err() != nil {
					return
				}
				ms := make([]kafka.Message, 0, chunk)
				for i := from; i < min(from+chunk, o.n); i++ {
					at := base.AddDate(0, 0, -(i % o.days)).Add(time.Duration(i) * time.Millisecond / 4)
					v := tmpl[i%len(tmpl)].event(run, i, at)
					ms = append(ms, kafka.Message{Topic: kafkaconn.Interactions, Key: v[tmpl[i%len(tmpl)].id:][:36], Value: v})
				}
				if err := p.Produce(ctx, ms); err != nil {
					errs <- err
					return
				}
				if each != nil {
					each(min(from+chunk, o.n))
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return ctx.Err()
	}
}

// prefill writes a backlog into the embedded broker's folder.
func prefill(ctx context.Context, o options) error {
	bo := broker.DefaultOptions(filepath.Join(o.dir, "broker"))
	bo.Partitions = o.parts
	b, err := broker.Start(ctx, bo)
	if err != nil {
		return err
	}
	began := time.Now()
	err = produce(ctx, b.Addr(), o, nil)
	if err != nil {
		_ = b.Close(ctx)
		return err
	}
	o.say("prefilled %d events in %.0f s (%.0f a second)\n", o.n, time.Since(began).Seconds(), float64(o.n)/time.Since(began).Seconds())
	return b.Close(ctx)
}

func (o options) settings(args ...string) []string {
	for kv := range strings.SplitSeq(o.set, ",") {
		if kv != "" {
			args = append(args, "--set", kv)
		}
	}
	return append(args, "--set", fmt.Sprintf("kafka.partitions=%d", o.parts))
}

// startUp starts `evenhand up` on the folder and connects to its store; the caller closes and stops.
func startUp(ctx context.Context, o options) (*process, driver.Conn, error) {
	up, err := start(o.bin, o.settings("up", "--data-dir", o.dir, "--http", "127.0.0.1:0")...)
	if err != nil {
		return nil, nil, err
	}
	err = waitFor(ctx, "evenhand up", 3*time.Minute, func() bool { _, ok := readEndpoints(o.dir); return ok })
	if err != nil {
		up.stop()
		return nil, nil, fmt.Errorf("%w\n%s", err, up.log)
	}
	conn, err := storeOf(o.dir)
	if err != nil {
		up.stop()
		return nil, nil, err
	}
	return up, conn, nil
}

// backlog measures `evenhand up` on a backlog.
func backlog(ctx context.Context, o options) error {
	if err := prefill(ctx, o); err != nil {
		return err
	}
	up, conn, err := startUp(ctx, o)
	if err != nil {
		return err
	}
	defer up.stop()
	defer func() { _ = conn.Close() }()
	_, err = measure(ctx, o, conn, map[string]int{"up": up.cmd.Process.Pid, "engine": engineOf(up.cmd.Process.Pid)})
	return err
}

// measure waits until n events are in and merges rest, prints CPU by process, and gives it in µs an event.
func measure(ctx context.Context, o options, conn driver.Conn, pids map[string]int) (map[string]float64, error) {
	before := map[string]usage{}
	for name, pid := range pids {
		before[name] = usageOf(pid)
	}
	began, parts := time.Now(), uint64(0)
	err := pollEvery(ctx, time.Second, "the backlog", 30*time.Minute, func() bool {
		n, err := scalar[uint64](ctx, conn, "SELECT sum(rows) FROM ingest_batches")
		if p, err := scalar[uint64](ctx, conn, "SELECT count() FROM system.parts WHERE active AND database = 'evenhand'"); err == nil {
			parts = max(parts, p)
		}
		return err == nil && n >= uint64(o.n)
	})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	atEnd := map[string]usage{}
	for name, pid := range pids {
		atEnd[name] = usageOf(pid)
	}
	if err := mergesRest(ctx, conn); err != nil {
		return nil, err
	}
	o.say("%d events, %d days a batch: %.0f events/s over %.0f s, active parts at most %d\n", o.n, o.days, float64(o.n)/took.Seconds(), took.Seconds(), parts)
	var sum float64
	each := map[string]float64{}
	for name, pid := range pids {
		rest := usageOf(pid)
		us := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(o.n) }
		total := us(rest.cpu - before[name].cpu)
		each[name], sum = total, sum+total
		o.say("  %-8s %6.1f µs CPU an event (%.1f of it after the last event), RSS %d MiB, peak %d MiB\n", name, total, us(rest.cpu-atEnd[name].cpu), rest.rss, rest.peak)
	}
	o.say("  %-8s %6.1f µs CPU an event, merges included\n", "sum", sum)
	engineByTable(ctx, o, conn)
	for _, q := range []string{
		"SELECT count() FROM interactions FINAL", "SELECT uniqExact(event_id) FROM interactions", "SELECT count() FROM verdicts FINAL WHERE analyzer = 'hot'", "SELECT count() FROM audit_current FINAL",
	} {
		n, err := scalar[uint64](ctx, conn, q+" SETTINGS do_not_merge_across_partitions_select_final = 1")
		if err != nil {
			return nil, err
		}
		if n != uint64(o.n) {
			return nil, fmt.Errorf("%s: %d, want %d", q, n, o.n)
		}
	}
	o.say("  every id is there exactly once, with one verdict\n")
	return each, nil
}

// split measures `evenhand run` with broker and engine in processes of their own.
func split(ctx context.Context, o options) error {
	_, err := apart(ctx, o, nil)
	return err
}

// apart is split; after, if any, looks at the broker once all is in. It gives CPU in µs an event, by process.
func apart(ctx context.Context, o options, after func(brokers string) error) (map[string]float64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := prefill(ctx, o); err != nil {
		return nil, err
	}
	b, err := start(self, "broker", "-dir", o.dir, "-partitions", fmt.Sprint(o.parts))
	if err != nil {
		return nil, err
	}
	defer b.stop()
	e, err := start(self, "engine", "-dir", o.dir)
	if err != nil {
		return nil, err
	}
	defer e.stop()
	addr := func(file string) (s string) {
		b, _ := os.ReadFile(filepath.Join(o.dir, file))
		return string(b)
	}
	if err := waitFor(ctx, "broker and engine", 3*time.Minute, func() bool { return addr("broker.addr") != "" && addr("engine.addr") != "" }); err != nil {
		return nil, fmt.Errorf("%w\n%s\n%s", err, b.log, e.log)
	}
	conn, err := storeOf(o.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	host, password, _ := strings.Cut(addr("engine.addr"), " ")
	run, err := start(o.bin, o.settings("run", "--roles", "pipeline", "--http", "127.0.0.1:0", "--set", "tenant.default=default",
		"--set", "kafka.brokers="+addr("broker.addr"), "--set", "clickhouse.addr="+host, "--set", "clickhouse.username=evenhand", "--set", "clickhouse.password="+password)...)
	if err != nil {
		return nil, err
	}
	defer run.stop()
	if err := waitFor(ctx, "tables", time.Minute, func() bool {
		_, err := scalar[uint64](ctx, conn, "SELECT count() FROM ingest_batches")
		return err == nil
	}); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, run.log)
	}
	each, err := measure(ctx, o, conn, map[string]int{"run": run.cmd.Process.Pid, "broker": b.cmd.Process.Pid, "engine": engineOf(e.cmd.Process.Pid)})
	if err == nil && after != nil {
		err = after(addr("broker.addr"))
	}
	return each, err
}

// brokerOnly and engineOnly are processes of split; they end with their stdin.
func brokerOnly(ctx context.Context, o options) error {
	bo := broker.DefaultOptions(filepath.Join(o.dir, "broker"))
	bo.Partitions = o.parts
	b, err := broker.Start(ctx, bo)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.dir, "broker.addr"), []byte(b.Addr()), 0o600); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return b.Close(context.WithoutCancel(ctx))
}

func engineOnly(ctx context.Context, o options) error {
	e, err := engine.Start(ctx, engine.Options{Dir: filepath.Join(o.dir, "store")})
	if err != nil {
		return err
	}
	p := e.Endpoint(engine.Writer)
	if err := os.WriteFile(filepath.Join(o.dir, "engine.addr"), []byte(p.Native+" "+p.Password), 0o600); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return e.Close(context.WithoutCancel(ctx))
}

// engineByTable prints where the engine's CPU went, as far as its own logs tell.
func engineByTable(ctx context.Context, o options, conn driver.Conn) {
	_ = conn.Exec(ctx, "SYSTEM FLUSH LOGS")
	rows, err := conn.Query(ctx, `SELECT table, toString(event_type) AS what, count() AS n, sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']) AS us
		FROM system.part_log WHERE database = 'evenhand' AND event_type IN ('NewPart', 'MergeParts') GROUP BY table, what ORDER BY us DESC LIMIT 12
		UNION ALL SELECT extract(query, 'INTO [a-z]+[.]([a-z_]+)'), 'insert', count(), sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']) FROM system.query_log WHERE type = 'QueryFinish' AND query_kind = 'Insert' GROUP BY 1, 2`)
	if err != nil {
		return
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var table, what string
		var n, us uint64
		if rows.Scan(&table, &what, &n, &us) == nil && us > 0 {
			o.say("    engine: %-18s %-10s %4d times, %5.1f µs an event\n", table, what, n, float64(us)/float64(o.n))
		}
	}
}
