package ingest

import (
	"bytes"
	"strings"

	"github.com/valyala/fastjson"
)

// speech lists where providers put what was said, in the order that they are asked: OpenAI chat
// completions and Gemini, LangChain, the Responses API, then messages and parts of Anthropic and the rest.
var speech = []struct{ key, between string }{
	{"choices", "\n\n"}, {"candidates", "\n\n"}, {"generations", "\n\n"}, {"output_text", "\n\n"}, {"output", "\n\n"},
	{"message", "\n"}, {"delta", "\n"}, {"content", "\n"}, {"parts", "\n"}, {"text", "\n"}, {"value", "\n"},
}

// beside lists what a message or a part says beside that: of what was spoken its transcript.
var beside = []string{"refusal", "transcript", "audio"}

// said appends the text that a message, a part or a provider's whole answer says: strings as they
// are, the elements of arrays joined by between, of objects the first entry of speech that says
// anything and what stands beside it. Calls of tools, with what these gave, and shapes that it does not know say nothing.
func said(dst []byte, v *fastjson.Value, between string) []byte {
	switch v.Type() {
	case fastjson.TypeString:
		s, _ := v.StringBytes()
		return append(dst, s...)
	case fastjson.TypeArray:
		items, _ := v.Array()
		from := len(dst)
		for _, item := range items {
			dst = joined(dst, from, between, func(dst []byte) []byte { return said(dst, item, "\n") })
		}
	case fastjson.TypeObject:
		if generated(v) {
			return said(dst, v.Get("response"), between)
		}
		if strings.HasSuffix(string(v.GetStringBytes("type")), "_call") {
			return dst
		}
		v = dumped(v)
		from := len(dst)
		for _, at := range speech {
			if sub := v.Get(at.key); sub != nil && len(dst) == from {
				dst = said(dst, sub, at.between)
			}
		}
		for _, key := range beside {
			sub := v.Get(key)
			if sub == nil || key == "audio" && sub.Type() != fastjson.TypeObject {
				continue
			}
			mark := len(dst)
			if dst = joined(dst, from, "\n", func(dst []byte) []byte { return said(dst, sub, "\n") }); bytes.Equal(dst[from:mark], bytes.TrimPrefix(dst[mark:], []byte("\n"))) {
				dst = dst[:mark] // said and spoken
			}
		}
	}
	return dst
}

// joined appends what add appends, after between when there is text since from and add adds any.
func joined(dst []byte, from int, between string, add func([]byte) []byte) []byte {
	mark := len(dst)
	if mark > from {
		dst = append(dst, between...)
	}
	start := len(dst)
	if dst = add(dst); len(dst) == start {
		return dst[:mark]
	}
	return dst
}

// leaves appends every string inside v in document order, one a line; packed images, sounds and files are none.
func leaves(dst []byte, v *fastjson.Value, from int) []byte {
	switch v.Type() {
	case fastjson.TypeString:
		s, _ := v.StringBytes()
		dst = joined(dst, from, "\n", func(dst []byte) []byte { return append(dst, s...) })
	case fastjson.TypeArray:
		items, _ := v.Array()
		for _, item := range items {
			dst = leaves(dst, item, from)
		}
	case fastjson.TypeObject:
		o, _ := v.Object()
		o.Visit(func(name []byte, v *fastjson.Value) {
			if !packed(name, v) {
				dst = leaves(dst, v, from)
			}
		})
	}
	return dst
}
