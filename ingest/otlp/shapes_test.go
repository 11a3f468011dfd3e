package otlp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/otlp"
)

const (
	trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	one   = "00f067aa0ba902b7"
	two   = "00f067aa0ba902b8"
)

// attributes writes OTLP's JSON of texts, numbers, booleans and AnyValues (json.RawMessage).
func attributes(kv ...any) string {
	var all []string
	for i := 0; i+1 < len(kv); i += 2 {
		v, _ := json.Marshal(kv[i+1])
		switch kv[i+1].(type) {
		case string:
			v = fmt.Appendf(nil, `{"stringValue":%s}`, v)
		case int:
			v = fmt.Appendf(nil, `{"intValue":"%s"}`, v)
		case float64:
			v = fmt.Appendf(nil, `{"doubleValue":%s}`, v)
		case bool:
			v = fmt.Appendf(nil, `{"boolValue":%s}`, v)
		}
		all = append(all, fmt.Sprintf(`{"key":%q,"value":%s}`, kv[i], v))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// span writes one span; rest are further members.
func span(id, parent, rest string, kv ...any) string {
	return fmt.Sprintf(`{"traceId":%q,"spanId":%q,"parentSpanId":%q,"startTimeUnixNano":"1795251008000000000","endTimeUnixNano":"1795251009500000000"%s,"attributes":%s}`,
		trace, id, parent, rest, attributes(kv...))
}

func payload(resource string, spans ...string) []byte { return scoped("", resource, spans...) }

func scoped(scope, resource string, spans ...string) []byte {
	return fmt.Appendf(nil, `{"resourceSpans":[{"resource":{"attributes":%s},"scopeSpans":[{"scope":{"name":%q},"spans":[%s]}]}]}`, resource, scope, strings.Join(spans, ","))
}

func decoded(t *testing.T, spans ...string) []call.Part {
	t.Helper()
	ps, err := otlp.Traces(otlp.Names{}).Parts(call.Payload{Body: payload("[]", spans...)})
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// shown is a part in one line: kind, prompt, answers.
func shown(p call.Part) string {
	var s strings.Builder
	s.WriteString(string(p.Kind) + ":")
	if p.System != "" {
		s.WriteString(" system=" + p.System)
	}
	for _, ms := range [][]call.Message{p.Messages, p.Answers} {
		for _, m := range ms {
			s.WriteString(" " + m.Role + id(m) + "=" + string(m.Content) + string(m.Calls) + string(m.Reasoning))
		}
		s.WriteString(" |")
	}
	return s.String()
}

// id shows the call of a tool that a message answers.
func id(m call.Message) string {
	if m.ToolCallID == "" {
		return ""
	}
	return "#" + m.ToolCallID
}

func TestTexts(t *testing.T) {
	chat := func(kv ...any) []any { return append([]any{"gen_ai.operation.name", "chat"}, kv...) }
	for _, tc := range []struct {
		name, want string
		kv         []any
	}{
		{"several parts", `model: user=[{"text":"a","type":"text"},{"text":"b","type":"text"}] | assistant="c" |`,
			chat("gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"a"},{"type":"text","content":"b"}]}]`, "gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"c"}]}]`)},
		{"several choices", `model: | assistant="a" assistant="b" |`,
			chat("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"a"}]},{"role":"assistant","parts":[{"type":"text","content":"b"}]}]`)},
		{"a call of a tool and what it gave", `model: user="a" assistant=[{"function":{"arguments":{"x":1},"name":"f"},"id":"7","type":"function"}] tool#7="{\"y\":2}" | assistant="b" |`,
			chat("gen_ai.input.messages", `[{"role":"user","content":"a"},{"role":"assistant","parts":[{"type":"tool_call","id":"7","name":"f","arguments":{"x":1}}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"7","response":{"y":2}}]}]`,
				"gen_ai.output.messages", `[{"role":"assistant","content":"b"}]`)},
		{"what a tool gave in the user's message", `model: user="a" tool#7="12C" tool#8="dry" user="and?" | assistant="b" |`,
			chat("gen_ai.input.messages", `[{"role":"user","content":"a"},{"role":"user","parts":[{"type":"tool_call_response","id":"7","name":"f","result":"12C"},{"type":"tool_call_response","id":"8","response":"dry"},{"type":"text","content":"and?"}]}]`,
				"gen_ai.output.messages", `[{"role":"assistant","content":"b"}]`)},
		{"what a tool gave, Anthropic and by name", `model: tool#7="12C" tool#8="dry" | |`,
			chat("gen_ai.input.messages", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"7","content":"12C"}]},{"role":"tool","tool_call_id":"8","content":"dry"}]`)},
		{"OpenInference, what a tool gave", `model: tool#7="12C" | |`,
			[]any{"openinference.span.kind", "LLM", "llm.input_messages.0.message.role", "tool", "llm.input_messages.0.message.tool_call_id", "7", "llm.input_messages.0.message.content", "12C"}},
		{"an image that the client left out", `model: user=[{"type":"left_out"}] | assistant="b" |`,
			chat("gen_ai.input.messages", `[{"role":"user","parts":[]}]`, "gen_ai.output.messages", `[{"role":"assistant","content":"b"},{"role":"assistant","parts":[]}]`)},
		{"thoughts stay beside what is said", `model: | assistant=[{"reasoning":"hm","type":"reasoning"},{"text":"a","type":"text"}] |`,
			chat("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"a"}]}]`)},
		{"bytes of files are left out", `model: user=[{"mime_type":"image/png","type":"blob"},{"text":"a","type":"text"}] | |`,
			chat("gen_ai.input.messages", `[{"role":"user","parts":[{"type":"blob","mime_type":"image/png","content":"AAAA"},{"type":"text","content":"a"}]}]`)},
		{"AnyValues", `model: system=be kind user="a" | |`,
			chat("gen_ai.system_instructions", json.RawMessage(`{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"type","value":{"stringValue":"text"}},{"key":"content","value":{"stringValue":"be kind"}}]}}]}}`),
				"gen_ai.input.messages", json.RawMessage(`{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"user"}},{"key":"content","value":{"bytesValue":"YQ=="}}]}},{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"user"}},{"key":"parts","value":{}}]}}]}}`))},
		{"plain text", `model: user="hello [x" | assistant="{a}" |`, chat("gen_ai.input.messages", "hello [x", "gen_ai.output.messages", "{a}")},
		{"an answer that is JSON is the answer", `model: | assistant="{\"title\": \"x\",  \"content\": \"y\"}" |`,
			chat("gen_ai.output.messages", `{"title": "x",  "content": "y"}`)},
		{"a number", `model: user="5" | |`, chat("gen_ai.input.messages", 5)},
		{"agent with texts", `outer: user="a" | assistant="b" |`, []any{"gen_ai.operation.name", "invoke_agent", "gen_ai.input.messages", "a", "gen_ai.output.messages", "b"}},
		{"agent without", `context: system=x | |`, []any{"gen_ai.operation.name", "invoke_agent", "gen_ai.system_instructions", "x"}},
		{"embeddings are no call", `context: | |`, []any{"gen_ai.operation.name", "embeddings", "gen_ai.request.model", "m", "user.id", "u"}},
		{"flat", `model: system="s" user=[{"text":"a","type":"text"},{"text":"b","type":"text"}] | assistant=[{"function":{"arguments":"{}","name":"f"},"id":"7","type":"function"}] |`,
			[]any{"llm.request.type", "chat", "gen_ai.prompt.1.role", "user", "gen_ai.prompt.1.content", `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "gen_ai.prompt.0.role", "system", "gen_ai.prompt.0.content", "s",
				"gen_ai.completion.0.role", "assistant", "gen_ai.completion.0.tool_calls.0.id", "7", "gen_ai.completion.0.tool_calls.0.name", "f", "gen_ai.completion.0.tool_calls.0.arguments", "{}"}},
		{"flat, eleven", `model: user="0" user="2" user="10" | |`,
			[]any{"llm.request.type", "chat", "gen_ai.prompt.10.content", "10", "gen_ai.prompt.2.content", "2", "gen_ai.prompt.0.content", "0"}},
		{"OpenInference, parts and calls", `model: user=[{"text":"a","type":"text"},{"image":{"image":{"url":"u"}},"type":"image"}] | assistant=[{"function":{"arguments":"{}","name":"f"},"id":"7"}] |`,
			[]any{"openinference.span.kind", "LLM", "llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.contents.0.message_content.type", "text", "llm.input_messages.0.message.contents.0.message_content.text", "a",
				"llm.input_messages.0.message.contents.1.message_content.type", "image", "llm.input_messages.0.message.contents.1.message_content.image.image.url", "u",
				"llm.output_messages.0.message.tool_calls.0.tool_call.id", "7", "llm.output_messages.0.message.tool_calls.0.tool_call.function.name", "f", "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments", "{}"}},
		{"OpenInference, values", `model: user="a" | assistant="b" |`,
			[]any{"openinference.span.kind", "LLM", "input.value", `{"model":"m","messages":[{"role":"user","content":"a"}]}`, "output.value", `{"choices":[{"index":0,"message":{"role":"assistant","content":"b"}}]}`}},
		{"OpenInference, hidden", `model: | |`, []any{"openinference.span.kind", "LLM", "input.value", "__REDACTED__", "output.value", "__REDACTED__"}},
		{"LiteLLM, hidden", `model: | |`, chat("gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"redacted-by-litellm"}]}]`, "gen_ai.output.messages", `[{"role":"assistant","content":"redacted-by-litellm"}]`)},
		{"OpenInference, a chain", `context: | |`, []any{"openinference.span.kind", "CHAIN", "input.value", "a", "output.value", "b", "user.id", "u"}},
		{"Langfuse, plain", `model: user="a" | assistant="b" |`, []any{"langfuse.observation.type", "generation", "langfuse.observation.input", "a", "langfuse.observation.output", "b"}},
		{"Langfuse, tools", `model: user="a" | assistant=[{"function":{"name":"f"}}] |`,
			[]any{"langfuse.observation.type", "generation", "langfuse.observation.input", `{"tools":[{}],"messages":[{"role":"user","content":"a"}]}`, "langfuse.observation.output", `{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f"}}]}`}},
		{"Langfuse, reasoning", `model: assistant="a" | assistant="b""hm" |`,
			[]any{"langfuse.observation.type", "generation", "langfuse.observation.input", `[{"role":"assistant","content":"a","reasoning_content":"hm"}]`, "langfuse.observation.output", `{"role":"assistant","content":"b","reasoning_content":"hm"}`}},
		{"Vercel, reasoning", `model: user="a" | assistant="b""hm" |`,
			[]any{"ai.operationId", "ai.generateText.doGenerate", "ai.prompt.messages", `[{"role":"user","content":"a"}]`, "ai.response.text", "b", "ai.response.reasoning", "hm"}},
		{"Langfuse, a function", `context: | |`, []any{"langfuse.observation.type", "span", "langfuse.observation.input", "a", "langfuse.observation.output", "b", "user.id", "u"}},
		{"Vercel, tools", `model: user="a" assistant=[{"function":{"arguments":{"x":1},"name":"f"},"id":"7","type":"function"}] tool#7="{\"y\":2}" | assistant="b"[{"function":{"arguments":"{}","name":"g"},"id":"8","type":"function"}] |`,
			[]any{"ai.operationId", "ai.streamText.doStream", "ai.prompt.messages", `[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool-call","toolCallId":"7","toolName":"f","input":{"x":1}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"7","output":{"type":"json","value":{"y":2}}}]}]`,
				"ai.response.text", "b", "ai.response.toolCalls", `[{"toolCallId":"8","toolName":"g","input":"{}"}]`}},
		{"Vercel, an object", `model: user="a" | assistant="{\"x\":1}" |`, []any{"ai.operationId", "ai.generateObject.doGenerate", "ai.prompt.messages", `[{"role":"user","content":"a"}]`, "ai.response.object", `{"x":1}`}},
		{"Vercel, above", `outer: system="s" user="a" | assistant="b" |`, []any{"ai.operationId", "ai.generateText", "ai.prompt", `{"system":"s","prompt":"a"}`, "ai.response.text", "b"}},
		{"Vercel, embeddings", `context: | |`, []any{"ai.operationId", "ai.embed.doEmbed", "ai.telemetry.metadata.userId", "u"}},
		{"no call", `context: | |`, []any{"http.route", "/x", "session.id", "s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			showsAs(t, span(one, two, "", tc.kv...), tc.want)
		})
	}
}

// What an answer says beside its content is judged too: what was spoken, that it refuses, and what the model thought, under whatever name.
func TestBesideTheContent(t *testing.T) {
	for _, tc := range []struct{ name, message, want string }{
		{"spoken", `"content":null,"audio":{"id":"a","data":"QUJD","transcript":"BAD"}`, "BAD"},
		{"said and spoken", `"content":"Hi","audio":{"transcript":"BAD"}`, "Hi\nBAD"},
		{"said as it was spoken", `"content":"BAD","audio":{"transcript":"BAD"}`, "BAD"},
		{"refused", `"content":null,"refusal":"BAD"`, "BAD"},
		{"refused, an empty content", `"content":"","refusal":"BAD"`, "BAD"},
		{"said and refused", `"content":"Hi","refusal":"BAD"`, "Hi\nBAD"},
		{"refused in a part", `"content":[{"type":"text","text":"Hi"},{"type":"refusal","refusal":"BAD"}]`, "Hi\nBAD"},
		{"refused in the only part", `"content":[{"type":"refusal","refusal":"BAD"}]`, "BAD"},
		{"OpenRouter", `"content":"Hi","reasoning":"BAD"`, "Hi\nBAD"},
		{"OpenRouter, details", `"content":"Hi","reasoning":"BAD","reasoning_details":[{"type":"reasoning.text","text":"BAD","format":"x"}]`, "Hi\nBAD"},
		{"details alone", `"content":"Hi","reasoning_details":[{"type":"reasoning.summary","summary":"hm"},{"type":"reasoning.encrypted","data":"QUJD"},{"type":"reasoning.text","text":"BAD"}]`, "Hi\nhm\nBAD"},
		{"LiteLLM", `"content":"Hi","reasoning_content":"BAD","thinking_blocks":[{"type":"thinking","thinking":"BAD","signature":"s"}]`, "Hi\nBAD"},
		{"thinking blocks alone", `"content":"Hi","thinking_blocks":[{"type":"thinking","thinking":"BAD"}]`, "Hi\nBAD"},
		{"Ollama", `"content":"Hi","thinking":"BAD"`, "Hi\nBAD"},
		{"hidden", `"content":"Hi","refusal":"__REDACTED__","reasoning":"redacted-by-litellm","audio":{"transcript":"__REDACTED__"}`, "Hi"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := decoded(t, span(one, two, "", "openinference.span.kind", "LLM", "output.value", `{"choices":[{"index":0,"message":{"role":"assistant",`+tc.message+`}}]}`))[0]
			if in := interaction(t, p); in.Response != tc.want {
				t.Errorf("%q, want %q", in.Response, tc.want)
			}
		})
	}
}

// Answers of the Responses API and of text completions are read as answers, and not as the text of their JSON.
func TestProvidersAnswers(t *testing.T) {
	const (
		hi      = `{"id":"m","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi","annotations":[]}]}`
		refuses = `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}`
		thinks  = `{"id":"r","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"content":[{"type":"reasoning_text","text":"well"}]}`
		pays    = `{"id":"f","type":"function_call","call_id":"7","name":"pay","arguments":"{\"sum\":9}","status":"completed"}`
		looks   = `{"id":"c","type":"code_interpreter_call","code":"1+1","container_id":"x","outputs":[{"type":"logs","logs":"BAD"}]}`
		gave    = `{"type":"shell_call_output","output":[{"stdout":"BAD"}]}`
		paints  = `{"type":"image_generation_call","status":"completed","result":"`
	)
	responses := func(items ...string) string {
		return `{"id":"r","object":"response","output":[` + strings.Join(items, ",") + `]}`
	}
	for _, tc := range []struct{ name, answer, want, response string }{
		{"a message", responses(hi), `model: | assistant="Hi" |`, "Hi"},
		{"what a tool gave back is not said", responses(looks, gave, hi), `model: | assistant="Hi"[{"code":"1+1","container_id":"x","id":"c","outputs":[{"logs":"BAD","type":"logs"}],"type":"code_interpreter_call"}] |`, "Hi\ncode_interpreter_call 1+1"},
		{"all of it", responses(thinks, hi, refuses, pays), `model: | assistant=[{"text":"Hi","type":"text"},{"refusal":"No.","type":"refusal"}][{"function":{"arguments":"{\"sum\":9}","name":"pay"},"id":"7","type":"function"}]"hm\nwell" |`, "Hi\nNo.\nhm\nwell\npay sum 9"},
		{"the output alone", `[` + thinks + `,` + hi + `]`, `model: | assistant="Hi""hm\nwell" |`, "Hi\nhm\nwell"},
		{"a call of a tool alone", `[` + pays + `]`, `model: | assistant=[{"function":{"arguments":"{\"sum\":9}","name":"pay"},"id":"7","type":"function"}] |`, "pay sum 9"},
		{"a tool of one's own", responses(`{"type":"custom_tool_call","call_id":"8","name":"note","input":"BAD"}`), `model: | assistant=[{"call_id":"8","input":"BAD","name":"note","type":"custom_tool_call"}] |`, "note BAD"},
		{"an image", responses(paints + strings.Repeat("QUJD", 1000) + `"}`), `model: | assistant=[{"result":"(left out: 3000 bytes)","status":"completed","type":"image_generation_call"}] |`, "image_generation_call"},
		{"without the object's name", `{"output":[` + hi + `]}`, `model: | assistant="Hi" |`, "Hi"},
		{"empty", responses(), `model: | |`, ""},
		{"a text completion", `{"id":"c","object":"text_completion","choices":[{"text":"Hi","index":0,"logprobs":null,"finish_reason":"stop"}]}`, `model: | assistant="Hi" |`, "Hi"},
		{"two of them", `{"choices":[{"text":"Hi","index":0},{"text":"No.","index":1}]}`, `model: | assistant="Hi" assistant="No." |`, "Hi\nNo."},
		{"an answer that is JSON", `{"text":"Hi","index":0,"output":"BAD"}`, `model: | assistant="{\"text\":\"Hi\",\"index\":0,\"output\":\"BAD\"}" |`, `{"text":"Hi","index":0,"output":"BAD"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, kv := range [][]any{{"openinference.span.kind", "LLM", "output.value", tc.answer}, {"gen_ai.operation.name", "chat", "gen_ai.output.messages", tc.answer}} {
				s := span(one, two, "", kv...)
				showsAs(t, s, tc.want)
				if in := interaction(t, decoded(t, s)[0]); in.Response != tc.response {
					t.Errorf("%q, want %q", in.Response, tc.response)
				}
			}
		})
	}
}

// An answer that holds nothing is none, and not the text of its brackets.
func TestEmptyAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer any
	}{
		{"a list", `[]`}, {"an object", `{}`}, {"null", `null`}, {"no choices", `{"choices":[]}`}, {"no choices in their frame", `{"id":"c","object":"chat.completion","model":"m","choices":[],"usage":{"total_tokens":3},"x":null}`}, {"no candidates", `{"candidates":[]}`}, {"no generations", `{"generations":[[]]}`}, {"lists", `[[], {}]`},
		{"a list of values", json.RawMessage(`{"arrayValue":{}}`)}, {"an object of values", json.RawMessage(`{"kvlistValue":{}}`)}, {"no value", json.RawMessage(`{}`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, kv := range [][]any{
				{"openinference.span.kind", "LLM", "input.value", "q", "output.value", tc.answer},
				{"gen_ai.operation.name", "chat", "gen_ai.input.messages", askJSON, "gen_ai.output.messages", tc.answer},
				{"langfuse.observation.type", "generation", "langfuse.observation.input", "q", "langfuse.observation.output", tc.answer},
				{"mlflow.spanType", `"LLM"`, "mlflow.spanInputs", `"q"`, "mlflow.spanOutputs", tc.answer},
			} {
				showsAs(t, span(one, two, "", kv...), `model: user="q" | |`)
			}
			if p := decoded(t, span(one, two, "", "openinference.span.kind", "LLM", "output.value", tc.answer))[0]; !p.Withheld || p.Unread != nil {
				t.Errorf("%+v", p)
			}
		})
	}
	for _, own := range []string{`{"choices":[],"reply":"BAD"}`, `{"messages":[],"output":"BAD"}`, `{"generations":[[]],"BAD":"1"}`, `{"output":[],"reply":"BAD"}`, `[{},{"reply":"BAD"}]`} {
		p := decoded(t, span(one, two, "", "openinference.span.kind", "LLM", "output.value", own))[0]
		if in := interaction(t, p); in.Response != own {
			t.Errorf("%q, want %s", in.Response, own)
		}
	}
}

// showsAs holds what a payload with one part shows, and that a call of a model becomes an interaction.
func showsAs(t *testing.T, payload string, want string) {
	t.Helper()
	ps := decoded(t, payload)
	if len(ps) != 1 {
		t.Fatalf("%d parts", len(ps))
	}
	if got := shown(ps[0]); got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
	if ps[0].Kind == call.Model {
		interaction(t, ps[0])
	}
}

func TestFacts(t *testing.T) {
	p := decoded(t, span(one, "", `,"status":{"code":2,"message":"rate limit"}`,
		"gen_ai.operation.name", "chat", "gen_ai.system", "OpenAI", "gen_ai.request.model", "m", "gen_ai.response.model", "m-1", "gen_ai.usage.prompt_tokens", "12", "gen_ai.usage.output_tokens", -1,
		"gen_ai.response.finish_reasons", `["stop"]`, "gen_ai.response.id", "r", "gen_ai.conversation.id", "c", "user.id", "u", "tenant.id", "acme", "evenhand.domain", "hr", "evenhand.decision_id", "d", "gen_ai.usage.cost", 0.5))[0]
	if p.Status != "error" || p.Error != "rate limit" || p.Provider != "openai" || p.Model != "m-1" || *p.Tokens[0] != 12 || p.Tokens[1] != nil || *p.CostUSD != 0.5 || !p.Withheld || p.Done {
		t.Errorf("%+v", p)
	}
	if p.Latency != 1500*time.Millisecond || p.Time != time.Unix(1795251009, 5e8).UTC() || p.Session != "c" || p.UserID != "u" || p.Claimed != "acme" || p.Domain != "hr" || p.DecisionID != "d" {
		t.Errorf("%+v", p)
	}
	if got := fmt.Sprint(p.Metadata); got != "map[gen_ai.request.model:m gen_ai.response.finish_reasons:[stop] gen_ai.response.id:r]" {
		t.Error(got)
	}
	in := interaction(t, p)
	if in.Status != "error" || !in.WithoutContent || in.LatencyMS != 1500 {
		t.Errorf("%+v", in)
	}
	if p := decoded(t, span(one, "", "", "gen_ai.operation.name", "chat", "session.id", strings.Repeat("é", 5000), "gen_ai.request.model", "m"))[0]; interaction(t, p).Conversation != strings.Repeat("é", 1024) {
		t.Error("a long name costs the call")
	}
	thrown := `,"status":{"code":2},"events":[{"name":"exception","attributes":` + attributes("exception.type", "Timeout", "exception.message", "after 5 s") + `}]`
	if p := decoded(t, span(one, "", thrown, "gen_ai.operation.name", "chat"))[0]; p.Error != "Timeout: after 5 s" {
		t.Error(p.Error)
	}
	if p := decoded(t, span(one, "", "", "langfuse.observation.type", "generation", "langfuse.observation.level", "ERROR", "langfuse.observation.status_message", "no", "langfuse.observation.usage_details", `{"input":3,"output":4}`, "langfuse.observation.cost_details", `{"total":0.25}`))[0]; p.Status != "error" || p.Error != "no" || *p.Tokens[0] != 3 || *p.Tokens[1] != 4 || *p.CostUSD != 0.25 {
		t.Errorf("%+v", p)
	}
}

// Parts of Langfuse's usage count where its SDK has taken them off, which the total tells.
func TestLangfuseUsage(t *testing.T) {
	for _, tc := range []struct{ name, usage, want string }{
		{"apart, as JavaScript's 5", `{"input":8,"output":5,"total":18,"input_cached_tokens":3,"output_reasoning_tokens":2}`, "11 7"},
		{"contained, as JavaScript's 3", `{"input":11,"output":7,"total":18,"input_cached_tokens":3,"output_reasoning_tokens":2}`, "11 7"},
		{"apart, several", `{"input":1,"output":0,"total":18,"input_cached_tokens":3,"input_audio_tokens":7,"output_reasoning_tokens":2,"output_audio_tokens":5}`, "11 7"},
		{"apart, one side", `{"input":8,"output":7,"total":18,"input_cached_tokens":3,"output_reasoning_tokens":0}`, "11 7"},
		{"without parts", `{"input":11,"output":7,"total":18}`, "11 7"},
		{"nothing tells which", `{"input":11,"output":7,"input_cached_tokens":3}`, "11 7"},
		{"a total of something else", `{"input":11,"output":7,"total":99,"input_cached_tokens":3}`, "11 7"},
		{"OpenAI's names", `{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":3}}`, "11 7"},
		{"two names of one", `{"input":11,"input_tokens":11,"output":7,"output_tokens":7,"total":36}`, "11 7"},
		{"beyond counting", `{"input":2147483648,"output":7,"total":18,"input_cached_tokens":2147483647}`, "? 7"},
		{"parts alone", `{"total":5,"input_cached_tokens":3,"output_reasoning_tokens":2}`, "? ?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := decoded(t, span(one, "", "", "langfuse.observation.type", "generation", "langfuse.observation.usage_details", tc.usage))[0]
			got := []string{"?", "?"}
			for i, n := range p.Tokens {
				if n != nil {
					got[i] = fmt.Sprint(*n)
				}
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// OpenInference tells the provider's whole answer beside the messages that it made of it: what these lack is read there, and nothing twice.
func TestWholeAnswerBesideMessages(t *testing.T) {
	const hello = "llm.output_messages.0.message.content"
	tool := func(i int, kv ...any) (out []any) {
		for j := 0; j < len(kv); j += 2 {
			out = append(out, fmt.Sprintf("llm.output_messages.0.message.tool_calls.%d.tool_call.%s", i, kv[j]), kv[j+1])
		}
		return out
	}
	choice := func(message string) string {
		return `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",` + message + `},"finish_reason":"stop"}]}`
	}
	const f, g = `{"id":"call_a","type":"function","function":{"name":"pay","arguments":"{\"sum\": 9}"}}`, `{"id":"call_b","type":"custom","custom":{"name":"note","input":"BAD"}}`
	for _, tc := range []struct {
		name, want string
		kv         []any
	}{
		{"the same", "Hello.", []any{hello, "Hello.", "output.value", choice(`"content":"Hello."`)}},
		{"thoughts", "Hello.\nBAD", []any{hello, "Hello.", "output.value", choice(`"content":"Hello.","reasoning_content":"BAD"`)}},
		{"a refusal", "Hello.\nBAD", []any{hello, "Hello.", "output.value", choice(`"content":"Hello.","refusal":"BAD"`)}},
		{"a tool of one's own", "pay sum 9\nnote BAD", append(append(tool(0, "id", "call_a", "function.name", "pay", "function.arguments", `{"sum": 9}`), tool(1, "id", "call_b")...), "output.value", choice(`"content":null,"tool_calls":[`+f+`,`+g+`]`))},
		{"a tool of one's own alone", "note BAD", append(tool(0, "id", "call_b"), "output.value", choice(`"content":null,"tool_calls":[`+g+`]`))},
		{"the same call", "pay sum 9", append(tool(0, "id", "call_a", "function.name", "pay", "function.arguments", `{"sum": 9}`), "output.value", choice(`"content":null,"tool_calls":[`+f+`]`))},
		{"Responses", "Hello.\nBAD", []any{hello, "Hello.", "output.value", `{"object":"response","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"BAD"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello."}]}]}`}},
		{"Anthropic", "Hello.\nBAD", []any{hello, "Hello.", "output.value", `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"BAD"},{"type":"text","text":"Hello."}]}`}},
		{"less than the messages", "Hello.\nhm", []any{hello, "Hello.\nhm", "output.value", choice(`"content":"Hello."`)}},
		{"each what the other has not", "Hello.\nBAD", []any{hello, "Hello.", "output.value", choice(`"content":"BAD"`)}},
		{"another text", "Hello.", []any{hello, "Hello.", "output.value", "said hello"}},
		{"JSON of no provider", "Hello.", []any{hello, "Hello.", "output.value", `{"role":"admin","content":"x"}`}},
		{"too much", "Hello.", []any{hello, "Hello.", "output.value", `{"choices":[` + strings.Repeat(`{"logprobs":[0.5,0.25]},`, 50_000) + `{}]}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := decoded(t, span(one, two, "", append([]any{"openinference.span.kind", "LLM", "llm.output_messages.0.message.role", "assistant"}, tc.kv...)...))[0]
			if in := interaction(t, p); in.Response != tc.want || len(p.Answers) > 1 != strings.HasPrefix(tc.name, "each") {
				t.Errorf("%q in %d answers, want %q", in.Response, len(p.Answers), tc.want)
			}
		})
	}
}

// Whom the application names to the provider is the user, unless the span names one.
func TestUserOfTheRequest(t *testing.T) {
	for _, tc := range []struct {
		want string
		kv   []any
	}{
		{"u-1", []any{"llm.invocation_parameters", `{"model":"m","user":"u-1"}`}},
		{"u-2", []any{"llm.invocation_parameters", `{"safety_identifier":"u-2"}`}},
		{"u-3", []any{"llm.invocation_parameters", `{"user":"u-1"}`, "user.id", "u-3"}},
		{"", []any{"llm.invocation_parameters", `{"user":{"id":1}}`}},
	} {
		if p := decoded(t, span(one, "", "", append([]any{"openinference.span.kind", "LLM"}, tc.kv...)...))[0]; p.UserID != tc.want {
			t.Errorf("%q, want %q", p.UserID, tc.want)
		}
	}
}

// LangChain.js tells provider and model in its metadata; attributes of their own stand above it.
func TestLangChainMetadata(t *testing.T) {
	const told = `{"ls_provider":"OpenAI","ls_model_name":"gpt-4o-mini","ls_model_type":"chat"}`
	for _, tc := range []struct {
		name, want string
		kv         []any
	}{
		{"metadata alone", "openai gpt-4o-mini", []any{"metadata", told}},
		{"its own attributes", "azure gpt-x", []any{"metadata", told, "llm.provider", "azure", "llm.model_name", "gpt-x"}},
		{"LangChain.js 4", "openai gpt-4o-mini-2024", []any{"metadata", told, "llm.model_name", "gpt-4o-mini-2024"}},
		{"a call that failed", " gpt-x", []any{"llm.invocation_parameters", `{"model":"gpt-x","temperature":0}`}},
		{"LangChain's, that failed", "openai gpt-y", []any{"metadata", `{"ls_provider":"openai"}`, "llm.invocation_parameters", `{"model_name":"gpt-y"}`}},
		{"answered by another", " gpt-x-1", []any{"llm.model_name", "gpt-x-1", "llm.invocation_parameters", `{"model":"gpt-x"}`}},
		{"parameters of no shape", " ", []any{"llm.invocation_parameters", `{"model":["a"]}`}},
		{"neither", " ", []any{"metadata", `{"tenant":"acme"}`}},
		{"no names", " ", []any{"metadata", `{"ls_provider":{"a":1},"ls_model_name":[1]}`}},
	} {
		p := decoded(t, span(one, "", "", append([]any{"openinference.span.kind", "LLM"}, tc.kv...)...))[0]
		if got := p.Provider + " " + p.Model; got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Done is said of roots alone, and only where no record can tell more.
func TestDone(t *testing.T) {
	langfuse := []any{"langfuse.observation.type", "generation", "langfuse.observation.input", "a", "langfuse.observation.output", "b"}
	for _, tc := range []struct {
		name, parent string
		kv           []any
		want         bool
	}{
		{"a root", "", langfuse, true},
		{"beneath another", two, langfuse, false},
		{"without an answer", "", langfuse[:4], false},
		{"a record may come", "", []any{"gen_ai.operation.name", "chat", "gen_ai.input.messages", "a", "gen_ai.output.messages", "b"}, false},
	} {
		if p := decoded(t, span(one, tc.parent, "", tc.kv...))[0]; p.Done != tc.want || p.Kind != call.Model {
			t.Errorf("%s: %+v", tc.name, p)
		}
	}
}

// LiteLLM's call is its own span; on a span around it the same is told for want of that.
func TestLiteLLM(t *testing.T) {
	kv := []any{"gen_ai.operation.name", "acompletion", "litellm.call_id", "1", "gen_ai.input.messages", "a", "gen_ai.output.messages", "b"}
	for _, tc := range []struct{ scope, name, want string }{
		{"litellm", "litellm_request", "model true"},
		{"litellm", "Received Proxy Server Request", "outer false"},
		{"app", "handle_request", "outer false"},
	} {
		s := span(one, "", fmt.Sprintf(`,"name":%q`, tc.name), kv...)
		ps, err := otlp.Traces(otlp.Names{}).Parts(call.Payload{Body: scoped(tc.scope, "[]", s)})
		if err != nil || len(ps) != 1 || fmt.Sprint(ps[0].Kind, " ", ps[0].Done) != tc.want {
			t.Errorf("%s %s: %+v %v", tc.scope, tc.name, ps, err)
		}
	}
}

// What is no call is passed on where it ties a call to what stands above, and nowhere else.
func TestContext(t *testing.T) {
	for _, tc := range []struct {
		name, parent string
		kv           []any
		want         int
	}{
		{"a link", two, []any{"http.route", "/"}, 1},
		{"a root that says nothing", "", []any{"http.route", "/"}, 0},
		{"a root that says whose", "", []any{"tenant.id", "acme"}, 1},
		{"a database", two, []any{"db.system.name", "postgresql"}, 0},
	} {
		if ps := decoded(t, span(one, tc.parent, "", tc.kv...)); len(ps) != tc.want {
			t.Errorf("%s: %d", tc.name, len(ps))
		}
	}
}

func TestOwner(t *testing.T) {
	names := otlp.Names{Tenant: []string{"customer", "baggage#org"}}
	resource := attributes("service.name", "desk", "tenant.id", "of-the-resource")
	for _, tc := range []struct {
		want string
		kv   []any
	}{
		{"of-the-resource hr", []any{"app.domain", "hr"}},
		{"mine ", []any{"tenant.id", "acme", "customer", "mine"}},
		{"org ", []any{"baggage", `{"org":"org"}`}},
		{"org finance", []any{"metadata", `{'tenant': 'org', "domain": u'x'}`, "baggage", "{'org': 'org', 'n': [1, (True, None)]}", "langfuse.trace.metadata.domain", `"finance"`}},
		{"7 ", []any{"metadata", json.RawMessage(`{"kvlistValue":{"values":[{"key":"tenant","value":{"intValue":"7"}}]}}`)}},
		{"it's finance", []any{"metadata.requester_metadata", `{'tenant': "it's", 'domain': 'fin\x61nce'}`}},
	} {
		ps, err := otlp.Traces(names).Parts(call.Payload{Body: payload(resource, span(one, two, "", append([]any{"gen_ai.operation.name", "chat"}, tc.kv...)...)), Tenant: "credential"})
		if err != nil || len(ps) != 1 {
			t.Fatal(err)
		}
		if p := ps[0]; p.Claimed+" "+p.Domain != tc.want || p.Tenant != "credential" || p.Service != "desk" {
			t.Errorf("%q %q %q, want %q", p.Claimed, p.Domain, p.Service, tc.want)
		}
	}
	err := otlp.Names{Tenant: []string{"#x"}, User: []string{"a", "b#"}}.Validate()
	if err == nil || err.Error() != "otlp.tenant_attributes: \"#x\" wants the name of an attribute, or name#key\notlp.user_attributes: \"b#\" wants the name of an attribute, or name#key" {
		t.Error(err)
	}
}

// An id that is no bytes at all costs its own span, not the payload; one above a span costs the link to it.
func TestOddIDs(t *testing.T) {
	good := span(one, two, "", "gen_ai.operation.name", "chat", "gen_ai.input.messages", `{"spanId":"1"}`)
	for _, tc := range []struct {
		was, is string
		refused int64
	}{
		{one, "1", 1}, {one, "12345", 1}, {one, "a b", 1}, {one, "", 1}, {one, "zz", 1}, {trace, trace + "0", 1}, {two, "1", 0}, {two, "!", 0},
	} {
		odd := strings.Replace(good, `"`+tc.was+`"`, `"`+tc.is+`"`, 1)
		ps, err := otlp.Traces(otlp.Names{}).Parts(call.Payload{Body: payload("[]", odd, good)})
		var some *call.Partial
		if tc.refused > 0 && (!errors.As(err, &some) || some.Refused != tc.refused) || tc.refused == 0 && err != nil || len(ps) != 2-int(tc.refused) {
			t.Errorf("%s: %v, %d parts", tc.is, err, len(ps))
			continue
		}
		if got := shown(ps[len(ps)-1]); got != `model: user="{\"spanId\":\"1\"}" | |` {
			t.Error(got)
		}
	}
	broken := strings.Replace(string(payload("[]", good)), `"`+one+`"`, `"1"`, 1)
	if _, err := otlp.Traces(otlp.Names{}).Parts(call.Payload{Body: []byte(broken[:len(broken)-1])}); audit.KindOf(err) != audit.KindInvalid || errors.As(err, new(*call.Partial)) {
		t.Error(err)
	}
	record := func(id string) string {
		return strings.Replace(record("gen_ai.user.message", `{"stringValue":"{\"content\":\"q\"}"}`), one, id, 1)
	}
	ps, err := otlp.Logs(otlp.Names{}).Parts(call.Payload{Body: []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + record("1") + `,` + record(one) + `]}]}]}`)})
	var some *call.Partial
	if !errors.As(err, &some) || some.Refused != 1 || len(ps) != 1 {
		t.Errorf("%v, %d parts", err, len(ps))
	}
}

// What is at fault by itself is counted; the rest is given.
func TestRefused(t *testing.T) {
	good := span(one, two, "", "gen_ai.operation.name", "chat")
	noID := strings.Replace(good, one, "xyz", 1)
	zero := strings.Replace(good, trace, strings.Repeat("0", 32), 1)
	large := span(two, one, "", "gen_ai.operation.name", "chat", "gen_ai.input.messages", strings.Repeat("x", 900<<10))
	ps, err := otlp.Traces(otlp.Names{}).Parts(call.Payload{Body: payload("[]", noID, good, zero, large)})
	var some *call.Partial
	if !errors.As(err, &some) || some.Refused != 3 || audit.KindOf(err) != audit.KindInvalid || len(ps) != 1 || strings.Contains(err.Error(), "xxx") {
		t.Errorf("%v, %d parts", err, len(ps))
	}
	for name, body := range map[string]string{
		"not JSON":  `{"resourceSpans":`,
		"not OTLP":  `{"resourceSpans":"x"}`,
		"deep JSON": `{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"a","value":` + strings.Repeat(`{"arrayValue":{"values":[`, 5000),
		"protobuf":  "\x0a\x05abc",
		"deep":      deep(5000),
	} {
		for _, f := range []call.Format{otlp.Traces(otlp.Names{}), otlp.Logs(otlp.Names{})} {
			if f.Name() == "otlplogs" && strings.Contains(body, "resourceSpans") {
				continue // unknown fields are passed over
			}
			if ps, err := f.Parts(call.Payload{Body: []byte(body)}); audit.KindOf(err) != audit.KindInvalid || len(ps) > 0 {
				t.Errorf("%s %s: %v", f.Name(), name, err)
			}
		}
	}
}

// deep is protobuf of an attribute whose value holds a value, and so on.
func deep(levels int) string {
	v := ""
	wrap := func(tag byte, b string) string {
		n := len(b)
		head := []byte{tag}
		for ; n >= 0x80; n >>= 7 {
			head = append(head, byte(n)|0x80)
		}
		return string(append(head, byte(n))) + b
	}
	for range levels {
		v = wrap(0x2a, wrap(0x0a, v)) // array_value, values
	}
	resource := wrap(0x0a, wrap(0x0a, wrap(0x12, v))) // resource, attributes, value
	return wrap(0x0a, resource)
}

func record(name, body string, kv ...any) string {
	return fmt.Sprintf(`{"traceId":%q,"spanId":%q,"timeUnixNano":"1795251008000000000","eventName":%q,"body":%s,"attributes":%s}`, trace, one, name, body, attributes(kv...))
}

func TestRecords(t *testing.T) {
	text := func(kv ...string) string {
		var all []string
		for i := 0; i+1 < len(kv); i += 2 {
			all = append(all, fmt.Sprintf(`{"key":%q,"value":%s}`, kv[i], kv[i+1]))
		}
		return `{"kvlistValue":{"values":[` + strings.Join(all, ",") + `]}}`
	}
	s := func(s string) string { return fmt.Sprintf(`{"stringValue":%q}`, s) }
	choice := func(n int, said string) string {
		return text("index", fmt.Sprintf(`{"intValue":"%d"}`, n), "finish_reason", s("stop"), "message", text("content", s(said)))
	}
	for _, tc := range []struct {
		name, want string
		records    []string
	}{
		{"choices in their order", `content: user="q" | assistant="a" assistant="b" |`,
			[]string{record("gen_ai.choice", choice(1, "b")), record("gen_ai.user.message", text("content", s("q"))), record("gen_ai.choice", choice(0, "a"))}},
		{"bodies as JSON text", `content: user="q" | |`, []string{record("gen_ai.user.message", s(`{"content":"q"}`))}},
		{"tools", `content: assistant=[{"id":"7"}] tool#7="r" | |`,
			[]string{record("gen_ai.assistant.message", text("tool_calls", `{"arrayValue":{"values":[`+text("id", s("7"))+`]}}`)), record("gen_ai.tool.message", text("content", s("r"), "id", s("7")))}},
		{"capture is off", ``, []string{record("gen_ai.user.message", text()), record("gen_ai.choice", text("message", text("role", s("assistant"))))}},
		{"nothing of ours", ``, []string{record("exception", s("x")), record("gen_ai.evaluation.result", s("x"))}},
		{"a call in the body", `model: user="q" | assistant="a" |`, []string{record("gen_ai.client.inference.operation.details", text("gen_ai.input.messages", s(`[{"role":"user","content":"q"}]`), "gen_ai.output.messages", s(`[{"role":"assistant","content":"a"}]`)), "gen_ai.operation.name", "chat")}},
		{"a call that failed", `model: | |`, []string{record("gen_ai.client.inference.operation.details", `{}`, "gen_ai.operation.name", "chat", "error.type", "Timeout")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + strings.Join(tc.records, ",") + `]}]}]}`
			ps, err := otlp.Logs(otlp.Names{}).Parts(call.Payload{Body: []byte(body)})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, p := range ps {
				got += shown(p)
			}
			if got != tc.want {
				t.Errorf("\n%s\n%s", got, tc.want)
			}
		})
	}
}

// Spans of 2024 have the texts as events.
func TestSpanEvents(t *testing.T) {
	event := func(name string, kv ...any) string {
		return fmt.Sprintf(`{"name":%q,"attributes":%s}`, name, attributes(kv...))
	}
	for want, events := range map[string][]string{
		`model: user="q" | assistant="a" |`:   {event("gen_ai.content.prompt", "gen_ai.prompt", `[{"role":"user","content":"q"}]`), event("gen_ai.content.completion", "gen_ai.completion", `[{"role":"assistant","content":"a"}]`)},
		`model: system="s" | assistant="a" |`: {event("gen_ai.system.message", "gen_ai.event.content", `{"content":"s"}`), event("gen_ai.choice", "gen_ai.event.content", `{"message":{"content":"a"}}`)},
	} {
		if got := shown(decoded(t, span(one, two, `,"events":[`+strings.Join(events, ",")+`]`, "gen_ai.operation.name", "chat"))[0]); got != want {
			t.Errorf("\n%s\n%s", got, want)
		}
	}
}

// A payload of empty messages is refused before they are made.
func TestMemory(t *testing.T) {
	for _, body := range []string{"\x0a\x80\x80\x80\x04" + strings.Repeat("\x12\x00", 4<<20), `{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Repeat(`{},`, 5<<20) + `{}]}]}]}`} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := otlp.Traces(otlp.Names{}).Parts(call.Payload{Body: []byte(body)}); audit.KindOf(err) != audit.KindInvalid {
			t.Error(err)
		}
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc-before.TotalAlloc)>>20 - uint64(len(body)>>20); took > 16 {
			t.Errorf("%d MiB for %d", took, len(body)>>20)
		}
	}
}
