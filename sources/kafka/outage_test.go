package kafka_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
	"github.com/evenhand/evenhand/sources/kafka"
)

// follow runs a source on llm.interactions that commits what it reads, and gives each value to seen.
func follow(ctx context.Context, t *testing.T, conn kafkaconn.Config, seen func(string)) error {
	t.Helper()
	src, err := kafka.New(conn, kafka.DefaultConfig(), kafka.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return src.Run(ctx, func(ctx context.Context, g sources.Generation) error {
		next := g.Claims()[0].Committed
		next = max(next, 0)
		for ctx.Err() == nil {
			c, err := g.Fetch(ctx, 0, next, 1<<20)
			if err != nil {
				return err
			}
			for _, r := range c.Records {
				seen(string(r.Value))
			}
			if c.Next != next {
				next = c.Next
				if err := g.Commit(ctx, map[int]int64{0: next}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func oneBroker(t *testing.T, dir string, port int) *broker.Broker {
	t.Helper()
	opt := broker.DefaultOptions(dir)
	opt.Partitions, opt.Port = 1, port
	b, err := broker.Start(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOutage: the broker goes away and comes back; the same Run goes on, and ends at once when it is
// told to while the broker is away for good.
func TestOutage(t *testing.T) {
	dir := t.TempDir()
	b := oneBroker(t, dir, 0)
	_, portText, _ := net.SplitHostPort(b.Addr())
	port, _ := strconv.Atoi(portText)
	conn := brokertest.ConnTo(b.Addr())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	got := map[string]int{}
	have := func(v string) bool { mu.Lock(); defer mu.Unlock(); return got[v] > 0 }
	done := make(chan error, 1)
	go func() { done <- follow(ctx, t, conn, func(v string) { mu.Lock(); got[v]++; mu.Unlock() }) }()

	appendTo(t, conn, kafkaconn.Interactions, 0, "before")
	until(t, "the first record", func() bool { return have("before") })
	if err := b.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	b = oneBroker(t, dir, port)
	appendTo(t, conn, kafkaconn.Interactions, 0, "after")
	until(t, "the record after the outage", func() bool { return have("after") })
	if err := b.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	cancel()
	if err := <-done; err != nil {
		t.Fatalf("Run: %v", err)
	}
	if took := time.Since(asked); took > 5*time.Second {
		t.Fatalf("Run ended after %v with the broker gone", took)
	}
}

// TestHungBrokerInFront: the first broker of the list takes connections and says nothing.
func TestHungBrokerInFront(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	b := oneBroker(t, t.TempDir(), 0)
	defer func() { _ = b.Close(context.Background()) }()
	appendTo(t, brokertest.ConnTo(b.Addr()), kafkaconn.Interactions, 0, "reached")
	conn := brokertest.ConnTo(ln.Addr().String())
	conn.Brokers = append(conn.Brokers, b.Addr())
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	began, got := time.Now(), false
	if err := follow(ctx, t, conn, func(string) { got = true; cancel() }); err != nil || !got {
		t.Fatalf("Run: %v, read %t", err, got)
	}
	t.Logf("read after %v", time.Since(began).Round(100*time.Millisecond))
}

// TestSlowMembersStay: members that take longer than the session's time to finish when partitions move are still members then, so
// that they commit what they finished, and the group comes to rest.
func TestSlowMembersStay(t *testing.T) {
	opt := broker.DefaultOptions(t.TempDir())
	opt.Partitions = 2
	b, err := broker.Start(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	conn := brokertest.ConnTo(b.Addr())
	for partition := range 2 {
		appendTo(t, conn, kafkaconn.Interactions, partition, "an event")
	}
	cfg := kafka.DefaultConfig()
	cfg.SessionTimeout, cfg.RebalanceTimeout = time.Second, 8*time.Second
	finish := 3 * cfg.SessionTimeout
	if err := brokertest.ShortSessions(t.Context(), b.Addr(), cfg.SessionTimeout); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	shared := make(chan struct{}) // a member has one partition
	alone := make(chan struct{})
	member := func() error {
		src, err := kafka.New(conn, cfg, kafka.Options{OnError: func(op string, err error) {
			if ctx.Err() == nil {
				t.Errorf("%s: %v", op, err)
			}
		}})
		if err != nil {
			return err
		}
		return src.Run(ctx, func(gctx context.Context, g sources.Generation) error {
			next := map[int]int64{}
			for _, c := range g.Claims() {
				next[c.Partition] = 1
			}
			seen := alone
			if len(next) == 1 {
				seen = shared
			}
			select {
			case seen <- struct{}{}:
				<-gctx.Done()
			case <-gctx.Done():
			}
			if ctx.Err() != nil {
				return nil
			}
			<-time.After(finish) // the store is slow
			if err := g.Commit(context.Background(), next); err != nil {
				t.Errorf("commit of generation %d: %v", g.ID(), err)
			}
			return nil
		})
	}
	var members sync.WaitGroup
	run := func() {
		if err := member(); err != nil {
			t.Error(err)
		}
	}
	members.Go(run)
	defer members.Wait()
	defer cancel()
	take := func(what string, c chan struct{}) {
		select {
		case <-c:
		case <-time.After(40 * time.Second):
			t.Fatal("never: " + what)
		}
	}
	take("the first member has both partitions", alone)
	members.Go(run)
	take("one of two members has one", shared)
	take("the other has one", shared)
}

func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// TestAbortedTransactions: what a transactional producer took back is not read.
func TestAbortedTransactions(t *testing.T) {
	b := oneBroker(t, t.TempDir(), 0)
	defer func() { _ = b.Close(context.Background()) }()
	conn := brokertest.ConnTo(b.Addr())
	cl, err := kgo.NewClient(kgo.SeedBrokers(conn.Brokers...), kgo.TransactionalID("t"), kgo.DefaultProduceTopic(kafkaconn.Interactions))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, tx := range []struct {
		value string
		end   kgo.TransactionEndTry
	}{{"kept 1", kgo.TryCommit}, {"taken back", kgo.TryAbort}, {"kept 2", kgo.TryCommit}} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), kgo.StringRecord(tx.value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(t.Context(), tx.end); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	err = follow(ctx, t, conn, func(v string) {
		if got = append(got, v); v == "kept 2" {
			cancel()
		}
	})
	if err != nil || len(got) != 2 || got[0] != "kept 1" {
		t.Fatalf("read %q %v", got, err)
	}
}

func TestConfigFaults(t *testing.T) {
	cfg := kafka.Config{SessionTimeout: time.Millisecond, RebalanceTimeout: time.Hour}
	want := "kafka.group: is empty; name the consumer group\n" +
		"kafka.topic: is empty; name the topic of the interactions\n" +
		"kafka.session_timeout: 1ms is not in 1s..5m\n" +
		"kafka.rebalance_timeout: 1h0m0s is not in 3s..15m"
	if err := cfg.Validate(); err == nil || err.Error() != want {
		t.Fatalf("got\n%v\nwant\n%s", err, want)
	}
	if err := kafka.DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
}
