package door

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	inline "github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/reply"
)

// liteLLMDoor is the path that LiteLLM puts behind api_base (its Generic Guardrail API, read in 1.106.2).
const liteLLMDoor = "/beta/litellm_basic_guardrail_api"

// LiteLLM sends photos of a call twice, among its messages and beside them: its bodies may have three times the bytes of others.
const (
	liteLLMBodies = 3
	maxLarge      = 2 // at once of those that have more than others
)

// liteLLMRequest is what LiteLLM sends: before a call its messages, behind it, and of a stream every few chunks, what was
// said so far. Fields that we do not know are not at fault: LiteLLM adds some with every version.
type liteLLMRequest struct {
	Type     string            `json:"input_type"` // request or response
	CallID   string            `json:"litellm_call_id"`
	TraceID  string            `json:"litellm_trace_id"`
	Texts    []string          `json:"texts"`
	Messages []call.Message    `json:"structured_messages"` // of a request
	Calls    json.RawMessage   `json:"tool_calls"`
	Model    string            `json:"model"`
	Headers  map[string]string `json:"request_headers"` // values of those in extra_headers, else "[present]"
	Caller   struct {
		User    string `json:"user_api_key_user_id"`
		Email   string `json:"user_api_key_user_email"`
		EndUser string `json:"user_api_key_end_user_id"`
		Alias   string `json:"user_api_key_alias"`
		Team    string `json:"user_api_key_team_alias"`
		TeamID  string `json:"user_api_key_team_id"`
		Org     string `json:"user_api_key_org_id"`
	} `json:"request_data"`
	Params map[string]json.RawMessage `json:"additional_provider_specific_params"`
}

// Actions of LiteLLM's contract.
const (
	liteLLMNone       = "NONE"
	liteLLMBlocked    = "BLOCKED"
	liteLLMIntervened = "GUARDRAIL_INTERVENED"
)

type liteLLMAnswer struct {
	Action string   `json:"action"`
	Reason string   `json:"blocked_reason,omitempty"` // shown to the application: no text of people
	Texts  []string `json:"texts,omitempty"`          // in the place of those that came
	// Holdback is how many characters at the end of each text LiteLLM is to keep back while a stream goes on: they may be masked yet.
	Holdback []int `json:"stream_holdback_chars,omitempty"`
}

// liteLLM judges one side of a call. What LiteLLM tells of the call becomes a part of it: the messages, what was said, that
// it was blocked; the logger of LiteLLM may tell the rest. Faults are 4xx, which LiteLLM never lets pass; what is
// missing on our side is 503, where its unreachable_fallback holds.
func (s *server) liteLLM(w http.ResponseWriter, r *http.Request, body []byte) *fault {
	began := time.Now()
	tenant, f := tenant(r)
	if f != nil {
		return f
	}
	req, want, faults := s.readLiteLLM(body)
	if len(faults) > 0 {
		return badRequest(faults...)
	}
	p := req.part(tenant, s.Now())
	p.Domain = string(want.named)
	in := req.interaction(&p, auth.From(r.Context()).Tenant)
	in.Domain = want.options.Domain
	if s.Inline.Guard.Judges() && req.Type == "response" && req.CallID != "" { // of a stream every fifth chunk comes
		want.options.RulesOnly = s.heard.goesOn(in.Tenant+" "+req.CallID, req.Texts)
	}
	answer := liteLLMAnswer{Action: liteLLMNone}
	asked := want.options.Check == inline.Both || (want.options.Check == inline.Prompt) == (req.Type == "request")
	if asked {
		if answer, f = s.judgeLiteLLM(r, in, &p, want); f != nil {
			s.decided("litellm", "failed", began)
			if f.Status < http.StatusInternalServerError {
				return f
			}
		}
	}
	if want.mask && answer.Action == liteLLMNone && f == nil {
		if answer, f = s.maskLiteLLM(r.Context(), &req); f != nil {
			s.decided("litellm", "failed", began)
		}
	}
	if answer.Action == liteLLMBlocked {
		p.Status = call.Blocked
	}
	p.Asked = req.Type == "request" && answer.Action != liteLLMBlocked && f == nil
	if err := s.Inline.Parts.Put(fitting(p, s.Limits.Message)); err != nil && !s.Inline.FailOpen && f == nil {
		s.decided("litellm", "failed", began)
		return notServed(audit.E("litellm", audit.KindUnavailable, err), nil)
	}
	if f != nil {
		return f
	}
	s.decided("litellm", answer.Action, began)
	reply.JSON(w, http.StatusOK, answer)
	return nil
}

// judgeLiteLLM turns a decision into LiteLLM's answer and notes in the call's part what was blocked, and what the judge said.
func (s *server) judgeLiteLLM(r *http.Request, in *audit.Interaction, p *call.Part, want liteLLMWants) (a liteLLMAnswer, f *fault) {
	a.Action = liteLLMNone
	d, err := s.Inline.Guard.Decide(r.Context(), in, want.options)
	var faulty *inline.OptionError
	switch {
	case errors.As(err, &faulty):
		return a, badRequest(paramFaults(faulty.Faults)...)
	case err != nil:
		s.Logger.Warn("a text could not be judged", "kind", string(audit.KindOf(err)))
		return a, notServed(audit.E("litellm", audit.KindUnavailable, err), nil)
	}
	gate, err := s.settle(r.Context(), d, in, inline.MethodLiteLLM, want.wait)
	if err == nil && (d.Action == inline.Block || d.Judged != nil) { // a warning by rules is found again in the record
		if p.Metadata == nil {
			p.Metadata = map[string]any{}
		}
		p.Metadata[call.GuardNote] = noteOf(d)
	}
	switch {
	case err != nil:
		return a, notServed(audit.E("litellm", audit.KindUnavailable, err), nil)
	case d.Action == inline.Gate:
		return liteLLMAnswer{Action: liteLLMBlocked, Reason: "A person must approve this first. Reference: gate " + gate.String()}, nil
	case d.Action == inline.Block:
		return liteLLMAnswer{Action: liteLLMBlocked, Reason: fmt.Sprintf("Stopped by policy: %v. Reference: %s", d.Err(in), in.ID)}, nil
	}
	return a, nil
}

// maskLiteLLM puts placeholders in the place of personal data. Texts that nobody could look at go on only where the guard fails open.
func (s *server) maskLiteLLM(ctx context.Context, q *liteLLMRequest) (a liteLLMAnswer, f *fault) {
	a.Action = liteLLMNone
	masked, err := s.Inline.Guard.Mask(ctx, q.Texts)
	if err != nil {
		s.Logger.Warn("a text could not be masked", "kind", string(audit.KindOf(err)))
		if s.Inline.FailOpen {
			return a, nil
		}
		return a, notServed(audit.E("litellm", audit.KindUnavailable, err), nil)
	}
	for i, m := range masked {
		if m.Changed() && a.Texts == nil {
			a.Action, a.Texts = liteLLMIntervened, slices.Clone(q.Texts)
		}
		if a.Texts != nil {
			a.Texts[i] = m.Text
		}
		if q.Type == "response" { // of a stream, perhaps
			a.Holdback = append(a.Holdback, m.Open())
		}
	}
	return a, nil
}

// liteLLMWants is what additional_provider_specific_params say.
type liteLLMWants struct {
	options inline.Options // with the domain to judge by
	named   audit.Domain   // the domain where the params name one
	wait    time.Duration  // for a person
	mask    bool           // put placeholders in the place of personal data
}

// readLiteLLM reads a request and reports every fault at once.
func (s *server) readLiteLLM(body []byte) (req liteLLMRequest, want liteLLMWants, faults []ingest.Fault) {
	if bad := ingest.CheckJSON(body); bad != nil {
		return req, want, []ingest.Fault{*bad}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return req, want, []ingest.Fault{{Field: ingest.Shown(wrong.Field), Code: ingest.WrongType, Message: "is not as LiteLLM has it"}}
		}
		return req, want, []ingest.Fault{{Code: ingest.WrongType, Message: "wants an object"}}
	}
	if req.Type != "request" && req.Type != "response" {
		faults = append(faults, ingest.Fault{Field: "input_type", Code: ingest.BadValue, Message: "wants request or response"})
	}
	faults = append(faults, want.read(req.Params, s.Inline.Defaults)...)
	if want.mask && !s.Inline.Guard.Masks() {
		faults = append(faults, paramFaults([]ingest.Fault{{Field: "mask", Code: ingest.BadValue, Message: "needs pii.enabled: true, without which nothing looks for personal data"}})...)
	}
	return req, want, faults
}

// read takes our own params and leaves the options to package guard. "threshold" is biasThreshold by a shorter name.
func (w *liteLLMWants) read(params map[string]json.RawMessage, defaults inline.Options) (faults []ingest.Fault) {
	var seconds uint32
	for name, to := range map[string]any{"mask": &w.mask, "wait": &seconds} {
		if raw, ok := params[name]; ok && json.Unmarshal(raw, to) != nil {
			faults = append(faults, ingest.Fault{Field: name, Code: ingest.WrongType, Message: map[string]string{"mask": "wants true or false", "wait": "wants whole seconds"}[name]})
		}
		delete(params, name)
	}
	if w.wait = time.Duration(seconds) * time.Second; w.wait > maxWait {
		faults = append(faults, ingest.Fault{Field: "wait", Code: ingest.BadValue, Message: fmt.Sprintf("wants at most %d", int(maxWait.Seconds()))})
	}
	if raw, ok := params["threshold"]; ok && params["biasThreshold"] == nil {
		params["biasThreshold"] = raw
	}
	delete(params, "threshold")
	w.options = defaults
	w.options.Domain = ""
	if len(params) > 0 {
		raw, _ := json.Marshal(params) // it was JSON a moment ago
		var more []ingest.Fault
		w.options, more = w.options.With(raw)
		faults = append(faults, more...)
	}
	if w.named = w.options.Domain; w.named == "" {
		w.options.Domain = defaults.Domain
	}
	return paramFaults(faults)
}

func paramFaults(faults []ingest.Fault) []ingest.Fault {
	for i := range faults {
		faults[i].Field = "additional_provider_specific_params." + faults[i].Field
	}
	return faults
}

// part is what the request tells of its call.
func (q *liteLLMRequest) part(tenant string, now time.Time) call.Part {
	p := call.Part{
		Format: "litellm", Kind: call.Model, Group: q.CallID, Key: q.CallID, Tenant: tenant, Claimed: q.claimed(), Time: now.UTC(), TraceID: q.trace(),
		Service: q.Caller.Alias, UserID: firstOf(q.Caller.EndUser, q.Caller.User), UserEmail: q.Caller.Email, Model: q.Model,
	}
	if p.Group == "" { // nothing that tells of the same call could be found
		p.Group = audit.NewID(now).String()
		p.Key = p.Group
	}
	for name, value := range map[string]string{"user_api_key_team_alias": q.Caller.Team, "user_api_key_team_id": q.Caller.TeamID, "user_api_key_org_id": q.Caller.Org} {
		if value != "" {
			if p.Metadata == nil {
				p.Metadata = map[string]any{}
			}
			p.Metadata[name] = value
		}
	}
	if q.Type == "request" {
		if p.Messages = q.Messages; len(p.Messages) == 0 {
			p.Messages = said("user", q.Texts)
		}
		for i := range p.Messages {
			m := &p.Messages[i]
			m.Reasoning = nil // an event has that of answers only
			m.Content, m.Calls = call.Unpacked("content", m.Content), call.Unpacked("tool_calls", m.Calls)
		}
		return p
	}
	p.SoFar = true // of a stream it may be
	if p.Answers = said("assistant", q.Texts); len(q.Calls) > 0 && string(q.Calls) != "null" {
		if len(p.Answers) == 0 {
			p.Answers = []call.Message{{Role: "assistant"}}
		}
		p.Answers[0].Calls = call.Unpacked("tool_calls", q.Calls)
	}
	return p
}

func said(role string, texts []string) (ms []call.Message) {
	for _, t := range texts {
		ms = append(ms, call.Text(role, t))
	}
	return ms
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// claimed is the tenant that the application's own headers name.
func (q *liteLLMRequest) claimed() string {
	for _, want := range []string{"x-evenhand-tenant", "x-tenant"} {
		for name, value := range q.Headers {
			if strings.EqualFold(name, want) && ingest.ValidTenant(value) {
				return value
			}
		}
	}
	return ""
}

// trace is the call's W3C trace id, "" when LiteLLM knows none.
func (q *liteLLMRequest) trace() string {
	if id := strings.ReplaceAll(strings.ToLower(q.TraceID), "-", ""); audit.ValidTraceID(id) {
		return id
	}
	for name, value := range q.Headers {
		if strings.EqualFold(name, "traceparent") {
			id, _, _ := audit.ParseTraceparent(value)
			return id
		}
	}
	return ""
}

// interaction is what is judged: all texts, whatever their length, and of an answer what its event will say. Its id is the event's, so its tenant
// is the event's too: where neither caller nor application name one, the caller's by default.
func (q *liteLLMRequest) interaction(p *call.Part, otherwise string) *audit.Interaction {
	tenant := cmp.Or(p.Tenant, p.Claimed, otherwise)
	in := &audit.Interaction{
		ID: call.ID(tenant, p.Group, p.Key), Tenant: tenant, Time: p.Time, TraceID: p.TraceID,
		UserID: p.UserID, Application: p.Service, Status: "success", Provider: "unknown", Model: firstOf(q.Model, "unknown"),
	}
	if q.Type == "request" {
		in.Prompt = strings.Join(slices.DeleteFunc(slices.Clone(q.Texts), func(t string) bool { return t == "" }), "\n\n")
	} else {
		in.Response = ingest.Answer(p.Answers)
	}
	return in
}
