package otlp

import "github.com/evenhand/evenhand/ingest/call"

// openllmetry is OpenLLMetry (traceloop) before it took over OpenTelemetry's conventions, to about 0.50; later ones are
// read by genai.go.
//
// A call is a span with llm.request.type chat or completion. Messages are flat attributes, gen_ai.prompt.0.role,
// gen_ai.prompt.0.content, gen_ai.completion.0.content, …tool_calls.0.name; content of several parts is JSON text.
// What the application says stands under traceloop.association.properties. All of a call is on its span. Versions before 0.20 have
// llm.prompts.0.content and llm.completions.0.content, and their own names for model and tokens.
var openllmetry = dialect{
	kind: func(s *span) call.Kind {
		switch s.text("llm.request.type") {
		case "chat", "completion":
			return call.Model
		case "":
			for _, first := range []string{"gen_ai.prompt.0.content", "gen_ai.completion.0.content", "llm.prompts.0.content", "llm.completions.0.content"} {
				if s.has(first) {
					return call.Model
				}
			}
			return ""
		}
		return call.Context
	},
	texts:    indexed,
	model:    []string{"gen_ai.response.model", "gen_ai.request.model", "llm.response.model", "llm.request.model"},
	provider: []string{"gen_ai.provider.name", "gen_ai.system", "llm.vendor"},
	asked:    []string{"gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens", "llm.usage.prompt_tokens"},
	answered: []string{"gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens", "llm.usage.completion_tokens"},
	finish:   []string{"gen_ai.response.finish_reasons", "gen_ai.completion.0.finish_reason", "llm.completions.0.finish_reason"},
	alone:    true,
}

// indexed reads gen_ai.prompt.N and gen_ai.completion.N, else what they were called before.
func indexed(s *span, p *call.Part) {
	for _, names := range [][2]string{{"gen_ai.prompt", "gen_ai.completion"}, {"llm.prompts", "llm.completions"}} {
		if p.Messages, p.Answers = s.indexed(names[0], "user"), s.indexed(names[1], "assistant"); !textless(p) {
			return
		}
	}
}

func (a *attrs) indexed(prefix, role string) (all []call.Message) {
	list, _ := a.nested(prefix).([]any)
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		if s, ok := m["content"].(string); ok {
			if parts, ok := roomy(s).([]any); ok && isParts(parts) {
				m["content"] = parts
			}
		}
		if calls, ok := m["tool_calls"].([]any); ok {
			m["tool_calls"] = openAICalls(calls, "tool_call")
		}
		all = append(all, spoken(m, role)...)
	}
	return all
}
