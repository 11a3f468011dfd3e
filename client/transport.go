package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
)

// Transport is an http.RoundTripper that judges what models say: put it under any client of an OpenAI-compatible API.
// Requests to other paths, answers that are no success, and everything about a call but an answer that may not pass
// stay as they are. It is safe for concurrent use.
type Transport struct {
	next    http.RoundTripper
	decider Decider
	o       Options

	calls, judged, warned, blocked, unchecked, unread atomic.Uint64
}

// TransportStats are counts since the start.
type TransportStats struct {
	Calls     uint64 // to a model
	Judged    uint64 // of which the answer was judged
	Warned    uint64
	Blocked   uint64 // gates that were denied included
	Unchecked uint64 // whose answer could not be judged, passed or not
	Unread    uint64 // whose prompt is not on record: too large, or no JSON
}

// NewTransport puts a decider over next; nil is http.DefaultTransport. Every fault of the options is told at once.
func NewTransport(next http.RoundTripper, d Decider, o Options) (*Transport, error) {
	const op = "client: new transport"
	if next == nil {
		next = http.DefaultTransport
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	err := o.validate()
	switch {
	case d == nil:
		err = errors.Join(err, errors.New("a decider is needed: see NewInProcess and NewRemote"))
	case err == nil:
		err = d.check(&o)
	}
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	return &Transport{next: next, decider: d, o: o}, nil
}

// Wrap gives a copy of a client whose calls are judged.
func Wrap(c *http.Client, d Decider, o Options) (*http.Client, error) {
	t, err := NewTransport(c.Transport, d, o)
	if err != nil {
		return nil, err
	}
	wrapped := *c
	wrapped.Transport = t
	return &wrapped, nil
}

// Stats counts.
func (t *Transport) Stats() TransportStats {
	return TransportStats{t.calls.Load(), t.judged.Load(), t.warned.Load(), t.blocked.Load(), t.unchecked.Load(), t.unread.Load()}
}

// CloseIdleConnections does so beneath.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// dialectOf tells how a request asks a model, nil when it does not.
func dialectOf(r *http.Request) dialect {
	switch {
	case r.Method != http.MethodPost || r.URL == nil:
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(r.URL.Path, "/responses"):
		return responses{}
	}
	return nil
}

// RoundTrip makes one call. An answer that may not pass is an error, errors.As finds which; of a stream in windows
// the body's Read gives it.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	d := dialectOf(req)
	if d == nil {
		return t.next.RoundTrip(req)
	}
	t.calls.Add(1)
	c, out, err := t.begin(req, d)
	if err != nil {
		return nil, err
	}
	if c.background && t.o.stops() { // its answer is fetched later, past us
		if stop := c.cannot("background responses are fetched past the client", nil); stop != nil {
			_ = out.Body.Close()
			return c.refuse(req, stop)
		}
	}
	res, err := t.next.RoundTrip(out)
	if err != nil {
		c.finish(Failed, "the provider was not reached")
		return nil, err
	}
	res.Request = req
	if res.StatusCode/100 != 2 {
		c.finish(Failed, fmt.Sprintf("the provider answered %d", res.StatusCode))
		return res, nil
	}
	return c.answered(req, res)
}

// begin reads what a request asks and gives it anew, to be sent.
func (t *Transport) begin(req *http.Request, d dialect) (*call, *http.Request, error) {
	c := newCall(t, req, d)
	out := *req
	if req.Body == nil || req.Body == http.NoBody {
		c.describe(req, nil)
		return c, &out, nil
	}
	raw, over, err := readUpTo(req.Body, t.o.BodyBytes)
	if err != nil {
		_ = req.Body.Close()
		return nil, nil, err // as if the request could not be sent
	}
	if over {
		out.Body = &joined{io.MultiReader(bytes.NewReader(raw), req.Body), req.Body}
		raw = nil
	} else {
		_ = req.Body.Close()
		out.Body = io.NopCloser(bytes.NewReader(raw))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	}
	if req.Header.Get("Content-Encoding") != "" {
		raw = nil
	}
	c.describe(req, raw)
	return c, &out, nil
}

// joined reads from one and closes another.
type joined struct {
	io.Reader
	io.Closer
}

// readUpTo reads at most n bytes; over tells that there are more.
func readUpTo(r io.Reader, n int64) (b []byte, over bool, err error) {
	var buf bytes.Buffer
	_, err = buf.ReadFrom(io.LimitReader(r, n+1))
	return buf.Bytes(), int64(buf.Len()) > n, err
}

// retries is what the official clients (openai-go and others made by Stainless) send with each attempt. They repeat a
// call that failed without an answer: so these get one, which says that it is not to be repeated and whose body fails.
const retries = "X-Stainless-Retry-Count"

// refuse gives the error in the place of the answer.
func (c *call) refuse(req *http.Request, stop error) (*http.Response, error) {
	if req.Header.Get(retries) == "" {
		return nil, stop
	}
	status := http.StatusBadRequest
	var denied *HumanGateDeniedError
	if errors.As(stop, &denied) {
		status = http.StatusForbidden
	}
	h := http.Header{"Content-Type": {"application/json"}, "X-Should-Retry": {"false"}}
	c.report.describe(h)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(failing{stop}), ContentLength: -1, Request: req,
	}, nil
}

// failing is a body that cannot be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// tally counts what became of a call.
func (t *Transport) tally(a guard.Action) {
	switch a {
	case Unchecked:
		t.unchecked.Add(1)
		return
	case guard.Warn:
		t.warned.Add(1)
	case guard.Block:
		t.blocked.Add(1)
	}
	t.judged.Add(1)
}
