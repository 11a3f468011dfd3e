package ingest

import "github.com/valyala/fastjson"

// speech lists where providers put what was said, in the order that they are asked: OpenAI chat
// completions and Gemini, LangChain, the Responses API, then messages and parts of Anthropic and the rest. What was
// spoken is its transcript.
var speech = []struct{ key, between string }{
	{"choices", "\n\n"}, {"candidates", "\n\n"}, {"generations", "\n\n"}, {"output_text", "\n\n"}, {"output", "\n\n"},
	{"message", "\n"}, {"delta", "\n"}, {"content", "\n"}, {"parts", "\n"}, {"text", "\n"}, {"value", "\n"}, {"refusal", "\n"},
	{"transcript", "\n"}, {"audio", "\n"},
}

// said appends the text that a message, a part or a provider's whole answer says: strings as they
// are, the elements of arrays joined by between, of objects the first entry of speech that says
// anything. Shapes that it does not know say nothing.
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
		v = dumped(v)
		for _, at := range speech {
			sub := v.Get(at.key)
			if sub == nil || at.key == "audio" && sub.Type() != fastjson.TypeObject {
				continue
			}
			from := len(dst)
			if dst = said(dst, sub, at.between); len(dst) > from {
				return dst
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
