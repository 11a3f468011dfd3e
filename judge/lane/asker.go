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
	// TextsGo says when the texts of a tenant's events of a day reach their limit; nil: never. What an import brings
	// later than that is not chosen.
	TextsGo func(ctx context.Context, tenant string, day time.Time) (time.Time, error)
}

// keeps tells whether the texts of a tenant's events of a day are within their limit: the judge has no use for others. Where
// that cannot be told they are taken to be; who answers looks again.
func (a *Asker) keeps(ctx context.Context, tenant string, day time.Time) bool {
	if a.TextsGo == nil {
		return true
	}
	goes, err := a.TextsGo(ctx, tenant, day)
	return err != nil || time.Now().Before(goes)
}

// askWithin bounds how long the hot path's batch may wait for the brokers to take its requests.
const askWithin = 5 * time.Second

// Ask asks for those of a batch of stored records that are chosen. It is what package pipeline calls.
func (a *Asker) Ask(ctx context.Context, rs []audit.Record) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var chosen []judge.Request
	for i := range rs {
		in := rs[i].Interaction
		if why, ok := a.Selector.Select(judge.FactsOf(in, rs[i].Verdict)); ok && a.keeps(ctx, in.Tenant, in.Day()) {
			chosen = append(chosen, judge.Of(in, why))
		}
	}
	if len(chosen) == 0 {
		return
	}
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
