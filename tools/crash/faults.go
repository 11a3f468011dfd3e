package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"github.com/evenhand/evenhand/internal/embedded/engine"
)

// faults are those of one round, beside the failpoints that the members run into.
func (w *world) faults(ctx context.Context, round int) error {
	absent := min(w.opt.absent, 10*time.Second)
	if round == 2 { // the long one once
		absent = w.opt.absent
	}
	for _, f := range []struct {
		name string
		do   func() error
	}{
		{"engine", func() error { return w.killEngine(ctx, 2) }},
		{"cut", func() error {
			return w.cut(ctx, `{"name":"cut","type":"limit_data","stream":"upstream","attributes":{"bytes":%d}}`)
		}},
		{"members", func() error { return w.killMembers(ctx, 2) }},
		{"broker", func() error { return w.killBroker(ctx) }},
		{"paused member", func() error { return w.pauseMember(ctx) }},
		{"cut", func() error {
			return w.cut(ctx, `{"name":"cut","type":"reset_peer","stream":"downstream","attributes":{"timeout":%[1]d}}`)
		}},
		{"churn", func() error { return w.churn(ctx, 5) }},
		{"hung broker", func() error { return w.pauseBroker(ctx) }},
		{"engine", func() error { return w.killEngine(ctx, 1) }},
		{"absent store", func() error { return w.hideStore(ctx, absent) }},
	} {
		w.log.Info("fault", "what", f.name)
		if err := f.do(); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		rest(ctx, 500*time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// killEngine kills the store's engine while an insert runs.
func (w *world) killEngine(ctx context.Context, times int) error {
	for range times {
		kind := "engine_idle" // when none runs for a while
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; {
			var n uint64
			if err := w.conn.QueryRow(ctx, "SELECT count() FROM system.processes WHERE query_kind = 'Insert'").Scan(&n); err == nil && n > 0 {
				kind = "engine_mid_insert"
				break
			}
		}
		pid := w.engine.Endpoint(engine.Writer).PID
		w.killed(kind, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		err := w.until(ctx, time.Minute, "the engine is back", func() (bool, error) {
			return w.engine.Endpoint(engine.Writer).PID != pid && w.conn.Ping(ctx) == nil, nil
		})
		if err != nil {
			return err
		}
		rest(ctx, 500*time.Millisecond)
	}
	return nil
}

// killMembers kills running members at no particular moment.
func (w *world) killMembers(ctx context.Context, times int) error {
	for range times {
		if p := w.members.any(); p != nil {
			w.killed("member", p.kill)
		}
		rest(ctx, time.Duration(300+rand.IntN(700))*time.Millisecond)
	}
	return nil
}

func (w *world) killBroker(ctx context.Context) (err error) {
	w.killed("broker", func() { err = w.cluster.kill(ctx) })
	return err
}

func (w *world) pauseBroker(ctx context.Context) error {
	w.report.fault("broker_paused")
	return w.cluster.pause(ctx, 4*time.Second)
}

// pauseMember stops a member until its partitions are given away, and lets it go on: a zombie, which
// believes that it still owns them and may have an insert under way.
func (w *world) pauseMember(ctx context.Context) error {
	p := w.members.any()
	if p == nil {
		return nil
	}
	w.report.fault("member_paused")
	_ = p.pause(ctx, 3*sessionTimeout) // it may have ended by itself
	return nil
}

// cut breaks every connection to the store in the middle of what is sent over it.
func (w *world) cut(ctx context.Context, toxic string) error {
	for i := range 3 {
		n := []int{0, 30_000, 150_000}[i]
		if strings.Contains(toxic, "reset") {
			n /= 1000
		}
		if _, err := w.proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(toxic, n))); err != nil {
			return err
		}
		w.report.fault("connections_cut")
		rest(ctx, 700*time.Millisecond)
		if err := w.proxy.Toxics.RemoveToxic(context.WithoutCancel(ctx), "cut"); err != nil {
			return err
		}
		rest(ctx, 300*time.Millisecond)
	}
	return nil
}

// hideStore refuses every connection to the store.
func (w *world) hideStore(ctx context.Context, d time.Duration) error {
	w.report.fault("store_absent")
	w.proxy.Stop()
	rest(ctx, d)
	return w.proxy.Start()
}

// churn lets members join and leave every second.
func (w *world) churn(ctx context.Context, times int) error {
	var guests []*process
	leave := func() {
		p := guests[0]
		guests = guests[1:]
		w.members.forget(p)
		p.end(10 * time.Second)
		w.report.fault("member_left")
	}
	for range times {
		p, err := w.members.start("", 0)
		if err != nil {
			return err
		}
		w.report.fault("member_joined")
		if guests = append(guests, p); len(guests) > 2 {
			leave()
		}
		rest(ctx, time.Second)
	}
	for len(guests) > 0 {
		leave()
	}
	return nil
}

// visit lets a member join, work for a moment and leave.
func (w *world) visit(ctx context.Context) error {
	p, err := w.members.start("", 0)
	if err != nil {
		return err
	}
	w.report.fault("member_joined")
	rest(ctx, 4*time.Second)
	w.members.forget(p)
	p.end(10 * time.Second)
	w.report.fault("member_left")
	return nil
}
