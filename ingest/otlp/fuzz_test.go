package otlp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/otlp"
)

func FuzzTraces(f *testing.F) {
	f.Add(payload(attributes("service.name", "desk"), span(one, two, "", "gen_ai.operation.name", "chat", "gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"a"}]}]`)))
	f.Add(payload("[]", span(one, "", "", "openinference.span.kind", "LLM", "llm.input_messages.0.message.contents.0.message_content.text", "a", "metadata", "{'a': [1, (2,), None, True]}")))
	f.Add(payload("[]", span(one, two, "", "ai.operationId", "ai.streamText.doStream", "ai.response.toolCalls", `[{"toolCallId":"8","toolName":"g","input":"{}"}]`)))
	f.Add(payload("[]", span(one, two, "", "langfuse.observation.type", "generation", "langfuse.observation.input", `{"messages":[{"role":"user","content":[{"type":"text","text":5},{"type":"x","text":[]}]}]}`)))
	f.Add([]byte(deep(60)))
	captured(f, "traces")
	f.Fuzz(func(t *testing.T, body []byte) { holds(t, otlp.Traces(otlp.Names{}), body) })
}

func FuzzLogs(f *testing.F) {
	f.Add([]byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + record("gen_ai.choice", `{"stringValue":"{\"index\":1,\"message\":{\"content\":\"a\"}}"}`) + `]}]}]}`))
	captured(f, "logs")
	f.Fuzz(func(t *testing.T, body []byte) { holds(t, otlp.Logs(otlp.Names{}), body) })
}

// captured adds the captured payloads of a signal, where they are.
func captured(f *testing.F, signal string) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "events", "*."+signal+"*.bin"))
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			f.Add(b)
		}
	}
}

// holds: whatever comes in, there are parts or an error of the right kind, and a call's part makes an event whose texts the pipeline takes.
func holds(t *testing.T, f call.Format, body []byte) {
	ps, err := f.Parts(call.Payload{Body: body})
	if err != nil && audit.KindOf(err) != audit.KindInvalid {
		t.Fatal(err)
	}
	d := ingest.NewDecoder(ingest.Options{DefaultTenant: "default"})
	for _, p := range ps {
		if !audit.ValidTraceID(p.Group) || !audit.ValidSpanID(p.Key) || p.Parent != "" && !audit.ValidSpanID(p.Parent) {
			t.Fatalf("ids %q %q %q", p.Group, p.Key, p.Parent)
		}
		if b, err := json.Marshal(p); err != nil || len(b) > 7<<20 {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		if p.Kind == call.Context {
			continue
		}
		value, err := p.Event("default")
		if err != nil {
			t.Fatal(err)
		}
		_, _, faults := d.Prepare(value, ingest.Sender{Now: received})
		for _, fault := range faults { // a sender's odd time is for the join to refuse
			if fault.Code != ingest.EventTime && fault.Code != ingest.TooLarge {
				t.Fatalf("%+v\n%s", fault, value)
			}
		}
	}
}

// A payload that breaks off anywhere gives an error, or the parts of what is whole.
func TestCutAnywhere(t *testing.T) {
	for name, f := range map[string]call.Format{"otel-openai-v2-2.0b0-legacy.traces.bin": otlp.Traces(otlp.Names{}), "traceloop-openai-0.62.4-events.logs1.bin": otlp.Logs(otlp.Names{})} {
		b, err := os.ReadFile(detectortest.Shared(t, "data", "events", name))
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			if ps, err := f.Parts(call.Payload{Body: b[:n], ContentType: "application/x-protobuf"}); err == nil && len(ps) > 0 {
				t.Fatalf("%s cut at %d: %d parts", name, n, len(ps))
			}
		}
	}
}

// FuzzTexts puts one text wherever a dialect has messages, or objects as text.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{`[{"role":"user","parts":[{"type":"text","content":"a"},{"type":"tool_call","id":"1","name":"f","arguments":{}}]}]`, `{"messages":[{"role":"user","content":[{"type":"x","text":5}]}]}`,
		`{"role":"assistant","content":{"type":"tool_result"},"tool_calls":[1]}`, `[[],{"message":null},{"choices":[{"message":{"content":["a",1,null]}}]}]`, `{'a': ("b", [1, None]), 'tenant': '\x41'}`, `{"system":"s","prompt":"p"}`, `"acme"`, ``,
		`[{"event.name":"gen_ai.choice","message":{"content":[{"toolUse":{}},{"toolResult":{"content":[{"json":{}},1]}},{"functionCall":{"args":1}}]},"index":"1"}]`,
		`{"lc":1,"kwargs":{"lc":1,"kwargs":{"type":"ai","content":[{"type":"blob","content":5}]}}}`, `{"config":{"system_instruction":{"parts":[{"text":"s"}]}},"contents":[{"parts":[{}]}],"generations":[[{"type":"Generation","text":{}}]]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var spans []string
		for i, kv := range [][]any{
			{"gen_ai.operation.name", "chat", "gen_ai.input.messages", s, "gen_ai.output.messages", s, "gen_ai.system_instructions", s, "gen_ai.response.finish_reasons", s},
			{"llm.request.type", "chat", "gen_ai.prompt.0.content", s, "gen_ai.completion.0.content", s, "gen_ai.completion.0.tool_calls.0.name", s},
			{"openinference.span.kind", "LLM", "input.value", s, "output.value", s, "metadata", s, "session.id", s},
			{"openinference.span.kind", "LLM", "llm.input_messages.0.message.role", s, "llm.input_messages.0.message.contents.0.message_content.text", s, "llm.input_messages.0.message.contents.0.message_content.type", s},
			{"langfuse.observation.type", "generation", "langfuse.observation.input", s, "langfuse.observation.output", s, "langfuse.observation.usage_details", s, "langfuse.trace.metadata.x", s, "langfuse.trace.tags", s},
			{"ai.operationId", "ai.streamText.doStream", "ai.prompt.messages", s, "ai.response.toolCalls", s, "ai.telemetry.metadata.y", s},
			{"gen_ai.operation.name", "chat", "gen_ai.prompt", s, "gen_ai.completion", s},
			{"gen_ai.request.model", s, "events", s},
			{"gen_ai.request.model", "m", "gcp.vertex.agent.llm_request", s, "gcp.vertex.agent.llm_response", s, "request.body", s},
			{"mlflow.spanType", "\"LLM\"", "mlflow.spanInputs", s, "mlflow.spanOutputs", s, "mlflow.llm.model", s, "mlflow.chat.tokenUsage", s},
			{"gen_ai.operation.name", "acompletion", "litellm.call_id", s, "metadata.requester_metadata", s, "gen_ai.input.messages", s},
		} {
			spans = append(spans, span(fmt.Sprintf("%016x", i+1), two, events(event("gen_ai.user.message", "content", s, "role", s), event("gen_ai.choice", "message", s, "index", s)), kv...))
		}
		holds(t, otlp.Traces(otlp.Names{}), payload("[]", spans...))
	})
}
