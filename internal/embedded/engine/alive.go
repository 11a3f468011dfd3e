package engine

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

// unanswered is how many questions in a row a child leaves without an answer before it counts as hung.
const unanswered = 3

// watch asks the child again and again whether it answers, and tells why it counts as hung, once. It ends with ctx or
// with stop, which waits for it.
func (e *Engine) watch(ctx context.Context, p ports) (hung <-chan error, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	told, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		if err := e.ask(ctx, p); err != nil {
			told <- err
		}
	}()
	return told, func() { cancel(); <-done }
}

// ask returns an error when the child counts as hung, nil when ctx has ended. It keeps to one connection: a sign-in
// that is given up can end an engine that is only slow.
func (e *Engine) ask(ctx context.Context, p ports) error {
	const op = "embedded/engine: ask child"
	cfg := e.Config(Writer)
	cfg.Database, cfg.MaxConns, cfg.IdleConns = "", 1, 1
	cfg.DialTimeout = e.opts.AnswerWithin // the handshake heeds no context
	conn, err := chconn.Open(cfg)
	if err != nil {
		return nil //nolint:nilerr // a fault of the configuration, which the start would have met
	}
	defer func() { _ = conn.Close() }()
	for silent := 0; sleep(ctx, e.opts.AskEvery); {
		limited, cancel := context.WithTimeout(ctx, e.opts.AnswerWithin)
		err := conn.Exec(limited, "SELECT 1 FORMAT Null")
		cancel()
		switch {
		case answered(err):
			silent = 0
		case ctx.Err() == nil:
			if silent++; silent == unanswered {
				return audit.E(op, audit.KindUnavailable, fmt.Errorf("engine process %d left %d questions in a row unanswered, each for %s: %w; more in %s",
					p.PID, unanswered, e.opts.AnswerWithin, chconn.Wrap("query", err), e.files.errorLog()))
			}
		}
	}
	return nil
}

// answered tells whether the engine said anything. A refusal, for want of memory say, is an answer; that this process has
// no file descriptors left tells nothing of the engine.
func answered(err error) bool {
	if _, refused := errors.AsType[*clickhouse.Exception](err); refused {
		return true
	}
	return err == nil || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
