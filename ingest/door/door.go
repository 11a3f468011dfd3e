// Package door is the HTTP front of ingestion: events go in through POST /v1/interactions, bare, and POST
// /v1/cloudevents; what LiteLLM logs through POST /v1/litellm, and what OpenTelemetry instrumentation tells of calls
// through OTLP's doors (package otlp), which answer as that protocol says; texts are judged without being kept through
// POST /analyze-bias (seed 003) and POST /v1/evaluate (seed 002), and judged in line, which makes an event of each,
// through POST /v1/guard and LiteLLM's guardrail door; calls whose response does not pass are made again through POST /v1/replay.
//
// A door checks by the rules of package ingest before anything is produced and answers 202 only after
// the broker's acknowledgement; a request with one bad event takes none. Who calls is told by package auth
// before anything is read; the tenant is the credential's. Faults of the caller are 4xx
// and name every field; 429 and 503 ask to try again. Bodies are at most 16 MiB, at LiteLLM's guardrail 48, unpacked where they are gzip. Answers to faults and
// logs hold no text of people. What each door takes and answers stands in schemas/openapi.
package door

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/otlp"
	"github.com/evenhand/evenhand/internal/reply"
	"github.com/evenhand/evenhand/schemas/events"
	"github.com/evenhand/evenhand/schemas/openapi"
)

// Message is one message for the topic llm.interactions.
type Message = ingest.Message

// Producer writes to the log; of its errors overloaded becomes 429, unavailable 503, invalid 413.
type Producer = ingest.Producer

// Metrics counts requests; route is a pattern of the mux, never a path that a caller chose.
type Metrics interface {
	Request(route string, code int, took time.Duration)
}

// Guard lets callers in; its errors are those of package auth.
type Guard interface {
	Admit(r *http.Request, what auth.Permission) (*auth.Principal, error)
}

// Limits bound what the doors take. Zero means the default of that limit.
type Limits struct {
	Body int64 // bytes of a request. Default 16 MiB
	// BodyTime is how long a body may take to come: slow senders do not hold the places of others. Default 1 minute.
	BodyTime time.Duration
	Events   int // events of a request. Default 10,000
	Message  int // bytes of one message: key, stamped event and headers. Default: the decoder's limit alone
	InFlight int // requests served at once; more are answered 429. Default 64
}

// Deps are what the doors work with. A door whose part is nil is not served.
type Deps struct {
	Decoder  *ingest.Decoder
	Producer Producer                                                  // POST /v1/interactions, /v1/cloudevents
	Analyze  func(context.Context, *audit.Interaction) *audit.Verdict  // POST /analyze-bias
	Evaluate func(ctx context.Context, r EvaluateRequest) (any, error) // POST /v1/evaluate; its answer is sent as JSON
	Replay   func(ctx context.Context, r ReplayRequest) (any, error)   // POST /v1/replay; its answer is sent as JSON
	Advice   func(rule string) audit.Advice                            // what a rule suggests; nil names no wording
	Join     Joiner                                                    // POST /v1/litellm, and OTLP: /v1/traces, /v1/logs, /api/public/otel/v1/traces
	OTLP     otlp.Names                                                // attributes that OTLP's spans tell tenant and domain by
	Inline   *Inline                                                   // POST /v1/guard and LiteLLM's guardrail door
	Stopping context.Context                                           // ends waiting for people; nil is never
	Auth     Guard                                                     // nil lets nobody in
	Limits   Limits                                                    //
	Metrics  Metrics                                                   // nil counts nothing
	Logger   *slog.Logger                                              // nil logs nothing
	Now      func() time.Time                                          // nil is time.Now
}

// server holds the deps with their defaults.
type server struct {
	Deps
	slots   chan struct{}
	reading chan struct{} // payloads of OTLP that are decoded at once
	large   chan struct{} // bodies above Limits.Body that are read and worked on at once
	waiting chan struct{} // requests that wait for people
	last    atomic.Pointer[lastOptions]
	asking  chan struct{} // evaluations that wait for a model
	heard   *heard
}

// Handler serves the doors. Unknown paths are answered 404, wrong methods 405, both as JSON.
func Handler(d Deps) http.Handler {
	s := &server{Deps: d, heard: newHeard()}
	if s.Limits.Body <= 0 {
		s.Limits.Body = 16 << 20
	}
	if s.Limits.BodyTime <= 0 {
		s.Limits.BodyTime = time.Minute
	}
	if s.Limits.Events <= 0 {
		s.Limits.Events = 10_000
	}
	if s.Limits.InFlight <= 0 {
		s.Limits.InFlight = 64
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	s.slots, s.waiting = make(chan struct{}, s.Limits.InFlight), make(chan struct{}, maxWaiting)
	s.asking = make(chan struct{}, maxAsking)
	s.reading = make(chan struct{}, runtime.GOMAXPROCS(0))
	s.large = make(chan struct{}, maxLarge)

	mux := http.NewServeMux()
	post := func(path string, what auth.Permission, served bool, h handler) {
		if served {
			mux.Handle(path, s.route(path, http.MethodPost, s.guarded(what, h)))
		}
	}
	post("/v1/interactions", auth.Ingest, d.Producer != nil, s.interactions)
	post("/v1/cloudevents", auth.Ingest, d.Producer != nil, s.cloudEvents)
	post("/v1/litellm", auth.Ingest, d.Join != nil, s.logged)
	post("/analyze-bias", auth.Analyze, d.Analyze != nil, s.analyzeBias)
	post("/v1/evaluate", auth.Analyze, d.Evaluate != nil, s.evaluate)
	post("/v1/replay", auth.Guard, d.Replay != nil && d.Producer != nil, s.replay)
	post("/v1/guard", auth.Guard, d.Inline != nil, s.guard)
	if d.Inline != nil && d.Inline.Parts != nil {
		mux.Handle(liteLLMDoor, s.route(liteLLMDoor, http.MethodPost, s.guardedUpTo(auth.Guard, liteLLMBodies*s.Limits.Body, s.liteLLM)))
	}
	if d.Join != nil {
		traces, logs := otlp.Traces(d.OTLP), otlp.Logs(d.OTLP)
		mux.Handle("/v1/traces", s.otlp("/v1/traces", traces, false))
		mux.Handle("/v1/logs", s.otlp("/v1/logs", logs, false))
		mux.Handle("/api/public/otel/v1/traces", s.otlp("/api/public/otel/v1/traces", traces, true)) // Langfuse's SDK
	}
	file := func(path string, content []byte) {
		mux.Handle(path, s.route(path, http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(content)
		}))
	}
	file("/openapi.json", openapi.Document)
	file("/schemas/events/interaction.v1.json", events.Interaction)
	mux.Handle("/", s.route("other", "", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, reply.NewFault(http.StatusNotFound, reply.NotFound, "there is nothing here; see /openapi.json", nil))
	}))
	return mux
}

// tenant gives the tenant that holds for all of the request's events; "" leaves it to each payload and then
// to tenant.default, which is so only while authentication is off and the header names none.
func tenant(r *http.Request) (string, *fault) {
	p := auth.From(r.Context())
	switch {
	case !p.Verified && p.Assumed:
		return "", nil
	case p.Tenant == "":
		return "", refused(auth.NoTenant())
	}
	return p.Tenant, nil
}
