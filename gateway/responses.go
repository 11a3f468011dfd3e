package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/ingest/call"
)

// responses is /v1/responses.
type responses struct{}

func (responses) path() string   { return "/responses" }
func (responses) texts() string  { return "input" }
func (responses) method() string { return "responses.create" }

func (responses) refused(q *request) string {
	if gjson.ParseBytes(q.fields["background"]).Bool() {
		return "background"
	}
	return ""
}

func (responses) kept(q *request) (texts, model bool) {
	named := func(name string) bool {
		v := gjson.ParseBytes(q.fields[name])
		return v.Str != "" && name != "prompt" || v.Get("id").Str != "" // a prompt that is a text is kept nowhere
	}
	model = named("prompt")
	return model || named("conversation") || named("previous_response_id"), model
}

func (responses) prompt(q *request) (system string, ms []call.Message, f *fault) {
	if v := gjson.ParseBytes(q.fields["instructions"]); v.Type == gjson.String {
		system = v.String()
	} else if v.IsArray() {
		system = strangely(v)
	}
	if v := gjson.GetBytes(q.fields["prompt"], "variables"); v.IsObject() {
		system = strings.TrimSpace(system + "\n" + strangely(v))
	}
	raw := q.fields["input"]
	if raw == nil { // kept at the provider
		return system, nil, nil
	}
	if !gjson.ParseBytes(raw).IsArray() {
		m, f := message(map[string][]byte{"role": []byte(`"user"`), "content": raw}, "input")
		return system, []call.Message{m}, f
	}
	items, f := elements(raw, "input")
	if f != nil {
		return "", nil, f
	}
	for i, item := range items {
		at := fmt.Sprintf("input[%d]", i)
		if !gjson.ParseBytes(item).IsObject() {
			return "", nil, badRequest(at, "wants an object")
		}
		fields, f := object(item, maxDepth, at)
		if f != nil {
			return "", nil, f
		}
		m, f := inputItem(item, fields, at)
		if f != nil {
			return "", nil, f
		}
		ms = append(ms, m)
	}
	return system, ms, nil
}

// inputItem makes a message of an item: a message, a call of a tool, what a tool gave, or something else.
func inputItem(item []byte, fields map[string][]byte, at string) (call.Message, *fault) {
	if f := otherLetters(fields, at+".", "role", "type", "content", "output", "arguments", "name", "input", "summary"); f != nil {
		return call.Message{}, f
	}
	kind := gjson.ParseBytes(fields["type"]).String()
	switch {
	case fields["role"] != nil:
		return message(fields, at+".content")
	case strings.HasSuffix(kind, "_call_output"):
		return message(map[string][]byte{"role": []byte(`"tool"`), "content": fields["output"], "tool_call_id": fields["call_id"]}, at+".output")
	case kind == "function_call": // what the model asked for was judged when it did, as a message's calls were
		return call.Message{Role: "assistant", Content: json.RawMessage(`null`), Calls: encode([]any{map[string]any{
			"type": "function", "id": clip(gjson.ParseBytes(fields["call_id"]).Str),
			"function": map[string]string{"name": gjson.ParseBytes(fields["name"]).String(), "arguments": gjson.ParseBytes(fields["arguments"]).String()},
		}})}, nil
	case kind != "" && kind != "message" && kind != "mcp_list_tools": // thoughts and calls of before
		if s := strangely(gjson.ParseBytes(item)); s != "" {
			return call.Text(kind, s), nil
		}
	}
	return message(map[string][]byte{"role": encode(kind), "content": fields["content"]}, at+".content")
}

func (responses) whole(a *answer, v gjson.Result) {
	a.identify(v)
	a.count(v.Get("usage"))
	output := v.Get("output")
	if !output.IsArray() {
		a.failsAlone(v)
		return
	}
	for i, item := range output.Array() {
		responseItem(a, i, item)
	}
	a.ended = v.Get("status").String() != "failed"
	if a.stopped(v.Get("incomplete_details.reason")); len(a.finish) == 0 {
		a.stopped(v.Get("status"))
	}
	if e := v.Get("error"); e.IsObject() {
		a.fail(e)
	}
}

// responseItem takes an item of the output as a whole; what was told in pieces before is not taken again.
func responseItem(a *answer, i int, item gjson.Result) {
	kind := item.Get("type").String()
	beside := kind == "reasoning"
	if s := item.Get("content"); s.Type == gjson.String {
		a.settle(i, "content", s.String(), beside)
	}
	for _, list := range []string{"content", "summary"} {
		for j, part := range item.Get(list).Array() {
			responsePart(a, i, fmt.Sprint(list, j), part, beside || list == "summary")
		}
	}
	switch {
	case kind == "mcp_list_tools" || strings.HasSuffix(kind, "_output"): // what tools say
	case strings.HasSuffix(kind, "_call") || item.Get("arguments").Exists():
		responseCall(a, i, item)
	default:
		a.settle(i, "strange", strangely(item, "content", "summary", "phase"), true)
	}
}

// responseCall takes a call of a tool as a whole; of which kinds there are changes.
func responseCall(a *answer, i int, item gjson.Result) {
	for _, name := range []string{"arguments", "input", "code"} {
		if s := item.Get(name); s.Str != "" {
			a.asks(i, item)
			a.settle(i, name, s.Str, true)
		}
	}
	if s := requested(item); s != "" && !a.told(i, s) {
		a.asks(i, item)
		a.settle(i, "request", s, true)
	}
	a.choice(0).tool(i).hosted = !clients[item.Get("type").String()]
}

// clients are the calls that the caller carries out; others the provider does.
var clients = map[string]bool{"function_call": true, "custom_tool_call": true, "computer_call": true, "local_shell_call": true, "shell_call": true, "apply_patch_call": true}

// responsePart takes a part of an item's content or summary as a whole.
func responsePart(a *answer, i int, at string, part gjson.Result, beside bool) {
	read := false
	for _, name := range []string{"text", "refusal", "transcript"} {
		if s := part.Get(name); s.Str != "" {
			read = true
			a.settle(i, at+name, s.Str, beside)
		}
	}
	if !read {
		a.settle(i, at, strangely(part, "annotations", "logprobs"), true)
	}
}

// settle sets a part of an item to its whole text, of which some may have been told already. What was told and does not begin the whole
// stays: it went to the caller.
func (a *answer) settle(i int, part, whole string, beside bool) {
	a.tell(i, part, beyond(a.part(i, part, beside).String(), whole), beside)
}

// told tells whether every text of what a call asks for came in pieces already.
func (a *answer) told(i int, asked string) bool {
	so := a.choice(0).tool(i).args.String()
	if strings.Contains(so, asked) || !gjson.Valid(asked) {
		return strings.Contains(so, asked)
	}
	all := so != ""
	texts(gjson.Parse(asked), func(s gjson.Result) { all = all && strings.Contains(so, s.String()) })
	return all
}

// part gives the text of a part of an item so far.
func (a *answer) part(i int, part string, beside bool) *words {
	c := a.choice(0) // there is one answer; its items are one text
	key := fmt.Sprint(i, part, beside)
	b := c.parts[key]
	if b == nil {
		b = &words{}
		c.parts[key] = b
	}
	return b
}

// tell adds a piece to a part, and to what is judged.
func (a *answer) tell(i int, part, s string, beside bool) {
	if s == "" {
		return
	}
	b, c := a.part(i, part, beside), a.choice(0)
	to := &c.text
	switch {
	case part == "arguments" || part == "input" || part == "code" || part == "request":
		to = &c.tool(i).args
	case beside:
		to = &c.extra
	}
	if b.Len() == 0 && to.Len() > 0 {
		to.add("\n")
	}
	b.add(s)
	a.add(to, s)
}

// asks notes which tool an item calls.
func (a *answer) asks(i int, item gjson.Result) {
	t := a.choice(0).tool(i)
	t.ID, t.Name = item.Get("call_id").String(), item.Get("name").String()
	if t.Name == "" {
		t.Name = item.Get("type").String()
	}
}

func (responses) chunk(a *answer, v gjson.Result) {
	kind := v.Get("type").String()
	if n := v.Get("sequence_number"); n.Type == gjson.Number {
		a.sequence = n.Int()
	}
	i, j := int(v.Get("output_index").Int()), v.Get("content_index").Int()
	text := func(field, part string, beside bool) {
		part += field
		switch {
		case strings.HasSuffix(kind, ".delta"):
			a.tell(i, part, wordsOf(v.Get("delta")), beside)
		case strings.HasSuffix(kind, ".done"):
			a.settle(i, part, v.Get(field).String(), beside)
		}
	}
	switch base := strings.TrimSuffix(strings.TrimSuffix(kind, ".delta"), ".done"); {
	case kind == "error":
		if e := v.Get("error"); e.IsObject() {
			v = e
		}
		a.fail(v)
	case v.Get("response").IsObject():
		r := v.Get("response")
		a.identify(r)
		if kind == "response.completed" || kind == "response.incomplete" || kind == "response.failed" {
			responses{}.whole(a, r)
			a.ended = true
		}
	case strings.HasPrefix(kind, "response.output_item."):
		item := v.Get("item")
		if item.Get("type").String() == "function_call" {
			a.asks(i, item)
		}
		if item.Get("type").String() == "message" || strings.HasSuffix(kind, ".done") { // a call that was added has no words yet
			responseItem(a, i, item)
		}
	case strings.HasPrefix(kind, "response.content_part."):
		if part := v.Get("part"); part.Get("text").Str+part.Get("refusal").Str != "" || strings.HasSuffix(kind, ".done") {
			responsePart(a, i, fmt.Sprint("content", j), part, part.Get("type").String() == "reasoning_text")
		}
	case base == "response.output_text":
		text("text", fmt.Sprint("content", j), false)
	case base == "response.refusal":
		text("refusal", fmt.Sprint("content", j), false)
	case base == "response.reasoning_summary_text":
		text("text", fmt.Sprint("summary", v.Get("summary_index").Int()), true)
	case base == "response.reasoning_text":
		text("text", fmt.Sprint("content", j), true)
	case strings.HasSuffix(base, "_call_arguments"):
		text("arguments", "", true)
	case strings.HasSuffix(base, "_call_input"):
		text("input", "", true)
	case strings.HasSuffix(base, "_call_code"):
		text("code", "", true)
	case strings.HasSuffix(base, "audio.transcript"), strings.HasSuffix(base, "audio_transcript"):
		text("transcript", fmt.Sprint("content", j), false)
	case strings.HasSuffix(kind, ".delta") && !strings.HasSuffix(base, "audio"): // of a kind of call that is new
		texts(v.Get("delta"), func(s gjson.Result) { a.tell(i, "request", wordsOf(s), true) })
	}
}

func (responses) marked(v gjson.Result) string {
	switch v.Get("type").String() {
	case "response.completed", "response.incomplete", "response.failed":
		return "response.evenhand"
	}
	return ""
}

// carrier is none: without its last event an answer is broken off, which its caller is told.
func (responses) carrier(*exchange) []byte { return nil }

// unspent is a usage of nothing; clients count on all of its members.
const unspent = `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`

// responseObject is a response of ours, which is always one that was cut off: with output in the place of what the model said.
func responseObject(x *exchange, output ...any) map[string]any {
	id := x.answer.id
	if id == "" {
		id = "resp_" + strings.ReplaceAll(x.id.String(), "-", "")
	}
	if output == nil {
		output = []any{}
	}
	return map[string]any{"id": id, "object": "response", "created_at": x.began.Unix(), "model": x.model(), "error": nil,
		"parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{}, "metadata": map[string]string{}, "instructions": nil,
		"status": "incomplete", "incomplete_details": map[string]string{"reason": filtered}, "output": output, "usage": x.spent(unspent), "evenhand": x.report()}
}

func (responses) instead(x *exchange, text string, stream bool) []byte {
	whole := encode(responseObject(x, map[string]any{
		"id": "msg_" + strings.ReplaceAll(x.id.String(), "-", ""), "type": "message", "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}},
	}))
	if stream {
		return responses{}.events(whole, false)
	}
	return whole
}

func (responses) stop(x *exchange, f *fault) []byte {
	var out bytes.Buffer
	n := x.answer.sequence
	if !x.sent { // what was held was told to nobody
		n = -1
	}
	event := func(kind string, fields map[string]any) {
		n++
		fields["type"], fields["sequence_number"] = kind, n
		out.Write(sse(kind, encode(fields)))
	}
	if f.report != nil {
		if !x.sent { // clients want the beginning of what ends
			event("response.created", map[string]any{"response": begun(responseObject(x))})
		}
		event("response.incomplete", map[string]any{"response": responseObject(x)})
	}
	event("error", map[string]any{"code": f.code, "message": f.say, "param": nil, "error": f.body()})
	return out.Bytes()
}
