package ingest

import (
	"strconv"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/audit"
)

// setTexts reads everything that is free text or JSON.
func (st *state) setTexts(in *audit.Interaction) {
	st.setPrompt(in)
	st.setResponse(in)
	in.WithoutContent = in.Prompt == "" && in.Response == ""
	in.SanitizedPrompt = st.text(fSanitizedPrompt)
	in.ErrorMessage = st.text(fErrorMessage)
	in.QueryContext = st.json(fQueryContext, fastjson.TypeObject, "wants an object")
	in.GroupAttributes = st.json(fGroups, fastjson.TypeObject, "wants an object")
	in.Metadata = st.json(fMetadata, fastjson.TypeObject, "wants an object")
	in.RetrievedContext = st.json(fRetrieved, fastjson.TypeArray, "wants an array of {id, source, text}")
	st.checkRetrieved()
	if v := st.present(fRedaction); v != nil {
		in.RedactionSummary = st.canonicalText(v, names[fRedaction])
	}
}

// setPrompt reads messages, or the plain prompt, and the query.
func (st *state) setPrompt(in *audit.Interaction) {
	v := st.present(fMessages)
	if v == nil || v.Type() == fastjson.TypeArray && len(v.GetArray()) == 0 {
		in.Prompt = st.text(st.either(fPrompt, fOriginalQuery))
		in.Query = in.Prompt
		return
	}
	if v.Type() != fastjson.TypeArray {
		st.fault(names[fMessages], WrongType, "wants an array of {role, content}")
		return
	}
	if len(st.raw(fPrompt)) > 0 {
		st.fault(names[fPrompt], BadValue, "stands beside messages: send one of them")
	}
	st.buf = st.buf[:0]
	from, to := 0, 0 // of the last user message in buf
	for i, m := range v.GetArray() {
		content, user := st.message(i, m)
		if content == nil {
			continue
		}
		start := len(st.buf)
		st.buf = joined(st.buf, 0, "\n\n", func(dst []byte) []byte {
			start = len(dst)
			return said(dst, content, "\n")
		})
		if user {
			from, to = min(start, len(st.buf)), len(st.buf)
		}
	}
	in.Prompt = string(st.buf)
	in.Query = in.Prompt[from:to]
	in.Messages = st.canonicalText(v, names[fMessages])
	if st.query = st.text(fOriginalQuery); st.query != "" {
		in.Query = st.query
	}
}

// message checks one message and gives its content, nil when there is none.
func (st *state) message(i int, m *fastjson.Value) (content *fastjson.Value, user bool) {
	if m.Type() != fastjson.TypeObject {
		st.fault(at(fMessages, i, ""), WrongType, "wants an object with role and content")
		return nil, false
	}
	role := m.Get("role")
	switch {
	case role == nil:
		st.fault(at(fMessages, i, "role"), MissingField, "is missing; a message wants role and content")
	case role.Type() != fastjson.TypeString:
		st.fault(at(fMessages, i, "role"), WrongType, "wants a string")
	case len(role.GetStringBytes()) == 0:
		st.fault(at(fMessages, i, "role"), BadValue, "wants user, assistant, system or another role")
	default:
		user = string(role.GetStringBytes()) == "user"
	}
	content = m.Get("content")
	if content == nil {
		for _, other := range []string{"tool_calls", "function_call", "refusal"} {
			if m.Exists(other) {
				return nil, user
			}
		}
		st.fault(at(fMessages, i, "content"), MissingField, "is missing; a message wants role and content")
		return nil, user
	}
	switch content.Type() {
	case fastjson.TypeString:
	case fastjson.TypeNull:
		return nil, user
	case fastjson.TypeArray:
		for _, part := range content.GetArray() {
			st.part(i, part)
		}
	default:
		st.fault(at(fMessages, i, "content"), WrongType, "wants a string or an array of parts")
	}
	return content, user
}

// part checks one part of a message's content: a string, or an object whose text, if any, is one.
func (st *state) part(i int, part *fastjson.Value) {
	switch part.Type() {
	case fastjson.TypeString:
		return
	case fastjson.TypeObject:
	default:
		st.fault(at(fMessages, i, "content"), WrongType, "wants parts that are strings or objects")
		return
	}
	text := part.Get("text")
	switch {
	case text == nil:
		if string(part.GetStringBytes("type")) == "text" {
			st.fault(at(fMessages, i, "content"), MissingField, "has a part of type text without text")
		}
	case text.Type() != fastjson.TypeString:
		st.fault(at(fMessages, i, "content"), WrongType, "wants a string as the text of a part")
	}
}

// setResponse reads the response: a string as it is, another JSON value in its canonical form with
// the text that it says.
func (st *state) setResponse(in *audit.Interaction) {
	f := st.either(fResponse, fLLMResponse)
	v := st.present(f)
	if v == nil {
		return
	}
	switch v.Type() {
	case fastjson.TypeString:
		in.Response = string(v.GetStringBytes())
	case fastjson.TypeObject, fastjson.TypeArray:
		in.ResponseJSON = st.canonicalText(v, names[f])
		st.buf = answer(st.buf[:0], v)
		in.Response = string(st.buf)
	default:
		st.fault(names[f], WrongType, "wants a string, an object or an array")
	}
}

// checkRetrieved holds the documents of retrieved_context to the names that are read later.
func (st *state) checkRetrieved() {
	v := st.present(fRetrieved)
	if v == nil {
		return
	}
	for i, doc := range v.GetArray() {
		if doc.Type() != fastjson.TypeObject {
			st.fault(at(fRetrieved, i, ""), WrongType, "wants an object with id, source and text")
			continue
		}
		for _, key := range []string{"id", "source", "text"} {
			if s := doc.Get(key); s != nil && s.Type() != fastjson.TypeString && s.Type() != fastjson.TypeNull {
				st.fault(at(fRetrieved, i, key), WrongType, "wants a string")
			}
		}
	}
}

// at names a place inside a field: messages[2].role.
func at(f field, i int, key string) string {
	s := names[f] + "[" + strconv.Itoa(i) + "]"
	if key != "" {
		s += "." + key
	}
	return s
}
