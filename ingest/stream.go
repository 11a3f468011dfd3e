package ingest

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/internal/toolcall"
)

// assembled puts the pieces of a stream together, sent as a list of chunks: OpenAI's chat completions and Responses API, Anthropic's
// messages, Gemini and Ollama. nil is no stream, or one in which something stands that is not known as a piece of it.
func assembled(v *fastjson.Value) *fastjson.Value {
	if v.Type() != fastjson.TypeArray || len(v.GetArray()) == 0 {
		return nil
	}
	s := stream{}
	for _, e := range v.GetArray() {
		if e.Type() != fastjson.TypeObject || !s.piece(e) {
			return nil
		}
	}
	if s.whole != nil && (len(s.blocks) == 0 || len(said(nil, s.whole, "")) > 0) {
		return s.whole
	}
	b, err := json.Marshal(s.answer())
	if err != nil { // texts can be written always
		return nil
	}
	whole, err := fastjson.ParseBytes(b)
	if err != nil {
		return nil
	}
	return whole
}

// stream is what the chunks have told so far.
type stream struct {
	blocks map[place]*block
	whole  *fastjson.Value // the answer as the last event of the Responses API repeats it
}

// place is where a block of an answer stands: its choice or item, and the part of that.
type place struct{ choice, part int }

// block is a text, a thought or a call of a tool that grows. Thoughts and calls have the parts behind the texts where
// the chunks number the choices alone.
type block struct {
	kind, name string
	said       strings.Builder
	call       toolcall.Call // where its pieces tell one in OpenAI's shape
	more       []*block      // calls that came under the same index behind it
}

const (
	thoughtPart = 1 << 20
	callPart    = 2 << 20
)

// put adds a piece; an empty kind leaves it as it is.
func (s *stream) put(at place, kind, name, said string) {
	if said == "" && name == "" {
		return
	}
	b := s.block(at, kind)
	b.name += name
	b.said.WriteString(said)
}

// block gives the one at a place, a new one of that kind where there is none.
func (s *stream) block(at place, kind string) *block {
	if s.blocks == nil {
		s.blocks = map[place]*block{}
	}
	b := s.blocks[at]
	if b == nil {
		b = &block{kind: kind}
		s.blocks[at] = b
	}
	return b
}

// asked adds a piece of the call that came last under an index, or of another that begins there.
func (s *stream) asked(at place, id, name, args string) {
	if id == "" && name == "" && args == "" {
		return
	}
	first := s.block(at, "tool_use")
	b := first
	if n := len(first.more); n > 0 {
		b = first.more[n-1]
	}
	if b.call.Over(id, name, args) {
		b = &block{kind: "tool_use"}
		first.more = append(first.more, b)
	}
	b.call.Note(id, name, args)
	b.name = b.call.Name
	b.said.WriteString(args)
}

// piece adds one chunk and says whether it was one.
func (s *stream) piece(v *fastjson.Value) bool {
	kind := string(v.GetStringBytes("type"))
	switch {
	case strings.HasPrefix(kind, "response."):
		s.responses(strings.TrimPrefix(kind, "response."), v)
	case slices.Contains(anthropicEvents[:], kind):
		s.anthropic(kind, v)
	case v.Get("choices") != nil:
		return s.openAI(v)
	case v.Exists("candidates") || v.Exists("usageMetadata"):
		return s.gemini(v)
	case v.Exists("done") && (v.Exists("response") || v.Exists("message")):
		s.put(place{}, "text", "", str(v, "response")+str(v, "message", "content"))
		s.think(0, str(v, "thinking")+str(v, "message", "thinking"))
		s.tools(0, v.GetArray("message", "tool_calls"))
	default:
		return failure(v) != ""
	}
	return true
}

func str(v *fastjson.Value, path ...string) string { return string(v.GetStringBytes(path...)) }

func (s *stream) think(choice int, said string) {
	s.put(place{choice, thoughtPart}, "thinking", "", said)
}

// tools adds pieces of calls in OpenAI's shape.
func (s *stream) tools(choice int, calls []*fastjson.Value) {
	for i, c := range calls {
		if n := c.Get("index"); n != nil {
			i = n.GetInt()
		}
		at := place{choice, callPart + i}
		for _, key := range [...]string{"function", "custom"} {
			f := c.Get(key)
			if f == nil {
				continue
			}
			args := str(f, "arguments") + str(f, "input")
			if a := f.GetObject("arguments"); a != nil { // Ollama
				args = a.String()
			}
			s.asked(at, str(c, "id"), str(f, "name"), args)
		}
	}
}

// deltas are members of a chunk's delta that are read by their names.
var deltas = [...]string{"content", "refusal", "audio", "reasoning_content", "reasoning", "tool_calls", "function_call"}

// openAI adds a chunk of a chat completion; one with a whole message or a whole text is none.
func (s *stream) openAI(v *fastjson.Value) bool {
	for i, c := range v.GetArray("choices") {
		d := c.Get("delta")
		if d == nil || d.Type() != fastjson.TypeObject {
			return false
		}
		if n := c.Get("index"); n != nil {
			i = n.GetInt()
		}
		said := str(d, "content")
		for _, part := range d.GetArray("content") { // Mistral
			said += str(part, "text")
		}
		for part, said := range [...]string{said, str(d, "refusal"), str(d, "audio", "transcript")} {
			s.put(place{i, part}, "text", "", said)
		}
		thought, strange := cmp.Or(str(d, "reasoning_content"), str(d, "reasoning")), ""
		d.GetObject().Visit(func(name []byte, e *fastjson.Value) { // a provider's own names for what its model thinks
			if !slices.Contains(deltas[:], string(name)) && !slices.Contains(facts[:], string(name)) && !(thought != "" && string(name) == "reasoning_details") {
				strange += string(rest(nil, e, 0))
			}
		})
		s.think(i, thought)
		s.put(place{i, thoughtPart + 1}, "thinking", "", strange)
		s.tools(i, d.GetArray("tool_calls"))
		if f := d.Get("function_call"); f != nil {
			s.asked(place{i, callPart}, "", str(f, "name"), str(f, "arguments"))
		}
	}
	return true
}

var anthropicEvents = [...]string{"ping", "message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta", "content_block_stop"}

// anthropic adds an event of a stream of messages.
func (s *stream) anthropic(kind string, v *fastjson.Value) {
	at := place{0, v.GetInt("index")}
	switch kind {
	case "content_block_start":
		b := v.Get("content_block")
		if b == nil {
			return
		}
		s.put(at, cmp.Or(str(b, "type"), "text"), str(b, "name"), str(b, "text")+str(b, "thinking"))
	case "content_block_delta":
		d := v.Get("delta")
		if d == nil {
			return
		}
		blockKind := "text"
		if d.Exists("thinking") {
			blockKind = "thinking"
		}
		s.put(at, blockKind, "", str(d, "text")+str(d, "thinking")+str(d, "partial_json"))
	}
}

// responses adds an event of the Responses API, name without its prefix.
func (s *stream) responses(name string, v *fastjson.Value) {
	item, part := v.GetInt("output_index"), v.GetInt("content_index")
	switch name {
	case "completed", "incomplete", "failed":
		s.whole = v.Get("response")
	case "output_text.delta", "refusal.delta", "audio.transcript.delta", "audio_transcript.delta", "output_audio_transcript.delta":
		s.put(place{item, part}, "text", "", str(v, "delta"))
	case "reasoning_summary_text.delta":
		s.put(place{item, v.GetInt("summary_index")}, "thinking", "", str(v, "delta"))
	case "output_item.added":
		if strings.HasSuffix(str(v, "item", "type"), "_call") {
			s.put(place{item, 0}, "tool_use", cmp.Or(str(v, "item", "name"), str(v, "item", "type")), "")
		}
	case "function_call_arguments.delta", "custom_tool_call_input.delta", "mcp_call_arguments.delta", "code_interpreter_call_code.delta":
		s.put(place{item, 0}, "tool_use", "", str(v, "delta"))
	case "audio.delta", "output_audio.delta":
	default:
		if strings.HasSuffix(name, ".delta") {
			s.put(place{item, part}, "thinking", "", str(v, "delta"))
		}
	}
}

// gemini adds a chunk of streamGenerateContent, which has the parts' texts in pieces; one with parts of another kind is none.
func (s *stream) gemini(v *fastjson.Value) bool {
	for i, c := range v.GetArray("candidates") {
		if n := c.Get("index"); n != nil {
			i = n.GetInt()
		}
		for _, part := range c.GetArray("content", "parts") {
			f := part.Get("functionCall")
			switch {
			case f != nil:
				args := ""
				if a := f.GetObject("args"); a != nil {
					args = a.String()
				}
				s.put(place{i, callPart + len(s.blocks)}, "tool_use", str(f, "name"), args) // each a block of its own
			case part.Get("text") == nil:
				return false
			case part.GetBool("thought"):
				s.think(i, str(part, "text"))
			default:
				s.put(place{i, 0}, "text", "", str(part, "text"))
			}
		}
	}
	return true
}

// answer gives the whole as a provider would have told it at once.
func (s *stream) answer() any {
	type message struct {
		Content []map[string]string `json:"content"`
	}
	type choice struct {
		Message message `json:"message"`
	}
	all := []choice{}
	last := -1
	order := slices.SortedFunc(maps.Keys(s.blocks), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.choice, b.choice), cmp.Compare(a.part, b.part))
	})
	for _, at := range order {
		if len(all) == 0 || at.choice != last {
			all, last = append(all, choice{}), at.choice
		}
		m := &all[len(all)-1].Message
		for _, b := range append([]*block{s.blocks[at]}, s.blocks[at].more...) {
			if b.name != "" || b.said.Len() > 0 { // else an id was all that came
				m.Content = append(m.Content, b.content())
			}
		}
	}
	return map[string]any{"object": "response", "choices": all} // known as an answer, also where it is empty
}

func (b *block) content() map[string]string {
	switch said := b.said.String(); {
	case b.kind == "thinking":
		return map[string]string{"type": "thinking", "thinking": said}
	case strings.HasSuffix(b.kind, "tool_use"):
		return map[string]string{"type": "tool_use", "name": b.name, "input": said}
	default:
		return map[string]string{"type": "text", "text": said}
	}
}
