package remediation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sinks/linear"
	"github.com/evenhand/evenhand/sinks/linear/lineartest"
)

// childVariable makes the test binary a remediation that dies.
const childVariable = "EVENHAND_REMEDIATION_CHILD"

// doom says where and when a child dies.
type doom struct {
	Store    string // address of the store
	User     string
	Password string
	Database string
	Brokers  []string
	Linear   string
	Before   int32 // of this ticket, counted from 1, or
	After    int32 // once Linear has it and nobody noted so
}

// mortal kills its process as the kernel would, before or after a ticket was sent.
type mortal struct {
	sinks.Tracker
	doom doom
	sent atomic.Int32
}

func (m *mortal) Send(ctx context.Context, k *sinks.Ticket) (sinks.Receipt, error) {
	n := m.sent.Add(1)
	if n == m.doom.Before {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	r, err := m.Tracker.Send(ctx, k)
	if n == m.doom.After {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return r, err
}

// child is main of the process that dies; it returns only when something else fails.
func child(spec string) int {
	if err := doomed(spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func doomed(spec string) error {
	var d doom
	if err := json.Unmarshal([]byte(spec), &d); err != nil {
		return err
	}
	store := chconn.DefaultConfig()
	store.Addr, store.Username, store.Password, store.Database = []string{d.Store}, d.User, d.Password, engine.Database // the one to sign in to; tables are named with theirs
	conn, err := chconn.Open(store)
	if err != nil {
		return err
	}
	kafka := brokertest.ConnTo(d.Brokers[0])
	pub, err := bus.NewPublisher(kafka, bus.DefaultPublisherOptions())
	if err != nil {
		return err
	}
	opt := bus.DefaultSubscriberOptions()
	opt.Group = fmt.Sprint("remediation.", os.Getpid()) // its own: the group of those killed before keeps their places for 10 s
	tickets, issues, err := subscribers(kafka, opt)
	if err != nil {
		return err
	}
	c := linear.DefaultConfig()
	c.APIKey, c.Team, c.Endpoint = lineartest.Key, lineartest.Team, d.Linear
	tr, err := linear.New(c)
	if err != nil {
		return err
	}
	s, err := New(NewOutbox(conn, d.Database), pub, quick(time.Now), Target{&mortal{Tracker: tr, doom: d}, policy()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := s.Sweep(ctx, time.Time{}); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			wait.For(ctx, 50*time.Millisecond)
		}
	}()
	if err := s.Run(ctx, tickets, issues, nil); err != nil {
		return err
	}
	list, err := s.outbox.List(context.Background(), Filter{})
	return fmt.Errorf("it lived on: %+v %w", list, err)
}

// A process that is killed between the outbox and Linear, or between Linear and the outbox, at any of a
// breach's tickets: the next one says what is missing, and nothing twice.
func TestKilledAnywhere(t *testing.T) {
	f := newFixture(t)
	store := enginetest.Shared(t).Config(engine.Writer)
	b := f.decide(breach("charter.age"), "open", "breached")
	f.decide(b, "open", "repeated")
	f.decide(b, "resolved", "near_baseline")
	for i, d := range []doom{{Before: 1}, {After: 1}, {Before: 2}, {After: 2}, {After: 2}, {Before: 1}, {After: 1}} {
		d.Store, d.User, d.Password, d.Database, d.Brokers, d.Linear = store.Addr[0], store.Username, store.Password, f.db, f.kafka.Brokers, f.stub.URL
		spec, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		self, err := filepath.Abs(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), childVariable+"="+string(spec))
		out, err := cmd.CombinedOutput()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("child %d: %v\n%s", i, err, out)
		}
	}
	s := f.service()
	f.run(s)
	f.until(s, "all sent", f.settled(5))
	f.exactly(map[audit.ID][]string{b.ID: {goesOn, near}})
}
