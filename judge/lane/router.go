package lane

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/judge"
)

const quickRetries = 2

// Ahead is how many requests of a partition a process may hold, to take them by turns of their tenants.
const Ahead = 1000

// Run answers requests until ctx ends, in the order of middleware: correlation, poison queue, turns, retry, throttle,
// recoverer. requests subscribes for the topic's own group; Run closes it, and returns when what was out is done or drained.
// What is not answered comes again after a pause that grows; its position is not committed before.
func (l *Lane) Run(ctx context.Context, requests message.Subscriber) error {
	const op = "judge/lane: run"
	quiet := watermill.NewSlogLoggerWithLevelMapping(l.Logger, map[slog.Level]slog.Level{slog.LevelInfo: slog.LevelDebug, slog.LevelError: slog.LevelDebug})
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 10 * time.Second}, quiet)
	if err != nil {
		return audit.E(op, audit.KindInternal, err)
	}
	poison, err := middleware.PoisonQueueWithFilter(&graveyard{l}, kafkaconn.DeadLetters, isPoison)
	if err != nil {
		return audit.E(op, audit.KindInternal, err)
	}
	retry := middleware.Retry{
		MaxRetries: quickRetries, InitialInterval: l.quick, Multiplier: 2, MaxInterval: 4 * l.quick, RandomizationFactor: 0.2, ResetContextOnRetry: true,
		ShouldRetry: func(p middleware.RetryParams) bool { return audit.KindOf(p.Err) == audit.KindUnavailable },
	}
	throttle := middleware.NewThrottle(int64(l.cfg.PerSecond), time.Second)
	router.AddMiddleware(middleware.CorrelationID, bus.Correlate, poison, l.turns(ctx), retry.Middleware, throttle.Middleware, middleware.Recoverer)
	router.AddConsumerHandler("judge", kafkaconn.Judge, requests, func(m *message.Message) error { //nolint:contextcheck // it is given the message's
		r, err := judge.Decode(m.Payload)
		if err != nil {
			return err
		}
		d, _ := bus.DeliveryOf(m.Context())
		return l.answer(m.Context(), r, max(1, d.Attempt))
	})
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var follower sync.WaitGroup
	follower.Go(func() { l.follow(following) })
	defer follower.Wait()
	defer stop()
	if err := router.Run(ctx); err != nil {
		return audit.E(op, audit.KindUnavailable, err)
	}
	return nil
}

// turns lets requests in by turns of their tenants until ctx ends, and a request that comes twice once the first has gone; what is no
// request is nobody's.
func (l *Lane) turns(ctx context.Context) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) ([]*message.Message, error) {
			waiting, cancel := context.WithCancel(m.Context())
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			r, err := judge.Decode(m.Payload) // who answers it tells what is wrong
			if err == nil {
				end, err := l.running.begin(waiting, r.ResultID())
				if err != nil {
					return nil, audit.E("judge/lane: wait", audit.KindUnavailable, err)
				}
				defer end()
			}
			if err := l.room.Wait(waiting, r.Tenant); err != nil {
				return nil, audit.E("judge/lane: wait", audit.KindUnavailable, err)
			}
			defer l.room.Leave(r.Tenant)
			return next(m)
		}
	}
}

// isPoison tells whether a message will never be handled. Texts that nobody can judge are not: they get a verdict.
func isPoison(err error) bool {
	var panicked middleware.RecoveredPanicError
	return audit.KindOf(err) == audit.KindInvalid || errors.As(err, &panicked)
}

// Reasons of messages that are buried.
const (
	reasonRequest = "judge_request" // it is no request
	reasonError   = "judge_error"   // it is one, and its answer is refused or panics whenever it is tried
)

// graveyard is the poison queue: messages that will never be answered are buried as they came.
type graveyard struct{ l *Lane }

// Publish implements message.Publisher for the poison middleware.
func (g *graveyard) Publish(_ string, messages ...*message.Message) error {
	for _, m := range messages {
		r := rejected(m)
		g.l.Logger.Error("a message to the judge will never be answered", "reason", r.Reason, "partition", r.Origin.Partition, "offset", r.Origin.Offset)
		if err := g.l.Bury(m.Context(), []audit.Rejected{r}); err != nil {
			return err
		}
		g.l.Observer.Judged("other", "poison", r.Reason, 0)
	}
	return nil
}

// rejected is a message as it came. What the poison queue noted on it may quote it and is left out.
func rejected(m *message.Message) audit.Rejected {
	d, _ := bus.DeliveryOf(m.Context())
	r := audit.Rejected{Origin: d.Origin, Reason: reasonRequest, Detail: "not a request to the judge", Value: m.Payload}
	if request, err := judge.Decode(m.Payload); err == nil {
		r.Reason, r.Detail, r.Tenant = reasonError, "a request whose answer is refused or panics", request.Tenant
	}
	for _, name := range slices.Sorted(maps.Keys(m.Metadata)) {
		switch value := []byte(m.Metadata[name]); name {
		case bus.MetadataKey:
			r.Key = value
		case middleware.ReasonForPoisonedKey, middleware.PoisonedTopicKey, middleware.PoisonedHandlerKey, middleware.PoisonedSubscriberKey:
		default:
			r.Header = append(r.Header, audit.Header{Key: name, Value: value})
		}
	}
	return r
}

// Close implements message.Publisher.
func (*graveyard) Close() error { return nil }
