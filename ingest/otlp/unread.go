package otlp

import (
	"slices"
	"strings"
)

// passed tells a span that names the model it asked and is no call to us. What wraps calls and what makes no text are passed over rightly.
func passed(s *span) bool {
	op := s.text("gen_ai.operation.name")
	for _, other := range []string{"invoke_", "create_", "execute_", "embed", "retriev", "rerank"} {
		if strings.HasPrefix(op, other) {
			return false
		}
	}
	return s.has("gen_ai.request.model")
}

// textNames are the last words of attributes' names under which clients put texts.
var textNames = []string{
	"prompt", "prompts", "completion", "completions", "message", "messages", "input", "inputs", "output", "outputs", "content", "contents", "value", "text",
	"request_data", "response_data", "request", "response", "request_body", "response_body", "all_messages", "all_messages_events", "events", "llm_request", "llm_response",
}

const maxUnread = 5

// unread names the attributes, of the span and of its events, that look as if they held the texts of a call of which none was read.
func unread(s *span) (names []string) {
	look := func(a attrs, of string) {
		for name := range a.all {
			last := name[strings.LastIndexByte(name, '.')+1:]
			if !slices.Contains(textNames, last) || strings.HasPrefix(name, "exception.") || strings.HasPrefix(name, "error.") {
				continue
			}
			v, raw := a.value(name)
			if _, isText := v.(string); isText && hidden(raw) || scalar(v) != "" && !isText || raw == "" || raw == "null" || empty(v) {
				continue
			}
			names = append(names, cut(of+name, maxName))
		}
	}
	look(s.attrs, "")
	for _, e := range s.events {
		look(newAttrs(e.GetAttributes()), e.GetName()+": ")
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxUnread)]
}

// empty tells what would hold messages and holds none.
func empty(v any) bool {
	ms, ok := messages(v, "assistant")
	return ok && len(ms) == 0
}

const maxName = 128 // characters of a name in the log
