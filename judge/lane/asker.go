package lane

import (
	"context"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/judge"
)

// Publisher publishes messages; *bus.Publisher is one. It returns after the brokers took them.
type Publisher interface {
	Publish(topic string, messages ...*message.Message) error
}

// Asker asks for verdicts of the judge. It is safe for concurrent use.
type Asker struct {
	Selector  *judge.Selector
	Publisher Publisher
	// Asked is told of requests that the brokers took, and Lost of those that they did not; Sweep asks for these again.
	Asked  func(why judge.Reason, n int)
	Lost   func(n int)
	Logger *slog.Logger
}

// askWithin bounds how long the hot path's batch may wait for the brokers to take its requests.
const askWithin = 5 * time.Second

// Ask asks for those of a batch of stored records that are chosen. It is what package pipeline calls.
func (a *Asker) Ask(ctx context.Context, rs []audit.Record) {
	var chosen []judge.Request
	for i := range rs {
		if why, ok := a.Selector.Select(judge.FactsOf(rs[i].Interaction, rs[i].Verdict)); ok {
			chosen = append(chosen, judge.Of(rs[i].Interaction, why))
		}
	}
	if len(chosen) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if err := a.Send(ctx, chosen...); err != nil {
		a.Lost(len(chosen))
		a.Logger.Warn("the judge was not asked; the sweep asks again", "requests", len(chosen), "error", err.Error())
	}
}

// Send publishes requests; the key is the interaction's id.
func (a *Asker) Send(ctx context.Context, rs ...judge.Request) error {
	messages := make([]*message.Message, len(rs))
	for i := range rs {
		payload, err := rs[i].Encode()
		if err != nil {
			return audit.E("judge/lane: encode request", audit.KindInternal, err)
		}
		m := message.NewMessage(rs[i].ResultID().String(), payload)
		m.Metadata.Set(bus.MetadataKey, rs[i].ID.String())
		m.SetContext(ctx)
		messages[i] = m
	}
	if err := a.Publisher.Publish(kafkaconn.Judge, messages...); err != nil {
		return err
	}
	for i := range rs {
		a.Asked(rs[i].Why, 1)
	}
	return nil
}
