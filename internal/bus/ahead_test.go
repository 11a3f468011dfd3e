package bus_test

import (
	"runtime"
	"testing"
	"time"

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

// How long the oldest message has waited is told, whatever was acknowledged behind it.
func TestOldest(t *testing.T) {
	conn, _ := startEmbedded(t)
	topic := watermill.NewUUID()
	pub, sub := pair(t, conn, func(o *bus.SubscriberOptions) { o.Ahead = 3 })
	in := subscribe(t, sub, topic)
	if !sub.Oldest().IsZero() {
		t.Error("nothing was sent")
	}
	came := map[int64]time.Time{}
	out := map[int64]*message.Message{}
	for range 3 {
		publish(t, pub, topic, message.NewMessage(watermill.NewUUID(), nil))
		m := next(t, in)
		d, _ := bus.DeliveryOf(m.Context())
		came[d.Origin.Offset], out[d.Origin.Offset] = d.Origin.BrokerTime, m
	}
	for _, step := range []struct {
		ack    int64
		oldest time.Time
	}{{1, came[0]}, {0, came[2]}, {2, time.Time{}}} {
		out[step.ack].Ack()
		until := time.Now().Add(30 * time.Second)
		for !sub.Oldest().Equal(step.oldest) && time.Now().Before(until) {
			runtime.Gosched()
		}
		if at := sub.Oldest(); !at.Equal(step.oldest) {
			t.Errorf("after %d was acknowledged the oldest is of %v, want %v", step.ack, at, step.oldest)
		}
	}
}
