package otlp

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
)

// openinference is Arize's OpenInference, for OpenAI, LangChain, LlamaIndex and many more.
//
// openinference.span.kind says what a span is: LLM is a call; a CHAIN or AGENT that is the root has the texts of the
// whole run. Messages are flat attributes, llm.input_messages.0.message.role, …message.content or
// …message.contents.0.message_content.text, …message.tool_calls.0.tool_call.function.name; llm.output_messages likewise.
// Without these, input.value and output.value hold the request and the answer; the client for OpenAI has the provider's whole answer in
// output.value beside them, and in the messages less of it: no thoughts, no names of tools of one's own. Hidden texts are __REDACTED__. session.id,
// user.id, metadata and tag.tags of the application's context are copied onto every span. All of a call is on its span.
// The model of a call that failed stands in llm.invocation_parameters alone, and the user that the application tells the provider.
// LangChain.js tells the provider in metadata of its own alone, ls_provider and ls_model_name, in the place of the application's.
//
// https://arize-ai.github.io/openinference/spec/semantic_conventions.html
var openinference = dialect{
	kind: func(s *span) call.Kind {
		switch s.text("openinference.span.kind") {
		case "":
			return ""
		case "LLM":
			return call.Model
		case "CHAIN", "AGENT":
			if s.root && s.has("output.value") {
				return call.Outer
			}
		}
		return call.Context
	},
	texts: func(s *span, p *call.Part) {
		p.Messages = s.wrapped("llm.input_messages", "user")
		if len(p.Messages) == 0 {
			p.Messages = s.said("input.value", "user")
		}
		p.Answers = s.wrapped("llm.output_messages", "assistant")
		if len(p.Answers) == 0 {
			p.Answers = s.said("output.value", "assistant")
		} else {
			p.Answers = fuller(p.Answers, s.answered("output.value"))
		}
	},
	model:     []string{"llm.model_name"},
	provider:  []string{"llm.provider", "llm.system"},
	asked:     []string{"llm.token_count.prompt"},
	answered:  []string{"llm.token_count.completion"},
	cost:      []string{"llm.cost.total"},
	finish:    []string{"llm.finish_reason"},
	templateV: []string{"llm.prompt_template.version"},
	more: func(s *span, p *call.Part) {
		told := s.object("metadata")
		p.Provider = cmp.Or(p.Provider, strings.ToLower(scalar(told["ls_provider"])))
		asked := s.object("llm.invocation_parameters") // all that there is of a call that failed
		p.Model = cmp.Or(p.Model, scalar(told["ls_model_name"]), scalar(asked["model"]), scalar(asked["model_name"]))
		p.UserID = cmp.Or(p.UserID, scalar(asked["user"]), scalar(asked["safety_identifier"]))
	},
	alone: true,
}

// answered reads an attribute that repeats a provider's whole answer. One that is none, or too much, is passed over: it is not all there is.
func (a *attrs) answered(name string) []call.Message {
	huge := a.huge
	v, _ := a.document(name)
	a.huge = huge
	m, _ := v.(map[string]any)
	for _, in := range []string{"choices", "candidates", "generations", "output"} {
		if list, _ := m[in].([]any); len(list) > 0 {
			ms, _ := messages(m, "assistant")
			return ms
		}
	}
	if m["type"] == "message" && m["role"] != nil { // Anthropic
		return spoken(m, "assistant")
	}
	return nil
}

// fuller gives the one of two tellings of the same answers that says more, both where each says what the other has not.
func fuller(told, whole []call.Message) []call.Message {
	a, b := lines(told), lines(whole)
	switch {
	case holds(a, b):
		return told
	case holds(b, a):
		return whole
	}
	return append(told, whole...)
}

// lines are those of the text that is judged of answers. Of a custom tool's call the messages have the id alone, which says nothing.
func lines(ms []call.Message) map[string]bool {
	ms = slices.DeleteFunc(slices.Clone(ms), func(m call.Message) bool {
		return len(m.Content)+len(m.Reasoning) == 0 && !bytes.Contains(m.Calls, []byte(`"name"`))
	})
	all := map[string]bool{}
	for s := range strings.SplitSeq(ingest.Answer(ms), "\n") {
		all[strings.TrimSpace(s)] = true
	}
	delete(all, "")
	return all
}

// holds tells whether all has every line of some.
func holds(all, some map[string]bool) bool {
	for s := range some {
		if !all[s] {
			return false
		}
	}
	return true
}

// wrapped reads messages that stand in a list of {message: …}.
func (a *attrs) wrapped(prefix, role string) (all []call.Message) {
	list, _ := a.nested(prefix).([]any)
	for _, e := range list {
		m, ok := inside(e, "message").(map[string]any)
		if !ok {
			continue
		}
		if m["content"] == nil {
			m["content"] = each(m["contents"], "message_content")
		}
		if calls := each(m["tool_calls"], "tool_call"); calls != nil {
			m["tool_calls"] = calls
		}
		all = append(all, spoken(m, role)...)
	}
	return all
}

// inside takes off a wrapper {name: …}.
func inside(v any, name string) any {
	if m, ok := v.(map[string]any); ok && m[name] != nil {
		return m[name]
	}
	return v
}

// each takes off the wrappers of a list's elements; nil is no list.
func each(v any, name string) any {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	for i := range list {
		list[i] = inside(list[i], name)
	}
	return list
}
