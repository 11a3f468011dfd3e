package otlp

import (
	"slices"
	"strings"

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
		p.Tokens = usageTokens(s.object("langfuse.observation.usage_details"))
		cost := s.object("langfuse.observation.cost_details")
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

// usageNames are what usage_details call the tokens of the prompt and of the response; its parts are input_… and output_….
var usageNames = [2][]string{{"input", "prompt_tokens", "input_tokens"}, {"output", "completion_tokens", "output_tokens"}}

// usageTokens gives the tokens of the prompt and of the response. Langfuse's JavaScript SDK takes the parts that a provider tells, such as
// input_cached_tokens, off input and output since version 4; others leave them in. The total says which: parts that are needed to
// make it up are added.
func usageTokens(used map[string]any) (tokens [2]*int32) {
	sum, parts := 0, [2]int{}
	for side, names := range usageNames {
		for name, v := range used {
			if n, err := index(v); err == nil && strings.HasPrefix(name, names[0]+"_") && !slices.Contains(names, name) {
				parts[side] += n
			}
		}
		for _, name := range names {
			if n, err := index(used[name]); err == nil {
				whole := int32(n) //nolint:gosec // index gives 31 bits
				tokens[side], sum = &whole, sum+n
				break
			}
		}
	}
	total, err := index(used["total"])
	if err != nil || sum+parts[0]+parts[1] != total {
		return tokens
	}
	for side, n := range tokens {
		if n != nil {
			*n += int32(parts[side]) //nolint:gosec // no more than the total
		}
	}
	return tokens
}
