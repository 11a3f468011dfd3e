package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/tidwall/gjson"
)

// asStream tells an answer that came in one piece where a stream was asked for, and had begun while a person was waited for. What cannot be told
// ends the stream with an error.
func (x *exchange) asStream(status int, body []byte) *fault {
	switch {
	case x.answer.opaque:
		x.status, x.failure = "error", x.unreadable()
		return &fault{status: http.StatusBadGateway, kind: kindUpstream, code: "evenhand_upstream_broken", say: x.failure}
	case x.answer.choices == nil && x.answer.failed != "":
		return &fault{status: status, kind: kindUpstream, code: "evenhand_upstream_error", say: x.answer.failed}
	}
	x.write(x.kind.events(body, x.req.usage()))
	return nil
}

// events tells each choice in two chunks, of what it says and of why it ends.
func (chat) events(body []byte, usage bool) []byte {
	v := gjson.ParseBytes(body)
	report, count, failed := v.Get("evenhand"), v.Get("usage"), v.Get("error")
	o := members(v)
	for _, name := range []string{"evenhand", "usage", "error"} { // which stand in one chunk each
		delete(o, name)
	}
	o["object"] = "chat.completion.chunk"
	if usage {
		o["usage"] = nil // but at the end
	}
	var out bytes.Buffer
	chunk := func(choices ...any) {
		o["choices"] = choices
		out.Write(sse("", encode(o)))
	}
	choices := v.Get("choices").Array()
	for i, c := range choices {
		said, end := chatPieces(i, c)
		chunk(said)
		if i == len(choices)-1 && report.Exists() {
			o["evenhand"] = json.RawMessage(report.Raw)
		}
		chunk(end)
	}
	delete(o, "evenhand")
	if usage && count.IsObject() {
		o["usage"] = json.RawMessage(count.Raw)
		o["choices"] = []any{}
		out.Write(sse("", encode(o)))
	}
	if failed.IsObject() {
		out.Write(sse("", encode(map[string]any{"error": json.RawMessage(failed.Raw)})))
	}
	out.WriteString("data: [DONE]\n\n")
	return out.Bytes()
}

// chatPieces cuts a choice into what it says and its end.
func chatPieces(i int, c gjson.Result) (said, end map[string]any) {
	index := int64(i)
	if n := c.Get("index"); n.Exists() {
		index = n.Int()
	}
	said = map[string]any{"index": index, "delta": chatDelta(c), "finish_reason": nil}
	if probs := c.Get("logprobs"); probs.IsObject() {
		said["logprobs"] = json.RawMessage(probs.Raw)
	}
	end = map[string]any{"index": index, "delta": struct{}{}, "finish_reason": c.Get("finish_reason").Value()}
	if e, ok := wrong(c); ok {
		end["error"] = json.RawMessage(e.Raw)
	}
	return said, end
}

// chatDelta gives the message of a choice as a piece: its calls have the numbers that clients put pieces together by.
func chatDelta(c gjson.Result) map[string]any {
	m := c.Get("message")
	if !m.IsObject() {
		m = c.Get("delta")
	}
	if !m.IsObject() {
		return map[string]any{"role": "assistant", "content": c.Get("text").Str}
	}
	delta := members(m)
	if list := m.Get("tool_calls"); list.IsArray() {
		calls := []any{}
		for i, call := range list.Array() {
			numbered := members(call)
			if _, ok := numbered["index"]; !ok {
				numbered["index"] = i
			}
			calls = append(calls, numbered)
		}
		delta["tool_calls"] = calls
	}
	return delta
}

// events tells tokens always: the last event is the response itself.
func (responses) events(body []byte, _ bool) []byte {
	v := gjson.ParseBytes(body)
	var out bytes.Buffer
	n := 0
	event := func(kind string, fields map[string]any) {
		fields["type"], fields["sequence_number"] = kind, n
		out.Write(sse(kind, encode(fields)))
		n++
	}
	first := begun(members(v))
	event("response.created", map[string]any{"response": first})
	event("response.in_progress", map[string]any{"response": first})
	for i, item := range v.Get("output").Array() {
		itemEvents(i, item, event)
	}
	end := v.Get("status").String()
	if end != "incomplete" && end != "failed" {
		end = "completed"
	}
	event("response."+end, map[string]any{"response": json.RawMessage(v.Raw)})
	return out.Bytes()
}

// begun makes of a response what it was when it began.
func begun(response map[string]any) map[string]any {
	response["status"], response["incomplete_details"], response["output"], response["usage"] = "in_progress", nil, []any{}, nil
	delete(response, "evenhand")
	return response
}

// callEvents are the kinds of calls whose request is told in events of its own, and the member that holds it.
var callEvents = map[string]struct{ member, event string }{
	"function_call":    {"arguments", "response.function_call_arguments"},
	"mcp_call":         {"arguments", "response.mcp_call_arguments"},
	"custom_tool_call": {"input", "response.custom_tool_call_input"},
}

// itemEvents tells an item of the output: a message part by part, what a call asks for, others as they are.
func itemEvents(i int, item gjson.Result, event func(kind string, fields map[string]any)) {
	begun := members(item)
	kind := item.Get("type").String()
	var parts []gjson.Result
	if c := item.Get("content"); c.IsArray() && kind == "message" {
		parts, begun["content"] = c.Array(), []any{}
	}
	call, request := callEvents[kind], ""
	if call.member != "" {
		if request = item.Get(call.member).Str; request != "" {
			begun[call.member] = ""
		}
	}
	if item.Get("status").Exists() {
		begun["status"] = "in_progress"
	}
	at := func(more map[string]any) map[string]any {
		more["item_id"], more["output_index"] = item.Get("id").String(), i
		return more
	}
	event("response.output_item.added", map[string]any{"output_index": i, "item": begun})
	for j, part := range parts {
		partEvents(part, func(kind string, fields map[string]any) {
			fields["content_index"] = j
			event(kind, at(fields))
		})
	}
	if request != "" {
		event(call.event+".delta", at(map[string]any{"delta": request}))
		event(call.event+".done", at(map[string]any{call.member: request, "name": item.Get("name").String()}))
	}
	event("response.output_item.done", map[string]any{"output_index": i, "item": json.RawMessage(item.Raw)})
}

// partEvents tells a part of a message: its text and its refusal.
func partEvents(part gjson.Result, event func(kind string, fields map[string]any)) {
	empty := members(part)
	for _, name := range []string{"text", "refusal"} {
		if part.Get(name).Exists() {
			empty[name] = ""
		}
	}
	event("response.content_part.added", map[string]any{"part": empty})
	if text := part.Get("text").Str; text != "" {
		event("response.output_text.delta", map[string]any{"delta": text, "logprobs": []any{}})
		event("response.output_text.done", map[string]any{"text": text, "logprobs": []any{}})
	}
	if refusal := part.Get("refusal").Str; refusal != "" {
		event("response.refusal.delta", map[string]any{"delta": refusal})
		event("response.refusal.done", map[string]any{"refusal": refusal})
	}
	event("response.content_part.done", map[string]any{"part": json.RawMessage(part.Raw)})
}
