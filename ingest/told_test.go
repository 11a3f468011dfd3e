package ingest

import (
	"encoding/hex"
	"fmt"
	"testing"
)

// Tokens and model are the event's, else those that the provider's answer tells.
func TestToldByTheAnswer(t *testing.T) {
	for _, tc := range []struct{ name, event, want string }{
		{"OpenAI", `"response":{"object":"chat.completion","model":"gpt-4o-2024","choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`, "gpt-4o-2024 9 3 true"},
		{"the event's own", `"provider":"openai","model":"m","prompt_tokens":1,"response":{"model":"gpt-4o","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}`, "m 1 3 false"},
		{"beside a provider", `"provider":"openai","response":{"model":"gpt-4o","choices":[]}`, "gpt-4o -1 -1 false"},
		{"Anthropic", `"response":{"type":"message","model":"claude","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":9,"output_tokens":3}}`, "claude 9 3 true"},
		{"Responses", `"response":{"object":"response","model":"gpt-5","output":[],"usage":{"input_tokens":9,"output_tokens":3}}`, "gpt-5 9 3 true"},
		{"Gemini", `"response":{"candidates":[],"modelVersion":"gemini","usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"thoughtsTokenCount":4}}`, "gemini 9 7 true"},
		{"Ollama", `"response":{"model":"llama3","response":"a","done":true,"prompt_eval_count":9,"eval_count":3}`, "llama3 9 3 true"},
		{"LangChain", `"response":{"lc":1,"kwargs":{"content":"a","type":"ai","response_metadata":{"model_name":"gpt-4o"},"usage_metadata":{"input_tokens":9,"output_tokens":3}}}`, "gpt-4o 9 3 true"},
		{"a stream", `"response":[{"model":"gpt-4o","choices":[{"delta":{"content":"a"}}]},{"model":"gpt-4o","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}]`, "gpt-4o 9 3 true"},
		{"a stream of Anthropic", `"response":[{"type":"message_start","message":{"model":"claude","usage":{"input_tokens":9,"output_tokens":1}}},{"type":"content_block_delta","index":0,"delta":{"text":"a"}},{"type":"message_delta","delta":{},"usage":{"output_tokens":3}}]`, "claude 9 3 true"},
		{"a stream of Responses", `"response":[{"type":"response.output_text.delta","delta":"a"},{"type":"response.completed","response":{"object":"response","model":"gpt-5","usage":{"input_tokens":9,"output_tokens":3}}}]`, "gpt-5 9 3 true"},
		{"no numbers", `"response":{"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":"3","input_tokens":null}}`, "unknown -1 -1 true"},
		{"too large", `"response":{"choices":[],"usage":{"prompt_tokens":2147483648,"completion_tokens":1.5}}`, "unknown -1 -1 true"},
		{"an answer of one's own", `"response":{"model":"T","answer":"a"}`, "unknown -1 -1 true"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := accepted(t, "{"+tc.event+"}")
			if got := fmt.Sprint(in.Model, " ", in.PromptTokens, " ", in.ResponseTokens, " ", in.Incomplete); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// What is read out of an answer is no part of the digest: these were computed before it was read.
func TestDigestOfAnswers(t *testing.T) {
	for event, want := range map[string]string{
		`{"tenant_id":"acme","response":{"model":"gpt-4o","choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":3}}}`:                                                                                                 "ef61ebf849edb1660b4b6cbaf67116492f539d4da52624d163852ad720cb2b9b",
		`{"tenant_id":"acme","response":{"error":{"message":"Quota","type":"t"}}}`:                                                                                                                                                                     "d939b26f9d1e809e05fc916197adf6ea3cdfc688cb50b8f88b5492309b45b50e",
		`{"tenant_id":"acme","response":[{"choices":[{"delta":{"content":"Hel"}}]},{"choices":[{"delta":{"content":"lo"}}]}],"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]}]}`: "e0b6b0fdd926fbcfd815a9290efb8e2c8768d8dc7c9af700bcc53c6eb64f58a5",
	} {
		if got := accepted(t, event).Digest; hex.EncodeToString(got[:]) != want {
			t.Errorf("%.80s: %x", event, got)
		}
	}
}
