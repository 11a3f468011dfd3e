package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/evenhand/evenhand/ingest/call"
)

// genai is OpenTelemetry's own convention, as openai-v2 and its sister instrumentations, OpenLLMetry from 0.5x on and
// Vercel AI SDK 7 write it.
//
// A call is a span whose gen_ai.operation.name is chat, text_completion or generate_content. Its texts, if their capture is
// on, are gen_ai.input.messages, gen_ai.output.messages and gen_ai.system_instructions: JSON text on spans, AnyValues on
// records. Or they come as events of the span or as log records, see events.go. AI SDK 7 has the system prompt on the span
// invoke_agent, which repeats the texts, above a span agent_step, above the call. Never done: a record may tell the call again.
//
// Texts also stand where the conventions had them before, or have them not: in gen_ai.prompt and gen_ai.completion (JSON or plain text),
// in the attribute events (a JSON list of events: Pydantic AI, Logfire), and in Google ADK's gcp.vertex.agent.llm_request and .llm_response.
// Logfire tells a stream in two spans beside each other, the answer in one of logfire.span_type log.
// A span with a model and such texts is a call without an operation's name, too; LangSmith's kinds of spans say otherwise.
//
// https://opentelemetry.io/docs/specs/semconv/gen-ai/
var genai = dialect{
	kind: func(s *span) call.Kind {
		op := s.text("gen_ai.operation.name")
		switch {
		case op == "":
			return unnamedCall(s)
		case isCall(op):
			return call.Model
		case strings.HasPrefix(op, "invoke_") && (s.has("gen_ai.input.messages") || s.has("gen_ai.output.messages")):
			return call.Outer
		}
		return call.Context
	},
	texts: func(s *span, p *call.Part) {
		if genaiTexts(&s.attrs, p); textless(p) {
			elsewhere(s, p)
		}
		if textless(p) {
			indexed(s, p)
		}
	},
	model:    genaiModel,
	provider: []string{"gen_ai.provider.name", "gen_ai.system"},
	asked:    []string{"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"},
	answered: []string{"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"},
	cost:     []string{"gen_ai.usage.cost"},
	finish:   []string{"gen_ai.response.finish_reasons"},
	more:     logfireStream,
}

// logfireStream reads the log in which Logfire tells a stream's end, beside the span of the call, which has no answer.
func logfireStream(s *span, p *call.Part) {
	if s.text("logfire.span_type") != "log" || len(p.Answers) == 0 {
		return
	}
	p.Ends = true
	if took := s.number("duration"); took != nil && *took < maxLatency.Seconds() {
		p.Latency = time.Duration(*took * float64(time.Second))
	}
}

var genaiModel = []string{"gen_ai.response.model", "gen_ai.request.model"}

// logfireGroup brings the two spans of a stream of Logfire's together where no span is around them: then each has a trace of its own, and
// nothing but what was asked tells that they belong together.
func logfireGroup(s *span, p *call.Part) {
	if p.Kind != call.Model || !s.has("logfire.span_type") || !p.Ends && len(p.Answers) > 0 || p.Status == "error" || len(p.Messages) == 0 {
		return
	}
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{p.Service, s.text("gen_ai.request.model"), p.System, p.Messages}) // a hash takes all, and messages are JSON
	p.Group = "logfire " + hex.EncodeToString(h.Sum(nil))
}

// unnamedCall tells what a span without an operation's name is.
func unnamedCall(s *span) call.Kind {
	if s.has("gen_ai.input.messages") || s.has("gen_ai.output.messages") {
		return call.Model
	}
	kind := s.text("langsmith.span.kind")
	if kind == "" && s.text(genaiModel...) == "" {
		return ""
	}
	var p call.Part
	switch elsewhere(s, &p); {
	case kind == "llm":
		return call.Model
	case kind != "" && s.root && !textless(&p):
		return call.Outer
	case kind != "":
		return call.Context
	case textless(&p):
		return ""
	}
	return call.Model
}

// elsewhere reads the texts that are in the first of the other places.
func elsewhere(s *span, p *call.Part) {
	for _, read := range []func(*span, *call.Part){spanEvents, deprecated, listedEvents, adk} {
		if read(s, p); !textless(p) {
			return
		}
	}
}

// deprecated reads the attributes that held the texts until 2025: JSON, or plain text.
func deprecated(s *span, p *call.Part) {
	p.Messages, p.Answers = s.said("gen_ai.prompt", "user"), s.said("gen_ai.completion", "assistant")
}

// listedEvents reads events that stand on the span as one list.
func listedEvents(s *span, p *call.Part) {
	v, _ := s.document("events")
	list, _ := v.([]any)
	for _, e := range list {
		m, _ := e.(map[string]any)
		if name := scalar(m["event.name"]); isMessage(name) {
			told(name, m, p)
		}
	}
}

// adk reads Google ADK's request and answer; "{}" stands there while capture is off.
func adk(s *span, p *call.Part) {
	request, _ := s.document("gcp.vertex.agent.llm_request")
	answer, _ := s.document("gcp.vertex.agent.llm_response")
	p.Messages, _ = messages(request, "user")
	p.Answers, _ = messages(answer, "assistant")
}

// isCall tells the operations that are calls of a model which answers in words; LiteLLM names its own functions.
func isCall(op string) bool {
	switch op {
	case "chat", "completion", "text_completion", "generate_content", "responses", "anthropic_messages",
		"acompletion", "atext_completion", "agenerate_content", "aresponses", "generate_content_stream", "agenerate_content_stream":
		return true
	}
	return false
}

// genaiTexts reads the three attributes, of a span or of a record.
func genaiTexts(a *attrs, p *call.Part) {
	p.System = a.instructions()
	p.Messages = a.said("gen_ai.input.messages", "user")
	p.Answers = a.said("gen_ai.output.messages", "assistant")
}

// instructions gives the system prompt that is told apart from the messages: parts, or plain text.
func (a *attrs) instructions() string {
	v, raw := a.value("gen_ai.system_instructions")
	list, ok := v.([]any)
	if !ok {
		return raw
	}
	var all []string
	for _, e := range list {
		m, _ := part(e).(map[string]any)
		if s := scalar(m["text"]); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n")
}
