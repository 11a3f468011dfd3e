package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// measure runs one measurement and prints its figures as a line of JSON.
func measure(ctx context.Context, what string, o options, log *slog.Logger, out io.Writer) error {
	f, ok := map[string]func(context.Context, *world) (map[string]any, error){"memory": memory, "hung": hungBroker}[what]
	if !ok {
		return fmt.Errorf("-measure: %q is not memory or hung", what)
	}
	w, err := openWorld(ctx, o, newReport(o), log)
	if err != nil {
		return err
	}
	defer w.close() //nolint:contextcheck // ends what runs, also after ctx has ended
	figures, err := f(ctx, w)
	if err != nil {
		return err
	}
	b, err := json.Marshal(figures)
	fmt.Fprintln(out, string(b))
	return err
}

// memory lets a gigabyte wait in the log while the store is away, beside one member with default
// settings, and looks at the member's memory.
func memory(ctx context.Context, w *world) (map[string]any, error) {
	const gigabyte, each = 1 << 30, 2048
	cmd := exec.Command(w.opt.bin, "run", "--roles", "pipeline", "--http", "127.0.0.1:0")
	for _, kv := range w.env() {
		if !strings.HasPrefix(kv, "EVENHAND_PIPELINE_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "EVENHAND_CLICKHOUSE_ADDR="+w.proxy.Listen)
	p, err := w.launch(cmd, "members")
	if err != nil {
		return nil, err
	}
	defer p.end(15 * time.Second)
	if err := w.fill(ctx, 100, each); err != nil { // it works
		return nil, err
	}
	if err := w.drained(ctx); err != nil {
		return nil, err
	}
	before := resident(p.cmd.Process.Pid)
	w.proxy.Stop()
	if err := w.fill(ctx, gigabyte/each, each); err != nil {
		return nil, err
	}
	w.log.Info("a gigabyte waits")
	rest(ctx, 60*time.Second)
	away := resident(p.cmd.Process.Pid)
	began := time.Now()
	if err := w.proxy.Start(); err != nil {
		return nil, err
	}
	err = w.until(ctx, 20*time.Minute, "the backlog is written", func() (bool, error) { return w.drained(ctx) == nil, nil })
	after := resident(p.cmd.Process.Pid)
	return map[string]any{"measure": "memory", "waiting_mib": 1024, "before_rss_mib": before.now, "away_rss_mib": away.now, "away_peak_mib": away.peak,
		"caught_up_s": time.Since(began).Seconds(), "caught_up_peak_mib": after.peak}, err
}

// fill sends n messages of about some bytes and waits for their acknowledgement.
func (w *world) fill(ctx context.Context, n, size int) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.cluster.addrs()...), kgo.DefaultProduceTopic(kafkaconn.Interactions), kgo.MaxBufferedRecords(20_000))
	if err != nil {
		return err
	}
	defer cl.Close()
	text := strings.Repeat("The candidate answered every question and the panel agreed. ", size/60)
	var mu sync.Mutex
	var failed error
	stamp := time.Now().UnixNano()
	for i := range n {
		v := fmt.Appendf(nil, `{"id":"fill-%d-%d","tenant_id":%q,"prompt":"p","response":"%d %s"}`, stamp, i, tenant, i, text)
		cl.Produce(ctx, &kgo.Record{Value: v}, func(_ *kgo.Record, err error) {
			if err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	return failed
}

// residence is resident memory in MiB.
type residence struct{ now, peak int }

func resident(pid int) (r residence) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.Atoi(f[1])
		switch f[0] {
		case "VmRSS:":
			r.now = kb / 1024
		case "VmHWM:":
			r.peak = kb / 1024
		}
	}
	return r
}

// hungBroker stops one of three brokers for a minute, with members of the pipeline and a kafka-go
// Reader side by side, and tells after how long each had read something of every partition that was
// acknowledged after the broker hung.
func hungBroker(ctx context.Context, w *world) (map[string]any, error) {
	const hang = time.Minute
	sending, stop := context.WithCancel(ctx)
	defer stop()
	var senders errgroup.Group
	senders.Go(func() error { return w.produce(sending, 0, w.opt.rate) })
	stopMembers := w.startMembers(ctx, 2)
	defer stopMembers()
	reader := &beside{at: map[int32]int64{}}
	var reading sync.WaitGroup
	reading.Go(func() { reader.run(sending, w.cluster.addrs()) })

	passed := func(at map[int32]int64, than map[int32]int64) bool {
		for p := range int32(w.opt.partitions) {
			if o, ok := at[p]; !ok || o <= than[p] {
				return false
			}
		}
		return true
	}
	if err := w.until(ctx, 2*time.Minute, "both read", func() (bool, error) {
		hi, err := w.markers(ctx)
		return passed(hi, nil) && passed(reader.reached(), nil), err
	}); err != nil {
		return nil, err
	}
	began, then := time.Now(), w.ledger.reached()
	done := make(chan error, 1)
	go func() { done <- w.cluster.pause(ctx, hang) }()
	took := map[string]float64{}
	note := func(who string, at map[int32]int64) {
		if _, ok := took[who]; !ok && passed(at, then) {
			took[who] = time.Since(began).Round(100 * time.Millisecond).Seconds()
		}
	}
	for len(took) < 3 && time.Since(began) < 2*hang && ctx.Err() == nil {
		note("producers", w.ledger.reached())
		note("kafka_reader", reader.reached())
		if hi, err := w.markers(ctx); err == nil {
			note("pipeline", hi)
		}
		rest(ctx, 100*time.Millisecond)
	}
	err := <-done
	stop()
	reading.Wait()
	if e := senders.Wait(); err == nil {
		err = e
	}
	return map[string]any{"measure": "hung", "hung_s": hang.Seconds(), "resumed_s": took}, err
}

// beside is a kafka-go Reader in a group of its own.
type beside struct {
	mu sync.Mutex
	at map[int32]int64
}

func (b *beside) run(ctx context.Context, brokers []string) {
	r := kafkago.NewReader(kafkago.ReaderConfig{Brokers: brokers, GroupID: "beside", Topic: kafkaconn.Interactions, MaxWait: 250 * time.Millisecond})
	defer func() { _ = r.Close() }()
	for {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		b.mu.Lock()
		b.at[int32(m.Partition)] = m.Offset
		b.mu.Unlock()
	}
}

func (b *beside) reached() map[int32]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.at)
}
