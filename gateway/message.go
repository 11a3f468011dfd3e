package gateway

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/evenhand/evenhand/ingest/call"
)

// message makes one message of the event; what the event cannot hold is left out, texts never are.
func message(fields map[string][]byte, param string) (call.Message, *fault) {
	if f := otherLetters(fields, strings.TrimSuffix(param, ".content")+".", "role", "content", "tool_calls"); f != nil {
		return call.Message{}, f
	}
	m := call.Message{Role: gjson.ParseBytes(fields["role"]).String(), Content: json.RawMessage(`null`), Calls: callsOf(fields), ToolCallID: clip(gjson.ParseBytes(fields["tool_call_id"]).Str)}
	if m.Role == "" {
		m.Role = "unknown"
	}
	content, f := contentOf(fields["content"], param)
	if f != nil {
		return m, f
	}
	if content = beside(content, fields); content != nil {
		m.Content = content
	}
	return m, nil
}

// callsOf are the calls of tools in a message, the one of before there were tools among them.
func callsOf(fields map[string][]byte) json.RawMessage {
	calls := fields["tool_calls"]
	if !gjson.ParseBytes(calls).IsArray() {
		calls = nil
	}
	f := fields["function_call"]
	if !gjson.ParseBytes(f).IsObject() {
		return calls
	}
	one := slices.Concat([]byte(`{"type":"function","function":`), f, []byte("}"))
	if calls == nil {
		return slices.Concat([]byte("["), one, []byte("]"))
	}
	if both, err := sjson.SetRawBytes(calls, "-1", one); err == nil {
		return both
	}
	return calls
}

// unsaid are members of a message that are read by their names or hold no words.
var unsaid = append([]string{"content", "tool_calls", "function_call", "annotations", "cache_control", "channel", "phase", "recipient", "tool_name"}, labels...)

// beside adds what a message says beside its content, as parts named as the members are: a refusal, what the model thought, whatever a provider has
// a name of its own for. The same under two names is added once.
func beside(content json.RawMessage, fields map[string][]byte) json.RawMessage {
	var parts []json.RawMessage
	var told []string
	switch v := gjson.ParseBytes(content); {
	case v.IsArray():
		for _, p := range v.Array() {
			parts = append(parts, json.RawMessage(p.Raw))
		}
	case v.Str != "":
		parts, told = append(parts, encode(map[string]any{"type": "text", "text": content})), append(told, v.Str)
	}
	was := len(parts)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(unsaid, name) {
			continue
		}
		var all []string
		texts(gjson.ParseBytes(fields[name]), func(s gjson.Result) { all = append(all, s.String()) })
		if s := strings.Join(all, "\n"); s != "" && !slices.Contains(told, s) {
			parts, told = append(parts, encode(map[string]string{"type": name, "text": s})), append(told, s)
		}
	}
	if len(parts) == was {
		return content
	}
	return encode(parts)
}
