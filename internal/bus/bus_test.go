package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/trace"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// pair is a publisher and a subscriber of a group of its own.
func pair(t *testing.T, conn kafkaconn.Config, change func(*bus.SubscriberOptions)) (*bus.Publisher, *bus.Subscriber) {
	t.Helper()
	pub, err := bus.NewPublisher(conn, bus.DefaultPublisherOptions())
	if err != nil {
		t.Fatal(err)
	}
	opt := bus.DefaultSubscriberOptions()
	opt.Group, opt.Replication, opt.RetryMin, opt.RetryMax = watermill.NewUUID(), 1, time.Millisecond, 4*time.Millisecond
	if change != nil {
		change(&opt)
	}
	sub, err := bus.NewSubscriber(conn, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(pub.Close(), sub.Close()); err != nil {
			t.Error(err)
		}
	})
	return pub, sub
}

// next waits for a message.
func next(t *testing.T, in <-chan *message.Message) *message.Message {
	t.Helper()
	select {
	case m, ok := <-in:
		if !ok {
			t.Fatal("the channel is closed")
		}
		return m
	case <-time.After(30 * time.Second):
		t.Fatal("no message came")
	}
	return nil
}

func subscribe(t *testing.T, sub *bus.Subscriber, topic string) <-chan *message.Message {
	t.Helper()
	if err := sub.SubscribeInitialize(topic); err != nil {
		t.Fatal(err)
	}
	in, err := sub.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func publish(t *testing.T, pub *bus.Publisher, topic string, ms ...*message.Message) {
	t.Helper()
	if err := pub.Publish(topic, ms...); err != nil {
		t.Fatal(err)
	}
}

// What a message is on the wire, and that it comes back whole: id, key, metadata of any bytes, trace.
func TestMessagesAreRecords(t *testing.T) {
	conn, _ := startEmbedded(t)
	pub, sub := pair(t, conn, nil)
	in := subscribe(t, sub, "records")
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	m := message.NewMessageWithContext(trace.ContextWithSpanContext(t.Context(), span), "id-1", []byte("payload"))
	m.Metadata = message.Metadata{bus.MetadataKey: "key", "binary": "\x00\xff"}
	publish(t, pub, "records", m)
	raw := raw(t, conn, "records", 0)
	slices.SortFunc(raw.Headers, func(a, b kafka.Header) int { return strings.Compare(a.Key, b.Key) })
	const parent = "00-01000000000000000000000000000000-0200000000000000-01"
	if got := fmt.Sprintf("%s %s %q", raw.Key, raw.Value, raw.Headers); got != `key payload [{"_watermill_message_uuid" "id-1"} {"binary" "\x00\xff"} {"traceparent" "`+parent+`"}]` {
		t.Errorf("on the wire: %s", got)
	}
	got := next(t, in)
	if got.UUID != "id-1" || string(got.Payload) != "payload" || got.Metadata.Get("binary") != "\x00\xff" || got.Metadata.Get(bus.MetadataKey) != "key" || got.Metadata.Get("traceparent") != parent {
		t.Errorf("%s %s %q", got.UUID, got.Payload, got.Metadata)
	}
	if sc := trace.SpanContextFromContext(got.Context()); sc.TraceID() != span.TraceID() || !sc.IsRemote() {
		t.Errorf("trace %v", sc)
	}
	d, ok := bus.DeliveryOf(got.Context())
	if !ok || d.Attempt != 1 || d.Origin.Topic != "records" || d.Origin.Offset != 0 || time.Since(d.Origin.BrokerTime).Abs() > time.Minute {
		t.Errorf("%+v", d)
	}
	got.Nack()
	got = next(t, in)
	if d, _ := bus.DeliveryOf(got.Context()); d.Attempt != 2 || d.Origin.Offset != 0 {
		t.Errorf("%+v", d)
	}
	got.Ack()
	<-got.Context().Done()
}

// A record that no watermill publisher wrote has the same id at each delivery, and its first header counts.
func TestForeignRecords(t *testing.T) {
	conn, _ := startEmbedded(t)
	_, sub := pair(t, conn, nil)
	in := subscribe(t, sub, "foreign")
	w := &kafka.Writer{Addr: kafka.TCP(conn.Brokers...), Topic: "foreign", RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond}
	defer func() { _ = w.Close() }()
	transport, err := conn.Transport()
	if err != nil {
		t.Fatal(err)
	}
	w.Transport = transport
	defer transport.CloseIdleConnections()
	if err := w.WriteMessages(t.Context(), kafka.Message{Headers: []kafka.Header{{Key: "h", Value: []byte("first")}, {Key: "h", Value: []byte("second")}}}); err != nil {
		t.Fatal(err)
	}
	m := next(t, in)
	d, _ := bus.DeliveryOf(m.Context())
	if m.UUID != d.Origin.EventID().String() || m.Metadata.Get("h") != "first" || len(m.Payload) != 0 {
		t.Errorf("%s %q", m.UUID, m.Metadata)
	}
	id := m.UUID
	m.Nack()
	if m = next(t, in); m.UUID != id {
		t.Errorf("another id at the second delivery")
	}
	m.Ack()
}

// Close gives what is out its time: what is acknowledged meanwhile is committed, what is not comes again.
func TestCloseDrains(t *testing.T) {
	conn, _ := startEmbedded(t)
	group := watermill.NewUUID()
	inGroup := func(o *bus.SubscriberOptions) { o.Group = group }
	pub, sub := pair(t, conn, inGroup)
	in := subscribe(t, sub, "drain")
	for _, id := range []string{"a", "b"} {
		publish(t, pub, "drain", message.NewMessage(id, nil))
	}
	m := next(t, in)
	closed := make(chan error, 1)
	go func() { closed <- sub.Close() }()
	over, end := context.WithCancel(t.Context())
	end() // those who ask only whether Close has begun must not join: who leaves while it joins is waited for by the group
	for refused := false; !refused; {
		_, err := sub.Subscribe(over, "drain")
		refused = audit.KindOf(err) == audit.KindUnavailable
	}
	m.Ack()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if _, open := <-in; open {
		t.Fatal("a message after Close")
	}
	_, sub = pair(t, conn, func(o *bus.SubscriberOptions) { inGroup(o); o.Drain = 100 * time.Millisecond })
	in = subscribe(t, sub, "drain")
	if m = next(t, in); m.UUID != "b" {
		t.Fatalf("%s came again though it was acknowledged", m.UUID)
	}
	if err := sub.Close(); err != nil { // b is never acknowledged
		t.Fatal(err)
	}
	if m.Context().Err() == nil {
		t.Error("a message outlives its subscriber")
	}
	_, sub = pair(t, conn, inGroup)
	if m = next(t, subscribe(t, sub, "drain")); m.UUID != "b" {
		t.Fatalf("%s, want b again", m.UUID)
	}
	m.Ack()
}

// The router with what it is used for: a handler that fails goes to the poison queue with the key and
// the trace of its message, the others go on in order.
func TestRouter(t *testing.T) {
	conn, _ := startEmbedded(t)
	pub, sub := pair(t, conn, nil)
	if err := sub.SubscribeInitialize("work"); err != nil {
		t.Fatal(err)
	}
	poisoned, made := subscribe(t, sub, "poison"), subscribe(t, sub, "made")
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 10 * time.Second}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	poison, err := middleware.PoisonQueue(pub, "poison")
	if err != nil {
		t.Fatal(err)
	}
	var tries atomic.Int32
	router.AddMiddleware(poison, middleware.Retry{MaxRetries: 2, InitialInterval: time.Millisecond}.Middleware, bus.Correlate)
	router.AddHandler("worker", "work", sub, "made", pub, func(m *message.Message) ([]*message.Message, error) {
		if m.UUID == "bad" {
			tries.Add(1)
			return nil, errors.New("cannot be handled")
		}
		return []*message.Message{message.NewMessage("from "+m.UUID, nil)}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- router.Run(ctx) }()
	parent := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, id := range []string{"one", "bad", "two"} {
		m := message.NewMessage(id, nil)
		m.Metadata = message.Metadata{bus.MetadataKey: "k", "traceparent": parent}
		publish(t, pub, "work", m)
	}
	for _, want := range []string{"from one", "from two"} {
		m := next(t, made)
		if m.Ack(); m.UUID != want || m.Metadata.Get("traceparent") != parent {
			t.Errorf("%s %q, want %s", m.UUID, m.Metadata, want)
		}
	}
	m := next(t, poisoned)
	m.Ack()
	md := m.Metadata
	if m.UUID != "bad" || tries.Load() != 3 || md.Get(bus.MetadataKey) != "k" || md.Get(middleware.ReasonForPoisonedKey) != "cannot be handled" ||
		md.Get(middleware.PoisonedTopicKey) != "work" || md.Get(middleware.PoisonedHandlerKey) != "worker" {
		t.Errorf("%s after %d tries: %q", m.UUID, tries.Load(), md)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Errors tell what to do next.
func TestErrorsAreClassed(t *testing.T) {
	conn, _ := startEmbedded(t)
	pub, sub := pair(t, conn, func(o *bus.SubscriberOptions) { o.Group = "" })
	if _, err := sub.Subscribe(t.Context(), "nobody's"); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("a topic without a group: %v", err)
	}
	if err := sub.SubscribeInitialize("large"); err != nil {
		t.Fatal(err)
	}
	secret := strings.Repeat("secret", 200_000)
	if err := pub.Publish("large", message.NewMessage("1", []byte(secret))); audit.KindOf(err) != audit.KindInvalid || strings.Contains(err.Error(), "secret") {
		t.Errorf("too large: %.200v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pub.Publish("no such topic", message.NewMessageWithContext(ctx, "1", nil)); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("an ended context: %v", err)
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	if err := pub.Publish("large", message.NewMessage("1", nil)); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("closed: %v", err)
	}
	bad := bus.SubscriberOptions{Drain: time.Minute, CommitEvery: -1, RetryMin: 2, RetryMax: 1}
	_, err := bus.NewSubscriber(conn, bad)
	for _, want := range []string{"fetch bytes: 0", "retry: wants", "commit every: -1ns", "drain: 1m0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if _, err := bus.NewPublisher(kafkaconn.Config{}, bus.DefaultPublisherOptions()); audit.KindOf(err) != audit.KindInvalid {
		t.Error(err)
	}
}

// raw reads one record as it stands in the log.
func raw(t *testing.T, conn kafkaconn.Config, topic string, offset int64) kafka.Message {
	t.Helper()
	c, err := kafka.DialLeader(t.Context(), "tcp", conn.Brokers[0], topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Seek(offset, kafka.SeekAbsolute); err != nil {
		t.Fatal(err)
	}
	m, err := c.ReadMessage(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
