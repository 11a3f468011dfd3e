package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
)

// call is one call of a model, from its request to its record.
type call struct {
	t     *Transport
	kind  dialect
	ctx   context.Context //nolint:containedctx // of the request, whose body is read behind RoundTrip
	began time.Time

	event      Event
	answer     answer
	parser     fastjson.Parser // a value is good until the next
	background bool
	stream     bool

	report   *Report
	looked   bool            // report says something
	recorded bool            // by the server that judged it
	approved map[string]bool // gate rules that a person has let pass
	once     sync.Once
}

func newCall(t *Transport, req *http.Request, d dialect) *call {
	now := time.Now().UTC()
	c := &call{t: t, kind: d, ctx: req.Context(), began: now, answer: answer{max: int(t.o.BodyBytes)}}
	id := audit.NewID(now)
	c.event = Event{ID: id.String(), Timestamp: now.Truncate(time.Millisecond), Domain: string(t.o.Domain), Provider: t.o.Provider}
	c.report = &Report{ID: id, Action: guard.Allow}
	if c.event.Provider == "" {
		c.event.Provider = audit.ProviderOf(req.URL.Hostname())
	}
	c.event.TraceID, c.event.SpanID, _ = audit.ParseTraceparent(strings.ToLower(req.Header.Get("Traceparent")))
	return c
}

// describe takes from the request what the event has of it; raw is nil when it cannot be read.
func (c *call) describe(req *http.Request, raw []byte) {
	v, err := c.parser.ParseBytes(raw)
	if err != nil || v.Type() != fastjson.TypeObject {
		c.t.unread.Add(1)
	} else {
		c.event.Model, c.event.UserID = str(v, "model"), str(v, "user")
		if c.event.UserID == "" {
			c.event.UserID = str(v, "safety_identifier")
		}
		c.background = v.GetBool("background")
		c.kind.prompt(&c.event, v)
	}
	if c.t.o.Describe != nil {
		c.t.o.Describe(req, &c.event)
	}
	if id, err := audit.ParseID(c.event.ID); err == nil {
		c.report.ID = id
	}
}

// answered judges a success, or sees to it that it is judged while it is read.
func (c *call) answered(req *http.Request, res *http.Response) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	c.stream = kind == "text/event-stream"
	plain := res.Header.Get("Content-Encoding") == "" || strings.EqualFold(res.Header.Get("Content-Encoding"), "identity")
	switch {
	case c.stream && plain && !c.t.o.stops() && c.t.o.Stream != StreamHold:
		res.Header.Set("X-Evenhand-Id", c.report.ID.String()) // the rest is known at its end
		res.Body = newTap(c, res.Body)
		return res, nil
	case c.stream && plain && c.t.o.stops() && c.t.o.Stream == StreamWindow:
		res.Header.Set("X-Evenhand-Id", c.report.ID.String())
		res.Body = newWindow(c, res.Body)
		return res, nil
	}
	return c.hold(req, res)
}

// hold takes an answer in, judges it, and gives it back as it came. One that is too large goes on unread, if it may.
func (c *call) hold(req *http.Request, res *http.Response) (*http.Response, error) {
	raw, over, broken := readUpTo(res.Body, c.t.o.BodyBytes)
	if over {
		c.answer.unread = "the answer is too large"
	} else if read := c.take(raw, res.Header.Get("Content-Encoding"), broken != nil); broken != nil && c.t.o.stops() {
		raw = raw[:read]
	}
	body := io.Reader(bytes.NewReader(raw))
	switch {
	case broken != nil && (c.answer.unread != "" || c.ctx.Err() != nil): // half an answer, of which nothing can be said
		c.conclude(broken)
		if c.t.o.stops() {
			body = failing{broken}
			break
		}
		body = io.MultiReader(body, failing{broken})
	default:
		if stop := c.judge(c.ctx); stop != nil {
			_ = res.Body.Close()
			if c.ctx.Err() != nil {
				c.conclude(errLeft)
				return nil, stop
			}
			return c.refuse(req, stop)
		}
		c.conclude(broken)
		c.report.describe(res.Header)
		if broken != nil {
			body = io.MultiReader(body, failing{broken})
		} else if over {
			body = io.MultiReader(body, res.Body)
		}
	}
	if !over {
		_ = res.Body.Close()
	}
	res.Body = &joined{body, res.Body}
	return res, nil
}

// take reads a whole answer, or a whole stream, and tells how much of it was read: of a broken stream its whole events.
func (c *call) take(raw []byte, encoding string, broken bool) (read int) {
	read = len(raw)
	switch {
	case encoding == "" || strings.EqualFold(encoding, "identity"):
	case broken:
		c.answer.unread = "the answer's encoding broke off"
		return read
	case strings.EqualFold(encoding, "gzip"):
		var over bool
		r, err := gzip.NewReader(bytes.NewReader(raw))
		if err == nil {
			raw, over, err = readUpTo(r, c.t.o.BodyBytes)
		}
		if err != nil || over {
			c.answer.unread = "the answer's gzip is broken or too large"
			return read
		}
	default:
		c.answer.unread = "the answer's encoding is not known"
		return read
	}
	if c.stream {
		s, whole := sse{max: int(c.t.o.BodyBytes)}, 0
		s.write(raw, func(data []byte, big bool, end int) {
			c.chunk(data, big)
			whole = end
		})
		if broken {
			return whole
		}
		s.end(c.chunk)
		return read
	}
	v, err := c.parser.ParseBytes(raw)
	if err != nil || v.Type() != fastjson.TypeObject {
		c.answer.unread = "the answer is no JSON"
		return read
	}
	c.kind.whole(&c.answer, v)
	return read
}

// chunk reads one event of a stream.
func (c *call) chunk(data []byte, big bool) {
	if isDone(data) || len(data) == 0 && !big {
		return
	}
	v, err := c.parser.ParseBytes(data)
	if big || err != nil {
		c.answer.unread = "an event of the stream cannot be read"
		return
	}
	c.kind.chunk(&c.answer, v)
}

// judge decides on what was said so far. It gives the error that stops it, nil when it may go on; a context that ended
// stops it, too.
func (c *call) judge(ctx context.Context) error {
	c.fill()
	if c.answer.unread != "" {
		return c.cannot(c.answer.unread, nil)
	}
	a, stop, err := c.t.decider.decide(ctx, &c.event, &c.t.o, c.asker())
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return c.cannot("the guard failed", err)
	}
	c.recorded = c.recorded || a.Audited
	r := &Report{
		ID: c.report.ID, Action: a.Action, Reasons: a.Reasons, Scores: a.Scores, Findings: a.Findings, Error: a.Error,
		Triggered: a.HITLGateTriggered, RuleSet: a.Versions.RuleSet,
	}
	if a.Gate != nil {
		r.Gate = a.Gate.ID
	}
	c.report, c.looked = r, true
	if stop != nil {
		c.report.Action = guard.Block
		c.finish(Blocked, "")
	}
	return stop
}

// asker asks a person once for each rule of a call: windows come back to it.
func (c *call) asker() asker {
	ask := c.t.o.asker(c.kind.method())
	return func(ctx context.Context, d *guard.Decision, in *audit.Interaction) (guard.GateDecision, error) {
		fresh := false
		for _, f := range d.Gate.Findings {
			fresh = fresh || !c.approved[f.Rule]
		}
		if !fresh {
			return guard.GateDecision{Approved: true}, nil
		}
		g, err := ask(ctx, d, in)
		for _, f := range d.Gate.Findings {
			if g.Approved && err == nil {
				if c.approved == nil {
					c.approved = map[string]bool{}
				}
				c.approved[f.Rule] = true
			}
		}
		return g, err
	}
}

// cannot is what holds when nobody could judge: an error where the answer might have been stopped, unless it may pass.
// A gate never fails open.
func (c *call) cannot(why string, err error) error {
	c.report, c.looked = &Report{ID: c.report.ID, Action: Unchecked, Unchecked: why}, true
	if c.t.o.stops() && (!c.t.o.FailOpen || c.t.o.HITLGate) {
		c.finish(Blocked, why)
		return &UncheckedError{why, err}
	}
	c.t.o.Logger.Warn("an answer of a model passes unchecked", "reason", why)
	return nil
}

// fill takes into the event what the answer has told.
func (c *call) fill() {
	c.event.Response = c.answer.text()
	if c.answer.model != "" {
		c.event.Model = c.answer.model
	}
	c.event.PromptTokens, c.event.ResponseTokens = c.answer.tokens[0], c.answer.tokens[1]
	ms := time.Since(c.began).Milliseconds()
	c.event.LatencyMS = &ms
}

// conclude ends a call whose answer went on; broken is what its body ended with.
func (c *call) conclude(broken error) {
	switch {
	case c.answer.failed != "":
		c.finish(Failed, c.answer.failed)
	case errors.Is(broken, errLeft), broken != nil && c.ctx.Err() != nil:
		c.finish(Failed, "the caller went away")
	case broken != nil:
		c.finish(Failed, "the provider's answer broke off")
	case c.stream && !c.answer.ended && c.answer.unread == "" && c.report.Action != Unchecked:
		c.finish(Failed, "the stream ended before the model had finished")
	default:
		c.finish(Success, "")
	}
}

// finish counts and records a call, once.
func (c *call) finish(status, why string) {
	c.once.Do(func() {
		if c.looked {
			c.t.tally(c.report.Action)
			c.report.leave(c.ctx)
		}
		if c.t.o.Emitter == nil || c.recorded {
			return
		}
		e := c.event
		e.Status, e.Error = status, why
		own := map[string]any{"action": c.report.Action, "method": c.kind.method(), "stream": c.stream}
		if len(c.report.Reasons) > 0 {
			own["reasons"] = c.report.Reasons
		}
		if c.report.RuleSet != "" {
			own["rule_set"] = c.report.RuleSet
		}
		if c.answer.id != "" {
			own["response_id"] = c.answer.id
		}
		e.note("client", own)
		c.t.o.Emitter.emitCall(e)
	})
}
