package client

import (
	"strings"

	"github.com/valyala/fastjson"
)

// responses is /responses.
type responses struct{}

func (responses) method() string { return "responses.create" }

func (responses) prompt(e *Event, v *fastjson.Value) {
	if s := str(v, "instructions"); s != "" {
		e.Messages = append(e.Messages, Message{"system", s})
	}
	in := v.Get("input")
	if in != nil && in.Type() != fastjson.TypeArray {
		e.Messages = append(e.Messages, Message{"user", contentText(in)})
	}
	for _, item := range v.GetArray("input") {
		switch kind := str(item, "type"); {
		case strings.HasSuffix(kind, "_call_output"):
			e.Messages = append(e.Messages, Message{"tool", contentText(item.Get("output"))})
		case kind == "function_call":
			e.Messages = append(e.Messages, Message{"assistant", str(item, "name") + " " + str(item, "arguments")})
		case isString(item, "role"):
			e.Messages = append(e.Messages, message(str(item, "role"), contentText(item.Get("content"))))
		default:
			e.Messages = append(e.Messages, message(kind, contentText(item.Get("content"))))
		}
	}
}

func (responses) whole(a *answer, v *fastjson.Value) {
	a.identify(v)
	output := v.Get("output")
	if output == nil || output.Type() != fastjson.TypeArray {
		a.unread = "the answer has no output"
		return
	}
	for i, item := range output.GetArray() {
		itemSaid(a, i, item)
	}
	a.ended = true
	if e := v.Get("error"); e != nil && e.Type() == fastjson.TypeObject {
		a.fail(e)
	}
}

// itemSaid takes an item of the output as a whole; what was told in pieces is not taken again.
func itemSaid(a *answer, i int, item *fastjson.Value) {
	for j, c := range item.GetArray("content") {
		kind := str(c, "type")
		a.settle(place{"refusal", i, j}, false, str(c, "refusal"))
		a.settle(place{kind, i, j}, kind != "output_text", str(c, "text"))
		a.settle(place{"transcript", i, j}, true, str(c, "transcript"))
	}
	for j, c := range item.GetArray("summary") {
		a.settle(place{"reasoning_summary_text", i, j}, true, str(c, "text"))
	}
	for _, name := range []string{"arguments", "input", "code"} { // of calls of tools
		if isString(item, name) {
			asks(a, i, item)
			a.settle(place{"tool", i, 0}, true, str(item, name))
		}
	}
}

// asks notes which tool an item calls.
func asks(a *answer, i int, item *fastjson.Value) {
	p := a.part(place{"tool", i, 0}, true)
	if p.tool = str(item, "name"); p.tool == "" {
		p.tool = str(item, "type")
	}
}

func (responses) chunk(a *answer, v *fastjson.Value) {
	kind := str(v, "type")
	i, j := v.GetInt("output_index"), v.GetInt("content_index")
	base, piece := strings.CutSuffix(strings.TrimPrefix(kind, "response."), ".delta")
	base, done := strings.CutSuffix(base, ".done")
	said := func(field string, p place, beside bool) {
		if piece {
			a.tell(p, beside, str(v, "delta"))
		} else if done {
			a.settle(p, beside, str(v, field))
		}
	}
	switch {
	case kind == "error":
		if e := v.Get("error"); e != nil && e.Type() == fastjson.TypeObject {
			v = e
		}
		a.fail(v)
	case kind == "response.completed", kind == "response.incomplete", kind == "response.failed":
		if r := v.Get("response"); r != nil {
			responses{}.whole(a, r)
		}
		a.ended = true
	case v.Get("response") != nil:
		a.identify(v.Get("response"))
	case strings.HasPrefix(base, "output_item"):
		if item := v.Get("item"); item != nil {
			if strings.HasSuffix(str(item, "type"), "_call") {
				asks(a, i, item)
			}
			if done {
				itemSaid(a, i, item)
			}
		}
	case base == "output_text":
		said("text", place{base, i, j}, false)
	case base == "refusal":
		said("refusal", place{base, i, j}, false)
	case base == "reasoning_summary_text":
		said("text", place{base, i, v.GetInt("summary_index")}, true)
	case base == "reasoning_text":
		said("text", place{base, i, j}, true)
	case base == "audio.transcript":
		said("transcript", place{"transcript", i, j}, true)
	case strings.HasSuffix(base, "_call_arguments"):
		said("arguments", place{"tool", i, 0}, true)
	case strings.HasSuffix(base, "_call_input"):
		said("input", place{"tool", i, 0}, true)
	case strings.HasSuffix(base, "_call_code"):
		said("code", place{"tool", i, 0}, true)
	}
}

func (responses) last(a *answer, data []byte) bool { return a.ended || isDone(data) }
