package otlp

import (
	"cmp"
	"strings"

	"github.com/evenhand/evenhand/ingest/call"
)

// mlflow is MLflow Tracing, whose attributes are JSON, names in quotes.
//
// mlflow.spanType says what a span is: CHAT_MODEL and LLM are calls. The root, if it is of another type, has the texts of the whole run.
// mlflow.spanInputs and mlflow.spanOutputs hold the request and the answer; the model is a member of the request. All of a call is on its span.
var mlflow = dialect{
	kind: func(s *span) call.Kind {
		switch kind := unquoted(s.text("mlflow.spanType")); {
		case kind == "":
			return ""
		case kind == "CHAT_MODEL" || kind == "LLM":
			return call.Model
		case (kind == "CHAIN" || kind == "AGENT") && s.root && s.has("mlflow.spanOutputs"):
			return call.Outer
		}
		return call.Context
	},
	texts: func(s *span, p *call.Part) {
		p.Messages, p.Answers = s.quoted("mlflow.spanInputs", "user"), s.quoted("mlflow.spanOutputs", "assistant")
	},
	model:    []string{"gen_ai.response.model", "gen_ai.request.model"},
	provider: []string{"gen_ai.provider.name", "gen_ai.system"},
	asked:    []string{"gen_ai.usage.input_tokens"},
	answered: []string{"gen_ai.usage.output_tokens"},
	more: func(s *span, p *call.Part) {
		asked, _ := s.document("mlflow.spanInputs")
		request, _ := asked.(map[string]any)
		p.Model = cmp.Or(p.Model, unquoted(s.text("mlflow.llm.model")), scalar(request["model"]))
		p.Provider = cmp.Or(p.Provider, strings.ToLower(unquoted(s.text("mlflow.llm.provider"))))
		if used := usageTokens(s.object("mlflow.chat.tokenUsage")); p.Tokens == [2]*int32{} {
			p.Tokens = used
		}
	},
	alone: true,
}

// quoted is said for an attribute whose plain text is written as JSON.
func (a *attrs) quoted(name, role string) []call.Message {
	v, raw := a.document(name)
	if ms, ok := messages(v, role); ok {
		return ms
	}
	if s := unquoted(raw); s != "" && s != "null" && !hidden(s) {
		return []call.Message{call.Text(role, s)}
	}
	return nil
}
