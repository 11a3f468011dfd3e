package client

import (
	"strings"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/internal/toolcall"
)

// answer is what a model has said so far, put together from a body or from the events of a stream.
type answer struct {
	id, model string
	tokens    [2]*int32
	parts     []*part
	at        map[place]*part
	size      int  // bytes of text
	max       int  // more are not kept
	tail      rune // the last character, spaces apart
	ended     bool // the model said that it has finished
	failed    string
	unread    string // why nothing can be said of the whole; "" is all well
}

// part is a text of an answer: a message, a refusal, reasoning, what a tool is asked to do.
type part struct {
	beside bool   // no part of the message
	tool   string // name of the tool that is called
	call   toolcall.Call
	text   strings.Builder
}

// place tells parts apart: what it is, of which choice or item, and which within.
type place struct {
	what string
	i, j int
}

func (a *answer) part(p place, beside bool) *part {
	if a.at == nil {
		a.at = map[place]*part{}
	}
	x := a.at[p]
	if x == nil {
		x = &part{beside: beside}
		a.at[p], a.parts = x, append(a.parts, x)
	}
	return x
}

// tell adds a piece of a part.
func (a *answer) tell(p place, beside bool, s string) {
	if s == "" {
		return
	}
	if a.size+len(s) > a.max {
		a.unread = "the answer is too large"
		return
	}
	a.part(p, beside).text.WriteString(s)
	a.size += len(s)
	if s = strings.TrimRight(s, " \t"); s != "" {
		a.tail, _ = utf8.DecodeLastRuneInString(s)
	}
}

// settle sets a part to its whole text, some of which may have been told in pieces.
func (a *answer) settle(p place, beside bool, whole string) {
	told := 0
	if x := a.at[p]; x != nil {
		told = x.text.Len()
	}
	if len(whole) > told {
		a.tell(p, beside, whole[told:])
	}
}

// text is what is judged and kept: the messages, then reasoning and what tools are asked to do, a line each.
func (a *answer) text() string {
	var b strings.Builder
	add := func(sep, s string) {
		if s == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
	}
	for _, p := range a.parts {
		if !p.beside {
			add("\n\n", p.text.String())
		}
	}
	for _, p := range a.parts {
		switch {
		case p.tool != "":
			add("\n", p.tool+" "+plain(p.text.String()))
		case p.beside:
			add("\n", p.text.String())
		}
	}
	return b.String()
}

// plain takes the names and values out of a tool's arguments, so that rules see words and no escapes.
func plain(args string) string {
	v, err := fastjson.Parse(args)
	if err != nil || v.Type() != fastjson.TypeObject {
		return args
	}
	var words []string
	var walk func(v *fastjson.Value)
	walk = func(v *fastjson.Value) {
		switch v.Type() {
		case fastjson.TypeObject:
			v.GetObject().Visit(func(k []byte, e *fastjson.Value) {
				words = append(words, string(k))
				walk(e)
			})
		case fastjson.TypeArray:
			for _, e := range v.GetArray() {
				walk(e)
			}
		case fastjson.TypeString:
			words = append(words, string(v.GetStringBytes()))
		default:
			words = append(words, v.String())
		}
	}
	walk(v)
	return strings.Join(words, " ")
}

// identify takes what stands in every part of an answer.
func (a *answer) identify(v *fastjson.Value) {
	if a.id == "" {
		a.id = str(v, "id")
	}
	if a.model == "" {
		a.model = str(v, "model")
	}
	for i, names := range [2][2]string{{"prompt_tokens", "input_tokens"}, {"completion_tokens", "output_tokens"}} {
		for _, name := range names {
			if n := v.Get("usage", name); n != nil && n.Type() == fastjson.TypeNumber {
				t := int32(min(max(n.GetFloat64(), 0), 1<<31-1))
				a.tokens[i] = &t
			}
		}
	}
}

// fail remembers the provider's own words about an error.
func (a *answer) fail(e *fastjson.Value) {
	if a.failed = str(e, "message"); a.failed == "" {
		a.failed = "the provider ended the answer with an error"
	}
}

func str(v *fastjson.Value, keys ...string) string { return string(v.GetStringBytes(keys...)) }

// isString tells whether a member is there and a string.
func isString(v *fastjson.Value, key string) bool {
	m := v.Get(key)
	return m != nil && m.Type() == fastjson.TypeString
}

// contentText gives the text of a message's content: a string, or parts, of which those without text are named.
func contentText(v *fastjson.Value) string {
	switch {
	case v == nil || v.Type() == fastjson.TypeNull:
		return ""
	case v.Type() == fastjson.TypeString:
		return string(v.GetStringBytes())
	case v.Type() != fastjson.TypeArray:
		return v.String()
	}
	var texts []string
	for _, p := range v.GetArray() {
		switch {
		case p.Type() == fastjson.TypeString:
			texts = append(texts, string(p.GetStringBytes()))
		case isString(p, "text"):
			texts = append(texts, str(p, "text"))
		case isString(p, "refusal"):
			texts = append(texts, str(p, "refusal"))
		default:
			texts = append(texts, "["+str(p, "type")+"]")
		}
	}
	return strings.Join(texts, "\n")
}

// sentenceEnd tells whether a text may be let out behind r.
func sentenceEnd(r rune) bool { return strings.ContainsRune(".!?\n。！？", r) && r != 0 }
