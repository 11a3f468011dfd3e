package otlp

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
)

// OpenTelemetry's conventions also tell calls by events, which are log records with the span's ids, and were events of the span.
// The name stands in the record's eventName, or in the attribute event.name (SDKs before 1.35).
//
//   - gen_ai.client.inference.operation.details: a whole call in the attributes of genai.go, or in members of the
//     body of their names; a Model part, as the span is.
//   - gen_ai.system.message, .user., .assistant., .tool. with body {content, …}, and gen_ai.choice with body {index,
//     finish_reason, message}: one message each, as openai-v2 before 2.1 and OpenLLMetry with use_events send them. Model,
//     tokens and parent are on the span; prompt and answer may come in different requests. Those of one
//     span in one payload become one Content part. Bodies without content (capture is off) are passed over.
const details = "gen_ai.client.inference.operation.details"

// Parts implements call.Format. Records that tell of no call are passed over.
func (f logs) Parts(p call.Payload) ([]call.Part, error) {
	data, err := records(p)
	if err != nil {
		return nil, err
	}
	g := gathered{logs: f, tenant: p.Tenant, at: map[string]int{}}
	for _, rl := range data.ResourceLogs {
		from := f.names.origin(rl.GetResource())
		for _, sl := range rl.GetScopeLogs() {
			rs := sl.GetLogRecords()
			slices.SortStableFunc(rs, func(a, b *logspb.LogRecord) int { return cmp.Compare(nano(a), nano(b)) })
			for _, r := range rs {
				if why := g.record(r, from); why != "" {
					g.bad.add(why)
				}
			}
		}
	}
	for i := range g.parts {
		slices.SortStableFunc(g.parts[i].Answers, func(a, b call.Message) int { return cmp.Compare(a.N, b.N) })
	}
	return g.parts, g.bad.err()
}

// gathered are the parts of a payload.
type gathered struct {
	logs
	tenant string
	parts  []call.Part
	at     map[string]int // of the Content part of a span
	bad    refused
}

// record reads one record; why is why it is refused.
func (g *gathered) record(r *logspb.LogRecord, from origin) (why string) {
	a := newAttrs(r.GetAttributes())
	name := r.GetEventName()
	if name == "" {
		name = a.text("event.name")
	}
	if name != details && !isMessage(name) {
		return ""
	}
	p := call.Part{Format: format, Group: hex.EncodeToString(r.GetTraceId()), Key: hex.EncodeToString(r.GetSpanId()), Tenant: g.tenant}
	if !audit.ValidTraceID(p.Group) || !audit.ValidSpanID(p.Key) {
		return wantIDs
	}
	p.TraceID, p.SpanID, p.Service, p.Time = p.Group, p.Key, from.service, at(nano(r))
	g.names.owner(&p, &a, from)
	short(&p)
	if name == details {
		if withBody := r.GetBody().GetKvlistValue().GetValues(); len(withBody) > 0 {
			a = newAttrs(slices.Concat(r.GetAttributes(), withBody))
		}
		return g.details(p, &a)
	}
	p.Kind, p.Provider = call.Content, cut(strings.ToLower(a.text(genai.provider...)), maxWord)
	body := attrs{all: map[string]*commonpb.AnyValue{"body": r.GetBody()}}
	message, _ := body.value("body")
	i, has := g.at[p.Group+p.Key]
	if has {
		p = g.parts[i]
		p.Time = at(nano(r))
	}
	told(name, message, &p)
	switch why = size(&body, &p); {
	case why != "" || withheld(&p):
	case has:
		g.parts[i] = p
	default:
		g.at[p.Group+p.Key] = len(g.parts)
		g.parts = append(g.parts, p)
	}
	return why
}

// details adds a record that tells a whole call.
func (g *gathered) details(p call.Part, a *attrs) (why string) {
	s := &span{attrs: *a}
	p.Kind = call.Model
	genai.read(s, &p)
	if p.Error = a.text("error.message", "error.type"); p.Error != "" {
		p.Status = "error"
	}
	short(&p)
	if why = size(&s.attrs, &p); why == "" {
		g.parts = append(g.parts, p)
	}
	return why
}

// nano is when a record was made; without that, when it was seen.
func nano(r *logspb.LogRecord) uint64 {
	if t := r.GetTimeUnixNano(); t > 0 {
		return t
	}
	return r.GetObservedTimeUnixNano()
}

// isMessage tells the events that hold one message.
func isMessage(name string) bool {
	switch name {
	case "gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.tool.message", "gen_ai.choice":
		return true
	}
	return false
}

// told adds the message of one event.
func told(name string, body any, p *call.Part) {
	m, ok := body.(map[string]any)
	if !ok {
		return
	}
	if name != "gen_ai.choice" {
		role := strings.TrimSuffix(strings.TrimPrefix(name, "gen_ai."), ".message")
		if role == "tool" && m["tool_call_id"] == nil {
			m["tool_call_id"] = m["id"]
		}
		p.Messages = append(p.Messages, spoken(m, role)...)
		return
	}
	inner, ok := m["message"].(map[string]any)
	if !ok {
		inner = m
	}
	for _, answer := range kept(message(inner, "assistant")) {
		if n, err := index(m["index"]); err == nil {
			answer.N = n
		}
		p.Answers = append(p.Answers, answer)
	}
	if why := scalar(m["finish_reason"]); why != "" {
		reasons, _ := p.Metadata["gen_ai.response.finish_reasons"].([]any)
		if p.Metadata == nil {
			p.Metadata = map[string]any{}
		}
		p.Metadata["gen_ai.response.finish_reasons"] = append(reasons, why)
	}
}

// spanEvents reads events of a span: messages whose body is the attribute gen_ai.event.content, or whose attributes are its members
// (Strands has content and message as JSON there), the two events of the conventions of 2024 that hold all of them, and the details of a call.
func spanEvents(s *span, p *call.Part) {
	for _, e := range s.events {
		if !strings.HasPrefix(e.GetName(), "gen_ai.") {
			continue
		}
		a := newAttrs(e.GetAttributes())
		switch name := e.GetName(); {
		case name == details:
			genaiTexts(&a, p)
		case name == "gen_ai.content.prompt":
			p.Messages = append(p.Messages, a.said("gen_ai.prompt", "user")...)
		case name == "gen_ai.content.completion":
			p.Answers = append(p.Answers, a.said("gen_ai.completion", "assistant")...)
		case isMessage(name):
			v, _ := a.document("gen_ai.event.content")
			if v == nil {
				v = a.body()
			}
			told(name, v, p)
		}
		s.huge = s.huge || a.huge
	}
}

// body gathers the members of a message that are attributes of its event. JSON there is the text itself, unless it is parts or a message.
func (a *attrs) body() map[string]any {
	m := map[string]any{}
	for _, name := range []string{"role", "content", "message", "tool_calls", "id", "index", "finish_reason"} {
		v, raw := a.document(name)
		if raw == "" {
			continue
		}
		list, _ := v.([]any)
		inner, _ := v.(map[string]any)
		isMessage := inner["content"] != nil || inner["parts"] != nil || inner["tool_calls"] != nil
		if (name == "content" || name == "message") && !areBlocks(list) && !(name == "message" && isMessage) {
			v = raw
		}
		if name == "message" && !isMessage {
			v = map[string]any{"content": v}
		}
		m[name] = v
	}
	return m
}

// areBlocks tells a list of parts, also Bedrock's, which have no type: [{text}], [{toolUse}].
func areBlocks(list []any) bool {
	for _, e := range list {
		m, _ := e.(map[string]any)
		if m == nil || scalar(m["type"]) == "" && m["text"] == nil && m["toolUse"] == nil && m["toolResult"] == nil && m["image"] == nil {
			return false
		}
	}
	return len(list) > 0
}
