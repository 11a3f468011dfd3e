package otlp

import (
	"github.com/evenhand/evenhand/ingest/call"
)

// litellm is LiteLLM's callback "otel". (Its other callback, generic_api, is package litellm.)
//
// A call is the span litellm_request: attributes of OpenTelemetry's conventions, with LiteLLM's function as gen_ai.operation.name
// (acompletion) and gen_ai.cost.total_cost. From 1.81 on that span is an option, and the attributes stand on the span around
// the call: the proxy's, or the application's own; then they are read there, unless a call is beneath.
// Versions before 1.7x have gen_ai.prompt.N as OpenLLMetry has. The caller's metadata
// is metadata.requester_metadata as Python writes a dict, not as JSON. The trace is OpenTelemetry's, litellm_trace_id is not
// sent. raw_gen_ai_request beneath repeats the provider's answer and is no call. All of a call is on its span.
var litellm = dialect{
	kind: func(s *span) call.Kind {
		switch {
		case s.scope != "litellm" && !s.has("litellm.call_id"):
			return ""
		case !isCall(s.text("gen_ai.operation.name", "llm.request.type")):
			return call.Context
		case s.scope != "litellm" || s.name == "Received Proxy Server Request":
			return call.Outer
		}
		return call.Model
	},
	texts:    genai.texts,
	model:    genai.model,
	provider: genai.provider,
	asked:    genai.asked,
	answered: genai.answered,
	cost:     []string{"gen_ai.cost.total_cost"},
	finish:   genai.finish,
	alone:    true,
}
