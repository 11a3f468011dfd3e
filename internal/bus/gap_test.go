package bus_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/evenhand/evenhand/internal/bus"
)

// The log was cut above the group's position: that is told, and what is left is read.
func TestGap(t *testing.T) {
	conn, _ := startEmbedded(t)
	group := watermill.NewUUID()
	var mu sync.Mutex
	told := ""
	options := func(o *bus.SubscriberOptions) {
		o.Group = group
		o.OnError = func(op string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if op == "gap" {
				told += err.Error()
			}
		}
	}
	pub, sub := pair(t, conn, options)
	in := subscribe(t, sub, "gap")
	for _, id := range []string{"read", "cut", "left"} {
		publish(t, pub, "gap", message.NewMessage(id, nil))
	}
	next(t, in).Ack()
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(conn.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	req := kmsg.NewDeleteRecordsRequest()
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: "gap", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 0, Offset: 2}}}}
	res, err := req.RequestWith(t.Context(), cl)
	if err == nil {
		err = kerr.ErrorForCode(res.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, sub = pair(t, conn, options)
	if m := next(t, subscribe(t, sub, "gap")); m.UUID != "left" || !m.Ack() {
		t.Errorf("%s", m.UUID)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(told, "offset 1 is outside the log [2, 3)") {
		t.Errorf("told %q", told)
	}
}
