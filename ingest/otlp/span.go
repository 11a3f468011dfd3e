package otlp

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
)

// dialect is how one family of instrumentations tells a call on its span. Lists name attributes, of which the first
// that is there holds; each file of a dialect has one of these.
type dialect struct {
	// kind tells what a span is to its call, "" when the span is not of this dialect.
	kind func(s *span) call.Kind
	// texts fills in System, Messages and Answers.
	texts func(s *span, p *call.Part)

	model     []string // what answered, then what was asked
	provider  []string
	asked     []string // tokens of the prompt
	answered  []string // tokens of the response
	cost      []string // US dollars
	finish    []string // why it stopped
	template  []string // its id
	templateV []string
	more      func(s *span, p *call.Part) // what lists cannot say; nil is nothing
	// alone says that a call's span tells everything of it: no log record tells more.
	alone bool
}

// dialects are asked in this order: some spans carry the names of two, the more particular one first.
var dialects = []*dialect{&langfuse, &vercel, &openinference, &litellm, &mlflow, &genai, &openllmetry}

// span is what dialects look at.
type span struct {
	attrs
	name   string
	scope  string // the instrumentation
	root   bool
	events []*tracepb.Span_Event
}

// Parts implements call.Format.
func (f traces) Parts(p call.Payload) ([]call.Part, error) {
	data, err := spans(p)
	if err != nil {
		return nil, err
	}
	var parts []call.Part
	var bad refused
	for _, rs := range data.ResourceSpans {
		from := f.names.origin(rs.GetResource())
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				part, why := f.part(s, ss.GetScope(), from)
				switch {
				case why != "":
					bad.add(why)
				case part.Kind != "":
					part.Tenant = p.Tenant
					parts = append(parts, part)
				}
			}
		}
	}
	return parts, bad.err()
}

// part reads one span. A part without a kind tells nothing; why is why the span is refused.
func (f traces) part(s *tracepb.Span, scope *commonpb.InstrumentationScope, from origin) (p call.Part, why string) {
	p = call.Part{
		Format: format, Group: hex.EncodeToString(s.GetTraceId()), Key: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
	}
	if !audit.ValidTraceID(p.Group) || !audit.ValidSpanID(p.Key) {
		return p, wantIDs
	}
	if !audit.ValidSpanID(p.Parent) {
		p.Parent = ""
	}
	in := &span{attrs: newAttrs(s.GetAttributes()), name: s.GetName(), scope: scope.GetName(), root: p.Parent == "", events: s.GetEvents()}
	f.names.owner(&p, &in.attrs, from)
	for _, d := range dialects {
		if p.Kind = d.kind(in); p.Kind != "" {
			d.read(in, &p)
			break
		}
	}
	if p.Kind == "" || p.Kind == call.Context {
		p.Passed = passed(in)
		return above(in, p), ""
	}
	p.TraceID, p.SpanID, p.Service = p.Group, p.Key, from.service
	if end := s.GetEndTimeUnixNano(); end > 0 {
		p.Time = at(end)
		if from := s.GetStartTimeUnixNano(); p.Latency == 0 && from > 0 && from < end && end-from < uint64(maxLatency) {
			p.Latency = time.Duration(end - from) //nolint:gosec // checked
		}
	}
	if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR || p.Error != "" {
		p.Status = "error"
		if p.Error == "" {
			p.Error = fault(in, s.GetStatus().GetMessage())
		}
	}
	if in.root {
		logfireGroup(in, &p)
	}
	short(&p)
	return p, size(&in.attrs, &p)
}

// short cuts names to what an event takes, so that a name of thousand letters does not cost the call.
func short(p *call.Part) {
	for _, s := range []*string{&p.Service, &p.Session, &p.UserID, &p.UserEmail, &p.UserRole, &p.Provider, &p.Model, &p.DecisionID, &p.TemplateID, &p.TemplateVer} {
		*s = cut(*s, maxWord)
	}
	p.Domain = cut(p.Domain, maxDomain)
}

// cut gives the first n characters of s.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) > n {
		return string([]rune(s)[:n])
	}
	return s
}

// read lets the dialect tell the call.
func (d *dialect) read(s *span, p *call.Part) {
	if p.Kind == call.Context {
		p.System = s.instructions()
		return
	}
	d.texts(s, p)
	p.Model, p.Provider = s.text(d.model...), strings.ToLower(s.text(d.provider...))
	p.Tokens, p.CostUSD = [2]*int32{s.whole(d.asked...), s.whole(d.answered...)}, s.number(d.cost...)
	p.TemplateID, p.TemplateVer = s.text(d.template...), s.text(d.templateV...)
	if d.more != nil {
		d.more(s, p)
	}
	s.note(p, d.finish)
	if p.Withheld = withheld(p); p.Withheld {
		p.Unread = unread(s)
	}
	p.Done = p.Kind == call.Model && d.alone && s.root && len(p.Messages) > 0 && len(p.Answers) > 0
}

// textless tells that neither what was asked nor what was answered is known.
func textless(p *call.Part) bool { return len(p.Messages)+len(p.Answers) == 0 }

// withheld tells that a part has no texts.
func withheld(p *call.Part) bool { return textless(p) && p.System == "" }

// note puts into the metadata what events have no field for, under OpenTelemetry's names.
func (a *attrs) note(p *call.Part, finish []string) {
	add := func(k string, v any) {
		if p.Metadata == nil {
			p.Metadata = map[string]any{}
		}
		p.Metadata[k] = v
	}
	if id := a.text("gen_ai.response.id", "ai.response.id"); id != "" {
		add("gen_ai.response.id", id)
	}
	if asked := a.text("gen_ai.request.model", "ai.model.id"); asked != "" && asked != p.Model {
		add("gen_ai.request.model", asked)
	}
	for _, name := range finish {
		switch v, _ := a.value(name); x := v.(type) {
		case string:
			add("gen_ai.response.finish_reasons", []any{x})
			return
		case []any:
			add("gen_ai.response.finish_reasons", shallow(x, jsonDeep))
			return
		}
	}
}

// above gives the part of a span that is no call: what it tells of those beneath it, or what it stands under.
func above(s *span, p call.Part) call.Part {
	tells := p.Claimed+p.Domain+p.UserID+p.Session+p.UserEmail+p.UserRole+p.DecisionID+p.System != "" || len(p.Metadata) > 0
	if !tells && !p.Passed && (s.root || s.has("db.system") || s.has("db.system.name")) {
		return call.Part{}
	}
	p.Kind = call.Context
	short(&p)
	return p
}

// fault says what went wrong: the status' message, else the exception's.
func fault(s *span, message string) string {
	if message != "" {
		return message
	}
	for _, e := range slices.Backward(s.events) {
		if e.GetName() == "exception" {
			a := newAttrs(e.GetAttributes())
			return strings.Trim(a.text("exception.type")+": "+a.text("exception.message"), ": ")
		}
	}
	return s.text("error.message", "error.type")
}

// at is a time of OTLP; what is beyond the year 2262 is none.
func at(nano uint64) time.Time {
	if nano == 0 || nano > 1<<63-1 {
		return time.Time{}
	}
	return time.Unix(0, int64(nano)).UTC() //nolint:gosec // checked above
}

// size refuses a call whose texts no event takes.
func size(a *attrs, p *call.Part) (why string) {
	n := len(p.System)
	for _, ms := range [][]call.Message{p.Messages, p.Answers} {
		for _, m := range ms {
			n += len(m.Role) + len(m.Content) + len(m.Calls) + len(m.Reasoning)
		}
	}
	if a.huge || n > maxText {
		return tooLarge
	}
	return ""
}
