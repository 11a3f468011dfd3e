package gateway

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/ingest/call"
)

// chat is /v1/chat/completions.
type chat struct{}

func (chat) path() string            { return "/chat/completions" }
func (chat) texts() string           { return "messages" }
func (chat) method() string          { return "chat.completions.create" }
func (chat) refused(*request) string { return "" }

func (chat) kept(*request) (texts, model bool) { return false, false }

func (chat) prompt(q *request) (system string, ms []call.Message, f *fault) {
	items, f := elements(q.fields["messages"], "messages")
	if f != nil {
		return "", nil, f
	}
	for i, item := range items {
		at := fmt.Sprintf("messages[%d]", i)
		fields, f := object(item, maxDepth, at)
		if f != nil {
			return "", nil, f
		}
		m, f := message(fields, at+".content")
		if f != nil {
			return "", nil, f
		}
		ms = append(ms, m)
	}
	return "", ms, nil
}

func (chat) whole(a *answer, v gjson.Result) {
	a.identify(v)
	a.count(v.Get("usage"))
	choices := v.Get("choices")
	if !choices.IsArray() {
		a.failsAlone(v)
		return
	}
	if e, ok := wrong(v); ok {
		a.fail(e)
	}
	for i, c := range choices.Array() {
		to := a.choice(i)
		m := c.Get("message")
		if !m.IsObject() {
			m = c.Get("delta")
		}
		chatSaid(to, a, c, m, true)
		a.more(&to.text, c.Get("text").Str)
		chatFailed(a, c)
		if !m.IsObject() && c.Get("text").Type != gjson.String {
			_, failed := wrong(c)
			a.opaque = a.opaque || !failed || strangely(c, "error", "finish_reason", "native_finish_reason") != ""
		}
	}
	a.ended = true
}

// chatFailed notes that a choice, or a piece of one, ends with an error of the provider behind that which was asked.
func chatFailed(a *answer, c gjson.Result) {
	if e, ok := wrong(c); ok || c.Get("finish_reason").Str == "error" {
		a.fail(e)
	}
}

func (chat) chunk(a *answer, v gjson.Result) {
	if e, ok := wrong(v); ok {
		if !v.Get("choices").IsArray() {
			a.failsAlone(v)
		}
		a.fail(e)
	}
	a.identify(v)
	a.count(v.Get("usage"))
	for i, c := range v.Get("choices").Array() {
		if n := c.Get("index"); n.Exists() {
			i = int(n.Int())
		}
		to := a.choice(i)
		chatSaid(to, a, c, c.Get("delta"), false)
		if m := c.Get("message"); m.IsObject() {
			a.retold(to, m)
		}
		if s := c.Get("text"); s.Type == gjson.String {
			a.add(&to.text, wordsOf(s))
		}
		chatFailed(a, c)
	}
}

// retold takes a message that a stream tells whole, of which some may have been told in pieces before.
func (a *answer) retold(c *choice, m gjson.Result) {
	var whole answer
	w := whole.choice(0)
	chatSaid(w, &whole, gjson.Result{}, m, true)
	c.voice = c.voice || w.voice
	a.more(&c.text, w.text.String())
	a.more(&c.extra, w.extra.String())
	had := c.calls()
	for i, t := range w.calls() {
		if i < len(had) && (had[i].Name == "" || had[i].Name == t.Name) {
			was := had[i]
			was.ID, was.Name, was.kind = t.ID, t.Name, t.kind
			a.more(&was.args, t.args.String())
			continue
		}
		t.more = nil // each of them is told here
		c.tools = append(c.tools, t)
		a.size += t.args.Len()
	}
}

// more adds what a text says beyond what was told of it; what was told and does not begin it stays, for it went to the caller.
func (a *answer) more(w *words, whole string) {
	a.add(w, beyond(w.String(), whole))
}

// beyond gives what is still to be told of a whole.
func beyond(told, whole string) string {
	switch {
	case strings.HasPrefix(whole, told):
		return whole[len(told):]
	case strings.Contains(told, whole):
		return ""
	}
	return "\n" + whole
}

// chatMembers are the members of a message that are read by their names, or are no text of the model, such
// as what tools gave back.
var chatMembers = []string{"role", "content", "refusal", "audio", "reasoning_content", "reasoning", "tool_calls", "function_call", "annotations", "name", "id",
	"executed_tools", "search_results", "citations", "context", "images"}

// chatSaid adds what a message, or a piece of one, says: pieces of a text are one, texts of a whole message have a line each. Members that are not
// known are read, too: providers have names of their own for what a model thinks.
func chatSaid(c *choice, a *answer, from, m gjson.Result, whole bool) {
	if r := from.Get("finish_reason"); r.Type == gjson.String {
		a.ended = true
		a.stopped(r)
	}
	n := 0
	say := func(member string, v gjson.Result, beside bool) {
		if n++; whole {
			member += strconv.Itoa(n)
		}
		a.say(c, member, wordsOf(v), beside)
	}
	for _, name := range []string{"content", "refusal"} {
		switch v := m.Get(name); {
		case v.Type == gjson.String:
			say(name, v, false)
		case v.IsArray():
			for i, part := range v.Array() {
				chatPart(c, a, i, part, say)
			}
		}
	}
	if v := m.Get("audio.transcript"); v.Type == gjson.String {
		c.voice = true
		say("transcript", v, false)
	}
	thoughts := map[string]bool{} // some tell one under several names
	think := func(member string) func(gjson.Result) {
		return func(v gjson.Result) {
			if s := wordsOf(v); s != "" && !thoughts[s] {
				thoughts[s] = true
				say(member, v, true)
			}
		}
	}
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if v := m.Get(name); v.Type == gjson.String {
			think("reasoning")(v)
		}
	}
	strange(m, chatMembers, think("strange"))
	for i, call := range m.Get("tool_calls").Array() {
		if n := call.Get("index"); n.Exists() {
			i = int(n.Int())
		}
		chatTool(c.tool(i), a, call)
	}
	if f := m.Get("function_call"); f.IsObject() { // as it was before tools
		c.tool(0).piece(a, "", f.Get("name").String(), wordsOf(f.Get("arguments")))
	}
}

// chatPart adds a part of a message's content.
func chatPart(c *choice, a *answer, i int, part gjson.Result, say func(member string, v gjson.Result, beside bool)) {
	kind := part.Get("type").String()
	switch {
	case part.Type == gjson.String:
		say("content", part, false)
	case part.Get("text").Str != "":
		say("content", part.Get("text"), false)
	case kind == "refusal":
		say("refusal", part.Get("refusal"), false)
	case kind == "tool_use" || kind == "tool_call" || strings.HasSuffix(kind, "_call"):
		t := c.tool(i)
		t.ID, t.Name = part.Get("id").String(), part.Get("name").String()
		a.add(&t.args, requested(part))
	default:
		strange(part, nil, func(s gjson.Result) { say("part", s, true) })
	}
}

// chatTool adds a call of a tool, or a piece of one.
func chatTool(t *tool, a *answer, call gjson.Result) {
	id, name, args := callPiece(call)
	t = t.piece(a, id, name, args)
	if k := call.Get("type").String(); k != "" {
		t.kind = k
	}
}

// callPiece reads a call of a tool, or a piece of one.
func callPiece(call gjson.Result) (id, name, args string) {
	f := call
	for _, name := range []string{"function", "custom"} {
		if v := call.Get(name); v.IsObject() {
			f = v
		}
	}
	id, name = call.Get("id").String(), f.Get("name").String()
	for _, args := range []string{"arguments", "input"} {
		if v := f.Get(args); v.Type == gjson.String && encoded(v.String()) { // a piece of arguments is text, whatever it looks like
			return id, name, wordsOf(v)
		}
	}
	return id, name, requested(f)
}

func (chat) marked(v gjson.Result) string {
	if v.Get("choices").IsArray() {
		return "evenhand"
	}
	return ""
}

// carrier is a chunk with an empty delta: some clients count on a choice.
func (chat) carrier(x *exchange) []byte {
	chunk := chatObject(x, "chat.completion.chunk", chatChoice{Delta: &map[string]any{}})
	chunk["evenhand"] = x.report()
	return encode(chunk)
}

type chatChoice struct {
	Index   int             `json:"index"`
	Message *map[string]any `json:"message,omitempty"`
	Delta   *map[string]any `json:"delta,omitempty"`
	Finish  *string         `json:"finish_reason"`
}

// chatObject is a completion of ours.
func chatObject(x *exchange, kind string, c chatChoice) map[string]any {
	id := x.answer.id
	if id == "" {
		id = "chatcmpl-" + x.id.String()
	}
	return map[string]any{"id": id, "object": kind, "created": x.began.Unix(), "model": x.model(), "choices": []chatChoice{c}}
}

var filtered = "content_filter"

func (chat) instead(x *exchange, text string, stream bool) []byte {
	said := map[string]any{"role": "assistant", "content": text, "refusal": nil}
	body := chatObject(x, "chat.completion", chatChoice{Message: &said, Finish: &filtered})
	body["usage"] = x.spent(`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`)
	body["evenhand"] = x.report()
	if stream {
		return chat{}.events(encode(body), x.req.usage())
	}
	return encode(body)
}

func (chat) stop(x *exchange, f *fault) []byte {
	var out bytes.Buffer
	if f.report != nil {
		end := chatObject(x, "chat.completion.chunk", chatChoice{Delta: &map[string]any{}, Finish: &filtered})
		end["evenhand"] = f.report
		out.Write(sse("", encode(end)))
	}
	out.Write(sse("", f.json()))
	out.WriteString("data: [DONE]\n\n")
	return out.Bytes()
}
