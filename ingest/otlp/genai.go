package otlp

import (
	"strings"

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
// https://opentelemetry.io/docs/specs/semconv/gen-ai/
var genai = dialect{
	kind: func(s *span) call.Kind {
		op := s.text("gen_ai.operation.name")
		switch {
		case op == "":
			if s.has("gen_ai.input.messages") || s.has("gen_ai.output.messages") {
				return call.Model
			}
			return ""
		case isCall(op):
			return call.Model
		case strings.HasPrefix(op, "invoke_") && (s.has("gen_ai.input.messages") || s.has("gen_ai.output.messages")):
			return call.Outer
		}
		return call.Context
	},
	texts: func(s *span, p *call.Part) {
		genaiTexts(&s.attrs, p)
		if withheld(p) {
			spanEvents(s.events, p)
		}
		if withheld(p) {
			indexed(s, p)
		}
	},
	model:    []string{"gen_ai.response.model", "gen_ai.request.model"},
	provider: []string{"gen_ai.provider.name", "gen_ai.system"},
	asked:    []string{"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"},
	answered: []string{"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"},
	cost:     []string{"gen_ai.usage.cost"},
	finish:   []string{"gen_ai.response.finish_reasons"},
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
