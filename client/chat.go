package client

import (
	"bytes"
	"cmp"

	"github.com/valyala/fastjson"
)

// dialect is one of OpenAI's two ways to ask a model.
type dialect interface {
	method() string // for the person who decides, and the record
	prompt(e *Event, v *fastjson.Value)
	whole(a *answer, v *fastjson.Value)
	chunk(a *answer, v *fastjson.Value)
	// last tells that a stream has nothing to say behind this event.
	last(a *answer, data []byte) bool
}

// chat is /chat/completions.
type chat struct{}

func (chat) method() string { return "chat.completions.create" }

func (chat) prompt(e *Event, v *fastjson.Value) {
	for _, m := range v.GetArray("messages") {
		e.Messages = append(e.Messages, message(str(m, "role"), contentText(m.Get("content"))))
	}
}

// message is one of the event; a role is needed there.
func message(role, content string) Message {
	if role == "" {
		role = "unknown"
	}
	return Message{role, content}
}

func (chat) whole(a *answer, v *fastjson.Value) {
	a.identify(v)
	choices := v.Get("choices")
	if choices == nil || choices.Type() != fastjson.TypeArray {
		a.unread = "the answer has no choices"
		return
	}
	for _, c := range choices.GetArray() {
		chatSaid(a, c, c.Get("message"))
	}
	a.ended = true
}

func (chat) chunk(a *answer, v *fastjson.Value) {
	if e := v.Get("error"); e != nil && e.Type() != fastjson.TypeNull {
		a.fail(e)
		return
	}
	a.identify(v)
	for _, c := range v.GetArray("choices") {
		chatSaid(a, c, c.Get("delta"))
	}
}

func (chat) last(_ *answer, data []byte) bool { return isDone(data) }

func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// chatSaid adds what a message, or a piece of one, says.
func chatSaid(a *answer, choice, m *fastjson.Value) {
	i := choice.GetInt("index")
	if isString(choice, "finish_reason") {
		a.ended = true
	}
	if m == nil {
		return
	}
	a.tell(place{"text", i, 0}, false, contentText(m.Get("content")))
	a.tell(place{"text", i, 0}, false, str(m, "refusal"))
	for _, name := range []string{"reasoning_content", "reasoning"} {
		a.tell(place{name, i, 0}, true, str(m, name))
	}
	a.tell(place{"audio", i, 0}, true, str(m, "audio", "transcript"))
	for j, call := range m.GetArray("tool_calls") {
		if n := call.Get("index"); n != nil {
			j = n.GetInt()
		}
		f := call.Get("function")
		if f == nil {
			f = call.Get("custom")
		}
		called(a, place{"tool", i, j}, call, f)
	}
	if f := m.Get("function_call"); f != nil && f.Type() == fastjson.TypeObject { // as it was before tools
		called(a, place{"tool", i, -1}, f, f)
	}
}

// called adds a call of the function f, or a piece of one.
func called(a *answer, at place, call, f *fastjson.Value) {
	id, name, args := str(call, "id"), str(f, "name"), str(f, "arguments")+str(f, "input")
	p := a.part(at, true)
	if p.call.Over(id, name, args) {
		delete(a.at, at) // the one before is at its end, and stays among the parts
		p = a.part(at, true)
	}
	p.call.Note(id, name, args)
	p.tool = cmp.Or(p.call.Name, p.tool, str(call, "type"))
	a.tell(at, true, args)
}
