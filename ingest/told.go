package ingest

import (
	"cmp"
	"math"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/audit"
)

// told is what a provider's answer tells of its call beside the text.
type told struct {
	failed string // the message of its error
	model  string
	tokens [2]*int32 // of the prompt, of the response
}

// read takes what an answer tells, or one of the chunks of a stream: of tokens the last that is told is the whole number.
func (t *told) read(v *fastjson.Value) {
	switch v.Type() {
	case fastjson.TypeArray:
		for _, e := range v.GetArray() {
			t.read(e)
		}
		return
	case fastjson.TypeObject:
		v = dumped(v)
	default:
		return
	}
	for _, inner := range [...]string{"response", "message"} { // of events of a stream
		if e := v.Get(inner); e != nil && e.Type() == fastjson.TypeObject && v.Exists("type") {
			t.read(e)
		}
	}
	t.failed = cmp.Or(t.failed, str(v, "error", "message"))
	counted := t.count(v, "usage") || t.count(v, "usageMetadata") || t.count(v, "usage_metadata") || generated(v) && t.count(v) || v.Exists("eval_count") && t.count(v)
	if counted || v.Exists("choices") || v.Exists("candidates") || str(v, "object") == "response" { // else it may be an answer that happens to have a model
		if m := cmp.Or(str(v, "model"), str(v, "modelVersion"), str(v, "response_metadata", "model_name")); t.model == "" && utf8.RuneCountInString(m) <= maxWord {
			t.model = m
		}
	}
}

// count takes the tokens of the object that a path leads to, under any of their names, and says whether there are any.
func (t *told) count(v *fastjson.Value, path ...string) bool {
	v = v.Get(path...)
	if v == nil || v.Type() != fastjson.TypeObject {
		return false
	}
	counted := false
	for side, names := range [...][4]string{
		{"prompt_tokens", "input_tokens", "promptTokenCount", "prompt_eval_count"},
		{"completion_tokens", "output_tokens", "candidatesTokenCount", "eval_count"},
	} {
		for _, name := range names {
			e := v.Get(name)
			if e == nil {
				continue
			}
			n, err := e.Int64()
			if err != nil {
				continue
			}
			if name == "candidatesTokenCount" { // Gemini counts thoughts apart
				n += v.GetInt64("thoughtsTokenCount")
			}
			if n >= 0 && n <= math.MaxInt32 {
				whole := int32(n)
				t.tokens[side], counted = &whole, true
			}
			break
		}
	}
	return counted
}

// fill takes from a provider's answer what the event itself does not say. It comes behind the digest, which is of what the event says.
func (st *state) fill(in *audit.Interaction) {
	v := st.present(st.either(fResponse, fLLMResponse))
	if v == nil || in.ResponseJSON == "" {
		return
	}
	var t told
	t.read(v)
	for side, n := range [...]*int32{&in.PromptTokens, &in.ResponseTokens} {
		if t.tokens[side] != nil && *n == audit.Unknown {
			*n = *t.tokens[side]
		}
	}
	if t.model != "" && st.absent(st.either(fModel, fLLMModel)) {
		in.Model = t.model
		in.Incomplete = st.absent(st.either(fProvider, fLLMProvider))
	}
	if t.failed == "" {
		return
	}
	if in.ErrorMessage == "" {
		in.ErrorMessage = t.failed
	}
	if len(st.raw(fStatus)) == 0 {
		in.Status = "error"
	}
}
