package ingest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/ingest/call"
)

// Answer gives the text that a call's event will have of its answers, whole: for who judges them before there is an event. Answers
// that cannot be read have none.
func Answer(ms []call.Message) string {
	b, err := json.Marshal(call.Response(ms))
	if err != nil {
		return ""
	}
	v, err := fastjson.ParseBytes(b)
	switch {
	case err != nil:
		return ""
	case v.Type() == fastjson.TypeString:
		return string(v.GetStringBytes())
	}
	return string(answer(nil, v))
}

// answer appends the text of a provider's answer, the one that is judged and kept: what it says, then what the model thought, then
// a line for each call of a tool. An answer of a known shape that says none of these is empty; one of which nothing is known says all of
// its strings.
func answer(dst []byte, v *fastjson.Value) []byte {
	if whole := assembled(v); whole != nil {
		v = whole
	}
	from := len(dst)
	dst = said(dst, v, "\n")
	silent := len(dst) == from
	dst = thoughts(dst, v, from)
	spoken := len(dst)
	dst = calls(dst, v, from, false)
	switch {
	case !silent:
	case len(dst) == from && known(v):
		dst = rest(dst, v, from)
	case len(dst) == from:
		dst = leaves(dst, v, from)
	default: // beside calls may stand what is not known
		dst = calls(dst[:spoken], v, from, true)
	}
	return dst
}

// thoughts appends the model's reasoning that stands beside what it says, each text from a new line. Of two names for the same text one
// is read.
func thoughts(dst []byte, v *fastjson.Value, from int) []byte {
	put := func(add func([]byte) []byte) { dst = joined(dst, from, "\n", add) }
	switch v.Type() {
	case fastjson.TypeArray:
		items, _ := v.Array()
		for _, item := range items {
			dst = thoughts(dst, item, from)
		}
	case fastjson.TypeObject:
		if isCall(v) {
			return dst
		}
		v = dumped(v)
		var last []byte
		for _, key := range [...]string{"reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks"} {
			s := v.GetStringBytes(key)
			for _, part := range v.GetArray(key) { // Mistral, OpenRouter, LiteLLM
				s = joined(s, 0, "\n", func(s []byte) []byte {
					mark := len(s)
					if s = said(s, part, "\n"); len(s) == mark {
						s = append(append(s, part.GetStringBytes("thinking")...), part.GetStringBytes("summary")...)
					}
					return s
				})
			}
			if len(s) > 0 && !bytes.Equal(s, last) {
				put(func(dst []byte) []byte { return append(dst, s...) })
				last = s
			}
		}
		if v.Exists("role") && (v.Exists("content") || v.Exists("parts")) {
			dst = aside(dst, v, from)
		}
		if string(v.GetStringBytes("type")) == "reasoning" {
			for _, part := range v.GetArray("summary") {
				put(func(dst []byte) []byte { return said(dst, part, "\n") })
			}
		}
		for _, key := range nested {
			if sub := v.Get(key); sub != nil {
				dst = thoughts(dst, sub, from)
			}
		}
	}
	return dst
}

// aside appends what members of a message say that are not known: a provider's own name for what its model thinks. What stands there
// already is not said again.
func aside(dst []byte, message *fastjson.Value, from int) []byte {
	message.GetObject().Visit(func(name []byte, v *fastjson.Value) {
		for _, known := range [...][]string{deltas[:], facts[:], nested[:], beside, apart[:]} {
			if slices.Contains(known, string(name)) {
				return
			}
		}
		if s := rest(nil, v, 0); !bytes.Contains(dst[from:], s) {
			dst = joined(dst, from, "\n", func(dst []byte) []byte { return append(dst, s...) })
		}
	})
	return dst
}

// apart are members of messages that are read elsewhere, say the same again, or are no words of the model.
var apart = [...]string{
	"text", "value", "thinking", "reasoning_details", "thinking_blocks", "additional_kwargs", "provider_specific_fields", "kwargs", "invalid_tool_calls", "tool_call_chunks",
	"functionCall", "toolUse", "executableCode", "executed_tools", "images", "tool_call_id", "tool_name", "recipient", "channel", "phase", "cache_control",
}

// nested lists where providers put messages and their parts; calls of tools stand in any of them.
var nested = [...]string{"choices", "candidates", "generations", "output", "message", "delta", "content", "parts"}

// calls appends a line for each call of a tool in an answer, those of its parts before those beside them. With strange, parts of a shape
// that is not known say all of their strings.
func calls(dst []byte, v *fastjson.Value, from int, strange bool) []byte {
	switch v.Type() {
	case fastjson.TypeArray:
		items, _ := v.Array()
		for _, item := range items {
			dst = calls(dst, item, from, strange)
		}
	case fastjson.TypeObject:
		if isCall(v) {
			return asked(dst, v, from)
		}
		v = dumped(v)
		for _, key := range nested {
			sub := v.Get(key)
			if sub == nil {
				continue
			}
			parts := []*fastjson.Value{sub}
			if sub.Type() == fastjson.TypeArray {
				parts = sub.GetArray()
			}
			for _, part := range parts {
				before := len(dst)
				if dst = calls(dst, part, from, strange); strange && len(dst) == before && (key == "content" || key == "parts") && len(thoughts(nil, part, 0)) == 0 {
					dst = leaves(dst, part, from)
				}
			}
		}
		for _, key := range [...]string{"tool_calls", "function_call", "functionCall", "toolUse", "executableCode"} {
			sub := v.Get(key)
			if sub == nil || sub.Type() == fastjson.TypeNull {
				continue
			}
			if sub.Type() != fastjson.TypeArray {
				dst = asked(dst, sub, from)
			}
			for _, call := range sub.GetArray() {
				dst = asked(dst, call, from)
			}
		}
	}
	return dst
}

// isCall tells a part or an item that is a call of a tool: OpenAI's, Anthropic's, OpenTelemetry's, Vercel's.
func isCall(v *fastjson.Value) bool {
	kind := string(v.GetStringBytes("type"))
	return strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "tool_use") || kind == "tool-call" || v.Exists("arguments")
}

// asked appends the line of one call of a tool: the tool's name, else what kind of call it is, then the names and values of its
// arguments. Those that are JSON in a string are read, so that rules see words and no escapes.
func asked(dst []byte, v *fastjson.Value, from int) []byte {
	return joined(dst, from, "\n", func(dst []byte) []byte {
		start := len(dst)
		for _, key := range [...]string{"function", "custom"} {
			if f := v.Get(key); f != nil && f.Type() == fastjson.TypeObject {
				v = f
			}
		}
		for _, key := range [...]string{"name", "toolName", "type"} {
			if name := v.GetStringBytes(key); len(name) > 0 {
				dst = append(dst, name...)
				break
			}
		}
		if o, err := v.Object(); err == nil {
			o.Visit(func(name []byte, e *fastjson.Value) {
				if !Label(string(name)) {
					dst = words(dst, start, e)
				}
			})
			return dst
		}
		return words(dst, start, v)
	})
}

// Label tells whether a member of a call does not say what the tool gets: it names call or tool, or is what the tool gave.
func Label(member string) bool { return slices.Contains(labels[:], member) }

var labels = [...]string{
	"type", "id", "call_id", "toolCallId", "toolUseId", "name", "toolName", "index", "status", "container_id", "server_label", "namespace", "caller", "created_by",
	"approval_request_id", "cache_control", "signature", "thought_signature", "extra_content", "description",
	"output", "outputs", "result", "results", "error", "logs", "pending_safety_checks", "acknowledged_safety_checks",
}

// unpacked gives the object or array that a string holds as JSON, else the value as it is.
func unpacked(v *fastjson.Value) *fastjson.Value {
	if v.Type() != fastjson.TypeString {
		return v
	}
	if inner, err := fastjson.ParseBytes(v.GetStringBytes()); err == nil && (inner.Type() == fastjson.TypeObject || inner.Type() == fastjson.TypeArray) {
		return inner
	}
	return v
}

// words appends every name and value inside v in document order, with spaces between them and to what stands there since from. JSON in a
// string is read as far down as it goes: a tool that calls another has its call so.
func words(dst []byte, from int, v *fastjson.Value) []byte {
	put := func(s []byte) { dst = joined(dst, from, " ", func(dst []byte) []byte { return append(dst, s...) }) }
	switch v.Type() {
	case fastjson.TypeString:
		if inner := unpacked(v); inner != v {
			return words(dst, from, inner)
		}
		put(unescaped(v.GetStringBytes()))
	case fastjson.TypeArray:
		for _, e := range v.GetArray() {
			dst = words(dst, from, e)
		}
	case fastjson.TypeObject:
		v.GetObject().Visit(func(name []byte, e *fastjson.Value) {
			put(name)
			dst = words(dst, from, e)
		})
	case fastjson.TypeNull:
	default:
		put(v.MarshalTo(nil))
	}
	return dst
}

// broken begins what was meant to be JSON.
var broken = regexp.MustCompile(`^\s*(?:\{\s*"|\[\s*["{])`)

// unescaped gives what looks like JSON and cannot be read as it, such as what a model wrote with a comma too many or what broke off, as far
// as it goes: names and values with spaces between them. Other texts, and what has no escapes that could hide a word, stay as they are.
func unescaped(s []byte) []byte {
	if bytes.IndexByte(s, '\\') < 0 || !broken.Match(s) {
		return s
	}
	out, inside := make([]byte, 0, len(s)), false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			inside = !inside
			out = append(out, ' ')
		case !inside && strings.IndexByte("{}[]:,", c) >= 0:
			out = append(out, ' ')
		case c != '\\' || i+1 == len(s):
			out = append(out, c)
		default:
			i++
			switch s[i] {
			case 'n', 'r', 't', 'b', 'f':
				out = append(out, ' ')
			case 'u':
				r, size := escape(s[i-1:])
				if size == 0 {
					out = append(out, '\\', 'u')
					continue
				}
				out = utf8.AppendRune(out, r)
				i += size - 2
			default:
				out = append(out, s[i])
			}
		}
	}
	return bytes.Join(bytes.Fields(out), []byte(" "))
}

// escape reads one \uXXXX, or a pair of them that are one character, and says how many bytes that took; 0 for none.
func escape(s []byte) (r rune, size int) {
	unit := func(s []byte) (rune, bool) {
		if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
		return rune(n), err == nil
	}
	r, ok := unit(s)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if low, ok := unit(s[6:]); ok {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return both, 12
			}
		}
	}
	return r, 6
}
