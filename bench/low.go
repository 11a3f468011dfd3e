package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// lowRate measures how soon an acknowledged event is visible and what a quiet system costs.
func lowRate(ctx context.Context, o options) error {
	up, err := start(o.bin, o.settings("up", "--data-dir", o.dir, "--http", "127.0.0.1:0")...)
	if err != nil {
		return err
	}
	defer up.stop()
	began := time.Now()
	if err := waitFor(ctx, "evenhand up", time.Minute, func() bool { _, ok := readEndpoints(o.dir); return ok }); err != nil {
		return fmt.Errorf("%w\n%s", err, up.log)
	}
	fmt.Printf("cold start of up: %.1f s\n", time.Since(began).Seconds())
	e, _ := readEndpoints(o.dir)
	conn, err := storeOf(o.dir)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	pids := []int{up.cmd.Process.Pid, engineOf(up.cmd.Process.Pid)}
	total := func() (d time.Duration) {
		for _, pid := range pids {
			d += usageOf(pid).cpu
		}
		return d
	}
	ts, err := texts(o)
	if err != nil {
		return err
	}
	tmpl, err := templates(ts)
	if err != nil {
		return err
	}
	kc := kafkaconn.DefaultConfig()
	kc.Brokers = []string{e.Kafka}
	p, err := kafkaconn.NewProducer(kc, kafkaconn.DefaultProducerOptions())
	if err != nil {
		return err
	}
	defer func() { _ = p.Close(context.WithoutCancel(ctx)) }()

	var mu sync.Mutex
	acked, waits := map[string]time.Time{}, []time.Duration{}
	run, sent := uint64(time.Now().UnixNano()), 0
	per := max(1, o.rate/20)
	// send sends for the given seconds, 20 times a second, and gives the rate and the CPU used, in cores.
	send := func(noteAcked bool) (rate, cores float64, err error) {
		from, first, cpu := time.Now(), sent, total()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for time.Since(from) < time.Duration(o.seconds)*time.Second && ctx.Err() == nil {
			<-tick.C
			var ms []kafka.Message
			var ids []string
			for range per {
				t := tmpl[sent%len(tmpl)]
				v := t.event(run, sent, time.Now())
				id := string(v[t.id:][:36])
				ms, ids = append(ms, kafka.Message{Topic: kafkaconn.Interactions, Key: []byte(id), Value: v}), append(ids, id)
				sent++
			}
			if err := p.Produce(ctx, ms); err != nil {
				return 0, 0, err
			}
			if !noteAcked {
				continue
			}
			now := time.Now()
			mu.Lock()
			for _, id := range ids {
				acked[id] = now
			}
			mu.Unlock()
		}
		took := time.Since(from).Seconds()
		return float64(sent-first) / took, (total() - cpu).Seconds() / took, nil
	}
	rate, cores, err := send(false)
	if err != nil {
		return err
	}
	fmt.Printf("%.0f events/s for %d s: %.1f %% of one core in all\n", rate, o.seconds, 100*cores)

	// The same again while the read model is asked every 20 ms what it shows.
	stop := make(chan struct{})
	var poll sync.WaitGroup
	poll.Go(func() {
		t := time.NewTicker(20 * time.Millisecond)
		defer t.Stop()
		seen := time.Now().Add(-time.Second)
		for {
			rows, err := conn.Query(ctx, "SELECT toString(event_id), written_at FROM audit_current WHERE written_at >= ?", seen)
			if err == nil {
				now := time.Now()
				for rows.Next() {
					var id string
					var at time.Time
					if rows.Scan(&id, &at) != nil {
						continue
					}
					mu.Lock()
					if t, ok := acked[id]; ok {
						waits = append(waits, now.Sub(t))
						delete(acked, id)
					}
					mu.Unlock()
					if back := at.Add(-2 * time.Second); back.After(seen) {
						seen = back
					}
				}
				_ = rows.Close()
			}
			select {
			case <-t.C:
			case <-stop:
				return
			}
		}
	})
	rate, cores, err = send(true)
	if err == nil {
		err = waitFor(ctx, "all visible", 10*time.Second, func() bool { mu.Lock(); defer mu.Unlock(); return len(acked) == 0 })
	}
	close(stop)
	poll.Wait()
	if err != nil {
		return err
	}
	slices.Sort(waits)
	q := func(f float64) time.Duration { return waits[int(f*float64(len(waits)-1))].Round(time.Millisecond) }
	fmt.Printf("%.0f events/s: acked → visible p50 %v, p95 %v, p99 %v; %.1f %% of one core in all, the question every 20 ms included\n",
		rate, q(.5), q(.95), q(.99), 100*cores)

	if err := waitFor(ctx, "rest", 30*time.Second, func() bool {
		c := total()
		time.Sleep(time.Second)
		return total()-c < 60*time.Millisecond
	}); err != nil {
		fmt.Println("the system did not come to rest within 30 s")
	}
	idle, cpu1 := time.Now(), total()
	time.Sleep(20 * time.Second)
	fmt.Printf("idle: %.1f %% of one core in all\n", 100*(total()-cpu1).Seconds()/time.Since(idle).Seconds())

	up.stop()
	again := time.Now()
	up2, err := start(o.bin, o.settings("up", "--data-dir", o.dir, "--http", "127.0.0.1:0")...)
	if err != nil {
		return err
	}
	defer up2.stop()
	if err := waitFor(ctx, "evenhand up", time.Minute, func() bool { _, ok := readEndpoints(o.dir); return ok }); err != nil {
		return err
	}
	fmt.Printf("warm start of up: %.1f s\n", time.Since(again).Seconds())
	return nil
}

// scanTexts measures `evenhand scan`.
func scanTexts(ctx context.Context, o options) error {
	ts, err := texts(o)
	if err != nil {
		return err
	}
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for i := range o.n {
		if err := enc.Encode(map[string]string{"id": strconv.Itoa(i), "text": ts[i%len(ts)]}); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, o.bin, "scan")
	cmd.Stdin = &in
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return err
	}
	took := time.Since(began)
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != o.n {
		return fmt.Errorf("%d lines for %d texts", lines, o.n)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	fmt.Printf("scan: %d texts of 2 KB in %.1f s: %.0f texts/s, %.1f µs CPU a text\n", o.n, took.Seconds(), float64(o.n)/took.Seconds(), float64(cpu.Microseconds())/float64(o.n))
	return nil
}
