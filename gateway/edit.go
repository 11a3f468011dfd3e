package gateway

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// step is one step into JSON: to a member of an object, or to an element of an array.
type step struct {
	name string // of a member, "" of an element
	at   int    // of an element
	in   byte   // { or [
}

// spot is a string of JSON, quotation marks included, or the tokens of a model's words with their probabilities.
type spot struct {
	from, to int
	tokens   bool
}

// walk calls visit for each string of valid JSON that is no name, and for each list of tokens, which it does not go into. The path is
// visit's only while it runs.
func walk(b []byte, visit func(path []step, s spot)) {
	var path []step
	naming, tokens, depth := false, 0, 0 // the next string is a name; where a list of tokens begins, and at which depth
	for i := 0; i < len(b); i++ {
		last := len(path) - 1
		switch c := b[i]; c {
		case '{', '[':
			if depth == 0 && last >= 0 && path[last].name == "logprobs" {
				tokens, depth = i, last+1
			}
			path, naming = append(path, step{in: c}), c == '{'
		case '}', ']':
			path, naming = path[:last], false
			if depth > 0 && last == depth {
				visit(path, spot{tokens, i + 1, true})
				depth = 0
			}
		case ',':
			path[last].at++
			naming = path[last].in == '{'
		case '"':
			from := i
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			switch {
			case naming:
				path[last].name, naming = nameOf(b[from:i+1]), false
			case depth == 0:
				visit(path, spot{from: from, to: i + 1})
			}
		}
	}
}

func nameOf(quoted []byte) string {
	if slices.Contains(quoted, '\\') {
		return gjson.ParseBytes(quoted).String()
	}
	return string(quoted[1 : len(quoted)-1])
}

// change puts something in the place of a part of a text.
type change struct {
	from, to int // bytes
	with     string
}

// changed gives the text with changes, which stand in their order and overlap none.
func changed(text []byte, changes []change) []byte {
	size := len(text)
	for _, c := range changes {
		size += len(c.with)
	}
	out, done := make([]byte, 0, size), 0
	for _, c := range changes {
		out = append(append(out, text[done:c.from]...), c.with...)
		done = c.to
	}
	return append(out, text[done:]...)
}

// holders are members that hold a part of what is said, with the names of things beside it; those that are lists in any case are true.
var holders = map[string]bool{"content": true, "summary": true, "output": true, "tool_calls": true,
	"message": false, "delta": false, "function": false, "custom": false, "function_call": false, "image_url": false, "video_url": false, "input_audio": false, "audio": false, "file": false, "source": false}

// labels are members of messages, of their parts and of calls of tools that are no text: what things are called by, and where they are.
var labels = append([]string{"name", "tool_call_id", "file_id", "finish_reason", "image_url", "file_url", "detail", "server_label", "object"}, notText...)

// isName tells whether the last step of a path is to a name of something. Within what is of a shape of its own, such as what a tool gave as an
// object, nothing is: there any name may stand for a text.
func isName(path []step) bool {
	for i, s := range path[:max(0, len(path)-1)] {
		if s.in == '[' {
			continue
		}
		list, holds := holders[s.name]
		if i > 0 && !holds || list && path[i+1].in != '[' {
			return false
		}
	}
	return len(path) > 0 && slices.Contains(labels, path[len(path)-1].name)
}

// unheard are members of a request that no model reads: who asks, what the answer shall be like, what is kept where.
var unheard = []string{"model", "user", "safety_identifier", "metadata", "prompt_cache_key", "previous_response_id", "conversation", "stop", "tool_choice", "include",
	"service_tier", "truncation", "reasoning_effort", "verbosity", "modalities", "prompt_cache_retention", "stream_options", "audio", "reasoning", "store"}

// described are members of a request that tell what tools and answers look like: of them models read the descriptions, and all else is code.
var described = []string{"tools", "functions", "response_format", "text"}

// readByModel tells whether a model reads the string of a request that a path leads to. What is not known is read.
func readByModel(path []step) bool {
	if len(path) == 0 || slices.Contains(unheard, path[0].name) {
		return false
	}
	if slices.Contains(described, path[0].name) {
		return path[len(path)-1].name == "description"
	}
	if path[0].name == "prompt" && len(path) > 1 { // one that the provider keeps
		return path[1].name == "variables"
	}
	return !isName(path)
}

// told tells whether the string of an answer, or of an event of a stream, that a path leads to is of what the model says.
func (chat) told(path []step, _ bool) bool {
	return len(path) > 2 && path[0].name == "choices" && !isName(path)
}

// channel gives the text of a stream that the string a path leads to is a piece of, and whether that is JSON; "" is a text of its own.
func (chat) channel(v gjson.Result, path []step) (key string, whole bool) {
	if len(path) > 2 && path[2].name == "message" {
		return "", false
	}
	var b strings.Builder
	for _, s := range path {
		if s.in == '{' {
			v = v.Get(gjson.Escape(s.name))
			b.WriteString(s.name + ".")
			continue
		}
		v = v.Get(strconv.Itoa(s.at))
		n := int64(s.at)
		if i := v.Get("index"); i.Exists() {
			n = i.Int()
		}
		b.WriteString(strconv.FormatInt(n, 10) + ".")
	}
	last := path[len(path)-1].name
	return b.String(), last == "arguments" || last == "input"
}

// called gives the piece of a call of a tool that the string a path leads to is in; in pieces they come under their index.
func (chat) called(v gjson.Result, path []step) (prefix string, call gjson.Result) {
	if len(path) < 6 || path[0].name != "choices" || path[2].name != "delta" || path[3].name != "tool_calls" || path[4].in != '[' {
		return "", call
	}
	prefix, _ = chat{}.channel(v, path[:5])
	return prefix, v.Get("choices." + strconv.Itoa(path[1].at) + ".delta.tool_calls." + strconv.Itoa(path[4].at))
}

func (responses) called(gjson.Result, []step) (string, gjson.Result) { return "", gjson.Result{} }

// ends gives how the names of the texts begin that an event of a stream ends.
func (chat) ends(v gjson.Result) (prefixes []string) {
	for i, c := range v.Get("choices").Array() {
		if n := c.Get("index"); n.Exists() {
			i = int(n.Int())
		}
		if c.Get("finish_reason").Type == gjson.String {
			prefixes = append(prefixes, fmt.Sprintf("choices.%d.", i))
		}
	}
	return prefixes
}

func (chat) over(v gjson.Result) bool {
	return slices.ContainsFunc(v.Get("choices").Array(), func(c gjson.Result) bool { return c.Get("finish_reason").Str != "" })
}

func (r responses) over(v gjson.Result) bool { return r.marked(v) != "" }

func (responses) channel(v gjson.Result, path []step) (key string, whole bool) {
	kind, delta := strings.CutSuffix(v.Get("type").Str, ".delta")
	if !delta || path[0].name != "delta" {
		return "", false
	}
	return responseText(kind, v), strings.Contains(kind, "_call_")
}

func (responses) ends(v gjson.Result) []string {
	if kind, done := strings.CutSuffix(v.Get("type").Str, ".done"); done {
		return []string{responseText(kind, v)}
	}
	return nil
}

// responseText names the text that an event of a kind is of.
func responseText(kind string, v gjson.Result) string {
	return fmt.Sprintf("%s %d %d %d", kind, v.Get("output_index").Int(), v.Get("content_index").Int(), v.Get("summary_index").Int())
}

func (responses) told(path []step, event bool) bool {
	if event && len(path) > 0 && path[0].name == "response" {
		path, event = path[1:], false
	}
	switch {
	case len(path) == 0:
		return false
	case event && path[0].name == "item" || event && path[0].name == "part":
		return !isName(path)
	case event:
		return !slices.Contains(eventNames, path[0].name)
	}
	return slices.Contains([]string{"output", "output_text", "instructions"}, path[0].name) && !isName(path)
}

// eventNames are members of an event that are no words of the model.
var eventNames = []string{"type", "event_id", "item_id", "response_id", "obfuscation", "partial_image_b64", "name", "call_id", "code_interpreter_call_id"}

// quiet tells whether an event holds sounds or pictures.
func quiet(kind string) bool {
	return strings.HasSuffix(kind, "audio.delta") || strings.Contains(kind, "partial_image")
}
