package call

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Merge fills what is not known in a from b, of the same call. The texts of the part that has more of them hold
// whole: a prompt and its copy are not put together. Content parts add theirs, but not one that was sent again.
// The time is that of the part that knows how long the call took, whichever comes first.
func Merge(a, b Part) Part {
	if a.Kind == Content && b.Kind == Content && !(holds(a.Messages, b.Messages) && holds(a.Answers, b.Answers)) {
		a.Messages, a.Answers = append(a.Messages, b.Messages...), append(a.Answers, b.Answers...)
	}
	if len(a.Messages) == 0 && a.System == "" {
		a.Messages, a.System = b.Messages, b.System
	}
	switch more := Size(b.Answers) - Size(a.Answers); { // what was decided about less of an answer says nothing of more
	case !a.SoFar || !b.SoFar:
	case more > 0:
		a.Metadata = unnoted(a.Metadata)
	case more < 0:
		b.Metadata = unnoted(b.Metadata)
	}
	if len(a.Answers) == 0 || len(b.Answers) > 0 && a.SoFar && (!b.SoFar || Size(b.Answers) > Size(a.Answers)) {
		a.Answers, a.SoFar = b.Answers, b.SoFar
	}
	if b.Status == Blocked {
		a.Status = Blocked // whoever stopped it knows better than who saw no answer
	}
	a.Withheld = (a.Withheld || b.Withheld) && len(a.Messages)+len(a.Answers) == 0
	if len(a.Unread) == 0 {
		a.Unread = b.Unread
	}
	a.Done = a.Done || b.Done
	a.Asked = a.Asked && b.Asked
	if a.Kind != Model && b.Kind == Model {
		a.Kind = Model
	}
	if a.Time.IsZero() || a.Latency == 0 && b.Latency > 0 {
		a.Time = b.Time
	}
	if a.Latency == 0 {
		a.Latency = b.Latency
	}
	for i := range a.Tokens {
		if a.Tokens[i] == nil {
			a.Tokens[i] = b.Tokens[i]
		}
	}
	if a.CostUSD == nil {
		a.CostUSD = b.CostUSD
	}
	if a.Status == "error" && b.Status == "success" { // an attempt failed and another one under the same key was answered
		a.Status, a.Error = b.Status, ""
	}
	if a.Status == "success" {
		b.Error = ""
	}
	for _, f := range []struct{ to, from *string }{
		{&a.Parent, &b.Parent}, {&a.Tenant, &b.Tenant}, {&a.TraceID, &b.TraceID}, {&a.SpanID, &b.SpanID},
		{&a.Provider, &b.Provider}, {&a.Model, &b.Model}, {&a.Status, &b.Status}, {&a.Error, &b.Error},
	} {
		if *f.to == "" {
			*f.to = *f.from
		}
	}
	return Inherit(a, b)
}

// holds tells whether piece stands in all, in a row.
func holds(all, piece []Message) bool {
	for from := 0; from+len(piece) <= len(all); from++ {
		if slices.EqualFunc(all[from:from+len(piece)], piece, same) {
			return true
		}
	}
	return false
}

func same(a, b Message) bool {
	return a.Role == b.Role && bytes.Equal(a.Content, b.Content) && bytes.Equal(a.Calls, b.Calls) && bytes.Equal(a.Reasoning, b.Reasoning) && a.ToolCallID == b.ToolCallID
}

// instructed tells whether the prompt has its system message already.
func instructed(p *Part) bool {
	return p.System != "" || slices.ContainsFunc(p.Messages, func(m Message) bool { return m.Role == "system" || m.Role == "developer" })
}

// Blocked is the status of a call whose texts were stopped on their way.
const Blocked = "blocked"

// GuardNote is the member of the metadata that says what a guard decided about the answers.
const GuardNote = "guard"

// unnoted gives metadata without a guard's note.
func unnoted(metadata map[string]any) map[string]any {
	if _, has := metadata[GuardNote]; has {
		metadata = maps.Clone(metadata)
		delete(metadata, GuardNote)
	}
	return metadata
}

// Said is how much the answers say, in bytes.
func (p *Part) Said() int { return Size(p.Answers) }

// Size is how much the messages say, in bytes.
func Size(ms []Message) (n int) {
	for _, m := range ms {
		n += len(m.Content) + len(m.Calls) + len(m.Reasoning)
	}
	return n
}

// Inherit fills in what holds for everything beneath a part: who asked, where, for what, under which instructions.
func Inherit(a, above Part) Part {
	if len(a.Messages) > 0 && !instructed(&a) {
		a.System = above.System
	}
	for _, f := range []struct{ to, from *string }{
		{&a.Claimed, &above.Claimed}, {&a.Service, &above.Service}, {&a.Session, &above.Session}, {&a.Domain, &above.Domain},
		{&a.UserID, &above.UserID}, {&a.UserEmail, &above.UserEmail}, {&a.UserRole, &above.UserRole},
		{&a.DecisionID, &above.DecisionID}, {&a.TemplateID, &above.TemplateID}, {&a.TemplateVer, &above.TemplateVer},
	} {
		if *f.to == "" {
			*f.to = *f.from
		}
	}
	for k, v := range above.Metadata {
		if _, has := a.Metadata[k]; !has {
			if a.Metadata == nil {
				a.Metadata = map[string]any{}
			}
			a.Metadata[k] = v
		}
	}
	return a
}

// event is the native event (schemas/events/interaction.v1.json) with the fields that other formats tell.
type event struct {
	ID             string         `json:"id"`
	Tenant         string         `json:"tenant_id,omitempty"`
	Timestamp      string         `json:"timestamp,omitempty"`
	TraceID        string         `json:"trace_id,omitempty"`
	SpanID         string         `json:"span_id,omitempty"`
	Application    string         `json:"application,omitempty"`
	Conversation   string         `json:"conversation_id,omitempty"`
	Domain         string         `json:"domain,omitempty"`
	DecisionID     string         `json:"decision_id,omitempty"`
	UserID         string         `json:"user_id,omitempty"`
	UserEmail      string         `json:"user_email,omitempty"`
	UserRole       string         `json:"user_role,omitempty"`
	Messages       []Message      `json:"messages,omitempty"`
	Response       any            `json:"response,omitempty"`
	Provider       string         `json:"provider,omitempty"`
	Model          string         `json:"model,omitempty"`
	PromptTokens   *int32         `json:"prompt_tokens,omitempty"`
	ResponseTokens *int32         `json:"response_tokens,omitempty"`
	LatencyMS      *int64         `json:"latency_ms,omitempty"`
	CostUSD        *float64       `json:"estimated_cost_usd,omitempty"`
	Status         string         `json:"status,omitempty"`
	Error          string         `json:"error_message,omitempty"`
	Template       map[string]any `json:"template,omitempty"`
	Metadata       map[string]any `json:"metadata,omitempty"`
}

// Event gives the native event of a call. tenant is whose it is; "" leaves that to tenant.default.
func (p *Part) Event(tenant string) ([]byte, error) {
	e := event{
		ID: cmp.Or(p.Given, ID(tenant, p.Group, p.Key).String()), Tenant: tenant, TraceID: p.TraceID, SpanID: p.SpanID,
		Application: p.Service, Conversation: p.Session, Domain: p.Domain, DecisionID: p.DecisionID,
		UserID: p.UserID, UserEmail: p.UserEmail, UserRole: p.UserRole, Messages: p.Messages, Provider: p.Provider, Model: p.Model,
		PromptTokens: p.Tokens[0], ResponseTokens: p.Tokens[1], CostUSD: p.CostUSD, Status: p.Status, Error: p.Error, Metadata: p.Metadata,
	}
	if p.System != "" {
		e.Messages = append([]Message{Text("system", p.System)}, e.Messages...)
	}
	if !p.Time.IsZero() {
		e.Timestamp = p.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	}
	if p.Latency > 0 {
		ms := (p.Latency + time.Millisecond/2).Milliseconds()
		e.LatencyMS = &ms
	}
	if p.TemplateID != "" {
		e.Template = map[string]any{"id": p.TemplateID}
		if p.TemplateVer != "" {
			e.Template["version"] = p.TemplateVer
		}
	}
	e.Response = Response(p.Answers)
	return json.Marshal(e)
}

// Response is what the event has as its response: a plain text where that is all there is, else the answers as they came.
func Response(answers []Message) any {
	if len(answers) == 0 {
		return nil
	}
	var text string
	if a := answers[0]; len(answers) == 1 && len(a.Calls)+len(a.Reasoning) == 0 && json.Unmarshal(a.Content, &text) == nil {
		return text
	}
	return answers
}
