package bus_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/internal/bus"
)

// BenchmarkSubscribe is what a message of 1 KB costs from the log to its Ack, on one partition of the
// embedded broker.
func BenchmarkSubscribe(b *testing.B) {
	conn, _ := startEmbedded(b)
	pub, err := bus.NewPublisher(conn, bus.DefaultPublisherOptions())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = pub.Close() }()
	opt := bus.DefaultSubscriberOptions()
	opt.Group, opt.Replication = watermill.NewUUID(), 1
	sub, err := bus.NewSubscriber(conn, opt)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	if err := sub.SubscribeInitialize("bench"); err != nil {
		b.Fatal(err)
	}
	ms := make([]*message.Message, b.N)
	for i := range ms {
		ms[i] = message.NewMessage(watermill.NewUUID(), make([]byte, 1000))
	}
	if err := pub.Publish("bench", ms...); err != nil {
		b.Fatal(err)
	}
	in, err := sub.Subscribe(b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	(<-in).Ack() // joined
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N - 1 {
		(<-in).Ack()
	}
}
