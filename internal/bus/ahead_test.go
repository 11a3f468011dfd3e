package bus_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/internal/bus"
)

// Several messages of a partition may be out; what was acknowledged behind one that was not takes nothing from it.
func TestAhead(t *testing.T) {
	conn, _ := startEmbedded(t)
	topic, group := watermill.NewUUID(), watermill.NewUUID()
	ahead := func(o *bus.SubscriberOptions) { o.Group, o.Ahead, o.Drain = group, 3, 0 }
	pub, sub := pair(t, conn, ahead)
	in := subscribe(t, sub, topic)
	want := map[string]bool{}
	for range 4 {
		m := message.NewMessage(watermill.NewUUID(), nil)
		want[m.UUID] = true
		publish(t, pub, topic, m)
	}
	seen := map[string]*message.Message{}
	for range 3 {
		m := next(t, in)
		seen[m.UUID] = m
	}
	if len(seen) != 3 {
		t.Fatalf("%d messages were out", len(seen))
	}
	first := ""
	for id, m := range seen {
		if d, _ := bus.DeliveryOf(m.Context()); d.Origin.Offset == 0 {
			first = id
			continue
		}
		m.Ack()
	}
	last := next(t, in) // the fourth, while the first is out
	last.Ack()
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	_, sub = pair(t, conn, ahead)
	in = subscribe(t, sub, topic)
	again := map[string]bool{}
	for range 4 { // in no order: nothing was committed past the first
		m := next(t, in)
		again[m.UUID] = true
		m.Ack()
	}
	if !again[first] {
		t.Error("the first was lost")
	}
}
