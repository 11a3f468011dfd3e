package door

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/internal/reply"
)

// writeLimit is how long a reader may take nothing until its connection is given up.
const writeLimit = 30 * time.Second

// events streams gates as they are opened and decided (server-sent events): id, event (gate.opened or
// gate.decided), data (the gate). Last-Event-ID goes on after an event. A credential that no longer holds ends
// it with an event error, whose data is what a new request would be answered.
func (d *Door) events(w http.ResponseWriter, r *http.Request, p *auth.Principal) *fault {
	release, f := d.hold()
	if f != nil {
		return f
	}
	defer release()
	ctx, cancel := context.WithTimeout(r.Context(), d.opt.StreamMax)
	defer cancel()
	defer context.AfterFunc(d.over, cancel)() //nolint:contextcheck // of the process
	s := &stream{w: w, control: http.NewResponseController(w)}
	news, done := make(chan gates.Event), make(chan error, 1)
	go func() {
		defer close(news)
		for e, err := range d.gates.Events(ctx, p.Tenant, r.Header.Get("Last-Event-ID")) {
			if err != nil {
				done <- err
				return
			}
			select {
			case news <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range news { // until it has ended
		}
	}()
	alive := time.NewTicker(d.opt.KeepAlive)
	defer alive.Stop()
	credential := auth.NewWatch(ctx)
	defer credential.Stop()
	// Headers go out with the first thing to say, at the latest now: a fault of the start is still an answer.
	select {
	case e, more := <-news:
		if !more {
			return d.ended(done)
		}
		s.begin()
		s.event(&e, p)
	case <-time.After(time.Second):
		s.begin()
		s.send(": open\n\n")
	}
	for s.err == nil {
		select {
		case e, more := <-news:
			if !more {
				return nil
			}
			s.event(&e, p)
		case <-credential.C:
			if gone := credential.Look(ctx); gone != nil && ctx.Err() == nil {
				s.refused(refused(gone))
				return nil
			}
		case <-alive.C:
			s.send(": alive\n\n")
		}
	}
	return nil
}

// ended is what is answered when there was nothing to stream.
func (d *Door) ended(done <-chan error) *fault {
	select {
	case err := <-done:
		return failed(err)
	default:
		return reply.NewFault(http.StatusServiceUnavailable, reply.Unavailable, "this server is going down; ask again", nil)
	}
}

type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *stream) begin() {
	h := s.w.Header()
	reply.Headers(h, "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
}

func (s *stream) event(e *gates.Event, p *auth.Principal) {
	b, err := json.Marshal(show(&e.Gate, p)) // one line
	if err != nil {
		s.err = err
		return
	}
	s.send(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Type, b))
}

// refused tells why the stream ends.
func (s *stream) refused(f *fault) {
	b, _ := json.Marshal(map[string]*fault{"error": f}) // strings only
	s.send(fmt.Sprintf("event: error\ndata: %s\n\n", b))
}

func (s *stream) send(text string) {
	if s.err == nil {
		_ = s.control.SetWriteDeadline(time.Now().Add(writeLimit))
		if _, s.err = s.w.Write([]byte(text)); s.err == nil {
			s.err = s.control.Flush()
		}
	}
}
