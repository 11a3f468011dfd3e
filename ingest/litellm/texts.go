package litellm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/ingest/call"
)

// What stands where LiteLLM tells no text: redact_messages.py, and function_setup of utils.py.
const (
	redacted    = "redacted-by-litellm"
	placeholder = "default-message-value"
)

// deepest is how far a message's content may nest. What is deeper is kept as a string of its JSON: an event has 32 levels, and a text must
// not escape the audit by being wrapped.
const deepest = 20

// messagesOf reads the prompt: messages, a text or texts, the items of the Responses API, contents of Gemini.
func messagesOf(raw json.RawMessage) (ms []call.Message) {
	var items []json.RawMessage
	switch first(raw) {
	case '"':
		items = []json.RawMessage{raw}
	case '[':
		_ = json.Unmarshal(raw, &items)
	case '{':
		var o object
		_ = json.Unmarshal(raw, &o)
		if items = slices.Concat(o.list("messages"), o.list("contents")); len(items) == 0 && len(o) > 0 {
			items = []json.RawMessage{raw}
		}
	}
	for _, item := range items {
		if m, ok := messageOf(item, "user"); ok {
			m.N = len(ms)
			ms = append(ms, m)
		}
	}
	return ms
}

// messageOf reads one message, or one item of a prompt.
func messageOf(raw json.RawMessage, role string) (m call.Message, ok bool) {
	var o object
	if json.Unmarshal(raw, &o) != nil || o == nil {
		if first(raw) == 'n' || string(raw) == `"`+placeholder+`"` {
			return m, false
		}
		return call.Message{Role: role, Content: content(raw)}, true
	}
	switch o.text("type") { // items of the Responses API that have no role
	case "function_call_output":
		role = "tool"
	case "function_call":
		role = "assistant"
	}
	m = call.Message{Role: cmp.Or(o.text("role"), role), Calls: calls(o, raw), ToolCallID: o.text("tool_call_id")}
	if o.text("type") == "function_call_output" {
		m.ToolCallID = o.text("call_id")
	}
	if v := spoken(o); v != nil {
		m.Content = content(v)
	}
	switch {
	case m.Content != nil:
	case m.Calls == nil && len(o) > 0 && !o.has("role"): // a shape that is not known: all of it
		m.Content = content(raw)
	case m.Calls == nil:
		m.Content = json.RawMessage(`""`)
	}
	return m, true
}

// spoken is what a message says, under any of its names, with what stands beside it: a refusal, and of what was spoken the transcript.
func spoken(o object) json.RawMessage {
	said := there(o["content"], o["parts"], o["output"], o["text"])
	var more []json.RawMessage
	for _, s := range []string{o.text("refusal"), o.object("audio").text("transcript")} {
		if s != "" && s != redacted {
			more = append(more, quoted(json.RawMessage(s)))
		}
	}
	switch {
	case len(more) == 0:
		return said
	case first(said) == '[':
		var parts []json.RawMessage
		_ = json.Unmarshal(said, &parts)
		more = append(parts, more...)
	case said != nil && string(said) != `""`:
		more = append([]json.RawMessage{said}, more...)
	}
	if len(more) == 1 {
		return more[0]
	}
	b, _ := json.Marshal(more)
	return b
}

// calls are the tools that a message asks for.
func calls(o object, raw json.RawMessage) json.RawMessage {
	switch {
	case o.text("type") == "function_call":
		return json.RawMessage("[" + string(flat(raw)) + "]")
	case len(o.list("tool_calls")) > 0:
		return flat(o["tool_calls"])
	case len(o.object("function_call")) > 0:
		return json.RawMessage("[" + string(flat(o["function_call"])) + "]")
	}
	return nil
}

// answersOf reads what the model answered, one message a choice; shaped tells that it looks like the answer of a
// model that makes text: OpenAI's chat and text completions, its Responses API, Gemini, Anthropic.
func answersOf(raw json.RawMessage) (ms []call.Message, shaped bool) {
	add := func(raw json.RawMessage) {
		if m, ok := messageOf(raw, "assistant"); ok {
			var o object
			_ = json.Unmarshal(raw, &o)
			m.Reasoning = thought(cmp.Or(o.text("reasoning_content"), o.text("reasoning"), o.text("thinking"), thoughts(o)))
			if m.Reasoning != nil && spoken(o) == nil {
				m.Content = json.RawMessage(`""`) // the reasoning is all of it
			}
			ms = append(ms, m)
		}
	}
	if first(raw) == '"' || first(raw) == '[' {
		add(raw)
		return said(ms), false
	}
	var o object
	_ = json.Unmarshal(raw, &o)
	switch {
	case len(o.list("choices")) > 0:
		for _, choice := range o.list("choices") {
			var c object
			_ = json.Unmarshal(choice, &c)
			add(there(c["message"], c["delta"], choice))
		}
	case len(o.list("output")) > 0:
		return said([]call.Message{responses(o.list("output"))}), true
	case len(o.list("candidates")) > 0:
		for _, candidate := range o.list("candidates") {
			var c object
			_ = json.Unmarshal(candidate, &c)
			add(c["content"])
		}
	case o.has("content") && (o.text("role") == "assistant" || o.text("type") == "message"):
		add(raw)
	default:
		if len(o) > 0 {
			add(raw)
		}
		return said(ms), false
	}
	return said(ms), true
}

// there gives the first value that is there.
func there(vs ...json.RawMessage) json.RawMessage {
	for _, v := range vs {
		if c := first(v); c != 0 && c != 'n' {
			return v
		}
	}
	return nil
}

// responses puts the items of an answer of the Responses API into one message.
func responses(items []json.RawMessage) call.Message {
	m := call.Message{Role: "assistant"}
	var parts, tools []json.RawMessage
	var thoughts []string
	for _, item := range items {
		var o object
		_ = json.Unmarshal(item, &o)
		switch kind := o.text("type"); {
		case kind == "message":
			parts = append(parts, o.list("content")...)
		case kind == "reasoning":
			for _, part := range slices.Concat(o.list("content"), o.list("summary")) {
				var p object
				_ = json.Unmarshal(part, &p)
				if s := p.text("text"); s != redacted {
					thoughts = append(thoughts, s)
				}
			}
		case strings.HasSuffix(kind, "_call"):
			tools = append(tools, flat(item))
		default:
			parts = append(parts, item)
		}
	}
	if len(parts) > 0 {
		b, _ := json.Marshal(parts)
		m.Content = content(b)
	}
	m.Reasoning = thought(strings.Join(thoughts, "\n"))
	if len(tools) > 0 {
		m.Calls, _ = json.Marshal(tools)
	}
	return m
}

// thought is the reasoning of an answer, nil where LiteLLM tells none.
func thought(s string) json.RawMessage {
	if s == "" || s == redacted {
		return nil
	}
	return quoted(json.RawMessage(s))
}

// thoughts is the reasoning that a message tells in parts alone.
func thoughts(o object) string {
	var all []string
	for _, part := range slices.Concat(o.list("reasoning_details"), o.list("thinking_blocks")) {
		var p object
		_ = json.Unmarshal(part, &p)
		if s := cmp.Or(p.text("text"), p.text("thinking"), p.text("summary")); s != "" && s != redacted && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n")
}

// said unwraps texts that are the only part of their message, and drops what says nothing.
func said(ms []call.Message) []call.Message {
	return slices.DeleteFunc(ms, func(m call.Message) bool {
		return m.Calls == nil && m.Reasoning == nil && (len(m.Content) == 0 || string(m.Content) == `""`)
	})
}

// content is what an event takes as content: a text, or parts that are texts or objects whose text is one.
func content(raw json.RawMessage) json.RawMessage {
	switch {
	case depth(raw) > deepest:
		return quoted(raw)
	case first(raw) == '"':
		return raw
	case first(raw) == '{':
		raw = json.RawMessage("[" + string(raw) + "]")
	case first(raw) != '[':
		return quoted(raw)
	}
	var parts []json.RawMessage
	_ = json.Unmarshal(raw, &parts)
	for i, part := range parts {
		var o struct {
			Type any  `json:"type"`
			Text *any `json:"text"`
		}
		if first(part) == '"' {
			continue
		}
		if first(part) != '{' || json.Unmarshal(part, &o) != nil || o.Text == nil && o.Type == "text" {
			parts[i] = quoted(part)
		} else if o.Text != nil {
			if _, ok := (*o.Text).(string); !ok {
				parts[i] = quoted(part)
			}
		}
	}
	if len(parts) == 1 {
		if only, ok := plain(parts[0]); ok {
			return only
		}
	}
	b, _ := json.Marshal(parts)
	return b
}

// plain gives the text of a part that has nothing else.
func plain(part json.RawMessage) (json.RawMessage, bool) {
	if first(part) == '"' {
		return part, true
	}
	var o object
	_ = json.Unmarshal(part, &o)
	switch o.text("type") {
	case "", "text", "output_text", "input_text":
		return o["text"], first(o["text"]) == '"'
	}
	return nil, false
}

// flat keeps JSON that an event can hold and makes a string of what nests deeper.
func flat(raw json.RawMessage) json.RawMessage {
	if depth(raw) > deepest {
		return quoted(raw)
	}
	return raw
}

func quoted(raw json.RawMessage) json.RawMessage {
	b, _ := json.Marshal(string(raw)) // a string always can be
	return b
}

func first(raw json.RawMessage) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// depth counts the levels of good JSON.
func depth(raw []byte) (most int) {
	level, inside := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{' || c == '[':
			level++
			most = max(most, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return most
}

// withhold takes out what LiteLLM was told not to tell, and says that it did: such a call must not pass for a clean one.
func withhold(p *call.Part) bool {
	hidden := 0
	without := func(ms []call.Message) []call.Message {
		return slices.DeleteFunc(ms, func(m call.Message) bool {
			if m.Calls != nil && !bytes.Contains(m.Calls, []byte(`"`+redacted+`"`)) || !hides(m.Content) {
				return false
			}
			hidden++
			return true
		})
	}
	p.Messages, p.Answers = without(p.Messages), without(p.Answers)
	return hidden > 0 && len(p.Answers) == 0
}

// hides tells whether nothing but the mark stands there; a text that holds the mark is a text.
func hides(content json.RawMessage) bool {
	var parts []json.RawMessage
	if first(content) != '[' {
		return first(content) != '"' || string(content) == `"`+redacted+`"`
	}
	_ = json.Unmarshal(content, &parts)
	return !slices.ContainsFunc(parts, func(part json.RawMessage) bool {
		text, ok := plain(part)
		return !ok || string(text) != `"`+redacted+`"`
	})
}
