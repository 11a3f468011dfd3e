package otlp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/otlp"
)

const (
	askJSON    = `[{"role":"user","content":"q"}]`
	answerJSON = `[{"role":"assistant","content":"a"}]`
	said       = `model: user="q" | assistant="a" |`
)

func events(es ...string) string { return `,"events":[` + strings.Join(es, ",") + `]` }

func event(name string, kv ...any) string {
	return fmt.Sprintf(`{"name":%q,"attributes":%s}`, name, attributes(kv...))
}

// Texts are read where the conventions had them before, and where clients have them of their own.
func TestTextsElsewhere(t *testing.T) {
	chat := func(kv ...any) []any {
		return append([]any{"gen_ai.operation.name", "chat", "gen_ai.request.model", "m"}, kv...)
	}
	unnamed := func(kv ...any) []any {
		return append([]any{"gen_ai.system", "openai", "gen_ai.request.model", "m"}, kv...)
	}
	langchain := func(kind, text string) string {
		return `{"lc":1,"type":"constructor","id":["langchain"],"kwargs":{"content":"` + text + `","type":"` + kind + `"}}`
	}
	for _, tc := range []struct {
		name, want, rest string
		kv               []any
	}{
		{"deprecated attributes", said, "", chat("gen_ai.prompt", askJSON, "gen_ai.completion", answerJSON)},
		{"deprecated attributes, plain", said, "", chat("gen_ai.prompt", "q", "gen_ai.completion", "a")},
		{"deprecated attributes beside instructions", `model: system=s user="q" | assistant="a" |`, "", chat("gen_ai.system_instructions", "s", "gen_ai.prompt", "q", "gen_ai.completion", "a")},
		{"without an operation", said, "", unnamed("gen_ai.prompt", "q", "gen_ai.completion", "a")},
		{"without an operation and texts", `context: | |`, "", unnamed()},
		{"attributes of events", said, events(event("gen_ai.user.message", "content", "q"), event("gen_ai.choice", "content", "a", "finish_reason", "stop", "index", 0)), chat()},
		{"attributes of events, a message", said, events(event("gen_ai.user.message", "content", "q"), event("gen_ai.choice", "message", `{"role":"assistant","content":"a"}`)), chat()},
		{"attributes of events, without an operation", said, events(event("gen_ai.user.message", "content", "q"), event("gen_ai.choice", "content", "a")), unnamed()},
		{"attributes of events, JSON that was asked", `model: user="{\"x\": 1}" | assistant="[1, 2]" |`, events(event("gen_ai.user.message", "content", `{"x": 1}`), event("gen_ai.choice", "content", `[1, 2]`)), chat()},
		{"Strands", `model: user="q" | assistant="a"[{"function":{"arguments":{"sum":9},"name":"pay"},"id":"7","type":"function"}] |`,
			events(event("gen_ai.user.message", "content", `[{"text":"q"}]`), event("gen_ai.choice", "message", `[{"text":"a"},{"toolUse":{"toolUseId":"7","name":"pay","input":{"sum":9}}}]`, "finish_reason", "tool_use")), chat()},
		{"Strands, a tool", `model: tool#7="12" | assistant="a" |`, events(event("gen_ai.tool.message", "content", `[{"toolResult":{"toolUseId":"7","content":[{"text":"12"}]}}]`), event("gen_ai.choice", "message", `[{"text":"a"}]`)), chat()},
		{"Pydantic AI", said, "", chat("events", `[{"event.name":"gen_ai.user.message","role":"user","content":"q","gen_ai.message.index":0},{"event.name":"gen_ai.choice","index":0,"message":{"role":"assistant","content":"a"}}]`)},
		{"OpenLLMetry before 0.20", said, "", []any{"llm.request.type", "chat", "llm.vendor", "OpenAI", "llm.prompts.0.role", "user", "llm.prompts.0.content", "q", "llm.completions.0.content", "a"}},
		{"OpenLLMetry before 0.20, no type", said, "", []any{"llm.prompts.0.content", "q", "llm.completions.0.content", "a"}},
		{"LangSmith", said, "", []any{"langsmith.span.kind", "llm", "gen_ai.request.model", "m", "gen_ai.prompt", `{"messages":[[` + langchain("human", "q") + `]]}`, "gen_ai.completion", `{"generations":[[{"text":"a","type":"ChatGeneration","message":` + langchain("ai", "a") + `}]]}`}},
		{"LangSmith, a text", said, "", []any{"langsmith.span.kind", "llm", "gen_ai.prompt", `{"prompt":"q"}`, "gen_ai.completion", `{"generations":[[{"text":"a","type":"Generation"}]]}`}},
		{"LangSmith, a chain", `context: | |`, "", []any{"langsmith.span.kind", "chain", "gen_ai.prompt", "q", "gen_ai.completion", "a"}},
		{"ADK", `model: system="s" user="q" | model="a"[{"function":{"arguments":{"sum":9},"name":"pay"},"id":null,"type":"function"}] |`, "",
			[]any{"gen_ai.system", "gcp.vertex.agent", "gen_ai.request.model", "gemini", "gcp.vertex.agent.llm_request", `{"model":"gemini","config":{"system_instruction":"s"},"contents":[{"role":"user","parts":[{"text":"q"}]}]}`,
				"gcp.vertex.agent.llm_response", `{"content":{"role":"model","parts":[{"text":"a"},{"function_call":{"name":"pay","args":{"sum":9}}}]},"usage_metadata":{"total_token_count":3}}`}},
		{"ADK, capture is off", `context: | |`, "", []any{"gen_ai.system", "gcp.vertex.agent", "gen_ai.request.model", "gemini", "gcp.vertex.agent.llm_request", "{}", "gcp.vertex.agent.llm_response", "{}"}},
		{"MLflow", said, "", []any{"mlflow.spanType", `"CHAT_MODEL"`, "mlflow.spanInputs", `{"model":"gpt-4o","messages":` + askJSON + `}`, "mlflow.spanOutputs", `{"choices":[{"message":{"role":"assistant","content":"a"}}]}`}},
		{"MLflow, LangChain", said, "", []any{"mlflow.spanType", `"CHAT_MODEL"`, "mlflow.spanInputs", `[[{"content":"q","type":"human"}]]`, "mlflow.spanOutputs", `{"generations":[[{"text":"a","message":{"content":"a","type":"ai"}}]]}`}},
		{"MLflow, texts", said, "", []any{"mlflow.spanType", `"LLM"`, "mlflow.spanInputs", `"q"`, "mlflow.spanOutputs", `"a"`}},
		{"MLflow, a tool", `context: | |`, "", []any{"mlflow.spanType", `"TOOL"`, "mlflow.spanInputs", `"q"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			showsAs(t, span(one, two, tc.rest, tc.kv...), tc.want)
		})
	}
}

func TestFactsElsewhere(t *testing.T) {
	for _, tc := range []struct {
		want string
		kv   []any
	}{
		{"openai gpt-4 11 7", []any{"llm.request.type", "chat", "llm.vendor", "OpenAI", "llm.request.model", "gpt-4", "llm.usage.prompt_tokens", 11, "llm.usage.completion_tokens", 7}},
		{"openai gpt-4o 11 7", []any{"mlflow.spanType", `"CHAT_MODEL"`, "mlflow.llm.provider", `"openai"`, "mlflow.spanInputs", `{"model":"gpt-4o"}`, "mlflow.chat.tokenUsage", `{"input_tokens":11,"output_tokens":7,"total_tokens":18}`}},
	} {
		p := decoded(t, span(one, two, "", tc.kv...))[0]
		if got := fmt.Sprint(p.Provider, " ", p.Model, " ", *p.Tokens[0], " ", *p.Tokens[1]); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
}

// Texts that are there and not read are told from texts that are kept back, by the names of their attributes.
func TestUnread(t *testing.T) {
	chat := []any{"gen_ai.operation.name", "chat", "gen_ai.request.model", "m"}
	for _, tc := range []struct {
		want, rest string
		kv         []any
	}{
		{"[]", "", nil},
		{"[]", "", []any{"gen_ai.input.messages", "__REDACTED__", "gen_ai.usage.output", 7, "request_data", "{}", "exception.message", "secret"}},
		{"[request_data response_data]", "", []any{"request_data", `{"secret":"q"}`, "response_data", `{"secret":"a"}`}},
		{"[app.turn: body.text]", events(event("app.turn", "body.text", "secret")), nil},
		{"[a.input a.output a.prompt a.text b.input]", "", []any{"a.input", "secret", "a.output", "s", "a.prompt", "s", "a.text", "s", "b.input", "s", "b.output", "s"}},
	} {
		p := decoded(t, span(one, two, tc.rest, append(chat[:len(chat):len(chat)], tc.kv...)...))[0]
		if got := fmt.Sprint(p.Unread); got != tc.want || !p.Withheld {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
	if p := decoded(t, span(one, two, "", append(chat, "gen_ai.prompt", "q", "request_data", "x")...))[0]; p.Unread != nil {
		t.Error(p.Unread)
	}
}

// A span that names a model and is not read as its call is counted, also where it is a root.
func TestPassed(t *testing.T) {
	for _, tc := range []struct {
		kv   []any
		want bool
	}{
		{[]any{"gen_ai.request.model", "m"}, true},
		{[]any{"gen_ai.request.model", "m", "gen_ai.operation.name", "summarize"}, true},
		{[]any{"gen_ai.request.model", "m", "gen_ai.operation.name", "embeddings", "user.id", "u"}, false},
		{[]any{"gen_ai.request.model", "m", "gen_ai.operation.name", "invoke_agent", "user.id", "u"}, false},
		{[]any{"user.id", "u"}, false},
	} {
		ps := decoded(t, span(one, "", "", tc.kv...))
		if len(ps) != 1 || ps[0].Passed != tc.want || ps[0].Kind != call.Context {
			t.Errorf("%v: %+v", tc.kv, ps)
		}
	}
}

// Images are named and do not count: what is left must fit.
func TestImages(t *testing.T) {
	bytes := strings.Repeat("QUJD", 300_000) // 900,000
	uri := "data:image/png;base64," + bytes
	chat := []any{"gen_ai.operation.name", "chat"}
	for _, tc := range []struct {
		name, want string
		kv         []any
	}{
		{"a blob", `model: user=[{"text":"see","type":"text"},{"bytes":900000,"mime_type":"image/png","type":"blob"}] | |`,
			append(chat[:2:2], "gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"see"},{"type":"blob","mime_type":"image/png","content":"`+bytes+`"}]}]`)},
		{"a part of OpenAI", `model: user=[{"text":"see","type":"text"},{"image_url":{"url":"(left out: image/png, 900000 bytes)"},"type":"image_url"}] | |`,
			append(chat[:2:2], "gen_ai.prompt", `[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"`+uri+`"}}]}]`)},
		{"a part of Anthropic", `model: user=[{"source":{"data":"(left out: 900000 bytes)","media_type":"image/png","type":"base64"},"type":"image"},{"text":"see","type":"text"}] | |`,
			append(chat[:2:2], "gen_ai.prompt", `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+bytes+`"}},{"type":"text","text":"see"}]}]`)},
		{"OpenLLMetry", `model: user=[{"image_url":{"url":"(left out: image/png, 900000 bytes)"},"type":"image_url"},{"text":"see","type":"text"}] | |`,
			[]any{"llm.request.type", "chat", "gen_ai.prompt.0.role", "user", "gen_ai.prompt.0.content", `[{"type":"image_url","image_url":{"url":"` + uri + `"}},{"type":"text","text":"see"}]`}},
		{"OpenInference", `model: user=[{"text":"see","type":"text"},{"image":{"image":{"url":"(left out: image/png, 900000 bytes)"}},"type":"image"}] | |`,
			[]any{"openinference.span.kind", "LLM", "llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.contents.0.message_content.type", "text", "llm.input_messages.0.message.contents.0.message_content.text", "see",
				"llm.input_messages.0.message.contents.1.message_content.type", "image", "llm.input_messages.0.message.contents.1.message_content.image.image.url", uri}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := decoded(t, span(one, two, "", tc.kv...))[0]
			if got := shown(p); got != tc.want {
				t.Errorf("\n%.400s\n%s", got, tc.want)
			}
			if in := interaction(t, p); in.Prompt != "see" {
				t.Errorf("%.80q", in.Prompt)
			}
		})
	}
	many := `[{"role":"user","content":[` + strings.Repeat(`"",`, 400_000) + `""]}]`
	for _, text := range []string{`[{"role":"user","content":"` + bytes + `"}]`, `{"text":"` + bytes + `"}`, many, uri} {
		_, err := otlp.Traces(otlp.Names{}).Parts(call.Payload{Body: payload("[]", span(one, two, "", append(chat[:2:2], "gen_ai.input.messages", text)...))})
		var some *call.Partial
		if !errors.As(err, &some) || some.Refused != 1 {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

// An answer that is an image, a sound or a file says nothing; what stands beside one is all of it.
func TestSilentParts(t *testing.T) {
	const file = `{"type":"file","modality":"video","mime_type":"video/mp4","file_id":"file-7"}`
	for _, tc := range []struct{ name, parts, want string }{
		{"a blob", `{"type":"blob","modality":"image","mime_type":"image/png","content":"QUJD"}`, ""},
		{"a large blob", `{"type":"blob","modality":"audio","mime_type":"audio/wav","content":"` + strings.Repeat("QUJD", 1000) + `"}`, ""},
		{"an address", `{"type":"uri","modality":"image","uri":"http://x.example.org/y.png"}`, ""},
		{"a file", file, ""},
		{"a text beside", `{"type":"text","content":"Hi"},` + file, "Hi"},
		{"a part that is not known", `{"type":"poem","modality":"text","verse":"Hi"}`, "Hi"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := decoded(t, span(one, two, "", "gen_ai.operation.name", "chat", "gen_ai.output.messages", `[{"role":"assistant","parts":[`+tc.parts+`]}]`))[0]
			if in := interaction(t, p); in.Response != tc.want {
				t.Errorf("%q, want %q", in.Response, tc.want)
			}
		})
	}
}

// Logfire tells a stream in a span without an answer and a log beside it that has one.
func TestLogfireStream(t *testing.T) {
	said := []any{"gen_ai.operation.name", "chat", "gen_ai.request.model", "m", "gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"a"}]}]`}
	answer := []any{"gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"b"}]}]`}
	for _, tc := range []struct {
		kv   []any
		ends bool
		took time.Duration
	}{
		{slices.Concat(said, answer, []any{"logfire.span_type", "log", "duration", 2.25}), true, 2250 * time.Millisecond},
		{slices.Concat(said, answer, []any{"logfire.span_type", "log"}), true, 1500 * time.Millisecond},
		{slices.Concat(said, answer, []any{"logfire.span_type", "log", "duration", 1e9}), true, 1500 * time.Millisecond},
		{slices.Concat(said, []any{"logfire.span_type", "span"}), false, 1500 * time.Millisecond},
		{slices.Concat(said, answer, []any{"logfire.span_type", "span"}), false, 1500 * time.Millisecond},
		{slices.Concat(said, []any{"logfire.span_type", "log"}), false, 1500 * time.Millisecond},
	} {
		p := decoded(t, span(one, "", "", tc.kv...))[0]
		if p.Kind != call.Model || p.Ends != tc.ends || p.Latency != tc.took {
			t.Errorf("%v: %+v", tc.kv, p)
		}
	}
}

// Where no span is around a stream of Logfire's, its two spans have a trace each; they are of one group, and nothing else is.
func TestLogfireRoots(t *testing.T) {
	chat := func(question string, more ...any) []any {
		return append([]any{"gen_ai.operation.name", "chat", "gen_ai.request.model", "m", "gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"` + question + `"}]}]`}, more...)
	}
	const answer = `[{"role":"assistant","parts":[{"type":"text","content":"b"}]}]`
	group := func(parent string, kv []any) string { return decoded(t, span(one, parent, "", kv...))[0].Group }
	begun, end := chat("a", "logfire.span_type", "span"), chat("a", "logfire.span_type", "log", "gen_ai.output.messages", answer, "gen_ai.response.model", "m-1")
	if g := group("", begun); g == trace || g != group("", end) || g == group("", chat("c", "logfire.span_type", "span")) {
		t.Error(g)
	}
	for name, g := range map[string]string{
		"beneath a span": group(two, begun), "its end": group(two, end), "told whole": group("", chat("a", "logfire.span_type", "span", "gen_ai.output.messages", answer)), "another client": group("", chat("a")),
		"without texts": group("", []any{"gen_ai.operation.name", "chat", "logfire.span_type", "span"}),
		"failed":        decoded(t, span(one, "", `,"status":{"code":2}`, begun...))[0].Group,
	} {
		if g != trace {
			t.Errorf("%s: %s", name, g)
		}
	}
}
