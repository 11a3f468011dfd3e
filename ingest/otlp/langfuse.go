package otlp

import (
	"github.com/evenhand/evenhand/ingest/call"
)

// langfuse is the Langfuse SDK from version 3 on, and what it wraps by @observe.
//
// langfuse.observation.type says what a span is: generation is a call. The other kinds (span, agent, chain, …) are functions
// of the application; the outermost (langfuse.internal.is_app_root, or a root) has the texts of the whole request, as
// langfuse.observation.input and .output. Both are JSON text, or plain text. user.id, session.id,
// langfuse.trace.metadata.<key> (JSON text) and langfuse.trace.tags are copied onto every span. All of a call is on its span.
var langfuse = dialect{
	kind: func(s *span) call.Kind {
		switch s.text("langfuse.observation.type") {
		case "":
			return ""
		case "generation":
			return call.Model
		case "embedding", "tool", "retriever", "evaluator", "guardrail", "event":
			return call.Context
		}
		outermost := s.root || s.text("langfuse.internal.is_app_root", "langfuse.internal.as_root") == "true"
		if outermost && s.has("langfuse.observation.output") {
			return call.Outer
		}
		return call.Context
	},
	texts: func(s *span, p *call.Part) {
		p.Messages, p.Answers = s.said("langfuse.observation.input", "user"), s.said("langfuse.observation.output", "assistant")
	},
	model:     []string{"langfuse.observation.model.name", "gen_ai.response.model", "gen_ai.request.model"},
	provider:  []string{"gen_ai.provider.name", "gen_ai.system"},
	finish:    []string{"gen_ai.response.finish_reasons"},
	template:  []string{"langfuse.observation.prompt.name"},
	templateV: []string{"langfuse.observation.prompt.version"},
	more: func(s *span, p *call.Part) {
		used, cost := s.object("langfuse.observation.usage_details"), s.object("langfuse.observation.cost_details")
		for i, names := range [][]string{{"input", "prompt_tokens", "input_tokens"}, {"output", "completion_tokens", "output_tokens"}} {
			for _, n := range names {
				if v, err := index(used[n]); err == nil && p.Tokens[i] == nil {
					v := int32(v) //nolint:gosec // index gives 31 bits
					p.Tokens[i] = &v
				}
			}
		}
		if total, err := decimal(cost["total"]); err == nil {
			p.CostUSD = &total
		}
		if s.text("langfuse.observation.level") == "ERROR" {
			if p.Error = s.text("langfuse.observation.status_message"); p.Error == "" {
				p.Error = "level ERROR"
			}
		}
	},
	alone: true,
}
