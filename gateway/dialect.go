package gateway

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
)

// dialect is one of OpenAI's two ways to ask a model. It reads what is needed and writes what is ours.
type dialect interface {
	path() string   // at the provider, after base_url
	texts() string  // the member of the request that holds the prompt
	method() string // for the person who decides
	// refused tells what cannot be served because it could not be judged; "" for none.
	refused(q *request) string
	prompt(q *request) (system string, ms []call.Message, f *fault)
	whole(a *answer, body gjson.Result)
	chunk(a *answer, data gjson.Result)
	// told tells whether a string of an answer, or of an event of a stream, is of what the model says.
	told(path []step, event bool) bool
	channel(event gjson.Result, path []step) (key string, whole bool)
	ends(event gjson.Result) (prefixes []string)
	// marked gives the path of our report in an event of a stream; "" in events that carry none.
	marked(data gjson.Result) string
	// events tells a completion of one choice, which came in one piece, as a stream; usage wants its tokens at the end.
	events(body []byte, usage bool) []byte
	// instead is a completion that says text, as a body or as the events of a stream.
	instead(x *exchange, text string, stream bool) []byte
	// stop is how a stream ends that was begun and may not go on.
	stop(x *exchange, f *fault) []byte
}

// elements cuts an array of the request into its elements.
func elements(raw []byte, param string) ([][]byte, *fault) {
	items, all, bad := ingest.Elements(raw, maxMessages)
	switch {
	case bad != nil:
		return nil, unreadable(param, bad)
	case all > maxMessages:
		return nil, badRequest(param, "has too many elements")
	}
	return items, nil
}

// message makes one message of the event; what the event cannot hold is left out, texts never are.
func message(fields map[string][]byte, param string) (call.Message, *fault) {
	if f := otherLetters(fields, strings.TrimSuffix(param, ".content")+".", "role", "content", "tool_calls"); f != nil {
		return call.Message{}, f
	}
	m := call.Message{Role: gjson.ParseBytes(fields["role"]).String(), Content: json.RawMessage(`null`)}
	if m.Role == "" {
		m.Role = "unknown"
	}
	content, f := contentOf(fields["content"], param)
	if f != nil {
		return m, f
	}
	if content != nil {
		m.Content = content
	}
	if calls := fields["tool_calls"]; len(calls) > 0 && gjson.ParseBytes(calls).IsArray() {
		m.Calls = calls
	}
	return m, nil
}

// bulk is the size from which a part without text (an image, a sound, a file) is named and not kept.
const bulk = 1 << 10

// contentOf gives a message's content as the event takes it: a string, or parts; nil for none.
func contentOf(raw []byte, param string) (json.RawMessage, *fault) {
	v := gjson.ParseBytes(raw)
	switch {
	case len(raw) == 0 || v.Type == gjson.Null:
		return nil, nil
	case v.Type == gjson.String:
		return raw, nil
	case !v.IsArray():
		return quoted(string(raw)), nil
	}
	parts, f := elements(raw, param)
	if f != nil {
		return nil, f
	}
	out := []byte{'['}
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		part := gjson.ParseBytes(p)
		if !part.IsObject() {
			if part.Type == gjson.String {
				out = append(out, p...)
			} else {
				out = append(out, quoted(string(p))...)
			}
			continue
		}
		fields, f := object(p, maxDepth, param)
		if f != nil {
			return nil, f
		}
		if f := otherLetters(fields, param+"[].", "text"); f != nil {
			return nil, f
		}
		text := gjson.ParseBytes(fields["text"])
		switch kind := gjson.ParseBytes(fields["type"]).String(); {
		case text.Type == gjson.String:
			out = append(out, p...)
		case len(p) > bulk || fields["text"] != nil || kind == "text":
			b, _ := json.Marshal(map[string]any{"type": kind + " (left out)", "bytes": len(p)}) // a string and a number
			out = append(out, b...)
		default:
			out = append(out, p...)
		}
	}
	return append(out, ']'), nil
}

// model is what answered, else what was asked.
func (x *exchange) model() string { return cmp.Or(x.answer.model, x.req.model) }

// spent is the usage of a completion of ours: the provider's own, none where it told none.
func (x *exchange) spent(none string) json.RawMessage {
	return json.RawMessage(cmp.Or(x.answer.usage, none))
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always can be
	return b
}

// sse writes one event of a stream; name "" writes none.
func sse(name string, data []byte) []byte {
	var out []byte
	if name != "" {
		out = append(append(append(out, "event: "...), name...), '\n')
	}
	return append(append(append(out, "data: "...), data...), "\n\n"...)
}

// members gives an object's members as they came.
func members(v gjson.Result) map[string]any {
	out := map[string]any{}
	v.ForEach(func(name, value gjson.Result) bool {
		if _, twice := out[name.String()]; !twice { // as it was read
			out[name.String()] = json.RawMessage(value.Raw)
		}
		return true
	})
	return out
}

// encode is for values of ours, which always can be.
func encode(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}
