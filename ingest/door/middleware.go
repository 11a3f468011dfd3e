package door

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// handler serves a request whose body was read; it answers itself or gives a fault.
type handler func(w http.ResponseWriter, r *http.Request, body []byte) *fault

// route counts requests, refuses other methods ("" takes all) and turns a panic into a 500. The
// panic's value may hold text of people: only its type and the stack are logged.
func (s *server) route(pattern, method string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, out := time.Now(), &recorder{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				s.Logger.Error("request panicked", "route", pattern, "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
				if out.status == 0 {
					fail(out, &fault{http.StatusInternalServerError, CodeInternal, "internal error", nil})
				}
			}
			if s.Metrics != nil {
				s.Metrics.Request(pattern, out.code(), time.Since(began))
			}
		}()
		if method != "" && r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead) {
			out.Header().Set("Allow", method)
			fail(out, &fault{http.StatusMethodNotAllowed, CodeMethodNotAllowed, "this door takes " + method + " only", nil})
			return
		}
		next(out, r)
	})
}

// recorder remembers the status for the metrics.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// guarded asks for the key, for room, and for a body within the limit, in this order: strangers cost
// no memory.
func (s *server) guarded(next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.authorized(r) {
			fail(w, &fault{http.StatusUnauthorized, CodeUnauthorized, "send the API key as Authorization: Bearer … or X-API-Key", nil})
			return
		}
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		default:
			fail(w, &fault{http.StatusTooManyRequests, CodeOverloaded, "too many requests at once; try again after the time in Retry-After", nil})
			return
		}
		body, f := s.body(w, r)
		if f == nil {
			f = next(w, r, body)
		}
		if f != nil {
			fail(w, f)
		}
	}
}

func hashKey(key string) [32]byte { return sha256.Sum256([]byte(key)) }

// authorized compares hashes in constant time: neither the key's length nor its start can be timed.
func (s *server) authorized(r *http.Request) bool {
	if s.APIKey == "" {
		return true
	}
	given := r.Header.Get("X-API-Key")
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		given = strings.TrimSpace(token)
	}
	h := hashKey(given)
	return subtle.ConstantTimeCompare(h[:], s.key[:]) == 1
}

func (s *server) body(w http.ResponseWriter, r *http.Request) ([]byte, *fault) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, &fault{http.StatusUnsupportedMediaType, CodeUnsupportedMedia, "bodies are taken without Content-Encoding only", nil}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.Limits.Body))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &fault{http.StatusRequestEntityTooLarge, CodeTooLarge, fmt.Sprintf("the body has more than %d bytes; send it in parts", s.Limits.Body), nil}
	case err != nil:
		return nil, &fault{http.StatusBadRequest, CodeBadRequest, "the body broke off", nil}
	}
	return body, nil
}
