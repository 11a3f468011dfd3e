package ingest

import (
	"slices"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/ingest/call"
)

// known tells an answer whose shape is a provider's, though it says nothing: it was filtered, broke off, is an image, or is an error.
// A list is known when all of it is.
func known(v *fastjson.Value) bool {
	switch v.Type() {
	case fastjson.TypeArray:
		return len(v.GetArray()) > 0 && !slices.ContainsFunc(v.GetArray(), func(e *fastjson.Value) bool { return !known(e) })
	case fastjson.TypeObject:
		kind := string(v.GetStringBytes("type"))
		switch {
		case len(v.GetArray("choices"))+len(v.GetArray("candidates"))+len(v.GetArray("generations")) > 0, v.Exists("promptFeedback"), string(v.GetStringBytes("object")) == "response":
			return true
		case v.Exists("role") || kind == "message" || kind == "ai":
			return v.Exists("content") || v.Exists("parts") || v.Exists("audio")
		case kind == "image_url", kind == "image", v.Exists("inlineData"), v.Exists("lc") && v.Get("kwargs") != nil, generated(v):
			return true
		case v.GetObject("message") != nil:
			return known(v.Get("message"))
		}
		return v.Exists("b64_json") || v.Exists("data", "0", "b64_json") || failure(v) != ""
	}
	return false
}

// failure gives the message of a provider's error that stands where its answer would, or beside one that it cut short.
func failure(v *fastjson.Value) string {
	if v.Type() == fastjson.TypeArray { // Gemini's streams
		for _, e := range v.GetArray() {
			if s := failure(e); s != "" {
				return s
			}
		}
	}
	return string(v.GetStringBytes("error", "message"))
}

// generated tells an answer of Ollama's /api/generate, whose text is its member response.
func generated(v *fastjson.Value) bool { return v.Exists("done") && v.Exists("response") }

// dumped gives what LangChain's dump of a message or a generation holds, else the value as it is.
func dumped(v *fastjson.Value) *fastjson.Value {
	if v.Exists("lc") {
		if inner := v.Get("kwargs"); inner != nil && inner.Type() == fastjson.TypeObject {
			return inner
		}
	}
	return v
}

// facts are members of providers' answers that say nothing to who reads them: they name, count or class the answer, or hold packed bytes.
var facts = [...]string{
	"type", "id", "object", "model", "modelVersion", "modelName", "role", "name", "index", "status", "error", "created", "created_at", "createTime", "responseId", "call_id",
	"usage", "usageMetadata", "system_fingerprint", "service_tier", "provider", "container", "finish_reason", "finishReason", "native_finish_reason", "stop_reason", "stop_sequence", "done_reason",
	"request_id", "user_id", "promptFeedback", "safetyRatings", "prompt_filter_results", "content_filter_results", "incomplete_details", "logprobs", "logprobsResult",
	"citationMetadata", "groundingMetadata", "urlContextMetadata", "annotations", "citations", "search_results", "context", "x_groq", "time_info", "metadata",
	"lc", "response_metadata", "usage_metadata", "llm_output", "generation_info", "output_version",
	"format", "mime_type", "mimeType", "media_type", "modality", "signature", "thought_signature", "thoughtSignature", "encrypted_content", "url", "uri", "image_url", "inlineData", "fileData", "b64_json", "file_data", "file_id",
	"quality", "size", "background", "output_format", "audio", "source",
}

// rest appends every string of a known answer that is none of its facts: a provider's own name for what its model says. Of a response
// of the Responses API it is read in the output alone, because beside that the request stands again.
func rest(dst []byte, v *fastjson.Value, from int) []byte {
	switch v.Type() {
	case fastjson.TypeString:
		return leaves(dst, v, from)
	case fastjson.TypeArray:
		for _, e := range v.GetArray() {
			dst = rest(dst, e, from)
		}
	case fastjson.TypeObject:
		if string(v.GetStringBytes("object")) == "response" {
			if v = v.Get("output"); v == nil {
				return dst
			}
			return rest(dst, v, from)
		}
		o, _ := dumped(v).Object()
		o.Visit(func(name []byte, e *fastjson.Value) {
			held := string(name) == "data" && e.Type() == fastjson.TypeString                                            // of any length
			if string(name) == "content" && e.Type() == fastjson.TypeObject && !e.Exists("parts") && !e.Exists("role") { // of no known shape
				dst = leaves(dst, e, from)
				return
			}
			if !held && !slices.Contains(facts[:], string(name)) && !packed(name, e) {
				dst = rest(dst, e, from)
			}
		})
	}
	return dst
}

// packed tells a member that holds an image, a sound or a file and no text.
func packed(name []byte, v *fastjson.Value) bool {
	return v.Type() == fastjson.TypeString && call.Packed(string(name), v.GetStringBytes())
}
