package main

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/failpoint"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	sources "github.com/evenhand/evenhand/sources/kafka"
)

// world is all that runs.
type world struct {
	opt      options
	report   *report
	log      *slog.Logger
	launcher *launcher
	cluster  cluster
	engine   *engine.Engine
	proxy    *toxiproxy.Proxy // between the members and the store
	conn     driver.Conn      // to the store, beside the proxy
	scan     *sources.Scanner
	members  *members
	ledger   *ledger
	traffic  []*traffic
	counted  counts // by the last verification
	folded   uint64 // duplicates that merges have taken since
	holding  atomic.Bool

	watch    sync.WaitGroup
	stop     context.CancelFunc
	mu       sync.Mutex
	awaiting []awaited
}

// awaited is a kill whose recovery is not over: some partition has not passed what had been
// acknowledged before it.
type awaited struct {
	at     time.Time
	target map[int32]int64
}

const producers = 2

func openWorld(ctx context.Context, o options, r *report, log *slog.Logger) (w *world, err error) {
	w = &world{opt: o, report: r, log: log, launcher: newLauncher(), ledger: newLedger()}
	w.members = &members{w: w}
	for p := range producers {
		w.traffic = append(w.traffic, newTraffic(o.seed, p+1))
	}
	defer func() { //nolint:contextcheck // ends what runs, also after ctx has ended
		if err != nil {
			w.close()
		}
	}()
	var g errgroup.Group
	g.Go(func() (err error) {
		switch o.broker {
		case "embedded":
			w.cluster, err = startEmbedded(ctx, w)
		case "kafka":
			w.cluster, err = startKafka(ctx, w, "start")
		case "kafka3":
			w.cluster, err = startKafka(ctx, w, "start3")
		default:
			err = fmt.Errorf("-broker: %q is not embedded, kafka or kafka3", o.broker)
		}
		return err
	})
	g.Go(func() (err error) {
		w.engine, err = engine.Start(ctx, engine.Options{Dir: filepath.Join(o.dir, "store"), Executable: o.bin, Logger: slog.New(slog.DiscardHandler)})
		return err
	})
	if err := g.Wait(); err != nil {
		return w, err
	}
	if w.proxy, err = newProxy(w.engine.Endpoint(engine.Writer).Native); err != nil {
		return w, err
	}
	if w.conn, err = chconn.Open(w.engine.Config(engine.Writer)); err != nil {
		return w, err
	}
	kc := kafkaconn.DefaultConfig()
	kc.Brokers = w.cluster.addrs()
	if w.scan, err = sources.NewScanner(kc); err != nil {
		return w, err
	}
	topics := []string{"topics"}
	if o.broker == "kafka3" {
		topics = append(topics, "--set", "kafka.replication=3")
	}
	for _, args := range [][]string{topics, {"migrate"}} {
		if out, err := w.evenhand(ctx, args...); err != nil {
			return w, fmt.Errorf("evenhand %s: %w: %s", args[0], err, out)
		}
	}
	wctx, stop := context.WithCancel(ctx)
	w.stop = stop
	w.watch.Go(func() { w.watchRecovery(wctx) })
	return w, nil
}

// evenhand runs a command to its end and gives what it printed.
func (w *world) evenhand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, w.opt.bin, args...)
	cmd.Env = w.env()
	return cmd.Output()
}

func (w *world) close() {
	if w.stop != nil {
		w.stop()
		w.watch.Wait()
	}
	if w.scan != nil {
		w.scan.Close()
	}
	if w.conn != nil {
		_ = w.conn.Close()
	}
	if w.proxy != nil {
		w.proxy.Stop()
	}
	if w.engine != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = w.engine.Close(ctx)
	}
	if w.cluster != nil {
		w.cluster.close()
	}
}

// round sends events through every fault, lets the pipeline catch up and verifies.
func (w *world) round(ctx context.Context, n int) error {
	w.holding.Store(true)
	sending, stopSending := context.WithCancel(ctx)
	defer stopSending()
	var senders errgroup.Group
	for p := range producers {
		senders.Go(func() error { return w.produce(sending, p, w.opt.rate/producers) })
	}
	for _, p := range failpoint.All() {
		if p != failpoint.Republished { // see alone
			w.members.want(p)
		}
	}
	stopMembers := w.startMembers(ctx, w.opt.members)
	err := w.until(ctx, time.Minute, "the first batch", func() (bool, error) { hi, err := w.markers(ctx); return len(hi) > 0, err })
	if err == nil {
		err = w.faults(ctx, n)
	}
	if err != nil {
		stopMembers()
		return err
	}
	err = w.until(ctx, 6*time.Minute, "every failpoint hit", func() (bool, error) {
		if w.members.settled() {
			return true, nil
		}
		if w.members.quiet() { // nobody meets a rebalance; a visit at each turn would leave slow machines no time for the work
			return false, w.visit(ctx)
		}
		return false, nil
	})
	stopMembers()
	if err == nil {
		err = w.alone(ctx)
	}
	stopSending()
	if e := senders.Wait(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	stopMembers = w.startMembers(ctx, 2)
	defer stopMembers()
	if err := w.drained(ctx); err != nil {
		return err
	}
	if err := w.verify(ctx); err != nil {
		return err
	}
	return w.merge(ctx)
}

// merge lets the store fold what the round wrote twice.
func (w *world) merge(ctx context.Context) error {
	w.holding.Store(false)
	err := w.until(ctx, time.Minute, "merges", func() (bool, error) { // a last order to hold them back may be under way
		err := w.conn.Exec(ctx, "SYSTEM START MERGES evenhand.interactions")
		if err == nil {
			err = w.conn.Exec(ctx, "OPTIMIZE TABLE evenhand.interactions FINAL")
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	var stored, final uint64
	if err := w.conn.QueryRow(ctx, sizes).Scan(&stored, &final); err != nil {
		return err
	}
	w.folded = w.counted.BeforeFinal - (stored - final)
	return nil
}

func (w *world) startMembers(ctx context.Context, n int) (stop func()) {
	mctx, cancel := context.WithCancel(ctx)
	for range n {
		w.members.slots.Go(func() { w.members.slot(mctx) })
	}
	return func() { cancel(); w.members.slots.Wait() }
}

// alone kills the only member between its marker and its commit, and its successor when it has found
// the range in the store and published it again.
func (w *world) alone(ctx context.Context) error {
	for range 4 {
		if !w.members.once(ctx, failpoint.BeforeCommit) {
			continue
		}
		if w.members.once(ctx, failpoint.Republished) {
			return nil
		}
	}
	return fmt.Errorf("the failpoint %s was never hit", failpoint.Republished)
}

// until asks four times a second.
func (w *world) until(ctx context.Context, limit time.Duration, what string, done func() (bool, error)) error {
	var last error
	for deadline := time.Now().Add(limit); ; rest(ctx, 250*time.Millisecond) {
		ok, err := done()
		if ok {
			return nil
		}
		if err != nil {
			last = err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %s (%v)", limit, what, last) //nolint:errorlint // it may be nil, and nobody acts on it
		}
	}
}

// drained waits until the group has committed the whole log.
func (w *world) drained(ctx context.Context) error {
	return w.until(ctx, 3*time.Minute, "the pipeline catches up", func() (bool, error) {
		qctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		at, err := w.scan.Positions(qctx, kafkaconn.Interactions, kafkaconn.PipelineGroup)
		if err != nil {
			return false, err
		}
		for p := range w.opt.partitions {
			_, end, err := w.scan.Bounds(qctx, kafkaconn.Interactions, p)
			if err != nil || at[p] < end {
				return false, fmt.Errorf("partition %d is at %d of %d: %w", p, at[p], end, err)
			}
		}
		return true, nil
	})
}

// killed does a kill, counts it, and has its recovery watched.
func (w *world) killed(kind string, kill func()) {
	a := awaited{time.Now(), w.ledger.reached()}
	kill()
	w.report.killed(kind)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaiting = append(w.awaiting, a)
}

// watchRecovery looks how far the markers are, and keeps merges from hiding duplicates.
func (w *world) watchRecovery(ctx context.Context) {
	for ; ctx.Err() == nil; rest(ctx, 100*time.Millisecond) {
		if w.holding.Load() {
			_ = w.conn.Exec(ctx, "SYSTEM STOP MERGES evenhand.interactions") // a restarted engine has forgotten it
		}
		hi, err := w.markers(ctx)
		if err != nil {
			continue
		}
		now := time.Now()
		w.mu.Lock()
		var still []awaited
		for _, a := range w.awaiting {
			passed := true
			for p, o := range a.target {
				passed = passed && hi[p] >= o
			}
			if passed {
				w.report.recovered(now.Sub(a.at))
			} else {
				still = append(still, a)
			}
		}
		w.awaiting = still
		w.mu.Unlock()
	}
}

func (w *world) markers(ctx context.Context) (map[int32]int64, error) {
	rows, err := w.conn.Query(ctx, "SELECT partition, max(hi) FROM evenhand.ingest_batches GROUP BY partition")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	hi := map[int32]int64{}
	for rows.Next() {
		var p int32
		var h int64
		if err := rows.Scan(&p, &h); err != nil {
			return nil, err
		}
		hi[p] = h
	}
	return hi, rows.Err()
}
