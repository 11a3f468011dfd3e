package ingest

import (
	"strings"
	"testing"
)

// The chunks of a stream say what the whole answer would.
func TestStreams(t *testing.T) {
	for _, tc := range []struct{ name, want, chunks string }{
		{"OpenAI", "Hello world", `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]},{"choices":[{"delta":{"content":"Hel"}}]},{"choices":[{"delta":{"content":"lo wor"}}]},{"choices":[{"delta":{"content":"ld"}}]},{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]},{"choices":[],"usage":{"prompt_tokens":1}}`},
		{"OpenAI, two choices", "one\n\ntwo", `{"choices":[{"index":1,"delta":{"content":"t"}}]},{"choices":[{"index":0,"delta":{"content":"on"}}]},{"choices":[{"index":0,"delta":{"content":"e"}},{"index":1,"delta":{"content":"wo"}}]}`},
		{"OpenAI, thoughts and tools", "ab\nhm so\npay sum 900", `{"choices":[{"delta":{"reasoning_content":"hm"}}]},{"choices":[{"delta":{"reasoning_content":" so"}}]},{"choices":[{"delta":{"content":"a"}}]},{"choices":[{"delta":{"content":"b","tool_calls":[{"index":0,"id":"c","function":{"name":"pay","arguments":""}}]}}]},{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"sum\""}}]}}]},{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":900}"}}]}}]}`},
		{"OpenAI, a name of its own", "a\nhm", `{"choices":[{"delta":{"content":"a","inner_voice":"h"}}]},{"choices":[{"delta":{"inner_voice":"m"}}]}`},
		{"OpenAI, spoken", "Good morning", `{"choices":[{"delta":{"audio":{"id":"a","transcript":"Good mor"}}}]},{"choices":[{"delta":{"audio":{"data":"AAAA"}}}]},{"choices":[{"delta":{"audio":{"transcript":"ning"}}}]}`},
		{"OpenAI, silent", "", `{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant"}}]},{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]},{"id":"c","object":"chat.completion.chunk","choices":[]}`},
		{"OpenAI, broken off", "Hel", `{"choices":[{"delta":{"content":"Hel"}}]},{"error":{"message":"overloaded"}}`},
		{"Anthropic", "Hello\nworld\nhm\npay sum 900", `{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}},{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}},{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}},{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}},{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}},{"type":"content_block_stop","index":0},{"type":"ping"},{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}},{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hel"}},{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"lo"}},{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"pay","input":{}}},{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"sum\":"}},{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"900}"}},{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"wor"}},{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"ld"}},{"type":"message_delta","delta":{"stop_reason":"end_turn"}},{"type":"message_stop"}`},
		{"Responses", "Hello\nso\npay sum 900", `{"type":"response.created","response":{"id":"r","object":"response","output":[]}},{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"so"},{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Hel"},{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"lo"},{"type":"response.output_text.done","output_index":1,"content_index":0,"text":"Hello"},{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","name":"pay","arguments":""}},{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"sum\":"},{"type":"response.function_call_arguments.delta","output_index":2,"delta":"900}"}`},
		{"Responses, with its end", "Hello", `{"type":"response.output_text.delta","delta":"Hel"},{"type":"response.completed","response":{"object":"response","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]}}`},
		{"Responses, broken off", "Hel", `{"type":"response.output_text.delta","delta":"Hel"},{"type":"response.failed","response":{"object":"response","status":"failed","output":[],"error":{"message":"m"}}}`},
		{"Gemini", "Hello world\nhm\npay sum 900", `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"}}]},{"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"}}]},{"candidates":[{"content":{"parts":[{"text":"lo world"},{"functionCall":{"name":"pay","args":{"sum":900}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`},
		{"Gemini, code", "a\nb\nprint(1) PYTHON", `{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},{"candidates":[{"content":{"parts":[{"text":"b"},{"executableCode":{"code":"print(1)","language":"PYTHON"}}]}}]}`},
		{"Ollama", "Hello\nhm", `{"model":"m","response":"Hel","done":false},{"model":"m","response":"lo","thinking":"hm","done":true}`},
		{"Ollama, chat", "Hello", `{"model":"m","message":{"role":"assistant","content":"Hel"},"done":false},{"model":"m","message":{"role":"assistant","content":"lo"},"done":true}`},
		{"whole answers", "a\nb", `{"choices":[{"message":{"content":"a"}}]},{"choices":[{"message":{"content":"b"}}]}`},
		{"a chunk beside something else", "Hel\nlo\nworld", `{"choices":[{"delta":{"content":"Hel"}}]},{"choices":[{"delta":{"content":"lo"}}]},{"text":"world"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if in := accepted(t, `{"response":[`+tc.chunks+`]}`); in.Response != tc.want {
				t.Errorf("%q", in.Response)
			}
		})
	}
}

// Many pieces cost no more than their number.
func TestLongStreams(t *testing.T) {
	const n = 10_000
	calls := strings.Repeat(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]},`, n/2) + `{"candidates":[]}`
	if in := accepted(t, `{"response":[`+calls+`]}`); strings.Count(in.Response, "f") != n/2 {
		t.Error(len(in.Response))
	}
	words := strings.Repeat(`{"choices":[{"delta":{"content":"ab"}}]},`, n) + `{"choices":[]}`
	if in := accepted(t, `{"response":[`+words+`]}`); in.Response != strings.Repeat("ab", n) {
		t.Error(len(in.Response))
	}
}
