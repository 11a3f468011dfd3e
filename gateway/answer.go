package gateway

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/toolcall"
)

// answer is what a provider has answered so far.
type answer struct {
	id, model string
	choices   map[int]*choice
	tokens    [2]*int32
	usage     string   // the provider's object that tells them, "" before it came
	size      int      // bytes of text, of all choices
	tail      rune     // the last character of them, spaces apart
	ended     bool     // the model said that it has finished
	finish    []string // why it stopped, as the provider calls it
	failed    string   // what the provider said went wrong in an answer that had begun
	opaque    bool     // something came that cannot be read, so nothing can be said of the whole
	sequence  int64    // of the last event of a stream of /v1/responses
}

// choice is one of the answers to a prompt.
type choice struct {
	text  words
	parts map[string]*words // of /v1/responses: texts that are told again at their end
	extra words             // what the text is not: reasoning
	place [2]string         // where what came last of text and of extra stood in a message: what stands elsewhere begins a line
	tools []*tool
	voice bool // the text was spoken
}

// tool is what the model asks for.
type tool struct {
	toolcall.Call
	kind   string
	args   words
	hosted bool    // the provider runs it: its caller has nothing to do
	more   []*tool // that came under the same index behind it
}

func (a *answer) choice(i int) *choice {
	if a.choices == nil {
		a.choices = map[int]*choice{}
	}
	c := a.choices[i]
	if c == nil && len(a.choices) >= maxChoices {
		a.opaque = true // nobody asks for so many; what they say goes to one that is not looked at
		return &choice{parts: map[string]*words{}}
	}
	if c == nil {
		c = &choice{parts: map[string]*words{}}
		a.choices[i] = c
	}
	return c
}

func (a *answer) add(w *words, s string) {
	was := w.Len()
	w.add(s)
	a.size += w.Len() - was
	if s = strings.TrimRight(s, " \t"); s != "" {
		a.tail, _ = utf8.DecodeLastRuneInString(s)
	}
}

// say adds a text of a message, or a piece of one, to what is judged; beside tells that it is no part of the answer's text.
func (a *answer) say(c *choice, place, s string, beside bool) {
	if s == "" {
		return
	}
	to, last := &c.text, &c.place[0]
	if beside {
		to, last = &c.extra, &c.place[1]
	}
	if *last != place && to.Len() > 0 {
		to.add("\n")
	}
	*last = place
	a.add(to, s)
}

// What an answer may have at most.
const (
	maxChoices = 128
	maxTools   = 1024
)

func (c *choice) tool(i int) *tool {
	i = max(0, min(i, maxTools-1))
	for len(c.tools) <= i {
		c.tools = append(c.tools, &tool{})
	}
	return c.tools[i]
}

// calls are the calls of tools; items of /v1/responses that are none leave gaps.
func (c *choice) calls() (out []*tool) {
	for _, first := range c.tools {
		for _, t := range append([]*tool{first}, first.more...) {
			if t.Name != "" || t.args.Len() > 0 {
				out = append(out, t)
			}
		}
	}
	return out
}

// piece adds a piece of the call that came last under the index of t, or of another that begins there, and gives that call.
func (t *tool) piece(a *answer, id, name, args string) *tool {
	now := t
	if n := len(t.more); n > 0 {
		now = t.more[n-1]
	}
	if now.Over(id, name, args) && len(t.more) < maxTools {
		now = &tool{}
		t.more = append(t.more, now)
	}
	now.Note(id, name, args)
	a.add(&now.args, args)
	return now
}

// identify takes what stands in every part of an answer.
func (a *answer) identify(v gjson.Result) {
	if id := v.Get("id"); a.id == "" && id.Type == gjson.String {
		a.id = id.String()
	}
	if m := v.Get("model"); a.model == "" && m.Type == gjson.String {
		a.model = m.String()
	}
}

// count takes the tokens of the usage object, under either of its names.
func (a *answer) count(usage gjson.Result) {
	if !usage.IsObject() {
		return
	}
	a.usage = usage.Raw
	for i, names := range [2][2]string{{"prompt_tokens", "input_tokens"}, {"completion_tokens", "output_tokens"}} {
		for _, name := range names {
			if n := usage.Get(name); n.Type == gjson.Number && n.Num >= 0 && n.Num < 1<<31 {
				t := int32(n.Num)
				a.tokens[i] = &t
			}
		}
	}
}

// stopped notes why a choice is at its end.
func (a *answer) stopped(reason gjson.Result) {
	if s := clip(reason.Str); s != "" && !slices.Contains(a.finish, s) && len(a.finish) < maxChoices {
		a.finish = append(a.finish, s)
	}
}

// messages are the answers as the event has them.
func (a *answer) messages() []call.Message {
	var out []call.Message
	for _, i := range slices.Sorted(maps.Keys(a.choices)) {
		c := a.choices[i]
		m := call.Message{Role: "assistant"}
		var calls []any
		for _, t := range c.calls() {
			kind := t.kind
			if kind == "" {
				kind = "function"
			}
			calls = append(calls, map[string]any{"id": t.ID, "type": kind, "function": map[string]string{"name": t.Name, "arguments": t.args.String()}})
		}
		if calls != nil {
			m.Calls = encode(calls)
		}
		if s := c.text.String(); s != "" || calls == nil {
			m.Content = quoted(s)
		}
		if s := c.extra.String(); s != "" {
			m.Reasoning = quoted(s)
		}
		out = append(out, m)
	}
	return out
}
