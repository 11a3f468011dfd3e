package bus_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/ThreeDotsLabs/watermill/pubsub/tests.TestReconnect.func2")) // the suite leaves it
}

// Watermill's suite on the embedded broker: with a key, so that order is promised, and without.
func TestWatermillEmbedded(t *testing.T) {
	conn, restart := startEmbedded(t)
	suite(t, conn, restart)
}

// Watermill's suite on a real Kafka, which is restarted twice on the way.
func TestWatermillKafka(t *testing.T) {
	conn, restart := startKafka(t)
	suite(t, conn, restart)
}

// Watermill's suite several times at once, on one broker.
func TestWatermillStress(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	t.Setenv("STRESS_TEST_COUNT", "3")
	conn, _ := startEmbedded(t)
	tests.TestPubSubStressTest(t, features(nil), constructor(conn, true), groupConstructor(conn, true))
}

func features(restart []string) tests.Features {
	return tests.Features{ConsumerGroups: true, GuaranteedOrder: true, Persistent: true, RestartServiceCommand: restart}
}

func suite(t *testing.T, conn kafkaconn.Config, restart []string) {
	if raceDetector {
		restart = nil // the suite's test of it has data races of its own
	}
	t.Run("ordered by key", func(t *testing.T) {
		tests.TestPubSub(t, features(restart), constructor(conn, true), groupConstructor(conn, true))
	})
	t.Run("spread without a key", func(t *testing.T) {
		f := features(nil)
		f.GuaranteedOrder = false
		tests.TestPubSub(t, f, constructor(conn, false), groupConstructor(conn, false))
	})
	t.Run("a group of its own sees all from the start", func(t *testing.T) {
		f := features(nil)
		f.NewSubscriberReceivesOldMessages = true
		tests.TestNewSubscriberReceivesOldMessages(t, tests.TestContext{TestID: tests.NewTestID(), Features: f}, func(t *testing.T) (message.Publisher, message.Subscriber) {
			return pubSub(t, conn, watermill.NewUUID(), false)
		})
	})
}

// constructor gives every pair of one test the same group, and each test its own.
func constructor(conn kafkaconn.Config, keyed bool) tests.PubSubConstructor {
	return func(t *testing.T) (message.Publisher, message.Subscriber) {
		sum := sha256.Sum256([]byte(t.Name()))
		return pubSub(t, conn, hex.EncodeToString(sum[:8]), keyed)
	}
}

func groupConstructor(conn kafkaconn.Config, keyed bool) tests.ConsumerGroupPubSubConstructor {
	return func(t *testing.T, group string) (message.Publisher, message.Subscriber) {
		return pubSub(t, conn, group, keyed)
	}
}

func pubSub(t *testing.T, conn kafkaconn.Config, group string, keyed bool) (message.Publisher, message.Subscriber) {
	t.Helper()
	pub, err := bus.NewPublisher(conn, bus.DefaultPublisherOptions())
	if err != nil {
		t.Fatal(err)
	}
	opt := bus.DefaultSubscriberOptions()
	opt.Group, opt.Partitions, opt.Replication = group, 4, 1
	opt.RetryMin, opt.RetryMax = time.Millisecond, 20*time.Millisecond // the suite answers Nack hundreds of times
	opt.Drain = time.Second
	sub, err := bus.NewSubscriber(conn, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the suite leaves some open
		if err := errors.Join(pub.Close(), sub.Close()); err != nil {
			t.Error(err)
		}
	})
	if strings.Contains(t.Name(), "/TestReconnect/") {
		return pub, &lastHeld{sub}
	}
	if keyed {
		return byPayload{pub}, sub
	}
	return pub, sub
}

// byPayload keys messages by their payload, which is what the suite orders by.
type byPayload struct{ message.Publisher }

func (p byPayload) Publish(topic string, ms ...*message.Message) error {
	for _, m := range ms {
		m.Metadata.Set(bus.MetadataKey, string(m.Payload))
	}
	return p.Publisher.Publish(topic, ms...)
}

// lastHeld hands the last one of TestReconnect's messages out a moment late: the suite notes a message
// as sent only some time after Publish returned, and asks for the sent ones once all were received.
type lastHeld struct{ *bus.Subscriber }

func (s *lastHeld) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := s.Subscriber.Subscribe(ctx, topic)
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		seen := map[string]bool{}
		for m := range in {
			if seen[m.UUID] = true; len(seen) == 10_000 {
				<-time.After(300 * time.Millisecond)
			}
			select {
			case out <- m:
			case <-m.Context().Done(): // closed
			}
		}
	}()
	return out, err
}

// startEmbedded starts the embedded broker and gives the command that makes it restart: a signal to
// this process, which holds it.
func startEmbedded(t testing.TB) (kafkaconn.Config, []string) {
	t.Helper()
	dir, port := t.TempDir(), 0
	begin := func() *broker.Broker {
		opt := broker.DefaultOptions(dir)
		opt.Port = port
		b, err := broker.Start(context.Background(), opt)
		if err != nil {
			t.Error(err)
		}
		return b
	}
	b := begin()
	_, p, _ := net.SplitHostPort(b.Addr())
	port, _ = strconv.Atoi(p)
	conn := brokertest.ConnTo(b.Addr())
	hup := make(chan os.Signal, 4)
	signal.Notify(hup, syscall.SIGHUP)
	var restarter sync.WaitGroup
	restarter.Go(func() {
		for range hup {
			if err := b.Close(context.Background()); err != nil {
				t.Error(err)
			}
			b = begin()
		}
	})
	t.Cleanup(func() {
		signal.Stop(hup)
		close(hup)
		restarter.Wait()
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return conn, []string{"kill", "-HUP", strconv.Itoa(os.Getpid())}
}

// startKafka starts a real broker and gives the command that restarts it.
func startKafka(t *testing.T) (kafkaconn.Config, []string) {
	t.Helper()
	k := brokertest.StartKafka(t)
	return k.Conn, []string{"sh", "-c", fmt.Sprintf("%[1]s %[2]s stop && %[1]s %[2]s start", "env "+strings.Join(k.Env, " "), k.Script)}
}
