package arbiter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/arbiter/arbitertest"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// decideSome decides n keys once and takes one alarm to its second state.
func decideSome(t testing.TB, a *arbiter.Kafka, n int) {
	t.Helper()
	for i := range n {
		if _, err := a.Decide(t.Context(), arbiter.Key{Kind: "once", ID: fmt.Sprint(i)}, json.RawMessage(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i, state := range []string{"open", "ticketed"} {
		if _, err := a.Propose(t.Context(), arbiter.Proposal{Key: alarm, Seq: uint32(i + 1), Value: json.RawMessage(`{"state":"` + state + `"}`)}); err != nil {
			t.Fatal(err)
		}
	}
}

var alarm = arbiter.Key{Kind: "alarm", ID: "x"}

func TestProjection(t *testing.T) {
	conn := brokertest.Start(t)
	cfg, store := migrated(t)
	ch := enginetest.Conn(t, cfg)
	a := open(t, conn, arbiter.Options{Store: store})
	decideSome(t, a, 30)
	projectAll(t, a, store)
	shut(t, a)

	t.Run("a start reads the projection, and the key's state with it", func(t *testing.T) {
		a := open(t, conn, arbiter.Options{Store: store})
		defer shut(t, a)
		if a.FromStore() != 32 {
			t.Errorf("%d decisions came from the store", a.FromStore())
		}
		var refused *arbiter.Refused
		if _, err := a.Propose(t.Context(), arbiter.Proposal{Key: alarm, Seq: 3, Value: json.RawMessage(`{"state":"open"}`)}); !errors.As(err, &refused) {
			t.Errorf("%v", err)
		}
		if d, err := a.Decide(t.Context(), arbiter.Key{Kind: "once", ID: "7"}, json.RawMessage(`"late"`)); err != nil || string(d.Value) != "7" || d.N != 8 {
			t.Errorf("%+v %v", d, err)
		}
		if h, err := a.History(t.Context(), alarm); err != nil || len(h) != 2 || h[0].N != 31 {
			t.Errorf("%+v %v", h, err)
		}
	})
	t.Run("people see the newest of each key", func(t *testing.T) {
		list, err := store.List(t.Context(), arbiter.Filter{Kind: "alarm"})
		if err != nil || len(list) != 1 || list[0].Key != "alarm/x" || list[0].Seq != 2 {
			t.Errorf("%+v %v", list, err)
		}
		if list, err = store.List(t.Context(), arbiter.Filter{Limit: 5, Since: time.Now().Add(-time.Hour)}); err != nil || len(list) != 5 || list[0].Key != "alarm/x" {
			t.Errorf("%+v %v", list, err)
		}
		steps, err := store.Show(t.Context(), alarm)
		if err != nil || len(steps) != 2 || string(steps[0].Value) != `{"state":"open"}` {
			t.Errorf("%+v %v", steps, err)
		}
	})
	t.Run("what others write a second time changes nothing", func(t *testing.T) {
		b := open(t, conn, arbiter.Options{})
		defer shut(t, b)
		if err := ch.Exec(t.Context(), "INSERT INTO decisions SELECT * FROM decisions"); err != nil {
			t.Fatal(err)
		}
		if rep := verify(t, conn, store); !rep.OK() || rep.Projected != 32 || rep.Behind != 0 {
			t.Errorf("%+v", rep)
		}
	})
	t.Run("faults are found and mended by the next projector", func(t *testing.T) {
		for name, tc := range map[string]struct {
			sql   string
			field func(*arbiter.Report) uint64
		}{
			"missing": {"DELETE FROM decisions WHERE n = 3", func(r *arbiter.Report) uint64 { return r.Missing }},
			"unequal": {"INSERT INTO decisions SELECT * REPLACE ('\"x\"' AS value, version + 1 AS version) FROM decisions FINAL WHERE n = 5", func(r *arbiter.Report) uint64 { return r.Unequal }},
			"extra":   {"INSERT INTO decisions SELECT * REPLACE ('y' AS key) FROM decisions FINAL WHERE n = 6", func(r *arbiter.Report) uint64 { return r.Extra }},
		} {
			if err := ch.Exec(t.Context(), tc.sql); err != nil {
				t.Fatal(err)
			}
			rep := verify(t, conn, store)
			if rep.OK() || tc.field(rep) != 1 || len(rep.Keys) == 0 {
				t.Errorf("%s: %+v", name, rep)
			}
			if err := ch.Exec(t.Context(), "DELETE FROM decisions WHERE key = 'y' OR n = 5"); err != nil {
				t.Fatal(err)
			}
			a := open(t, conn, arbiter.Options{Store: store})
			if a.FromStore() >= 5 {
				t.Errorf("%s: %d rows with a hole are used", name, a.FromStore())
			}
			projectAll(t, a, store)
			shut(t, a)
			if rep := verify(t, conn, store); !rep.OK() || rep.Behind != 0 {
				t.Errorf("%s, projected again: %+v", name, rep)
			}
		}
	})
}

// A log that lacks what was decided does not decide, until the decisions are written back.
func TestReplacedLog(t *testing.T) {
	conn := brokertest.Start(t)
	_, store := migrated(t)
	rules := arbitertest.Rules()
	a := open(t, conn, arbiter.Options{Store: store})
	decideSome(t, a, 20)
	before, err := a.History(t.Context(), alarm)
	if err != nil {
		t.Fatal(err)
	}
	projectAll(t, a, store)
	shut(t, a)

	remake(t, conn)
	opt := arbiter.Options{Rules: rules, Store: store}.WithPatience(300 * time.Millisecond)
	if _, err := arbiter.Open(t.Context(), conn, opt); !errors.Is(err, arbiter.ErrReplaced) || audit.KindOf(err) != audit.KindInternal {
		t.Fatalf("on an empty log: %v", err)
	}
	// A process without the store decides nevertheless: that is found and told.
	blind := open(t, conn, arbiter.Options{})
	if _, err := blind.Decide(t.Context(), arbiter.Key{Kind: "once", ID: "3"}, json.RawMessage(`"other"`)); err != nil {
		t.Fatal(err)
	}
	shut(t, blind)
	if rep := verify(t, conn, store); rep.OK() || !rep.Replaced {
		t.Errorf("%+v", rep)
	}
	for i := range 2 {
		done, err := arbiter.Restore(t.Context(), conn, opt)
		if err != nil || len(done.Contradicted) != 1 && i == 0 || done.Written != 21*(1-i) {
			t.Fatalf("restore: %+v %v", done, err)
		}
	}
	a = open(t, conn, opt)
	defer shut(t, a)
	if a.FromStore() != 22 {
		t.Errorf("%d decisions come from the store", a.FromStore())
	}
	after, err := a.History(t.Context(), alarm)
	if err != nil || len(after) != 2 || after[1].Proposal != before[1].Proposal || string(after[1].Value) != string(before[1].Value) || after[1].Log == before[1].Log {
		t.Errorf("%+v %v", after, err)
	}
	if _, err := a.Propose(t.Context(), arbiter.Proposal{Key: alarm, Seq: 3, Value: json.RawMessage(`{"state":"resolved"}`)}); err != nil {
		t.Error(err)
	}
	projectAll(t, a, store)
	rep := verify(t, conn, store)
	if rep.Missing+rep.Extra+rep.Unequal+rep.Forgotten != 0 || rep.Contradicted != 1 || rep.Replaced || rep.Projected != 23 {
		t.Errorf("%+v", rep)
	}
}

// An older copy of the log, without its last records, does not decide either.
func TestLogThatLostItsEnd(t *testing.T) {
	conn := brokertest.Start(t)
	_, store := migrated(t)
	a := open(t, conn, arbiter.Options{Store: store})
	decideSome(t, a, 9)
	projectAll(t, a, store)
	shut(t, a)
	copyOf := readLog(t, conn, 6)
	remake(t, conn)
	for _, m := range copyOf {
		appendTo(t, conn, kafkaconn.Decisions, string(m.Key), string(m.Value))
	}
	opt := arbiter.Options{Rules: arbitertest.Rules(), Store: store}.WithPatience(200 * time.Millisecond)
	if _, err := arbiter.Open(t.Context(), conn, opt); !errors.Is(err, arbiter.ErrReplaced) {
		t.Fatalf("%v", err)
	}
	done, err := arbiter.Restore(t.Context(), conn, opt)
	if err != nil || done.Held != 5 || done.Written != 6 || len(done.Contradicted) != 0 {
		t.Fatalf("%+v %v", done, err)
	}
	a = open(t, conn, opt)
	defer shut(t, a)
	if rep := verify(t, conn, store); !rep.OK() || rep.Projected != 11 {
		t.Errorf("%+v", rep)
	}
}

// An arbiter that runs while its topic is made anew stops.
func TestTopicReplacedUnderAFollower(t *testing.T) {
	for name, records := range map[string]int{"shorter": 2, "longer": 12} {
		t.Run(name, func(t *testing.T) {
			conn := brokertest.Start(t)
			a := open(t, conn, arbiter.Options{}.WithPatience(300*time.Millisecond))
			defer shut(t, a)
			decideSome(t, a, 5)
			remake(t, conn)
			other := open(t, conn, arbiter.Options{Proposer: "other"})
			defer shut(t, other)
			decideSome(t, other, records)
			eventually(t, func() error {
				if !errors.Is(a.Err(), arbiter.ErrReplaced) {
					return fmt.Errorf("it goes on: %v", a.Err()) //nolint:errorlint // it may be nil
				}
				return nil
			})
			if _, err := a.Decide(t.Context(), arbiter.Key{Kind: "once", ID: "new"}, json.RawMessage("1")); !errors.Is(err, arbiter.ErrReplaced) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTrimmedLogIsRefused(t *testing.T) {
	conn := brokertest.Start(t)
	a := open(t, conn, arbiter.Options{})
	decideSome(t, a, 5)
	shut(t, a)
	admin(t, conn, func(cl *kgo.Client) error {
		req := kmsg.NewDeleteRecordsRequest()
		req.TimeoutMillis = 5000
		req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: kafkaconn.Decisions, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: 3}}}}
		_, err := req.RequestWith(t.Context(), cl)
		return err
	})
	if _, err := arbiter.Open(t.Context(), conn, arbiter.Options{Rules: arbitertest.Rules()}); !errors.Is(err, arbiter.ErrTrimmed) {
		t.Errorf("%v", err)
	}
}

// Acknowledgements that are lost, before or after the record was written, lead to copies and to one decision.
func TestLostAcknowledgements(t *testing.T) {
	conn := brokertest.Start(t)
	other := open(t, conn, arbiter.Options{Proposer: "other"})
	defer shut(t, other)
	calls := 0
	var a *arbiter.Kafka
	lost := audit.E("test", audit.KindUnavailable, errors.New("no answer"))
	a = open(t, conn, arbiter.Options{Proposer: "unlucky"}.WithProduce(func(ctx context.Context, msgs []kafkago.Message) error {
		switch calls++; calls % 3 {
		case 1: // not written
			return lost
		case 2: // written, but nobody knows
			if err := a.Produce(ctx, msgs); err != nil {
				return err
			}
			return lost
		}
		return a.Produce(ctx, msgs)
	}))
	defer shut(t, a)
	for i := range 12 {
		k := arbiter.Key{Kind: "once", ID: fmt.Sprint(i)}
		d, err := a.Decide(t.Context(), k, json.RawMessage("1"))
		if err != nil || d.Proposer != "unlucky" || d.N != uint64(i+1) {
			t.Fatalf("%+v %v", d, err)
		}
		if got, err := other.Decide(t.Context(), k, json.RawMessage("2")); err != nil || got.Proposal != d.Proposal {
			t.Fatalf("%+v %v", got, err)
		}
	}
	if a.Waiting() != 0 {
		t.Errorf("%d still wait", a.Waiting())
	}
}

// remake deletes the topic and makes it again, empty.
func remake(t testing.TB, conn kafkaconn.Config) {
	t.Helper()
	admin(t, conn, func(cl *kgo.Client) error {
		req := kmsg.NewDeleteTopicsRequest()
		req.TimeoutMillis = 5000
		name := kafkaconn.Decisions
		req.TopicNames, req.Topics = []string{name}, []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
		_, err := req.RequestWith(t.Context(), cl)
		return err
	})
	create(t, conn, kafkaconn.Decisions)
}

func admin(t testing.TB, conn kafkaconn.Config, f func(*kgo.Client) error) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(conn.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := f(cl); err != nil {
		t.Fatal(err)
	}
}

// readLog gives the first n records.
func readLog(t testing.TB, conn kafkaconn.Config, n int) []*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(conn.Brokers...), kgo.ConsumeTopics(kafkaconn.Decisions), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var list []*kgo.Record
	for len(list) < n {
		list = append(list, cl.PollFetches(t.Context()).Records()...)
	}
	return list[:n]
}
