package otlp

import (
	"strings"

	"github.com/evenhand/evenhand/ingest/call"
)

// vercel is the Vercel AI SDK, versions 4 to 6; version 7 writes OpenTelemetry's conventions, see genai.go.
//
// ai.operationId says what a span is: ai.generateText.doGenerate, ai.streamText.doStream and the two of …Object are calls.
// The span above, ai.generateText and so on, repeats the texts over all of its steps. A call has ai.prompt.messages (JSON, contents may
// be parts) and ai.response.text, .toolCalls, .object; the one above has ai.prompt ({system, prompt | messages}).
// ai.telemetry.metadata.<key> is copied onto both. All of a call is on its span, but it never is a root.
var vercel = dialect{
	kind: func(s *span) call.Kind {
		op := s.text("ai.operationId")
		what, step, _ := strings.Cut(strings.TrimPrefix(op, "ai."), ".")
		switch {
		case !strings.HasPrefix(op, "ai."):
			return ""
		case what != "generateText" && what != "streamText" && what != "generateObject" && what != "streamObject":
			return call.Context
		case step == "doGenerate", step == "doStream":
			return call.Model
		case step == "":
			return call.Outer
		}
		return call.Context
	},
	texts: func(s *span, p *call.Part) {
		if p.Messages = s.said("ai.prompt.messages", "user"); len(p.Messages) == 0 {
			p.Messages = s.said("ai.prompt", "user")
		}
		answer := map[string]any{}
		if t := s.text("ai.response.text", "ai.response.object", "ai.result.text", "ai.result.object"); t != "" {
			answer["content"] = t
		}
		if t := s.text("ai.response.reasoning"); t != "" {
			answer["reasoning_content"] = t
		}
		for _, name := range []string{"ai.response.toolCalls", "ai.result.toolCalls"} {
			if v, _ := s.value(name); v != nil {
				list, _ := v.([]any)
				answer["tool_calls"] = openAICalls(list, "tool-call")
			}
		}
		p.Answers = kept(message(answer, "assistant"))
	},
	model:    []string{"ai.response.model", "gen_ai.response.model", "ai.model.id", "gen_ai.request.model"},
	provider: []string{"ai.model.provider", "gen_ai.system"},
	asked:    []string{"ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"},
	answered: []string{"ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"},
	finish:   []string{"ai.response.finishReason", "gen_ai.response.finish_reasons", "ai.finishReason"},
	more: func(_ *span, p *call.Part) {
		p.Provider, _, _ = strings.Cut(p.Provider, ".") // openai.chat: the provider and its endpoint
	},
	alone: true,
}
