package ingest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/schemas/events"
	"github.com/evenhand/evenhand/sources"
)

func eventSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(events.Interaction))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("interaction.v1.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("interaction.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decodeString(event string) (*audit.Interaction, *audit.Rejected) {
	d := NewDecoder(Options{DefaultTenant: "default"})
	rec := sources.Record{Offset: 7, Time: brokerTime, Value: []byte(event)}
	return d.Decode(rec, audit.Origin{Topic: "llm.interactions", Partition: 3, Offset: 7, BrokerTime: brokerTime})
}

// cases are events with the fault that they have: "code field", "" for none. "beyond" marks what a
// JSON Schema cannot say.
var cases = []struct{ name, event, want string }{
	{"nothing but a response", `{"response":"ok"}`, ""},
	{"an empty object is an event without content", `{}`, ""},
	{"white space around", " \n{ \"response\" : \"ok\" }\r\n\t", ""},
	{"every field null", `{"id":null,"tenant_id":null,"timestamp":null,"messages":null,"prompt":null,"response":null,"status":null,"template":null,"metadata":null,"schema_version":null,"prompt_tokens":null,"contained_pii":null,"traceparent":null,"trace_id":null,"span_id":null}`, ""},
	{"every string empty", `{"id":"","tenant_id":"","timestamp":"","prompt":"","response":"","status":"","trace_id":"","span_id":"","traceparent":"","model":"","domain":""}`, ""},
	{"unknown field", `{"respose":"x"}`, "unknown_field respose"},
	{"names are lower case", `{"Response":"x"}`, "unknown_field Response"},
	{"schema version 1", `{"schema_version":1}`, ""},
	{"schema version 1.0", `{"schema_version":1.0}`, ""},
	{"schema version 2", `{"schema_version":2}`, "bad_value schema_version"},
	{"schema version as a string", `{"schema_version":"1"}`, "wrong_type schema_version"},
	{"id is a UUID", `{"id":"01a1fdb3-bfcb-7b1e-9d55-0c1f2a3b4c5d"}`, ""},
	{"id is any string", `{"id":"order 17/é"}`, ""},
	{"id is a number", `{"id":17}`, "wrong_type id"},
	{"id of 256 characters", `{"id":"` + strings.Repeat("é", 256) + `"}`, ""},
	{"id of 257 characters", `{"id":"` + strings.Repeat("a", 257) + `"}`, "bad_value id"},
	{"nil UUID", `{"id":"00000000-0000-0000-0000-000000000000"}`, "bad_value id"},
	{"tenant", `{"tenant_id":"Acme_1.eu-west"}`, ""},
	{"tenant with a space", `{"tenant_id":"acme corp"}`, "bad_value tenant_id"},
	{"tenant that starts with a dot", `{"tenant_id":".acme"}`, "bad_value tenant_id"},
	{"tenant of 64", `{"tenant_id":"` + strings.Repeat("a", 64) + `"}`, ""},
	{"tenant of 65", `{"tenant_id":"` + strings.Repeat("a", 65) + `"}`, "bad_value tenant_id"},
	{"tenant is a list", `{"tenant_id":["a"]}`, "wrong_type tenant_id"},
	{"time in UTC", `{"timestamp":"2026-11-21T10:42:58Z"}`, ""},
	{"time with offset and fraction", `{"timestamp":"2026-11-21T12:42:58.123456789+02:00"}`, ""},
	{"time without zone", `{"timestamp":"2026-11-21T10:42:58"}`, "bad_value timestamp"},
	{"time with a space", `{"timestamp":"2026-11-21 10:42:58Z"}`, "bad_value timestamp"},
	{"time with one digit", `{"timestamp":"2026-11-21T1:42:58Z"}`, "bad_value timestamp"},
	{"time with a comma", `{"timestamp":"2026-11-21T10:42:58,5Z"}`, "bad_value timestamp"},
	{"time with an offset of 24 hours", `{"timestamp":"2026-11-21T10:42:58+24:00"}`, "bad_value timestamp"},
	{"time with an offset of 60 minutes", `{"timestamp":"2026-11-21T10:42:58+00:60"}`, "bad_value timestamp"},
	{"time in small letters", `{"timestamp":"2026-11-21t10:42:58.5z"}`, ""},
	{"leap second", `{"timestamp":"2026-11-20T23:59:60Z"}`, ""},
	{"leap second with offset and fraction", `{"timestamp":"2026-11-20t18:59:60.25-05:00"}`, ""},
	{"leap second of 2016", `{"timestamp":"2016-12-31T23:59:60Z"}`, "event_time timestamp beyond"},
	{"leap second at noon", `{"timestamp":"2026-11-20T12:59:60Z"}`, "bad_value timestamp"},
	{"leap second at midnight elsewhere", `{"timestamp":"2026-11-20T23:59:60+01:00"}`, "bad_value timestamp"},
	{"leap second of a time with a comma", `{"timestamp":"2026-11-20T23:59:60,5Z"}`, "bad_value timestamp"},
	{"61 seconds", `{"timestamp":"2026-11-20T23:59:61Z"}`, "bad_value timestamp"},
	{"nothing behind the seconds", `{"timestamp":"2026-11-20T23:59:60"}`, "bad_value timestamp"},
	{"30 February", `{"timestamp":"2026-02-30T10:42:58Z"}`, "bad_value timestamp"},
	{"Unix seconds", `{"timestamp":1795000000}`, "wrong_type timestamp"},
	{"date of 1970", `{"timestamp":"1970-01-01T00:00:00Z"}`, "event_time timestamp beyond"},
	{"in two days", `{"timestamp":"2026-11-23T00:00:00Z"}`, "event_time timestamp beyond"},
	{"the end of tomorrow", `{"timestamp":"2026-11-22T23:59:59.999Z"}`, ""},
	{"the first moment", `{"timestamp":"2020-01-01T00:00:00Z"}`, ""},
	{"version 7 id of 1970", `{"id":"00000000-0001-7b1e-9d55-0c1f2a3b4c5d"}`, "event_time id beyond"},
	{"trace id", `{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}`, ""},
	{"trace id in capitals", `{"trace_id":"4BF92F3577B34DA6A3CE929D0E0E4736"}`, ""},
	{"trace id as a UUID", `{"trace_id":"4bf92f35-77b3-4da6-a3ce-929d0e0e4736"}`, ""},
	{"trace id of zeros", `{"trace_id":"00000000000000000000000000000000"}`, "bad_value trace_id"},
	{"trace id too short", `{"trace_id":"4bf9"}`, "bad_value trace_id"},
	{"span id", `{"span_id":"00f067aa0ba902b7"}`, ""},
	{"span id of zeros", `{"span_id":"0000000000000000"}`, "bad_value span_id"},
	{"span id too long", `{"span_id":"00f067aa0ba902b7aa"}`, "bad_value span_id"},
	{"traceparent", `{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`, ""},
	{"traceparent of zeros", `{"traceparent":"00-00000000000000000000000000000000-00f067aa0ba902b7-01"}`, "bad_value traceparent"},
	{"traceparent of version ff", `{"traceparent":"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`, "bad_value traceparent"},
	{"traceparent is no traceparent", `{"traceparent":"hello"}`, "bad_value traceparent"},
	{"domain", `{"domain":"hr"}`, ""},
	{"unknown domain", `{"domain":"astrology"}`, ""},
	{"domain is a number", `{"domain":1}`, "wrong_type domain"},
	{"user is an object", `{"user_id":{"id":1}}`, "wrong_type user_id"},
	{"model of 1025 characters", `{"model":"` + strings.Repeat("m", 1025) + `"}`, "bad_value model"},
	{"query context", `{"query_context":{"a":[1,{"b":null}]}}`, ""},
	{"query context as a string", `{"query_context":"{}"}`, "wrong_type query_context"},
	{"metadata is a list", `{"metadata":[]}`, "wrong_type metadata"},
	{"group attributes are a list", `{"group_attributes":[]}`, "wrong_type group_attributes"},
	{"messages", `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[]}]}`, ""},
	{"messages with parts", `{"messages":[{"role":"user","content":["Hi",{"type":"text","text":"there"},{"type":"image_url","image_url":{"url":"x"}}]}]}`, ""},
	{"messages are one object", `{"messages":{"role":"user","content":"Hi"}}`, "wrong_type messages"},
	{"a message is a string", `{"messages":["Hi"]}`, "wrong_type messages[0]"},
	{"a message without role", `{"messages":[{"content":"Hi"}]}`, "missing_field messages[0].role"},
	{"a message with a role that is null", `{"messages":[{"role":null,"content":"Hi"}]}`, "wrong_type messages[0].role"},
	{"a message with an empty role", `{"messages":[{"role":"","content":"Hi"}]}`, "bad_value messages[0].role"},
	{"a message with a typo", `{"messages":[{"role":"user","content":"Hi"},{"role":"user","contnet":"Hi"}]}`, "missing_field messages[1].content"},
	{"a content that is an object", `{"messages":[{"role":"user","content":{"text":"Hi"}}]}`, "wrong_type messages[0].content"},
	{"a part that is a number", `{"messages":[{"role":"user","content":[1]}]}`, "wrong_type messages[0].content"},
	{"a part whose text is a number", `{"messages":[{"role":"user","content":[{"type":"text","text":1}]}]}`, "wrong_type messages[0].content"},
	{"a text part without text", `{"messages":[{"role":"user","content":[{"type":"text","txet":"Hi"}]}]}`, "missing_field messages[0].content"},
	{"prompt beside messages", `{"prompt":"Hi","messages":[{"role":"user","content":"Hi"}]}`, "bad_value prompt"},
	{"prompt beside no messages", `{"prompt":"Hi","messages":[]}`, ""},
	{"original query beside messages", `{"original_query":"Hi","messages":[{"role":"user","content":"Hi"}]}`, ""},
	{"prompt is a list", `{"prompt":["Hi"]}`, "wrong_type prompt"},
	{"response is an object", `{"response":{"choices":[]}}`, ""},
	{"response is a list", `{"response":[]}`, ""},
	{"response is a number", `{"response":1}`, "wrong_type response"},
	{"response is true", `{"llm_response":true}`, "wrong_type llm_response"},
	{"aliases", `{"llm_response":"a","original_query":"b","llm_model":"c","llm_provider":"d"}`, ""},
	{"alias equal to its name", `{"llm_model":"c","model":"c"}`, ""},
	{"alias differs", `{"llm_model":"c","model":"d"}`, "alias_conflict llm_model beyond"},
	{"response alias differs", `{"llm_response":"c","response":{"text":"c"}}`, "alias_conflict llm_response beyond"},
	{"tokens", `{"prompt_tokens":0,"response_tokens":2147483647}`, ""},
	{"tokens 12.0", `{"prompt_tokens":12.0,"response_tokens":1e3}`, ""},
	{"tokens 1.5", `{"prompt_tokens":1.5}`, "bad_value prompt_tokens"},
	{"tokens below zero", `{"prompt_tokens":-1}`, "bad_value prompt_tokens"},
	{"tokens beyond 32 bits", `{"prompt_tokens":2147483648}`, "bad_value prompt_tokens"},
	{"tokens as a string", `{"prompt_tokens":"12"}`, "wrong_type prompt_tokens"},
	{"latency with a fraction", `{"latency_ms":12.7}`, ""},
	{"latency below zero", `{"latency_ms":-0.1}`, "bad_value latency_ms"},
	{"cost", `{"estimated_cost_usd":1.5e-5}`, ""},
	{"cost below zero", `{"estimated_cost_usd":-1}`, "bad_value estimated_cost_usd"},
	{"cost beyond reason", `{"estimated_cost_usd":1e300}`, "bad_value estimated_cost_usd"},
	{"redaction summary may be any JSON", `{"redaction_summary":["a",1,{"b":true}]}`, ""},
	{"contained pii", `{"contained_pii":true,"contained_proprietary":false}`, ""},
	{"contained pii as a string", `{"contained_pii":"true"}`, "wrong_type contained_pii"},
	{"status", `{"status":"blocked"}`, ""},
	{"status of another kind", `{"status":"ok"}`, "bad_value status"},
	{"status is a number", `{"status":200}`, "wrong_type status"},
	{"retrieved context", `{"retrieved_context":[{"id":"a","source":null,"text":"b","score":0.7}]}`, ""},
	{"retrieved context of strings", `{"retrieved_context":["a"]}`, "wrong_type retrieved_context[0]"},
	{"retrieved text is a number", `{"retrieved_context":[{"text":1}]}`, "wrong_type retrieved_context[0].text"},
	{"retrieved context is an object", `{"retrieved_context":{}}`, "wrong_type retrieved_context"},
	{"template", `{"template":{"id":"a","version":null}}`, ""},
	{"template with another field", `{"template":{"id":"a","name":"b"}}`, "unknown_field template.name"},
	{"template version is a number", `{"template":{"version":3}}`, "wrong_type template.version"},
	{"template is a string", `{"template":"a"}`, "wrong_type template"},
	{"not an object", `["a"]`, "wrong_type "},
	{"a name twice", `{"model":"a","model":"a"}`, "duplicate_key model beyond"},
	{"a name twice, once escaped", `{"model":"a","mode\u006c":"a"}`, "duplicate_key model beyond"},
	{"a name twice inside", `{"metadata":{"a":[{"b":1,"b":1}]}}`, "duplicate_key metadata beyond"},
	{"a name twice in a message", `{"messages":[{"role":"user","content":"a","role":"system"}]}`, "duplicate_key messages beyond"},
	{"a name twice in the template", `{"template":{"id":"a","id":"b"}}`, "duplicate_key template beyond"},
	{"a name twice in retrieved context", `{"retrieved_context":[{"text":"a","text":"b"}]}`, "duplicate_key retrieved_context beyond"},
}

func TestCases(t *testing.T) {
	schema := eventSchema(t)
	if len(cases) < 60 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			in, rej := decodeString(tc.event)
			want, beyond := strings.CutSuffix(tc.want, " beyond")
			switch code, field, bad := strings.Cut(want, " "); {
			case !bad:
				if rej != nil || in == nil {
					t.Fatalf("rejected: %+v", rej)
				}
				checkInvariants(t, in)
			case rej == nil:
				t.Fatalf("accepted, want %s", want)
			case rej.Reason != code:
				t.Errorf("reason %s, want %s (%s)", rej.Reason, code, rej.Detail)
			case field != "" && !strings.HasPrefix(rej.Detail, field+": "):
				t.Errorf("detail %q names another field than %s", rej.Detail, field)
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(tc.event))
			if err != nil {
				t.Fatal(err)
			}
			if valid := schema.Validate(value) == nil; valid != (want == "" || beyond) {
				t.Errorf("schema says %v: %v", valid, schema.Validate(value))
			}
		})
	}
}

func TestSchemaExamplesAndFields(t *testing.T) {
	var doc struct {
		Properties map[string]any
		Examples   []json.RawMessage
	}
	if err := json.Unmarshal(events.Interaction, &doc); err != nil {
		t.Fatal(err)
	}
	for name := range doc.Properties {
		if _, ok := byName[name]; !ok {
			t.Errorf("the decoder does not know %s", name)
		}
	}
	if len(doc.Properties) != int(fieldCount) || len(doc.Examples) == 0 {
		t.Errorf("schema has %d fields, decoder %d; %d examples", len(doc.Properties), fieldCount, len(doc.Examples))
	}
	schema := eventSchema(t)
	for i, example := range doc.Examples {
		value, _ := jsonschema.UnmarshalJSON(bytes.NewReader(example))
		if err := schema.Validate(value); err != nil {
			t.Errorf("example %d: %v", i, err)
		}
		if in, rej := decodeString(string(example)); rej != nil {
			t.Errorf("example %d: %s", i, rej.Detail)
		} else if in.WithoutContent {
			t.Errorf("example %d has no content", i)
		}
	}
}
