// Package llmtest stands in for a language model's server: a scripted one that is strict about what it is asked, and
// a recorder that repeats a real one's answers.
package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// URL is the base URL of a server that is reached through [Server.Transport].
const URL = "http://localhost/v1"

// Config is what the server wants.
type Config struct {
	Key        string   // "": none
	KeyHeader  string   // "": Authorization, as Bearer
	APIVersion string   // Azure's paths and api-version; "": OpenAI's
	Refuses    []string // what it does not take: json_schema, json_object, temperature, seed, max_tokens
	Terse      bool     // refuses without saying why
}

// Server answers chat completions from a script. A request that OpenAI would not take is answered 400 and fails the test.
type Server struct {
	t      testing.TB
	cfg    Config
	answer func(n int, a Asked) Reply

	mu    sync.Mutex
	asked []Asked
}

// New makes a server that gives each reply once, in order; a question more fails the test.
func New(t testing.TB, c Config, script ...Reply) *Server {
	return NewFunc(t, c, func(n int, _ Asked) Reply {
		if n >= len(script) {
			t.Errorf("llmtest: asked %d times; the script has %d replies", n+1, len(script))
			return Fail(http.StatusTeapot)
		}
		return script[n]
	})
}

// NewFunc makes a server whose n-th answer, from 0, is chosen by what it is asked; refusals of Config.Refuses do not count.
// The function may be called at once by several goroutines.
func NewFunc(t testing.TB, c Config, answer func(n int, a Asked) Reply) *Server {
	return &Server{t: t, cfg: c, answer: answer}
}

// Asked gives the questions that reached the script so far.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Listen serves on 127.0.0.1 until the test ends, and gives the base URL (Azure's resource, with an APIVersion).
func (s *Server) Listen() string {
	h := httptest.NewServer(s)
	s.t.Cleanup(h.Close)
	if s.cfg.APIVersion != "" {
		return h.URL
	}
	return h.URL + "/v1"
}

// Transport reaches the server in memory, so that a test of package testing/synctest has its clock. Close idle
// connections, and call stop, before the bubble ends.
func (s *Server) Transport() (transport *http.Transport, stop func()) {
	l := &pipe{conns: make(chan net.Conn), done: make(chan struct{})}
	h := &http.Server{Handler: s}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Serve(l)
	}()
	transport = &http.Transport{DialContext: l.dial, MaxIdleConnsPerHost: 64}
	return transport, func() {
		transport.CloseIdleConnections()
		_ = h.Close()
		<-ended
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err != nil {
		return // the caller went away
	}
	a, err := s.cfg.read(r, body)
	if err != nil {
		s.t.Errorf("llmtest: a request that no server would take: %v", err)
		refuse(w, http.StatusBadRequest, "", "", err.Error())
		return
	}
	if field := s.cfg.refused(a); field != "" {
		if s.cfg.Terse {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		refuse(w, http.StatusBadRequest, "unsupported_parameter", field, fmt.Sprintf("Unsupported parameter: '%s' is not supported with this model.", field))
		return
	}
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, a)
	s.mu.Unlock()
	s.answer(n, a)(w, r, a)
}

// refused gives the first field that the server does not take.
func (c Config) refused(a Asked) string {
	for _, f := range []struct {
		name, field string
		given       bool
	}{{"json_schema", "response_format", a.Form() == "json_schema"}, {"json_object", "response_format", a.Form() == "json_object"},
		{"temperature", "temperature", a.Temperature != nil}, {"seed", "seed", a.Seed != nil}, {"max_tokens", "max_tokens", a.MaxTokens != nil}} {
		if f.given && slices.Contains(c.Refuses, f.name) {
			return f.field
		}
	}
	return ""
}

// refuse answers in OpenAI's shape.
func refuse(w http.ResponseWriter, status int, code, param, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": orNull(param), "code": orNull(code)}})
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// pipe is a listener in memory.
type pipe struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("refused")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Name: "llmtest"} }
