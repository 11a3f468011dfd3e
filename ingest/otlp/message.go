package otlp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/ingest/call"
)

// hidden tells what OpenInference and LiteLLM write where they were told to hide a text.
func hidden(s string) bool { return s == "__REDACTED__" || s == "redacted-by-litellm" }

// said reads an attribute that holds messages in any of the shapes that instrumentations use; what is none of
// them is one message with the text as it was.
func (a *attrs) said(name, role string) []call.Message {
	v, raw := a.document(name)
	if raw == "" || raw == "null" || hidden(raw) {
		return nil
	}
	if ms, ok := messages(v, role); ok {
		return ms
	}
	return []call.Message{call.Text(role, raw)}
}

// messages reads a list of messages, one message, a list of parts, or a provider's request or answer that holds any of these. What holds
// nothing is no message.
func messages(v any, role string) ([]call.Message, bool) {
	switch x := v.(type) {
	case []any:
		if role == "assistant" && isItems(x) {
			return items(x), true
		}
		if isParts(x) {
			return spoken(map[string]any{"content": x}, role), true
		}
		var all []call.Message
		for _, e := range x {
			ms, ok := messages(e, role)
			if !ok {
				return nil, false
			}
			all = append(all, ms...)
		}
		return all, true
	case map[string]any:
		if len(x) == 0 {
			return nil, true
		}
		if inner, ok := x["kwargs"].(map[string]any); ok && x["lc"] != nil { // a dump of LangChain
			return messages(inner, role)
		}
		for _, in := range []string{"messages", "choices", "candidates", "contents", "generations"} {
			if isHollow(x[in]) && !isFrame(x) { // an answer that happens to be JSON
				return nil, false
			}
			if x[in] != nil {
				ms, ok := messages(completed(x[in]), role)
				return append(system(x), ms...), ok
			}
		}
		if list, is := x["output"].([]any); is && role == "assistant" { // the Responses API
			if x["object"] == "response" {
				return items(list), true
			}
			if ms, ok := messages(list, role); ok && len(ms) > 0 {
				return ms, true
			}
		}
		if m, ok := x["message"].(map[string]any); ok {
			if m["lc"] != nil {
				return messages(m, role)
			}
			return spoken(m, role), true
		}
		if inner, ok := x["content"].(map[string]any); ok && inner["parts"] != nil { // Gemini
			return spoken(inner, role), true
		}
		if by := langchainRoles[scalar(x["type"])]; by != "" && x["content"] != nil {
			return spoken(x, by), true
		}
		if isGeneration(scalar(x["type"])) {
			return kept(message(map[string]any{"content": x["text"]}, role)), true
		}
		if x["role"] != nil { // else it may be an answer that happens to be JSON
			return spoken(x, role), true
		}
		if prompt := scalar(x["prompt"]); prompt != "" && len(x) <= 2 {
			return append(system(x), call.Text(role, prompt)), len(x) == 1 || x["system"] != nil
		}
	}
	return nil, false
}

// langchainRoles are what LangChain calls the types of its messages.
var langchainRoles = map[string]string{"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "system": "system", "tool": "tool"}

// isDump tells a message or a generation as LangChain writes them.
func isDump(m map[string]any) bool {
	kind := scalar(m["type"])
	return m["lc"] != nil || langchainRoles[kind] != "" && m["content"] != nil || isGeneration(kind)
}

func isGeneration(kind string) bool { return kind == "Generation" || kind == "ChatGeneration" }

// system is the system prompt that stands beside messages.
func system(m map[string]any) []call.Message {
	if s := scalar(m["system"]); s != "" {
		return []call.Message{call.Text("system", s)}
	}
	config, _ := m["config"].(map[string]any)
	for _, in := range []map[string]any{m, config} { // Gemini's and ADK's
		for _, name := range []string{"system_instruction", "systemInstruction"} {
			switch x := in[name].(type) {
			case string:
				return kept(call.Text("system", x))
			case map[string]any:
				return kept(message(x, "system"))
			}
		}
	}
	return nil
}

// isParts tells a list of parts, [{type, text}], from a list of messages.
func isParts(list []any) bool {
	for _, e := range list {
		m, _ := e.(map[string]any)
		if m == nil || m["role"] != nil || m["message"] != nil || isDump(m) || scalar(m["type"]) == "" || m["type"] == "message" {
			return false
		}
	}
	return len(list) > 0
}

// isHollow tells lists and objects in which nothing is.
func isHollow(v any) bool {
	switch x := v.(type) {
	case []any:
		return !slices.ContainsFunc(x, func(e any) bool { return !isHollow(e) })
	case map[string]any:
		return len(x) == 0
	}
	return false
}

// frame are members of a provider's answer that stand around what it says.
var frame = []string{"choices", "candidates", "generations", "id", "object", "type", "created", "createTime", "model", "modelVersion", "responseId", "usage", "usageMetadata",
	"system_fingerprint", "service_tier", "promptFeedback", "prompt_filter_results", "llm_output", "run", "error"}

// isFrame tells an object that has nothing but these, or nothing else in it.
func isFrame(m map[string]any) bool {
	for name, v := range m {
		if v != nil && !isHollow(v) && !slices.Contains(frame, name) {
			return false
		}
	}
	return true
}

// completed gives choices with those of a text completion as messages.
func completed(choices any) any {
	list, _ := choices.([]any)
	for _, e := range list {
		m, _ := e.(map[string]any)
		if said, is := m["text"].(string); is && m["message"] == nil && !isDump(m) {
			m["message"] = map[string]any{"content": said}
		}
	}
	return choices
}

// isItems tells the output of the Responses API, which has more than messages, from a list of messages or parts.
func isItems(list []any) bool {
	more := false
	for _, e := range list {
		m, _ := e.(map[string]any)
		kind := scalar(m["type"])
		switch {
		case kind == "message":
		case kind == "reasoning" && m["summary"] != nil, strings.HasSuffix(kind, "_call") && kind != "tool_call", strings.HasSuffix(kind, "_call_output"):
			more = true
		default:
			return false
		}
	}
	return more
}

// items reads the output of the Responses API as one answer: what it says, what the model thought, and the tools it calls. What tools gave
// back is none of it.
func items(list []any) []call.Message {
	var parts, reasons, calls []any
	for _, e := range list {
		m, _ := e.(map[string]any)
		switch kind := scalar(m["type"]); {
		case kind == "message":
			said, is := m["content"].([]any)
			if !is {
				said = []any{m["content"]}
			}
			parts = append(parts, said...)
		case kind == "reasoning":
			reasons = append(reasons, m["summary"], m["content"])
		case kind == "function_call":
			calls = append(calls, map[string]any{"id": m["call_id"], "type": "function", "function": map[string]any{"name": m["name"], "arguments": m["arguments"]}})
		case strings.HasSuffix(kind, "_call"):
			named, _ := call.Named("", m)
			calls = append(calls, named)
		case !strings.HasSuffix(kind, "_output"):
			parts = append(parts, e)
		}
	}
	return kept(message(map[string]any{"content": parts, "reasoning": reasons, "tool_calls": calls}, "assistant"))
}

// kept leaves out a message that says nothing.
func kept(m call.Message) []call.Message {
	if len(m.Content)+len(m.Calls)+len(m.Reasoning) == 0 {
		return nil
	}
	return []call.Message{m}
}

// spoken reads one message. What tools gave is a message of its own for each, of role tool, whoever is said to bring it: Pydantic AI, Anthropic and
// Bedrock have it among the parts of the user's.
func spoken(m map[string]any, role string) (all []call.Message) {
	name := "content"
	if m[name] == nil {
		name = "parts"
	}
	list, is := m[name].([]any)
	if is && len(list) == 0 && cmp.Or(scalar(m["role"]), role) == "user" && m["tool_calls"] == nil && m["function_call"] == nil {
		return []call.Message{{Role: "user", Content: json.RawMessage(leftOut)}}
	}
	var rest []any
	for _, e := range list {
		id, is := resultOf(e)
		if !is || id == "" && cmp.Or(scalar(m["role"]), role) == "tool" {
			rest = append(rest, e)
			continue
		}
		gave := message(map[string]any{"role": "tool", "content": []any{e}, "tool_call_id": id}, role)
		all = append(all, kept(gave)...)
	}
	switch {
	case len(rest) == len(list):
		return kept(message(m, role))
	case len(rest) == 0:
		return all
	}
	m[name] = rest
	return append(all, kept(message(m, role))...)
}

// leftOut is the content of a question of which the client told that it was there and no more: openai-v2 leaves out images.
const leftOut = `[{"type":"left_out"}]`

// resultOf is the id of the call of a tool that a part answers; is tells whether it says what a tool gave.
func resultOf(part any) (id string, is bool) {
	m, _ := part.(map[string]any)
	if r, ok := m["toolResult"].(map[string]any); ok { // Bedrock
		return answersCall(r), true
	}
	switch m["type"] {
	case "tool_call_response", "tool-result", "tool_result":
		return cmp.Or(answersCall(m), scalar(m["id"])), true
	}
	return "", false
}

// answersCall is the id of the call of a tool that a message of role tool, or its part, answers.
func answersCall(m map[string]any) string {
	return cmp.Or(scalar(m["tool_call_id"]), scalar(m["toolCallId"]), scalar(m["tool_use_id"]), scalar(m["toolUseId"]))
}

// message reads one message: its content as text, or as OpenAI's parts where there is more than one text, and the tools it calls.
func message(m map[string]any, role string) call.Message {
	out := call.Message{Role: role}
	if r := scalar(m["role"]); r != "" {
		out.Role = r
	}
	content := m["content"]
	if content == nil {
		content = m["parts"]
	}
	calls, _ := m["tool_calls"].([]any)
	if f := m["function_call"]; f != nil {
		calls = append(calls, map[string]any{"type": "function", "function": f})
	}
	var parts []any
	more := beside(m, scalar(content))
	switch x := content.(type) {
	case nil:
	case []any:
		for _, e := range x {
			if c := toolCall(e); c != nil {
				calls = append(calls, c)
			} else if p := part(e); p != nil {
				parts = append(parts, p)
			}
		}
	case map[string]any:
		if p := part(x); p != nil {
			parts = append(parts, p)
		}
	default:
		if s := scalar(x); !hidden(s) && (s != "" || more == nil) {
			parts = append(parts, text(s))
		}
	}
	out.Content = contents(append(parts, more...))
	if s := thoughts(m); s != "" && role == "assistant" { // of answers
		out.Reasoning = call.Text("", s).Content
	}
	if out.Role == "tool" {
		out.ToolCallID = cut(answersCall(m), maxWord)
	}
	if len(calls) > 0 {
		out.Calls = json.RawMessage(written(shallow(calls, jsonDeep)))
	}
	return out
}

// beside gives what a message says beside its content, as parts: what was spoken, which is its transcript, and that the model refuses.
func beside(m map[string]any, content string) (parts []any) {
	sound, _ := m["audio"].(map[string]any)
	if s := scalar(sound["transcript"]); s != "" && s != content && !hidden(s) {
		parts = append(parts, text(s))
	}
	if s := scalar(m["refusal"]); s != "" && s != content && !hidden(s) {
		parts = append(parts, map[string]any{"type": "refusal", "refusal": s})
	}
	return parts
}

// thoughts gives what a model thought beside what it says; of two names for the same text one is read.
func thoughts(m map[string]any) string {
	var all []string
	for _, name := range []string{"reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks"} {
		if s := thought(m[name]); s != "" && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n")
}

// thought gives the text of a thought: plain, a part of it, or a list of parts.
func thought(v any) string {
	switch x := v.(type) {
	case string:
		if !hidden(x) {
			return x
		}
	case map[string]any:
		return cmp.Or(thought(x["text"]), thought(x["thinking"]), thought(x["content"]), thought(x["summary"]))
	case []any:
		var all []string
		for _, e := range x {
			if s := thought(e); s != "" {
				all = append(all, s)
			}
		}
		return strings.Join(all, "\n")
	}
	return ""
}

// contents is the content of a message with these parts.
func contents(parts []any) json.RawMessage {
	if len(parts) == 0 {
		return nil
	}
	if m, _ := parts[0].(map[string]any); len(parts) == 1 && (m["type"] == "text" || m["type"] == "refusal") {
		return call.Text("", cmp.Or(scalar(m["text"]), scalar(m["refusal"]))).Content
	}
	return json.RawMessage(written(shallow(parts, jsonDeep)))
}

// part gives a part in OpenAI's shape. What a model thought stays beside what it said. Bytes of files are left out, and their number told
// where there are many: nothing reads them.
func part(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return text(scalar(v))
	}
	if r, ok := m["toolResult"].(map[string]any); ok { // Bedrock
		list, _ := r["content"].([]any)
		var all []string
		for _, e := range list {
			all = append(all, result(inside(inside(e, "json"), "text")))
		}
		return text(strings.Join(all, "\n"))
	}
	kind := scalar(m["type"])
	said := scalar(m["text"])
	if said == "" {
		said = scalar(m["content"])
	}
	switch kind {
	case "", "text", "input_text", "output_text":
		if hidden(said) {
			return nil
		}
		return text(said)
	case "reasoning", "thinking":
		if said == "" {
			said = scalar(m["thinking"])
		}
		return map[string]any{"type": "reasoning", "reasoning": said}
	case "tool_call_response", "tool-result", "tool_result":
		for _, in := range []string{"response", "result", "output", "content"} {
			if m[in] != nil {
				return text(result(m[in]))
			}
		}
		return nil
	}
	out := map[string]any{}
	for k, v := range m {
		s, isText := v.(string)
		switch {
		case k == "data", k == "content" && kind == "blob":
			if call.Packed("data", []byte(s)) {
				out["bytes"] = len(s) * 3 / 4
			}
		case k == "text" && !isText:
		default:
			out[k], _ = call.Named(k, v)
		}
	}
	return out
}

func text(s string) any { return map[string]any{"type": "text", "text": s} }

// result is what a tool gave, as text.
func result(v any) string {
	if m, ok := v.(map[string]any); ok { // Vercel: {type: text|json, value}
		if inner, has := m["value"]; has && m["type"] != nil {
			v = inner
		}
	}
	if s := scalar(v); s != "" {
		return s
	}
	return written(v)
}

// toolCall gives OpenAI's form of a part that calls a tool: OpenTelemetry's, Anthropic's or Vercel's; nil when it calls none.
func toolCall(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if use, ok := m["toolUse"].(map[string]any); ok { // Bedrock
		m = map[string]any{"type": "tool_use", "id": use["toolUseId"], "name": use["name"], "input": use["input"]}
	}
	for _, name := range []string{"functionCall", "function_call"} { // Gemini, ADK
		if f, ok := m[name].(map[string]any); ok && m["type"] == nil {
			m = map[string]any{"type": "tool_use", "id": f["id"], "name": f["name"], "input": f["args"]}
		}
	}
	id, name, args := m["id"], m["name"], m["arguments"]
	switch m["type"] {
	case "tool_call":
	case "tool_use":
		args = m["input"]
	case "tool-call":
		id, name, args = m["toolCallId"], m["toolName"], m["input"]
		if args == nil {
			args = m["args"]
		}
	default:
		return nil
	}
	return map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": args}}
}

// openAICalls gives calls of tools that stand by themselves, not as parts, in OpenAI's form; kind is what a part of their shape is called.
func openAICalls(list []any, kind string) []any {
	for i := range list {
		if m, ok := list[i].(map[string]any); ok && m["function"] == nil {
			m["type"] = kind
			list[i] = toolCall(m)
		}
	}
	return list
}
