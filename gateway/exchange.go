package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/places"
)

// exchange is one call from its request to its event.
type exchange struct {
	g    *Gateway
	w    http.ResponseWriter
	r    *http.Request
	kind dialect

	incoming *incoming
	place    *places.Places // where the call counts

	began  time.Time
	paused time.Duration // spent waiting for people
	sentAt time.Time     // when the provider was asked
	asked  time.Duration // how long it took to its last byte
	caller caller
	req    *request
	up     *upstream
	opts   options

	key                    string // of the call; the interaction's id is made of it
	id                     audit.ID
	trace, span, requestID string
	parent                 string // traceparent

	system   string
	messages []call.Message
	answer   answer
	replays  *replays // nil where nothing was validated
	partly   bool     // the answer is not whole yet: the judge is not asked
	mask     masking
	unread   string // why the answer is opaque, and what mends it; "" where it is not as the API has it

	action   string
	judged   [2]*judged // of the prompt, of the response
	approved map[approval]int
	gate     audit.ID // the last that was opened
	refusal  string   // why a person's approval is not there: timeout or denied

	status    string // success, error, blocked; "" records nothing
	failure   string
	dropped   bool
	code      int  // status answered
	undecided bool // the headers go out before the end of what is judged
	committed bool // headers are out
	sent      bool // and something of a completion
	delivered bool // its caller was there when its end went out; clients hang up once they have it
}

// serve answers one call.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, d dialect) {
	now := g.Now().UTC()
	to := newPatient(w)
	defer to.done()
	x := &exchange{g: g, w: to, incoming: newIncoming(w, r.Body), place: g.room.inside, r: r, kind: d, began: now, key: audit.NewID(now).String(), approved: map[approval]int{}}
	defer x.finish()
	if f := x.run(r.Context()); f != nil {
		x.refuse(f)
	}
}

// finish turns a panic into an answer, and records and counts the call.
func (x *exchange) finish() {
	if p := recover(); p != nil {
		x.g.Logger.Error("call panicked", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
		x.status, x.failure = "error", "the gateway failed"
		x.refuse(&fault{status: http.StatusInternalServerError, kind: kindServer, code: "evenhand_internal", say: "internal error"})
	}
	x.record()
	name := ""
	if x.up != nil {
		name = x.up.Name
	}
	for i, side := range sideNames {
		for entity, n := range x.mask.kinds(i) {
			x.g.Metrics.GatewayMasked(side, entity, n)
		}
	}
	x.g.Metrics.GatewayCall(name, x.code, x.action, max(0, x.g.Now().Sub(x.began)-x.paused-x.asked))
}

// run serves the call up to its end or to what refuses it.
func (x *exchange) run(ctx context.Context) *fault {
	var f *fault
	if x.caller, f = x.g.admit(x.r); f != nil {
		return f
	}
	x.identify()
	if !x.place.Enter(x.caller.tenant) {
		return &fault{status: http.StatusTooManyRequests, kind: kindLimit, code: "evenhand_overloaded", say: "too many calls at once (gateway.in_flight)", after: time.Second}
	}
	defer func() { x.place.Leave(x.caller.tenant) }()
	if f = x.read(); f != nil {
		return f
	}
	if _, waiting := x.g.queue.Len(); waiting >= int64(x.g.cfg.AuditMB)<<20 {
		if x.g.cfg.Audit == AuditRefuse {
			return &fault{status: http.StatusServiceUnavailable, kind: kindServer, code: "evenhand_audit_full", say: "the call cannot be recorded at the moment", after: 5 * time.Second}
		}
		x.dropped = true
	}
	x.status, x.failure = "error", "the call was not made"
	if f = x.settle(ctx, audit.Input, x.alive(nil)); f != nil {
		return f
	}
	if f = x.maskRequest(ctx); f != nil {
		return f
	}
	return x.forward(ctx)
}

// identify gives the call its names.
func (x *exchange) identify() {
	x.id = call.ID(x.caller.tenant, "gateway", x.key)
	x.parent = x.r.Header.Get("Traceparent")
	var ok bool
	if x.trace, x.span, ok = audit.ParseTraceparent(strings.ToLower(x.parent)); !ok {
		var b [24]byte
		_, _ = rand.Read(b[:]) // never fails
		x.trace = hex.EncodeToString(b[:16])
		x.parent = "00-" + x.trace + "-" + hex.EncodeToString(b[16:]) + "-01"
	}
	x.requestID = x.r.Header.Get("X-Request-Id")
	if x.requestID == "" || len(x.requestID) > 128 {
		x.requestID = x.key
	}
}

// read takes the request in, picks its upstream and what holds for it.
func (x *exchange) read() *fault {
	if e := x.r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return &fault{status: http.StatusUnsupportedMediaType, kind: kindRequest, code: "evenhand_bad_request", say: "bodies are taken without Content-Encoding only"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.incoming, x.g.cfg.BodyBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &fault{status: http.StatusRequestEntityTooLarge, kind: kindRequest, code: "evenhand_too_large", say: fmt.Sprintf("the request has more than %d bytes (gateway.body_bytes)", x.g.cfg.BodyBytes)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &fault{status: http.StatusRequestTimeout, kind: kindRequest, code: "evenhand_request_slow", say: "the request did not come in time"}
	case err != nil:
		return badRequest("", "the request broke off")
	}
	x.incoming.came()
	req, f := readRequest(body, x.kind)
	if f != nil {
		return f
	}
	up, prefix := x.g.pick(req.model)
	switch {
	case up == nil && req.model == "":
		return &fault{status: http.StatusNotFound, kind: kindRequest, code: "model_not_found", param: "model", say: "the stored prompt names the model, and no upstream is the default: name the model in the request, too, or set gateway.default"}
	case up == nil:
		return &fault{status: http.StatusNotFound, kind: kindRequest, code: "model_not_found", param: "model", say: "no upstream serves this model; gateway.upstreams and gateway.default say which do"}
	case up.key == "" && !x.caller.theirs && x.r.Header.Get("Authorization") != "" && up.KeyHeader == "Authorization":
		return &fault{status: http.StatusUnauthorized, kind: kindAuth, code: "evenhand_no_provider_key", say: "this model's provider wants your own key: send it in Authorization and ours as " + KeyHeader}
	}
	if x.opts, f = x.g.options(x.r.Header, req.metadata); f != nil {
		return f
	}
	if p := x.kind.refused(req); p != "" {
		return badRequest(p, "is not served: the answer would be fetched past the gateway, unseen; ask without it, or the provider directly")
	}
	if x.system, x.messages, f = x.kind.prompt(req); f != nil {
		return f
	}
	if f = req.outgoing(up, prefix); f != nil {
		return f
	}
	x.req, x.up = req, up
	return nil
}

// refuse answers with a fault: as an answer, or as the end of a stream that was begun.
func (x *exchange) refuse(f *fault) {
	if f == stopped && x.status != "blocked" {
		x.status, x.failure = "error", "the gateway was stopped"
	}
	soft := f.code == codeBlocked && x.g.cfg.Block == BlockRefusal
	streams := x.req != nil && x.req.stream
	switch {
	case x.committed && soft && !x.sent:
		x.write(x.kind.instead(x, x.g.cfg.Refusal, true))
	case x.committed && streams:
		x.write(x.kind.stop(x, f))
	case x.committed:
	case soft:
		h := x.w.Header()
		x.describe(h)
		h.Set("Content-Type", "application/json")
		if streams {
			h.Set("Content-Type", "text/event-stream")
		}
		x.commit(http.StatusOK)
		x.write(x.kind.instead(x, x.g.cfg.Refusal, streams))
	default:
		x.code, x.committed = f.status, true
		if x.trace != "" {
			x.describe(x.w.Header())
		}
		fail(x.w, f)
	}
}

// ends notes that what is written next is the end of the answer.
func (x *exchange) ends() { x.delivered = x.r.Context().Err() == nil }

func (x *exchange) commit(status int) {
	x.code, x.committed = status, true
	x.w.WriteHeader(status)
}

// write sends what is there at once.
func (x *exchange) write(b []byte) {
	if len(b) > 0 {
		x.sent = true
		_, _ = x.w.Write(b) // a caller who is gone is noticed by the context
		_ = http.NewResponseController(x.w).Flush()
	}
}

// alive gives what keeps a stream's connection open while its caller waits; nil for answers in one piece.
// header is the provider's, nil before it has answered.
func (x *exchange) alive(header http.Header) func() {
	if !x.req.stream {
		return nil
	}
	return func() {
		if !x.committed {
			x.begin(header, http.StatusOK)
		}
		_, _ = io.WriteString(x.w, ": evenhand is looking\n\n")
		_ = http.NewResponseController(x.w).Flush()
	}
}

// begin sends the headers of a stream.
func (x *exchange) begin(header http.Header, status int) {
	h := x.w.Header()
	copyHeader(h, header)
	x.describe(h)
	if header == nil {
		h.Set("Content-Type", "text/event-stream")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // proxies that would wait for the whole
	x.commit(status)
}

// ofHeader is a header's text. What is no UTF-8 is ISO 8859-1, which many clients write: Büro is another name than Bäro.
func ofHeader(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// part tells the call as the event has it.
func (x *exchange) part() *call.Part {
	meta := func(names ...string) string {
		for _, n := range names {
			if s := x.req.metadata.Get(n).String(); s != "" {
				return clip(s)
			}
		}
		return ""
	}
	header := func(name string, names ...string) string {
		if s := x.r.Header.Get(name); s != "" {
			return clip(ofHeader(s))
		}
		return meta(names...)
	}
	user := gjson.ParseBytes(x.req.fields["user"]).String()
	if user == "" {
		user = gjson.ParseBytes(x.req.fields["safety_identifier"]).String()
	}
	if user == "" {
		user = meta("user_id", "user")
	}
	session := header(conversationHeader, conversationMeta, "conversation_id", "session_id", "thread_id")
	if kept := gjson.ParseBytes(x.req.fields["conversation"]); session == "" { // one that the provider of /v1/responses keeps, its id or an object with it
		session = clip(cmp.Or(kept.Str, kept.Get("id").Str))
	}
	p := &call.Part{
		Format: "gateway", Kind: call.Model, Group: "gateway", Key: x.key, Tenant: x.caller.tenant,
		Time: x.g.Now(), Latency: x.asked, TraceID: x.trace, SpanID: x.span, Domain: string(x.opts.Domain),
		Service: header(applicationHeader, applicationMeta, "application"),
		Session: session,
		UserID:  clip(user), Provider: clip(x.up.Provider), Model: clip(x.model()), Tokens: x.answer.tokens,
		Status: x.status, Error: x.failure, System: x.system, Messages: x.messages, Answers: x.answer.messages(), Metadata: map[string]any{},
	}
	x.req.metadata.ForEach(func(k, v gjson.Result) bool {
		if !strings.HasPrefix(k.String(), metaPrefix) {
			p.Metadata[k.String()] = asSaid(v)
		}
		return true
	})
	own := map[string]any{"action": x.action, "upstream": x.up.Name, "request_id": x.requestID, "stream": x.req.stream}
	if x.answer.id != "" {
		own["response_id"] = x.answer.id
	}
	if len(x.answer.finish) > 0 {
		own["finish_reasons"] = x.answer.finish
	}
	if set := x.req.parameters(); len(set) > 0 {
		own["parameters"] = set
	}
	if n, err := strconv.ParseUint(x.r.Header.Get("X-Stainless-Retry-Count"), 10, 16); err == nil && n > 0 {
		own["retry"] = n
	}
	if x.unread != "" {
		own["unread"] = x.unread
	}
	if !x.gate.IsZero() {
		own["gate"] = x.gate.String()
	}
	if x.refusal != "" {
		own["gate_reason"] = x.refusal
	}
	x.why(own)
	if j := x.judged[sideIndex(audit.Output)]; j != nil && j.decision.Judged != nil {
		own["judge"] = j.decision.Judged.Note()
	}
	if n := x.replays.note(); n != nil {
		own["replay"] = n
	}
	if n := x.mask.note(); len(n) > 0 {
		own["mask"] = n
	}
	if theirs, ok := p.Metadata["gateway"]; ok {
		p.Metadata["gateway_given"] = theirs
	}
	p.Metadata["gateway"] = own
	return p
}

// asSaid is a value of JSON with its numbers as they were said: order numbers of twenty digits, and 1e999, are no float64.
func asSaid(v gjson.Result) (out any) {
	d := json.NewDecoder(strings.NewReader(v.Raw))
	d.UseNumber()
	if d.Decode(&out) != nil {
		return v.String()
	}
	return out
}

// why notes the reasons of what was decided and the rules that gave them; nothing where all was well.
func (x *exchange) why(own map[string]any) {
	var reasons, rules []string
	for _, j := range x.judged {
		if j == nil {
			continue
		}
		for _, r := range j.decision.Reasons {
			reasons = append(reasons, string(r))
		}
		for _, f := range j.decision.Findings() {
			if f.Score > 0 {
				rules = append(rules, f.Rule)
			}
		}
		if j.decision.Gate != nil {
			for _, f := range j.decision.Gate.Findings {
				rules = append(rules, f.Rule)
			}
		}
		own["rule_set"] = j.decision.RuleSet
	}
	if len(reasons) == 0 {
		delete(own, "rule_set")
		return
	}
	own["reasons"] = distinct(reasons)
	if len(rules) > 0 {
		own["rules"] = distinct(rules)
	}
}

func distinct(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// maxWord is how many code points the event takes of a name.
const maxWord = 1024

func clip(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxWord {
			return s[:i]
		}
	}
	return s
}

// record hands the call to the queue.
func (x *exchange) record() {
	if x.status == "" || x.req == nil {
		return
	}
	if x.r.Context().Err() != nil && x.status != "blocked" && !x.delivered {
		x.status, x.failure = "error", "the caller went away"
	}
	if x.dropped {
		x.g.Metrics.GatewayEvent("dropped", 1)
		x.g.Logger.Warn("a call is not recorded: the log does not take events as fast as calls come", "interaction_id", x.id.String(), "tenant", x.caller.tenant)
		return
	}
	for _, p := range x.parts() {
		e := entry{p, x.parent, x.id, len(x.req.body) + x.answer.size}
		if err := x.g.queue.Put(e); err != nil { // counted as refused
			x.g.Logger.Error("a call is not recorded: there is no room for its event", "interaction_id", x.id.String(), "tenant", x.caller.tenant)
		}
	}
}
