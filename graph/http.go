package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/reply"
)

// Metrics counts requests.
type Metrics interface {
	Request(route string, code int, took time.Duration)
}

// Path is where GraphQL is served.
const Path = "/graphql"

// slowestBody is how long a request may take to come.
const slowestBody = time.Minute

// Handler serves GraphQL over HTTP: queries and mutations as JSON, all operations as server-sent events
// (the distinct connections mode of graphql-sse). It asks for a principal in the request's context,
// refuses what passes a limit before any resolver runs, and answers no part of a request in a log.
type Handler struct {
	cfg      Config
	schema   *ast.Schema
	exec     *executor.Executor
	slots    chan struct{}
	log      *slog.Logger
	metrics  Metrics
	draining chan struct{} // closed when streams must end
	drain    sync.Once
}

// HandlerOptions are what the program sets.
type HandlerOptions struct {
	Log     *slog.Logger // nil logs nothing
	Metrics Metrics      // nil counts nothing
}

// NewHandler serves what [Resolver.Schema] gives.
func NewHandler(es graphql.ExecutableSchema, c Config, o HandlerOptions) *Handler {
	h := &Handler{cfg: c, schema: es.Schema(), exec: executor.New(es), slots: make(chan struct{}, c.InFlight), log: o.Log, metrics: o.Metrics, draining: make(chan struct{})}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.exec.SetQueryCache(checked{})
	h.exec.SetErrorPresenter(Presenter(h.log))
	h.exec.SetRecoverFunc(Recoverer(h.log))
	return h
}

// Drain ends the streams, so that a server can shut down; queries under way go on.
func (h *Handler) Drain() { h.drain.Do(func() { close(h.draining) }) }

// checked hands the executor the document that has been parsed and validated already.
type checked struct{}

type documentKey struct{}

func (checked) Get(ctx context.Context, _ string) (*ast.QueryDocument, bool) {
	doc, ok := ctx.Value(documentKey{}).(*ast.QueryDocument)
	return doc, ok
}

func (checked) Add(context.Context, string, *ast.QueryDocument) {}

// request is the body of GraphQL over HTTP.
type request struct {
	query, operation string
	variables        []byte // JSON, "" for none; read once the document has passed its limits
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began, out := time.Now(), &answer{Recorder: reply.Record(w), result: strings.Contains(r.Header.Get("Accept"), resultJSON)}
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("graphql panicked", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			if !out.Answered() {
				out.fail(http.StatusInternalServerError, refuse(Internal, "internal error"))
			}
		}
		if h.metrics != nil {
			h.metrics.Request(Path, out.Status(), time.Since(began))
		}
	}()
	h.serve(out, r)
}

func (h *Handler) serve(w *answer, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.fail(http.StatusMethodNotAllowed, refuse(BadUserInput, "send operations by POST: what stands in an address is kept in logs and caches"))
		return
	}
	who := auth.From(r.Context())
	if who == nil || who.Tenant == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.fail(http.StatusUnauthorized, refuse(Unauthenticated, "send a token or an API key as Authorization: Bearer …"))
		return
	}
	req, status, err := h.read(w, r)
	if err != nil {
		w.fail(status, err)
		return
	}
	ctx, opCtx, errs := h.prepare(r.Context(), r.Header, req)
	events := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	switch {
	case events:
		h.stream(ctx, w, opCtx, errs)
	case len(errs) > 0:
		w.refused(errs)
	case opCtx.Operation.Operation == ast.Subscription:
		w.fail(http.StatusNotAcceptable, refuse(BadUserInput, "subscriptions are served as server-sent events: send Accept: text/event-stream"))
	default:
		h.answer(ctx, w, opCtx)
	}
}

// answer runs a query or a mutation within its time and the room for it.
func (h *Handler) answer(ctx context.Context, w *answer, opCtx *graphql.OperationContext) {
	release, ok := h.room()
	if !ok {
		w.fail(http.StatusTooManyRequests, errNoRoom())
		return
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	responses, ctx := h.exec.DispatchOperation(ctx, opCtx)
	w.reply(http.StatusOK, responses(ctx))
}

func errNoRoom() *gqlerror.Error {
	return refuse(Overloaded, "too many operations at once; try again in a second")
}

// room takes one of the places for operations.
func (h *Handler) room() (release func(), ok bool) {
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, true
	default:
		return nil, false
	}
}

// read gives the request of a body, or the status to refuse it with.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (req request, status int, _ *gqlerror.Error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && media != resultJSON {
		return req, http.StatusUnsupportedMediaType, refuse(BadUserInput, "send the operation as Content-Type: application/json")
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return req, http.StatusUnsupportedMediaType, refuse(BadUserInput, "bodies are taken without Content-Encoding only")
	}
	conn := http.NewResponseController(w) // in tests there may be none
	_ = conn.SetReadDeadline(time.Now().Add(slowestBody))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.cfg.BodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return req, http.StatusRequestEntityTooLarge, refuse(BadUserInput, "the body has more than %d bytes (graphql.body_bytes)", h.cfg.BodyBytes)
	case err != nil:
		return req, http.StatusBadRequest, refuse(BadUserInput, "the body broke off, or did not come in time")
	}
	_ = conn.SetReadDeadline(time.Time{}) // the server reads on, to see the caller leave
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		return req, http.StatusBadRequest, refuse(BadUserInput, "batches are not taken: send one operation a request")
	}
	members, fault := ingest.Members(body, h.cfg.Nesting)
	if fault != nil {
		return req, http.StatusBadRequest, refuse(BadUserInput, "the body is not JSON as it is taken: %s, %s", fault.Code, fault.Message)
	}
	if err := req.of(members); err != nil {
		return req, http.StatusBadRequest, err
	}
	return req, 0, nil
}

// of reads the members of a body; extensions are looked at by nobody.
func (r *request) of(members map[string][]byte) *gqlerror.Error {
	for name, first := range map[string]byte{"query": '"', "operationName": '"', "variables": '{', "extensions": '{'} {
		if v := members[name]; len(v) > 0 && v[0] != first && string(v) != "null" {
			return refuse(BadUserInput, "wants an object with query (a string), and variables (an object), operationName (a string) and extensions (an object) where needed")
		}
	}
	if v := members["query"]; len(v) == 0 || v[0] != '"' {
		return refuse(BadUserInput, "query is missing; persisted queries are not kept here")
	}
	// Both are known to be JSON strings, or null.
	_ = json.Unmarshal(members["query"], &r.query)
	if name := members["operationName"]; name != nil {
		_ = json.Unmarshal(name, &r.operation)
	}
	r.variables = members["variables"]
	return nil
}

// values reads the variables, numbers as they are written.
func (r *request) values() (vars map[string]any, err error) {
	if len(r.variables) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(r.variables))
	d.UseNumber()
	err = d.Decode(&vars)
	return vars, err
}

// prepare parses, checks and validates the operation; nothing of it has run when it gives errors.
func (h *Handler) prepare(ctx context.Context, header http.Header, req request) (context.Context, *graphql.OperationContext, gqlerror.List) {
	ctx = graphql.StartOperationTrace(ctx)
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: req.query}, h.cfg.Tokens)
	if err != nil {
		var e *gqlerror.Error
		if !errors.As(err, &e) {
			e = gqlerror.Errorf("the document cannot be read")
		}
		if strings.Contains(e.Message, "token limit") {
			e = beyond("tokens", h.cfg.Tokens+1, h.cfg.Tokens, "")
		}
		return ctx, nil, withCode(gqlerror.List{e})
	}
	if len(doc.Operations) == 0 {
		return ctx, nil, gqlerror.List{refuse(BadUserInput, "the document has no operation")}
	}
	if e := h.cfg.within(doc); e != nil {
		return ctx, nil, gqlerror.List{e}
	}
	if errs := validator.ValidateWithRules(h.schema, doc, rules.NewDefaultRules()); len(errs) > 0 {
		return ctx, nil, withCode(errs[:min(len(errs), maxErrors)])
	}
	vars, err := req.values()
	if err != nil {
		return ctx, nil, gqlerror.List{refuse(BadUserInput, "variables: wants an object")}
	}
	ctx = context.WithValue(ctx, documentKey{}, doc)
	now := graphql.Now()
	opCtx, errs := h.exec.CreateOperationContext(ctx, &graphql.RawParams{
		Query: req.query, OperationName: req.operation, Variables: vars, Headers: header,
		ReadTime: graphql.TraceTiming{Start: now, End: now},
	})
	if len(errs) > 0 {
		return ctx, nil, withCode(errs)
	}
	opCtx.DisableIntrospection = !h.cfg.Introspection
	if e := h.cfg.affordable(opCtx.Operation, opCtx.Variables); e != nil {
		return ctx, nil, gqlerror.List{e}
	}
	omit(opCtx.Operation.SelectionSet, opCtx.Variables, map[*ast.FragmentDefinition]bool{})
	return ctx, opCtx, nil
}

const maxErrors = 20 // shown of one document

// withCode gives errors of parsing and validation our code.
func withCode(errs gqlerror.List) gqlerror.List {
	for _, e := range errs {
		if e.Extensions == nil {
			e.Extensions = map[string]any{}
		}
		if code, _ := e.Extensions["code"].(string); code == "" || strings.HasPrefix(code, "GRAPHQL_") {
			e.Extensions["code"] = string(BadUserInput)
		}
	}
	return errs
}

const internalError = `{"errors":[{"message":"internal error","extensions":{"code":"INTERNAL"}}],"data":null}`

const resultJSON = "application/graphql-response+json"

// answer writes the one answer of a request and remembers its status.
type answer struct {
	*reply.Recorder
	result bool // the client knows application/graphql-response+json, whose status tells of refusals
}

// refused answers a well-formed request whose operation was not run: by GraphQL over HTTP a client that
// asks for application/json is told with status 200.
func (a *answer) refused(errs gqlerror.List) {
	status := http.StatusOK
	if a.result {
		status = http.StatusBadRequest
	}
	a.reply(status, refusal{errs})
}

// fail answers a request that is no GraphQL, or that is not served.
func (a *answer) fail(status int, err *gqlerror.Error) {
	if status == http.StatusTooManyRequests {
		a.Header().Set("Retry-After", "1")
	}
	a.reply(status, refusal{gqlerror.List{err}})
}

// refusal is the answer to what was not run; it has no data, not even null.
type refusal struct {
	Errors gqlerror.List `json:"errors"`
}

func (a *answer) reply(status int, res any) {
	b, err := json.Marshal(res)
	if err != nil { // a resolver's JSON that is none
		status, b = http.StatusInternalServerError, []byte(internalError)
	}
	media := "application/json"
	if a.result {
		media = resultJSON
	}
	reply.Bytes(a, status, media+"; charset=utf-8", append(b, '\n'))
}

// Refused answers callers that were not let in, for auth.Authenticator.Middleware.
func Refused(w http.ResponseWriter, r *http.Request, d *auth.Denied) {
	a := &answer{Recorder: reply.Record(w), result: strings.Contains(r.Header.Get("Accept"), resultJSON)}
	a.reply(d.Status, refusal{gqlerror.List{denied(d)}})
}

// denied is a refusal of package auth in our words.
func denied(d *auth.Denied) *gqlerror.Error {
	code := BadUserInput
	switch d.Status {
	case http.StatusUnauthorized:
		code = Unauthenticated
	case http.StatusForbidden:
		code = Forbidden
	case http.StatusTooManyRequests:
		code = Overloaded
	case http.StatusServiceUnavailable:
		code = Unavailable
	}
	e := refuse(code, "%s", d.Say)
	e.Extensions["reason"] = string(d.Reason)
	return e
}
