package door

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/reply"
)

// handler serves a request whose body was read; it answers itself or gives a fault.
type handler func(w http.ResponseWriter, r *http.Request, body []byte) *fault

// route counts requests, refuses other methods ("" takes all) and turns a panic into a 500. The
// panic's value may hold text of people: only its type and the stack are logged.
func (s *server) route(pattern, method string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, out := time.Now(), reply.Record(w)
		defer func() {
			if p := recover(); p != nil {
				s.Logger.Error("request panicked", "route", pattern, "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
				if !out.Answered() {
					fail(out, reply.NewFault(http.StatusInternalServerError, reply.Internal, "internal error", nil))
				}
			}
			if s.Metrics != nil {
				s.Metrics.Request(pattern, out.Status(), time.Since(began))
			}
		}()
		if method != "" && r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead) {
			out.Header().Set("Allow", method)
			fail(out, reply.NewFault(http.StatusMethodNotAllowed, reply.MethodNotAllowed, "this door takes "+method+" only", nil))
			return
		}
		next(out, r)
	})
}

// guarded asks who calls, for room, and for a body within the limit, in this order: strangers cost
// no memory.
func (s *server) guarded(what auth.Permission, next handler) http.HandlerFunc {
	return s.guardedUpTo(what, s.Limits.Body, next)
}

// guardedUpTo is for doors that take longer bodies than others: few of those at once, the others wait.
func (s *server) guardedUpTo(what auth.Permission, most int64, next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := s.admit(r, what)
		if err != nil {
			auth.DeniedBy(err).Challenge(w.Header())
			fail(w, refused(err))
			return
		}
		select {
		case s.slots <- struct{}{}:
		default:
			fail(w, reply.NewFault(http.StatusTooManyRequests, reply.Overloaded, "too many requests at once; try again after the time in Retry-After", nil))
			return
		}
		large := false
		leave := sync.OnceFunc(func() {
			if <-s.slots; large {
				<-s.large
			}
		})
		defer leave()
		r = r.WithContext(context.WithValue(auth.With(r.Context(), p), slotKey{}, leave))
		body, f := s.body(w, r, most, &large)
		if f == nil {
			f = next(w, r, body)
		}
		if f != nil {
			fail(w, f)
		}
	}
}

type slotKey struct{}

// leaveSlot makes room for others: who waits for a person does no work.
func leaveSlot(ctx context.Context) {
	if leave, ok := ctx.Value(slotKey{}).(func()); ok {
		leave()
	}
}

// admit lets nobody in where nothing says who may.
func (s *server) admit(r *http.Request, what auth.Permission) (*auth.Principal, error) {
	if s.Auth == nil {
		return nil, errors.New("no authentication")
	}
	return s.Auth.Admit(r, what)
}

// promised is for how many bytes of a body room is made before they are there: nobody has memory reserved by a header.
const promised = 64 << 10

// body reads a body of at most most bytes. For one that is longer than most doors take, it waits for one of the places of such, and sets large.
func (s *server) body(w http.ResponseWriter, r *http.Request, most int64, large *bool) ([]byte, *fault) {
	conn := http.NewResponseController(w) // in tests there may be no connection, then there is no deadline
	_ = conn.SetReadDeadline(time.Now().Add(s.Limits.BodyTime))
	from := http.MaxBytesReader(w, r.Body, most)
	var err error
	switch e := strings.ToLower(r.Header.Get("Content-Encoding")); e {
	case "", "identity":
	case "gzip", "x-gzip":
		if from, err = gzip.NewReader(from); err != nil {
			return nil, reply.NewFault(http.StatusBadRequest, reply.BadRequest, "the body is no gzip", nil)
		}
	default:
		return nil, reply.NewFault(http.StatusUnsupportedMediaType, reply.UnsupportedMedia, "bodies are taken without Content-Encoding, or with gzip", nil)
	}
	var b bytes.Buffer
	b.Grow(int(min(max(r.ContentLength, 0), promised)) + bytes.MinRead)
	_, err = b.ReadFrom(io.LimitReader(from, s.Limits.Body+1)) // the limit holds for what comes out of gzip too
	if err == nil && int64(b.Len()) > s.Limits.Body && most > s.Limits.Body {
		select {
		case s.large <- struct{}{}:
			*large = true
		case <-r.Context().Done():
			return nil, reply.NewFault(http.StatusBadRequest, reply.BadRequest, "the body broke off, or did not come in time", nil)
		}
		_ = conn.SetReadDeadline(time.Now().Add(s.Limits.BodyTime))
		_, err = b.ReadFrom(io.LimitReader(from, most+1-int64(b.Len())))
	}
	body := b.Bytes()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), int64(len(body)) > most:
		return nil, reply.NewFault(http.StatusRequestEntityTooLarge, reply.TooLarge, fmt.Sprintf("the body has more than %d bytes; send it in parts", most), nil)
	case err != nil:
		return nil, reply.NewFault(http.StatusBadRequest, reply.BadRequest, "the body broke off, or did not come in time", nil)
	}
	if rest, ok := bytes.CutPrefix(body, ingest.Mark); ok && len(rest) > 0 && (rest[0] == '{' || rest[0] == '[') {
		body = rest // JSON of a file
	}
	_ = conn.SetReadDeadline(time.Time{}) // the server reads on, to see the caller leave
	return body, nil
}
