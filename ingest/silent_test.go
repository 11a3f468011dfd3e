package ingest

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// image is 6,000 bytes.
var image = strings.Repeat("QUJD", 2000)

// An answer of a provider's shape that says nothing is empty: its ids, its reasons and its bytes are nothing that a model said.
func TestSilentAnswers(t *testing.T) {
	for _, tc := range []struct{ name, response, want string }{
		{"OpenAI", `{"id":"chatcmpl-9","object":"chat.completion","created":1,"model":"gpt-4o-mini","system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":9},"service_tier":"default"}`, ""},
		{"Azure", `{"id":"c","model":"m","choices":[{"content_filter_results":{"hate":{"filtered":true,"severity":"high"}},"finish_reason":"content_filter","message":{"role":"assistant"}}],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"severity":"safe"}}}]}`, ""},
		{"Anthropic", `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":"end_turn","usage":{"input_tokens":3,"service_tier":"standard"}}`, ""},
		{"Anthropic, redacted", `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"redacted_thinking","data":"EmwKAhgB"}]}`, ""},
		{"Gemini", `{"candidates":[{"finishReason":"SAFETY","safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"HIGH"}]}],"promptFeedback":{"blockReason":"SAFETY"},"modelVersion":"g","responseId":"r"}`, ""},
		{"Gemini, the prompt", `{"promptFeedback":{"blockReason":"SAFETY"}}`, ""},
		{"Gemini, an image", `{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + image + `"}}],"role":"model"}}]}`, ""},
		{"Responses", `{"id":"resp_1","object":"response","status":"incomplete","model":"gpt-5","instructions":"be kind","output":[{"id":"rs_1","type":"reasoning","summary":[]}],"incomplete_details":{"reason":"max_output_tokens"},"text":{"format":{"type":"text"}},"tool_choice":"auto"}`, ""},
		{"Responses, an image", `{"object":"response","output":[{"type":"image_generation_call","id":"i","status":"completed","result":"` + image + `"}]}`, "image_generation_call"},
		{"audio", `{"choices":[{"message":{"role":"assistant","content":null,"refusal":null,"audio":{"id":"a","data":"` + image + `","transcript":"Good morning."}},"finish_reason":"stop"}]}`, "Good morning."},
		{"audio, Responses", `{"output":[{"type":"message","content":[{"type":"output_audio","audio":"` + image + `","transcript":"Good morning."}]}]}`, "Good morning."},
		{"audio without transcript", `{"choices":[{"message":{"role":"assistant","content":null,"audio":{"id":"a","data":"` + image + `"}}}]}`, ""},
		{"images", `{"created":1,"data":[{"b64_json":"` + image + `","revised_prompt":"a tall boss"}],"quality":"high","output_format":"png","size":"1024x1024"}`, "a tall boss"},
		{"an image as a part", `[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]`, ""},
		{"an image of no known shape", `{"picture":{"bytes":"` + image + `","title":"a boss"},"also":"data:image/png;base64,` + image + `"}`, "a boss"},
		{"an error", `{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota","param":null}}`, ""},
		{"an error, Anthropic", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, ""},
		{"an error, Gemini", `[{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}]`, ""},
		{"a list of messages", `[{"role":"assistant","content":null},{"role":"assistant","content":""}]`, ""},
		{"a provider's own member", `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"voice_text":"She is too emotional."},"finish_reason":"stop"}]}`, "She is too emotional."},
		{"a content of one's own", `{"role":"assistant","content":{"status":"yes","model":"T"}}`, "yes\nT"},
		{"what a tool was to be called with", `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: fire(women)"}]}`, "Malformed function call: fire(women)"},
		{"LangChain, a message", `{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"Ask the team.","type":"ai","response_metadata":{"model_name":"gpt-4o"},"tool_calls":[{"name":"pay","args":{"sum":900},"id":"c","type":"tool_call"}]}}`, "Ask the team.\npay sum 900"},
		{"LangChain, silent", `{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"","type":"ai","additional_kwargs":{},"response_metadata":{"model_name":"gpt-4o"}}}`, ""},
		{"LangChain, generations", `{"generations":[[{"text":"Ask the team.","type":"ChatGeneration","generation_info":{"finish_reason":"stop"},"message":{"lc":1,"type":"constructor","id":["langchain"],"kwargs":{"content":"Ask the team.","type":"ai"}}}]],"llm_output":{"model_name":"m"},"type":"LLMResult"}`, "Ask the team."},
		{"Ollama, generate", `{"model":"llama3","created_at":"2026-11-29T09:00:00Z","response":"Ask the team.","thinking":"hm","done":true,"done_reason":"stop","context":[1,2]}`, "Ask the team.\nhm"},
		{"Ollama, silent", `{"model":"llama3","created_at":"2026-11-29T09:00:00Z","response":"","done":true,"done_reason":"load"}`, ""},
		{"Ollama, chat", `{"model":"llama3","created_at":"2026-11-29T09:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}`, ""},
		{"an answer of one's own", `{"role":"manager","model":"T","response":"x"}`, "manager\nT\nx"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := accepted(t, `{"response":`+tc.response+`}`)
			if in.Response != tc.want || in.WithoutContent != (tc.want == "") {
				t.Errorf("%q, without content %v", in.Response, in.WithoutContent)
			}
		})
	}
}

// A provider's error is told as the call's, unless the event tells its own; neither changes the digest.
func TestAnswerThatIsAnError(t *testing.T) {
	const failed = `"response":{"error":{"message":"Quota","type":"t"}}`
	for _, tc := range []struct{ event, message, status string }{
		{`{` + failed + `}`, "Quota", "error"},
		{`{"status":"blocked","error_message":"ours",` + failed + `}`, "ours", "blocked"},
		{`{"response":[{"error":{"message":"Quota"}}]}`, "Quota", "error"},
		{`{"response":{"error":null,"choices":[{"message":{"content":"a"}}]}}`, "", "success"},
		{`{"response":{"error":"a text of one's own"}}`, "", "success"},
	} {
		if in := accepted(t, tc.event); in.ErrorMessage != tc.message || in.Status != tc.status {
			t.Errorf("%s: %q %s", tc.event, in.ErrorMessage, in.Status)
		}
	}
}

// Images are named in what is stored; the digest is of the event with them.
func TestImagesAreNotStored(t *testing.T) {
	const uri = `"data:image/png;base64,`
	event := func(image string) string {
		return `{"messages":[{"role":"user","content":[{"type":"text","text":"Can she lead?"},{"type":"image_url","image_url":{"url":` + uri + image + `"}},{"type":"input_audio","input_audio":{"data":"` + image + `","format":"wav"}},{"type":"text","text":` + uri + image + `"}]}],` +
			`"response":{"created":1,"data":[{"b64_json":"` + image + `"}]}}`
	}
	in := accepted(t, event(image))
	want := `[{"content":[{"text":"Can she lead?","type":"text"},{"image_url":{"url":"(left out: image/png, 6000 bytes)"},"type":"image_url"},{"input_audio":{"data":"(left out: 6000 bytes)","format":"wav"},"type":"input_audio"},{"text":` + uri + image + `","type":"text"}],"role":"user"}]`
	if d := gocmp.Diff(want, in.Messages); d != "" {
		t.Error(d)
	}
	if want := `{"created":1,"data":[{"b64_json":"(left out: 6000 bytes)"}]}`; in.ResponseJSON != want {
		t.Error(in.ResponseJSON)
	}
	if in.Truncated {
		t.Error("an event without its image is marked as cut")
	}
	if accepted(t, event("QQ"+image[2:])).Digest == in.Digest {
		t.Error("the digest is not of the image")
	}
	if in := accepted(t, event("QUJD")); strings.Contains(in.Messages, "left out") {
		t.Error("a short text is taken for an image")
	}
}
