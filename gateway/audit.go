package gateway

import (
	"context"
	"errors"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
)

// entry is an event that waits for the log.
type entry struct {
	part        *call.Part
	traceparent string
	id          audit.ID
	bytes       int // about
}

// newQueue writes events behind the calls. Calls are refused before it is full, so that those under way find room.
func (g *Gateway) newQueue() *guard.Queue[entry] {
	c := guard.DefaultQueueConfig()
	c.Bytes = 2 * int64(g.cfg.AuditMB) << 20
	c.Items = int(c.Bytes >> 8)
	return guard.NewQueue(c, guard.QueueOptions[entry]{
		Send: g.send, Size: func(e entry) int { return e.bytes + 1<<10 },
		Count: g.Metrics.GatewayEvent, Logger: g.Logger,
	})
}

// send produces a batch of events.
func (g *Gateway) send(ctx context.Context, es []entry) error {
	ms := make([]ingest.Message, 0, len(es))
	cut := 0
	for _, e := range es {
		m, short, err := g.message(e)
		if err != nil {
			return err // by itself it is lost, and counted
		}
		if short {
			cut++
		}
		ms = append(ms, m)
	}
	if err := g.Producer.Produce(ctx, ms); err != nil {
		return err
	}
	if cut > 0 {
		g.Metrics.GatewayEvent("cut", cut)
	}
	return nil
}

// message makes the event. Texts that the log does not take as they are, are made plain and cut, which the
// event's metadata and its mark truncated say.
func (g *Gateway) message(e entry) (m ingest.Message, cut bool, err error) {
	reason := ""
	for p := e.part; p != nil; p = shorten(p) {
		value, err := p.Event(p.Tenant)
		if err != nil {
			reason = "no JSON"
			continue
		}
		m, _, faults := g.Decoder.Prepare(value, ingest.Sender{Tenant: p.Tenant, Traceparent: e.traceparent, Now: g.Now(), Truncated: reason != "", Limit: g.Message})
		if len(faults) == 0 {
			return m, reason != "", nil
		}
		reason = faults[0].Code
	}
	g.Logger.Error("a call is not recorded", "interaction_id", e.id.String(), "tenant", e.part.Tenant, "reason", reason)
	return m, false, audit.E("gateway: event", audit.KindInvalid, errors.New(reason))
}
