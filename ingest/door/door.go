// Package door is the HTTP front of ingestion: events go in through POST /v1/interactions, texts are
// judged without being kept through POST /analyze-bias (seed 003) and POST /v1/evaluate (seed 002).
//
// A door checks by the rules of package ingest before anything is produced and answers 202 only after
// the broker's acknowledgement; a request with one bad event takes none. Faults of the caller are 4xx
// and name every field; 429 and 503 ask to try again. Bodies are at most 16 MiB. Answers to faults and
// logs hold no text of people. What each door takes and answers stands in schemas/openapi.
package door

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/schemas/events"
	"github.com/evenhand/evenhand/schemas/openapi"
)

// Message is one message for the topic llm.interactions.
type Message struct {
	Key     []byte // the event's id
	Value   []byte // the event in its canonical form, id and time stamped
	Headers []audit.Header
}

// Producer writes to the log. Produce returns after the broker acknowledged all messages; its errors
// are classed (audit.KindOf): overloaded becomes 429, unavailable 503, invalid 413.
type Producer interface {
	Produce(ctx context.Context, ms []Message) error
}

// Metrics counts requests; route is a pattern of the mux, never a path that a caller chose.
type Metrics interface {
	Request(route string, code int, took time.Duration)
}

// Limits bound what the doors take. Zero means the default of that limit.
type Limits struct {
	Body     int64 // bytes of a request. Default 16 MiB
	Events   int   // events of a request. Default 10,000
	Message  int   // bytes of one message: key, stamped event and headers. Default: the decoder's limit alone
	InFlight int   // requests served at once; more are answered 429. Default 64
}

// Deps are what the doors work with. A door whose part is nil is not served.
type Deps struct {
	Decoder  *ingest.Decoder
	Producer Producer                                                  // POST /v1/interactions
	Analyze  func(context.Context, *audit.Interaction) *audit.Verdict  // POST /analyze-bias
	Evaluate func(ctx context.Context, r EvaluateRequest) (any, error) // POST /v1/evaluate; its answer is sent as JSON
	APIKey   string                                                    // "" asks for none
	Limits   Limits                                                    //
	Metrics  Metrics                                                   // nil counts nothing
	Logger   *slog.Logger                                              // nil logs nothing
	Now      func() time.Time                                          // nil is time.Now
}

// server holds the deps with their defaults.
type server struct {
	Deps
	key   [32]byte // hash of the API key
	slots chan struct{}
}

// Handler serves the doors. Unknown paths are answered 404, wrong methods 405, both as JSON.
func Handler(d Deps) http.Handler {
	s := &server{Deps: d, key: hashKey(d.APIKey)}
	if s.Limits.Body <= 0 {
		s.Limits.Body = 16 << 20
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
	s.slots = make(chan struct{}, s.Limits.InFlight)

	mux := http.NewServeMux()
	post := func(path string, served bool, h handler) {
		if served {
			mux.Handle(path, s.route(path, http.MethodPost, s.guarded(h)))
		}
	}
	post("/v1/interactions", d.Producer != nil, s.interactions)
	post("/analyze-bias", d.Analyze != nil, s.analyzeBias)
	post("/v1/evaluate", d.Evaluate != nil, s.evaluate)
	file := func(path string, content []byte) {
		mux.Handle(path, s.route(path, http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(content)
		}))
	}
	file("/openapi.json", openapi.Document)
	file("/schemas/events/interaction.v1.json", events.Interaction)
	mux.Handle("/", s.route("other", "", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, &fault{http.StatusNotFound, CodeNotFound, "there is nothing here; see /openapi.json", nil})
	}))
	return mux
}

// tenantHeader gives the tenant of the request, "" when it names none.
func tenantHeader(r *http.Request) (string, *fault) {
	t := strings.TrimSpace(r.Header.Get("X-Evenhand-Tenant"))
	if t != "" && !ingest.ValidTenant(t) {
		return "", badRequest(ingest.Fault{Field: "header X-Evenhand-Tenant", Code: ingest.BadValue, Message: "wants 1 to 64 letters, digits, '_', '.' or '-'"})
	}
	return t, nil
}
