package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/internal/reply"
)

// writeLimit is how long a reader may take nothing until its connection is given up.
const writeLimit = 30 * time.Second

// stream answers by server-sent events: "next" for each result, "complete" at the end, comments while it
// is quiet. What ends it early is told in a last result.
func (h *Handler) stream(ctx context.Context, w *answer, opCtx *graphql.OperationContext, errs gqlerror.List) {
	s := &sender{w: w, control: http.NewResponseController(w)}
	defer s.done()
	if len(errs) > 0 {
		s.begin()
		s.next(refusal{errs})
		s.complete()
		return
	}
	limit := h.cfg.StreamMax
	if opCtx.Operation.Operation != ast.Subscription {
		release, ok := h.room()
		if !ok {
			w.fail(http.StatusTooManyRequests, errNoRoom())
			return
		}
		defer release()
		limit = h.cfg.Timeout
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := &ending{}
	ctx = context.WithValue(ctx, endingKey{}, end)
	results, wait := h.results(ctx, opCtx)
	defer wait()
	defer cancel() // before waiting
	alive, over := time.NewTicker(h.cfg.KeepAlive), time.NewTimer(limit)
	defer alive.Stop()
	defer over.Stop()
	credential := auth.NewWatch(ctx)
	defer credential.Stop()
	s.begin()
	for s.err == nil {
		select {
		case res, more := <-results:
			if !more {
				if e := end.get(); e != nil {
					s.next(refusal{gqlerror.List{e}})
				}
				s.complete()
				return
			}
			s.event(res)
			alive.Reset(h.cfg.KeepAlive)
		case <-alive.C:
			s.comment()
		case <-credential.C:
			if d := credential.Look(ctx); d != nil {
				s.last(denied(d))
				return
			}
		case <-over.C:
			s.last(refuse(Unavailable, "the time of this stream is over; subscribe again"))
			return
		case <-h.draining:
			s.last(refuse(Unavailable, "this server is going down; subscribe again"))
			return
		case <-ctx.Done():
			return
		}
	}
}

// results runs the operation beside the writer; wait returns once it has ended. Results are encoded here,
// since the next one is written into the memory of the one before.
func (h *Handler) results(ctx context.Context, opCtx *graphql.OperationContext) (<-chan []byte, func()) {
	responses, ctx := h.exec.DispatchOperation(ctx, opCtx)
	out := make(chan []byte)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(out)
		defer func() {
			if p := recover(); p != nil {
				h.log.Error("graphql panicked", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
				endStream(ctx, refuse(Internal, "internal error"))
			}
		}()
		for {
			res := responses(ctx)
			if res == nil {
				return
			}
			select {
			case out <- encoded(res):
			case <-ctx.Done():
				return
			}
		}
	})
	return out, wg.Wait
}

// ending is why a subscription's channel was closed before its client left.
type ending struct {
	mu  sync.Mutex
	err *gqlerror.Error
}

type endingKey struct{}

func (e *ending) get() *gqlerror.Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// endStream says why the stream of a subscription ends; without one it does nothing.
func endStream(ctx context.Context, err *gqlerror.Error) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		e.mu.Lock()
		e.err = err
		e.mu.Unlock()
	}
}

// sender writes events; after the first error it writes nothing.
type sender struct {
	w       *answer
	control *http.ResponseController
	err     error
}

func (s *sender) begin() {
	h := s.w.Header()
	reply.Headers(h, "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // proxies of nginx's kind would hold events back
	s.w.WriteHeader(http.StatusOK)
	s.write(":\n\n")
}

func (s *sender) comment() { s.write(":\n\n") }

func (s *sender) next(res any) { s.event(encoded(res)) }

// event sends a result, which has no line breaks.
func (s *sender) event(res []byte) { s.write("event: next\ndata: " + string(res) + "\n\n") }

func encoded(res any) []byte {
	b, err := json.Marshal(res)
	if err != nil { // a resolver's JSON that is none
		return []byte(internalError)
	}
	return b
}

// last tells why the stream ends.
func (s *sender) last(err *gqlerror.Error) {
	s.next(refusal{gqlerror.List{err}})
	s.complete()
}

// complete bears a data line, without which browsers' parsers drop the event.
func (s *sender) complete() { s.write("event: complete\ndata:\n\n") }

// done leaves the connection to its next request.
func (s *sender) done() { _ = s.control.SetWriteDeadline(time.Time{}) }

func (s *sender) write(text string) {
	if s.err != nil {
		return
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(writeLimit)) // not every writer of a test has one
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.control.Flush()
	}
}
