// Package door is the HTTP front of gates: GET /v1/gates, /v1/gates/{id}, /v1/gates/{id}/wait and
// /v1/gates/events, POST /v1/gates/{id}/decision.
//
// It is served behind auth.Authenticator.Middleware with the permission read; answering wants approve, and
// matched texts are shown to callers with texts or approve. A gate of another tenant is an unknown one. Who
// waits holds a connection for at most five minutes and asks again; streams end after [Options].StreamMax.
// Errors have the shape of the other doors: {"error": {code, message, details}}. What each door takes and
// answers stands in schemas/openapi.
package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/internal/reply"
)

// Path is where the doors are mounted, and Path + "/" too.
const Path = "/v1/gates"

// Options are what the program sets; zero values take the defaults.
type Options struct {
	// Held is how many callers may wait or read streams at once; more are answered 429. Default 1,000.
	Held int
	// StreamMax ends streams. Default 15m.
	StreamMax time.Duration
	// KeepAlive is how often a quiet stream shows that it is alive. Default 15s.
	KeepAlive time.Duration
	Metrics   interface {
		Request(route string, code int, took time.Duration)
	} // nil counts nothing
	Logger *slog.Logger // nil logs nothing
}

// Door serves gates. It is safe for concurrent use.
type Door struct {
	gates *gates.Service
	opt   Options
	mux   *http.ServeMux
	held  chan struct{}
	over  context.Context // of the process
	end   context.CancelFunc
}

// New makes the doors. Drain them before the server is shut down.
func New(g *gates.Service, o Options) *Door {
	if o.Held <= 0 {
		o.Held = 1000
	}
	if o.StreamMax <= 0 {
		o.StreamMax = 15 * time.Minute
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Door{gates: g, opt: o, mux: http.NewServeMux(), held: make(chan struct{}, o.Held)}
	d.over, d.end = context.WithCancel(context.Background())
	d.handle("GET", Path, d.list)
	d.handle("GET", Path+"/events", d.events)
	d.handle("GET", Path+"/{id}", d.get)
	d.handle("GET", Path+"/{id}/wait", d.wait)
	d.handle("POST", Path+"/{id}/decision", d.decide)
	d.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply.Fail(w, reply.NewFault(http.StatusNotFound, reply.NotFound, "there is nothing here; see /openapi.json", nil))
	})
	return d
}

// ServeHTTP implements http.Handler for requests with a principal.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.mux.ServeHTTP(w, r) }

// Drain ends streams and waits.
func (d *Door) Drain() { d.end() }

// handler answers itself or gives a fault.
type handler func(w http.ResponseWriter, r *http.Request, p *auth.Principal) *fault

func (d *Door) handle(method, route string, h handler) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		began, out := time.Now(), reply.Record(w)
		p := auth.From(r.Context())
		f := reply.NewFault(http.StatusUnauthorized, reply.Unauthorized, "nobody said who you are", nil)
		switch {
		case r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead):
			w.Header().Set("Allow", method)
			f = reply.NewFault(http.StatusMethodNotAllowed, reply.MethodNotAllowed, "this door takes "+method+" only", nil)
		case p != nil:
			f = h(out, r, p)
		}
		if f != nil {
			if f.Status >= http.StatusInternalServerError {
				d.opt.Logger.Warn("a gate's door failed", "route", route, "code", f.Code)
			}
			reply.Fail(out, f)
		}
		if d.opt.Metrics != nil {
			d.opt.Metrics.Request(route, out.Status(), time.Since(began))
		}
	}
	d.mux.HandleFunc(route, serve)
}

// list answers {gates, next}.
func (d *Door) list(w http.ResponseWriter, r *http.Request, p *auth.Principal) *fault {
	q := r.URL.Query()
	state, limit := audit.GateOpen, 0
	switch s := q.Get("state"); {
	case s == "all":
		state = ""
	case s != "" && !slices.Contains(audit.GateStates, audit.GateState(s)):
		return bad("state", "is not one of "+audit.List(audit.GateStates)+", all")
	case s != "":
		state = audit.GateState(s)
	}
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return bad("limit", "is not a number from 1")
		}
		limit = n
	}
	gs, next, err := d.gates.List(r.Context(), p.Tenant, state, limit, q.Get("after"))
	if err != nil {
		return failed(err)
	}
	out := struct {
		Gates []gates.Gate `json:"gates"`
		Next  *string      `json:"next"`
	}{Gates: make([]gates.Gate, len(gs))}
	for i := range gs {
		out.Gates[i] = show(&gs[i], p)
	}
	if next != "" {
		out.Next = &next
	}
	reply.JSON(w, http.StatusOK, out)
	return nil
}

func (d *Door) get(w http.ResponseWriter, r *http.Request, p *auth.Principal) *fault {
	g, f := d.read(r, p)
	if f != nil {
		return f
	}
	reply.JSON(w, http.StatusOK, show(g, p))
	return nil
}

func (d *Door) read(r *http.Request, p *auth.Principal) (*audit.HumanGate, *fault) {
	id, err := audit.ParseID(r.PathValue("id"))
	if err != nil {
		return nil, failed(gates.ErrUnknown)
	}
	g, err := d.gates.Get(r.Context(), p.Tenant, id)
	if err != nil {
		return nil, failed(err)
	}
	return g, nil
}

// Bounds of a wait, in seconds.
const (
	defaultWait = 30
	mostWait    = 300
)

// wait answers 200 once the gate is decided, and 202 when it is still open at the end of the time.
func (d *Door) wait(w http.ResponseWriter, r *http.Request, p *auth.Principal) *fault {
	seconds := float64(defaultWait)
	if s := r.URL.Query().Get("timeout"); s != "" {
		var err error
		if seconds, err = strconv.ParseFloat(s, 64); err != nil || !(seconds >= 0 && seconds <= mostWait) {
			return bad("timeout", fmt.Sprintf("is not a number of seconds in 0..%d", mostWait))
		}
	}
	g, f := d.read(r, p)
	if f != nil {
		return f
	}
	release, f := d.hold()
	if f != nil {
		return f
	}
	defer release()
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(seconds*float64(time.Second)))
	defer cancel()
	defer context.AfterFunc(d.over, cancel)() //nolint:contextcheck // of the process
	if g.State == audit.GateOpen {
		credential := auth.NewWatch(r.Context())
		defer credential.Stop()
		switch now, err := d.gates.WaitFor(ctx, g); {
		case err == nil:
			g = now
		case ctx.Err() == nil:
			return failed(err)
		}
		if gone := credential.Look(r.Context()); gone != nil { // withdrawn while it waited
			gone.Challenge(w.Header())
			return refused(gone)
		}
	}
	if g.State == audit.GateOpen {
		reply.JSON(w, http.StatusAccepted, show(g, p))
		return nil
	}
	reply.JSON(w, http.StatusOK, show(g, p))
	return nil
}

// hold takes a place among those who wait.
func (d *Door) hold() (release func(), f *fault) {
	select {
	case d.held <- struct{}{}:
		return func() { <-d.held }, nil
	default:
		return nil, reply.NewFault(http.StatusTooManyRequests, reply.Overloaded, "too many wait at once; try again after the time in Retry-After", nil)
	}
}

// maxBody bounds a decision, in bytes.
const maxBody = 64 << 10

// slowestBody is how long a decision may take to come.
const slowestBody = 10 * time.Second

// decide answers 200 with the gate when the caller's answer holds, and 409 with it when another's does.
func (d *Door) decide(w http.ResponseWriter, r *http.Request, p *auth.Principal) *fault {
	if !p.Can(auth.Approve) {
		return failed(gates.ErrNoPermission)
	}
	a, f := readAnswer(w, r)
	if f != nil {
		return f
	}
	id, err := audit.ParseID(r.PathValue("id"))
	if err != nil {
		return failed(gates.ErrUnknown)
	}
	g, mine, err := d.gates.Decide(r.Context(), id, p, a)
	switch {
	case err != nil:
		return failed(err)
	case !mine:
		return reply.NewFault(http.StatusConflict, "CONFLICT", "the gate was decided otherwise, or by another; see details.gate", map[string]any{"gate": show(g, p)})
	}
	reply.JSON(w, http.StatusOK, show(g, p))
	return nil
}

// readAnswer reads {decision, note}.
func readAnswer(w http.ResponseWriter, r *http.Request) (a gates.Answer, f *fault) {
	conn := http.NewResponseController(w) // in tests there may be none
	_ = conn.SetReadDeadline(time.Now().Add(slowestBody))
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	var in struct {
		Decision string `json:"decision"`
		Note     string `json:"note"`
	}
	err := dec.Decode(&in)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return a, reply.NewFault(http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE", fmt.Sprintf("the body has more than %d bytes", maxBody), nil)
	case err != nil:
		return a, bad("", "wants a JSON object with the fields decision and note")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return a, bad("", "something follows the object")
	}
	_ = conn.SetReadDeadline(time.Time{}) // the server reads on, to see the caller leave
	switch in.Decision {
	case "approve":
		return gates.Answer{Approve: true, Note: in.Note}, nil
	case "deny":
		return gates.Answer{Note: in.Note}, nil
	}
	return a, bad("decision", "is neither approve nor deny")
}

func show(g *audit.HumanGate, p *auth.Principal) gates.Gate { return gates.Show(g, gates.Reads(p)) }
