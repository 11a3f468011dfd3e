package remediation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sinks"
)

const (
	quickRetries   = 2
	shortWait      = 2 * time.Second  // a tracker that asks for more is left alone at once
	mostAttempts   = 10               // of what fails for reasons that nobody knows
	handlerTimeout = 10 * time.Minute // of one message; its tickets are few
)

// IssuesGroup is the consumer group of what people did. It is not the topic's own, which sends tickets:
// an issue that cannot be read, or an arbiter that gave up, must not hold up what is to be said.
const IssuesGroup = kafkaconn.RemediationIssues

// Run handles messages until ctx ends, in the order of middleware: correlation, poison queue, postponing,
// retry, throttle, recoverer. tickets and issues subscribe for the topic's own group and for IssuesGroup;
// Run closes them. It returns when what was out is done or drained.
func (s *Service) Run(ctx context.Context, tickets, issues message.Subscriber, a Decisions) error {
	const op = "remediation: run"
	quiet := watermill.NewSlogLoggerWithLevelMapping(s.opt.Logger, map[slog.Level]slog.Level{slog.LevelInfo: slog.LevelDebug, slog.LevelError: slog.LevelWarn})
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 10 * time.Second}, quiet)
	if err != nil {
		return audit.E(op, audit.KindInternal, err)
	}
	poison, err := middleware.PoisonQueueWithFilter(&graveyard{s}, "tickets", isPoison)
	if err != nil {
		return audit.E(op, audit.KindInternal, err)
	}
	retry := middleware.Retry{
		MaxRetries: quickRetries, InitialInterval: s.opt.Quick, Multiplier: 2, MaxInterval: 4 * s.opt.Quick, RandomizationFactor: 0.2, ResetContextOnRetry: true,
		ShouldRetry: func(p middleware.RetryParams) bool {
			return audit.KindOf(p.Err) == audit.KindUnavailable && sinks.RetryAfter(p.Err) < shortWait
		},
	}
	throttle := middleware.NewThrottle(int64(s.opt.PerSecond), time.Second)
	router.AddMiddleware(middleware.CorrelationID, bus.Correlate, poison, s.postponing, retry.Middleware, throttle.Middleware, middleware.Recoverer)
	router.AddConsumerHandler("tickets", kafkaconn.Remediation, tickets, s.handle(func(ctx context.Context, n *note) error { //nolint:contextcheck // it is given the message's
		if !n.Issue.IsZero() {
			return nil
		}
		return s.deliver(ctx, n.group())
	}))
	router.AddConsumerHandler("issues", kafkaconn.Remediation, issues, s.handle(func(ctx context.Context, n *note) error { //nolint:contextcheck // it is given the message's
		if n.Issue.IsZero() {
			return nil
		}
		return s.settle(ctx, a, n)
	}))
	if err := router.Run(ctx); err != nil {
		return audit.E(op, audit.KindUnavailable, err)
	}
	return nil
}

// handle makes a handler of what is to be done about a note.
func (*Service) handle(do func(context.Context, *note) error) message.NoPublishHandlerFunc {
	return func(m *message.Message) error {
		n, err := readNote(m.Payload)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(m.Context(), handlerTimeout)
		defer cancel()
		return do(ctx, &n)
	}
}

// isPoison tells whether a message will never be handled.
func isPoison(err error) bool {
	var panicked middleware.RecoveredPanicError
	return audit.KindOf(err) == audit.KindInvalid || errors.As(err, &panicked)
}

// postponing is a middleware: a ticket that was not sent for a reason that passes waits in the outbox,
// and the message is done. Everything else, the store's errors above all, has the message come again.
func (s *Service) postponing(h message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) ([]*message.Message, error) {
		made, err := h(m)
		var u *undelivered
		if !errors.As(err, &u) || isPoison(err) || m.Context().Err() != nil {
			return made, err
		}
		if audit.KindOf(u.err) == audit.KindInternal && u.entry.Attempts+1 >= mostAttempts {
			return made, audit.E("remediation: send", audit.KindInvalid, u.err)
		}
		return made, s.postpone(m.Context(), u)
	}
}

// graveyard is the poison queue: what it is given stands dead in the outbox, where people find it.
type graveyard struct{ s *Service }

// Publish implements message.Publisher for the poison middleware.
func (g *graveyard) Publish(_ string, messages ...*message.Message) error {
	for _, m := range messages {
		why := m.Metadata.Get(middleware.ReasonForPoisonedKey)
		n, err := readNote(m.Payload)
		if err != nil || !n.Issue.IsZero() {
			g.s.opt.Logger.Error("a message of remediation was dropped", "message", m.UUID, "error", cut(errors.New(why)))
			continue
		}
		if err := g.s.bury(m.Context(), n.group(), cut(errors.New(why))); err != nil {
			return err
		}
	}
	return nil
}

// Close implements message.Publisher.
func (*graveyard) Close() error { return nil }
