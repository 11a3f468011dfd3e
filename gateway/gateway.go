// Package gateway stands between applications and providers of models: POST /v1/chat/completions, POST
// /v1/responses and GET /v1/models as OpenAI has them, in front of any provider that speaks them. The
// application changes its base_url and nothing else.
//
// Each call is judged by a guard, of what is asked before the provider is, of what is answered before it
// is passed on: allowed, marked, refused, or held until a person has decided. Streams are judged too: held
// whole, or let out in windows. Each call leaves one event in the log, refused ones with the text that
// nobody got. What is not looked into passes byte for byte, errors of the provider with their status, body
// and headers. Only configured addresses are called, and redirects are not followed.
//
// Cost is one judgement and some copying of the answer; what the guard takes is its own. A fault of the
// guard refuses calls that it might have stopped, or lets them pass with a mark, as [Config.Fail] says.
// Errors, logs and metrics hold no text of people.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/judge/replay"
)

// Paths are what the gateway serves.
const (
	PathChat      = "/v1/chat/completions"
	PathResponses = "/v1/responses"
	PathModels    = "/v1/models"
)

// Unserved are paths that clients of models with our address call, too, and that lead nowhere here: the rest of OpenAI's API, what a base URL
// without /v1 or with one too many makes of it, and the APIs of Azure's, Anthropic's and Google's clients.
var Unserved = []string{"/v1/completions", "/v1/embeddings", "/v1/moderations", PathChat + "/", PathResponses + "/", "/v1/assistants", "/v1/assistants/", "/v1/audio/", "/v1/batches", "/v1/batches/",
	"/v1/conversations", "/v1/conversations/", "/v1/files", "/v1/files/", "/v1/fine_tuning/", "/v1/images/", "/v1/realtime", "/v1/realtime/", "/v1/threads", "/v1/threads/", "/v1/uploads", "/v1/uploads/",
	"/v1/vector_stores", "/v1/vector_stores/", "/v1/videos", "/v1/videos/",
	"/chat/completions", "/responses", "/models", "/v1/v1/", "/openai/", "/v1/openai/", "/v1/deployments/", "/v1/messages", "/v1/messages/", "/v1beta/"}

// Admitter lets callers in; its errors are those of package auth.
type Admitter interface {
	Admit(r *http.Request, what auth.Permission) (*auth.Principal, error)
	// Ours tells a credential of ours from one that is for the provider.
	Ours(credential string) bool
}

// Decider judges: a *guard.Guard that fails closed.
type Decider interface {
	Decide(ctx context.Context, in *audit.Interaction, o guard.Options) (*guard.Decision, error)
}

// Metrics counts calls and events.
type Metrics interface {
	// GatewayCall counts a call: the upstream's name ("" before one was chosen), the status answered, what
	// became of it (allow, warn, block, gate, unchecked; "" when nothing was judged), and the time it took
	// beside waiting for the provider and for people.
	GatewayCall(upstream string, status int, action string, added time.Duration)
	// GatewayEvent counts what became of events: sent, cut (sent, its texts shortened), dropped (the queue was
	// full, and gateway.audit is drop), refused (there was no room at the end of a call), lost (the log refuses it, or
	// the process ended).
	GatewayEvent(outcome string, n int)
	// GatewayMasked counts values of an entity (EMAIL) that were masked in what a side of calls says: request, response.
	GatewayMasked(side, entity string, n int)
}

// Deps are what the gateway works with. Guard, Decoder and Producer are needed.
type Deps struct {
	Guard Decider
	Mask  Masker      // nil where nothing is masked
	Gates guard.Gates // nil denies what wants a person
	// Validate says whether an answer passes; nil replays none.
	Validate func(ctx context.Context, in *audit.Interaction) (*replay.Check, error)
	Auth     Admitter // nil lets nobody in
	Open     bool     // nobody is asked for a credential of ours
	Decoder  *ingest.Decoder
	Producer ingest.Producer
	Message  int          // bytes of a message in the log; 0: the decoder's limit alone
	Metrics  Metrics      // nil counts nothing
	Logger   *slog.Logger // nil logs nothing
	Now      func() time.Time
}

// Gateway serves calls. Close it after the last one.
type Gateway struct {
	Deps
	cfg   Config
	guard guard.Options // what holds where no override does
	ups   []*upstream
	first *upstream // for models that no prefix names; nil: those are refused
	held  bool      // some upstream's key is held here
	judge *ingest.Decoder
	room  *room
	queue *guard.Queue[entry]

	stopping context.Context
	stop     context.CancelCauseFunc
}

// New makes a gateway of valid settings and starts the queue of its events.
func New(c Config, d Deps) (*Gateway, error) {
	if err := c.Validate(); err != nil {
		return nil, audit.E("gateway", audit.KindInvalid, err)
	}
	if d.Guard == nil || d.Decoder == nil || d.Producer == nil {
		return nil, audit.E("gateway", audit.KindInternal, errors.New("guard, decoder and producer are needed"))
	}
	if c.Masks() && d.Mask == nil {
		return nil, audit.E("gateway", audit.KindInternal, errors.New("gateway.mask needs what masks"))
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Metrics == nil {
		d.Metrics = uncounted{}
	}
	g := &Gateway{Deps: d, cfg: c, guard: c.Guard.options(), room: newRoom(c.InFlight)}
	g.stopping, g.stop = context.WithCancelCause(context.Background())
	for _, u := range c.all() {
		up, err := newUpstream(u)
		if err != nil {
			return nil, audit.E("gateway", audit.KindInvalid, err)
		}
		g.ups = append(g.ups, up)
		g.held = g.held || up.key != ""
		if up.Name == c.fallback() {
			g.first = up
		}
	}
	// Texts are judged whole; only what is stored has the log's limits.
	most := int(c.BodyBytes+c.ResponseBytes)*2 + 1<<20
	g.judge = ingest.NewDecoder(ingest.Options{Limits: ingest.Limits{Message: most, Text: most, Depth: maxDepth}})
	g.queue = g.newQueue()
	return g, nil
}

// Handler serves the paths of the gateway, and says of all others what to do.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+PathChat, func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, chat{}) })
	mux.HandleFunc("POST "+PathResponses, func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, responses{}) })
	mux.HandleFunc("GET "+PathModels, g.models)
	mux.HandleFunc("GET "+PathModels+"/{model...}", g.models)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		status, say := http.StatusNotFound, "the gateway serves POST "+PathChat+", POST "+PathResponses+" and GET "+PathModels+", to OpenAI's clients whose base URL ends in /v1 (docs/gateway.md); for everything else give the client the provider's own base_url"
		if p := r.URL.Path; p == PathChat || p == PathResponses || p == PathModels {
			status = http.StatusMethodNotAllowed
		}
		fail(w, &fault{status: status, kind: kindRequest, code: "evenhand_not_served", say: say})
	})
	return mux
}

// Stop ends the calls under way: what has been said until then is judged, passed on as its mode allows, and recorded, and callers are told.
func (g *Gateway) Stop() { g.stop(errStopping) }

// bound gives a context that ends when the gateway is stopped, too.
func (g *Gateway) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(g.stopping, func() { cancel(errStopping) })
	return ctx, func() { release(); cancel(nil) }
}

// Close sends the events that wait until ctx ends, and counts and logs those it could not send.
func (g *Gateway) Close(ctx context.Context) error {
	for _, u := range g.ups {
		u.client.CloseIdleConnections()
	}
	return g.queue.Close(ctx)
}

type uncounted struct{}

func (uncounted) GatewayCall(string, int, string, time.Duration) {}
func (uncounted) GatewayEvent(string, int)                       {}
func (uncounted) GatewayMasked(string, string, int)              {}
