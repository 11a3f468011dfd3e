package jobs_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources/kafka"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

func rows(t *testing.T) *jobs.Rows {
	t.Helper()
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	return jobs.NewRows(enginetest.Conn(t, cfg), cfg.Database)
}

func TestRows(t *testing.T) {
	j := rows(t)
	if last, err := j.Last(t.Context()); err != nil || len(last) != 0 {
		t.Fatalf("%v %v", last, err)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	entry := func(job string, ago time.Duration, s jobs.Status, mark time.Time) jobs.Entry {
		at := now.Add(-ago)
		return jobs.Entry{Job: job, ID: audit.NewID(at), Trigger: jobs.Scheduled, Slot: at.Add(-time.Second), Started: at, Finished: at.Add(time.Second), Status: s, Host: "h",
			Detail: fmt.Sprint(s), Result: jobs.Result{Figures: map[string]int64{"n": int64(ago)}, Watermark: mark, Events: []string{"e"}}}
	}
	mark := now.Add(-90 * time.Minute)
	entries := []jobs.Entry{
		entry("a", 3*time.Hour, jobs.Done, mark), entry("a", 2*time.Hour, jobs.Done, time.Time{}), entry("a", time.Hour, jobs.Failed, now), entry("a", time.Minute, jobs.Canceled, now),
		entry("b", time.Hour, jobs.Panicked, time.Time{}), entry("b", -30*24*time.Hour, jobs.Done, now.AddDate(0, 1, 0)), // of a clock that was ahead
	}
	for _, e := range append(entries, entries[0]) {
		if err := j.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	last, err := j.Last(t.Context())
	if err != nil || len(last) != 2 {
		t.Fatalf("%v %v", last, err)
	}
	a := last["a"]
	if a.ID != entries[3].ID || a.Status != jobs.Canceled || a.Trigger != jobs.Scheduled || a.Detail != "canceled" || a.Result.Figures["n"] != int64(time.Minute) || !a.Result.Watermark.Equal(now) {
		t.Errorf("newest run: %+v", a.Entry)
	}
	if !a.Slot.Equal(entries[2].Slot) || !a.Success.Equal(entries[1].Finished) || !a.Watermark.Equal(mark) {
		t.Errorf("slot %v, success %v, watermark %v", a.Slot, a.Success, a.Watermark)
	}
	if b := last["b"]; !b.Success.IsZero() || !b.Watermark.IsZero() || b.Slot.IsZero() {
		t.Errorf("%+v", b)
	}
}

// member is a process of the group that wants to lead.
type member struct {
	leads, ran atomic.Int64
	stop       context.CancelFunc
	done       chan error
}

func (m *member) JobsLead(leads bool) {
	if leads {
		m.leads.Add(1)
	} else {
		m.leads.Add(-1)
	}
}
func (m *member) JobKnown(string, string, time.Time, time.Time, map[string]int64) {}
func (m *member) JobStarted(string)                                               { m.ran.Add(1) }
func (m *member) JobRan(string, string, time.Time, time.Duration, map[string]int64) {
}
func (m *member) JobSkipped(string) {}

func join(t *testing.T, conn kafkaconn.Config, journal jobs.Journal, host string) *member {
	t.Helper()
	cfg := kafka.DefaultConfig()
	cfg.Group, cfg.Topic, cfg.SessionTimeout = kafkaconn.GroupOf(kafkaconn.Jobs), kafkaconn.Jobs, 6*time.Second
	source, err := kafka.New(conn, cfg, kafka.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{done: make(chan error, 1)}
	r, err := jobs.New(jobs.Options{Source: source, Journal: journal, Host: host, Observer: m},
		jobs.Job{Name: "tick", Schedule: "@every 1s", Timeout: time.Minute, Run: func(context.Context, jobs.Run) (jobs.Result, error) { return jobs.Result{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.stop = cancel
	go func() { m.done <- r.Lead(ctx) }()
	t.Cleanup(cancel)
	return m
}

func (m *member) leave(t *testing.T) {
	t.Helper()
	m.stop()
	if err := <-m.done; err != nil {
		t.Error(err)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("late: ", what)
		}
	}
}

// TestHandOver: one of two members leads; when it leaves, the other takes over and goes on.
func TestHandOver(t *testing.T) {
	b, err := broker.Start(t.Context(), broker.DefaultOptions(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = []string{b.Addr()}
	journal := rows(t)

	first := join(t, conn, journal, "first")
	until(t, "the first runs jobs", func() bool { return first.leads.Load() == 1 && first.ran.Load() > 0 })
	second := join(t, conn, journal, "second")
	leads := func() int64 { return first.leads.Load() + second.leads.Load() }
	// The join moved the partition or gave it back; either way one of them leads and runs on.
	before := first.ran.Load() + second.ran.Load()
	until(t, "somebody runs jobs again", func() bool { return leads() == 1 && first.ran.Load()+second.ran.Load() > before+1 })

	leader, other := first, second
	if second.leads.Load() == 1 {
		leader, other = second, first
	}
	before = other.ran.Load()
	leader.leave(t)
	if leader.leads.Load() != 0 {
		t.Error("a member that left leads")
	}
	until(t, "the other takes over", func() bool { return other.leads.Load() == 1 && other.ran.Load() > before })
	other.leave(t)
	last, err := journal.Last(t.Context())
	if err != nil || last["tick"].Status != jobs.Done {
		t.Errorf("%+v %v", last["tick"], err)
	}
}
