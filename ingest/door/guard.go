package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	inline "github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/reply"
)

// Inline is what the doors work with that judge texts on their way.
type Inline struct {
	Guard    *inline.Guard
	Defaults inline.Options                // of requests that leave an option out
	Events   *inline.Queue[ingest.Message] // an event of each decision of POST /v1/guard
	Parts    *inline.Queue[call.Part]      // what LiteLLM's calls tell; nil serves no such door
	Gates    inline.Gates                  // nil: who asks for a person is denied at once
	FailOpen bool                          // answer though the queue is full; otherwise 429
	Metrics  InlineMetrics                 // nil counts nothing
}

// InlineMetrics counts decisions; door is guard or litellm, action one of package guard or LiteLLM's, or failed.
type InlineMetrics interface {
	Decided(door, action string, took time.Duration)
}

const (
	maxWait    = 5 * time.Minute        // of one request for a person
	glance     = 200 * time.Millisecond // for the decision of a gate that may be decided already
	maxWaiting = 1000                   // requests at once that wait for people; more are answered without waiting
	deepest    = 300                    // levels of a request that are looked into; the decoder has a limit of its own
	maxLast    = 4 << 10                // bytes of options that are remembered
	noted      = 2048                   // bytes that the note of a decision adds to an event at most
)

// guard judges one event of the native form, waits for a person where the request asks for that, and makes an event of the decision.
func (s *server) guard(w http.ResponseWriter, r *http.Request, body []byte) *fault {
	began := time.Now()
	tenant, f := tenant(r)
	if f != nil {
		return f
	}
	req, faults := s.readGuard(body)
	if len(faults) > 0 {
		return badRequest(faults...)
	}
	by := ingest.Sender{Tenant: tenant, Traceparent: r.Header.Get("Traceparent"), Now: s.Now(), Limit: max(0, s.Limits.Message-noted)}
	m, in, faults := s.Decoder.Prepare(req.event, by)
	if len(faults) > 0 {
		return refusal(faults)
	}
	if in.DomainGiven != "" {
		return badRequest(unknownDomain("domain"))
	}
	req.options.Domain = in.Domain
	d, err := s.Inline.Guard.Decide(r.Context(), in, req.options)
	if err != nil {
		s.decided("guard", "failed", began)
		return s.undecided(m, err)
	}
	if d.Action == inline.Gate && s.Inline.Gates == nil {
		d.Decided(inline.NobodyToAsk)
	}
	// What a person said is part of the event; but not of one with an id of its sender's, which may be sent again under it until they have
	// decided: it must be the same each time, and is written first.
	later := d.Action == inline.Gate && !req.named
	audited := false
	if !later {
		if audited, f = s.keep(s.note(m, by, d)); f != nil {
			s.decided("guard", "failed", began)
			return f
		}
	}
	took := time.Since(began)
	s.decided("guard", string(d.Action), began)
	gate, err := s.settle(r.Context(), d, in, "guard", req.wait)
	if later {
		audited, f = s.keep(s.note(m, by, d))
	}
	switch {
	case err != nil:
		return notServed(err, nil)
	case f != nil:
		return f
	}
	reply.JSON(w, http.StatusOK, d.Answer(in, gate, audited, took))
	return nil
}

// guardRequest is an event with what its sender wants beside it.
type guardRequest struct {
	event   []byte
	named   bool // the event has an id of its sender's
	options inline.Options
	wait    time.Duration
}

// readGuard takes "options" and "wait" out of the request and leaves the event, which is checked by the rules of all events.
func (s *server) readGuard(body []byte) (req guardRequest, faults []ingest.Fault) {
	fields, bad := ingest.Members(body, deepest)
	if bad != nil {
		return req, []ingest.Fault{*bad}
	}
	req.options = s.Inline.Defaults
	req.options.Domain = ""
	if raw, ok := fields["options"]; ok && string(raw) != "null" {
		req.options, faults = s.withOptions(raw)
		for i := range faults {
			faults[i].Field = strings.TrimSuffix("options."+faults[i].Field, ".")
		}
	}
	if raw, ok := fields["wait"]; ok && string(raw) != "null" {
		seconds, err := strconv.ParseUint(string(raw), 10, 32)
		if err != nil || time.Duration(seconds)*time.Second > maxWait {
			faults = append(faults, ingest.Fault{Field: "wait", Code: ingest.BadValue, Message: fmt.Sprintf("wants whole seconds, 0 to %d", int(maxWait.Seconds()))})
		}
		req.wait = time.Duration(seconds) * time.Second
	}
	delete(fields, "options")
	delete(fields, "wait")
	var named, id string
	_ = json.Unmarshal(fields["domain"], &named) // not a string: the decoder says so
	_ = json.Unmarshal(fields["id"], &id)
	req.named = id != ""
	switch want := req.options.Domain; {
	case named == "" && want == "":
		want = s.Inline.Defaults.Domain
		fallthrough
	case named == "":
		if want != "" {
			fields["domain"], _ = json.Marshal(want)
		}
	case want != "" && string(want) != strings.ToLower(named):
		faults = append(faults, ingest.Fault{Field: "options.domain", Code: ingest.AliasConflict, Message: "says something else than domain"})
	}
	req.event = object(fields)
	return req, faults
}

// lastOptions are the options that a request brought and what they are with the defaults; both are never changed.
type lastOptions struct {
	raw     string
	options inline.Options
}

// withOptions puts a request's options above the defaults, without a domain. An application brings the same ones with each
// request, so they are read when they differ from those before.
func (s *server) withOptions(raw []byte) (inline.Options, []ingest.Fault) {
	if last := s.last.Load(); last != nil && last.raw == string(raw) {
		return last.options, nil
	}
	base := s.Inline.Defaults
	base.Domain = ""
	o, faults := base.With(raw)
	if len(faults) == 0 && len(raw) <= maxLast {
		s.last.Store(&lastOptions{string(raw), o})
	}
	return o, faults
}

// object puts members together; their order is the decoder's affair.
func object(fields map[string][]byte) []byte {
	n := 2
	for name, value := range fields {
		n += len(name) + len(value) + 4
	}
	out := append(make([]byte, 0, n), '{')
	for name, value := range fields {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), name...), '"', ':'), value...)
	}
	return append(out, '}')
}

func unknownDomain(field string) ingest.Fault {
	return ingest.Fault{Field: field, Code: ingest.BadValue, Message: fmt.Sprintf("wants one of %s", audit.List(audit.Domains))}
}

// note gives the event with what was decided about it: in its metadata under "guard" and, of a block, in its status. Where it
// cannot be put in, because the event would be too large, the event stays as it came.
func (s *server) note(m Message, by ingest.Sender, d *inline.Decision) Message {
	decided := noteOf(d)
	if decided == nil {
		return m
	}
	fields, bad := ingest.Members(m.Value, deepest)
	if bad != nil {
		return m
	}
	metadata := map[string][]byte{}
	if raw := fields["metadata"]; len(raw) > 0 && string(raw) != "null" {
		if metadata, bad = ingest.Members(raw, deepest); bad != nil {
			return m
		}
	}
	metadata["guard"], _ = json.Marshal(decided)
	fields["metadata"] = object(metadata)
	if d.Action == inline.Block {
		fields["status"] = []byte(`"` + call.Blocked + `"`)
	}
	by.Limit = s.Limits.Message
	if with, _, faults := s.Decoder.Prepare(object(fields), by); len(faults) == 0 {
		return with
	}
	return m
}

// decisionNote is what the metadata of a record say of a decision.
type decisionNote struct {
	Action  inline.Action     `json:"action"`
	Reasons []inline.Reason   `json:"reasons"`
	RuleSet string            `json:"rule_set"`
	Judge   *inline.JudgeNote `json:"judge,omitempty"`
}

// noteOf gives the note of a decision, nil where all was well and no judge was asked.
func noteOf(d *inline.Decision) *decisionNote {
	if d.Action == inline.Allow && len(d.Reasons) == 0 && d.Judged == nil {
		return nil
	}
	return &decisionNote{d.Action, d.Reasons, d.RuleSet, d.Judged.Note()}
}

// keep leaves an event for the log. Without room for it, or where the log does not take one of its size, the guard answers
// only where it fails open.
func (s *server) keep(m Message) (audited bool, f *fault) {
	err := s.Inline.Events.Put(m)
	switch {
	case err == nil:
		return true, nil
	case s.Inline.FailOpen:
		return false, nil
	}
	return false, notServed(err, nil)
}

// undecided answers where nothing could be decided. The event is made all the same.
func (s *server) undecided(m Message, err error) *fault {
	var faulty *inline.OptionError
	if errors.As(err, &faulty) {
		for i := range faulty.Faults {
			faulty.Faults[i].Field = "options." + faulty.Faults[i].Field
		}
		return badRequest(faulty.Faults...)
	}
	if _, f := s.keep(m); f != nil {
		return f
	}
	if errors.Is(err, inline.ErrTextCut) {
		return reply.NewFault(http.StatusRequestEntityTooLarge, reply.TooLarge, "the text is longer than ingest.text_bytes, and nothing is let pass unread", nil)
	}
	if errors.Is(err, inline.ErrNotJudged) {
		return reply.NewFault(http.StatusServiceUnavailable, CodeAnalysisFailed, "the judge did not answer, and nothing is let pass without it", nil)
	}
	s.Logger.Warn("a text could not be judged", "kind", string(audit.KindOf(err)))
	return reply.NewFault(http.StatusServiceUnavailable, CodeAnalysisFailed, "the analysis failed, so nothing was decided", nil)
}

// settle asks a person where the decision wants one, and waits for the answer at most so long. A decision that is not there
// by then keeps its action gate.
func (s *server) settle(ctx context.Context, d *inline.Decision, in *audit.Interaction, method string, patience time.Duration) (gate audit.ID, err error) {
	if d.Action != inline.Gate {
		return gate, nil
	}
	if s.Inline.Gates == nil {
		d.Decided(inline.NobodyToAsk)
		return gate, nil
	}
	request := d.Request(in, method, s.Now())
	if p := auth.From(ctx); p != nil {
		request.Requester = p.Subject
	}
	if gate, err = s.Inline.Gates.Open(ctx, request); err != nil {
		return gate, err
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		patience = 0
	}
	leaveSlot(ctx)
	short, cancel := context.WithTimeout(ctx, max(patience, glance))
	defer cancel()
	if s.Stopping != nil {
		defer context.AfterFunc(s.Stopping, cancel)()
	}
	answer, err := s.Inline.Gates.Wait(short, gate)
	switch {
	case err == nil:
		d.Decided(answer)
	case short.Err() == nil:
		return gate, err
	}
	return gate, nil
}

func (s *server) decided(door, action string, began time.Time) {
	if s.Inline.Metrics != nil {
		s.Inline.Metrics.Decided(door, action, time.Since(began))
	}
}
