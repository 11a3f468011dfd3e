package door

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/guard/guardtest"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/reply"
	"github.com/evenhand/evenhand/schemas/events"
	"github.com/evenhand/evenhand/schemas/openapi"
	"github.com/evenhand/evenhand/sources"
)

type document struct {
	t        *testing.T
	doc      map[string]any
	compiler *jsonschema.Compiler
}

func openAPI(t *testing.T) *document {
	t.Helper()
	d := &document{t: t, compiler: jsonschema.NewCompiler()}
	d.compiler.AssertFormat()
	for url, b := range map[string][]byte{"mem:///openapi.json": openapi.Document, "mem:///schemas/events/interaction.v1.json": events.Interaction} {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.compiler.AddResource(url, v); err != nil {
			t.Fatal(err)
		}
		if url == "mem:///openapi.json" {
			d.doc = v.(map[string]any)
		}
	}
	return d
}

// check validates an answer by the schema that the document has for path and status.
func (d *document) check(method, path, status string, answer []byte) {
	d.t.Helper()
	at := "/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + method + "/responses/" + status
	response, _ := lookup(d.doc, at).(map[string]any)
	if ref, ok := response["$ref"].(string); ok {
		at = strings.TrimPrefix(ref, "#")
	}
	if lookup(d.doc, at+"/content") == nil {
		d.t.Errorf("%s %s %s is not described", method, path, status)
		return
	}
	d.valid(at+"/content/application~1json/schema", answer)
}

func (d *document) valid(at string, value []byte) {
	d.t.Helper()
	schema, err := d.compiler.Compile("mem:///openapi.json#" + at)
	if err != nil {
		d.t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		d.t.Fatalf("%v: %s", err, value)
	}
	if err := schema.Validate(v); err != nil {
		d.t.Errorf("%s: %v\n%s", at, err, value)
	}
}

func lookup(v any, pointer string) any {
	for _, key := range strings.Split(pointer, "/")[1:] {
		m, _ := v.(map[string]any)
		v = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
	}
	return v
}

// TestDocumentAndDoorsAgree: every described path is served, and what the doors answer is as described.
func TestDocumentAndDoorsAgree(t *testing.T) {
	doc := openAPI(t)
	d := deps(&log{})
	inlined(t, &d)
	open := Handler(d)
	for path, methods := range doc.doc["paths"].(map[string]any) {
		switch {
		case path == "/v1/linear/webhook", strings.HasPrefix(path, "/v1/gates"), path == "/v1/chat/completions", path == "/v1/responses", path == "/v1/models":
			continue // packages remediation, gates/door and gateway serve them
		}
		for method := range methods.(map[string]any) {
			if w := send(open, strings.ToUpper(method), path, ""); w.Code == http.StatusNotFound || w.Code == http.StatusMethodNotAllowed {
				t.Errorf("%s %s is described and not served", method, path)
			}
		}
	}
	d.Auth = guard(auth.Config{Required: true, StaticKey: "0123456789abcdef"})
	locked := Handler(d)
	down := deps(&log{err: audit.E("test", audit.KindUnavailable, os.ErrClosed)})
	full := deps(&log{err: audit.E("test", audit.KindOverloaded, os.ErrClosed)})
	down.Join, full.Join = &joiner{err: down.Producer.(*log).err}, &joiner{err: full.Producer.(*log).err}
	for _, tc := range []struct {
		h            http.Handler
		path, status string
		body         string
	}{
		{open, "/v1/interactions", "202", `[{"response":"a"},{}]`},
		{open, "/v1/interactions", "400", `[{"respose":"a","timestamp":1},{}]`},
		{open, "/v1/interactions", "400", ``},
		{open, "/v1/interactions", "413", `{"response":"` + strings.Repeat("x", 2<<20) + `"}`},
		{locked, "/v1/interactions", "401", `{}`},
		{locked, "/analyze-bias", "401", `{}`},
		{locked, "/v1/evaluate", "401", `{}`},
		{open, "/v1/interactions", "403", `[{"tenant_id":"elsewhere"}]`},
		{open, "/analyze-bias", "403", `{"llm_response":"x","tenant_id":"elsewhere"}`},
		{Handler(down), "/v1/interactions", "503", `{}`},
		{Handler(full), "/v1/interactions", "429", `{}`},
		{open, "/v1/cloudevents", "202", `[{"specversion":"1.0","id":"1","source":"/a","type":"t","data":{"response":"a"}}]`},
		{open, "/v1/cloudevents", "202", `[]`},
		{open, "/v1/cloudevents", "400", `{"specversion":"1.0","data":{}}`},
		{open, "/v1/cloudevents", "403", `{"specversion":"1.0","id":"1","source":"/a","type":"t","tenantid":"elsewhere","data":{}}`},
		{open, "/v1/cloudevents", "413", `{"specversion":"1.0","data":"` + strings.Repeat("x", 2<<20) + `"}`},
		{Handler(down), "/v1/cloudevents", "503", `{"specversion":"1.0","id":"1","source":"/a","type":"t","data":{}}`},
		{open, "/v1/litellm", "202", `[` + logged + `,{"call_type":"aembedding","id":"e","messages":"x"}]`},
		{open, "/v1/litellm", "400", `{"prompt":"x"}`},
		{Handler(down), "/v1/litellm", "503", logged},
		{Handler(full), "/v1/litellm", "503", logged},
		{locked, "/v1/litellm", "401", logged},
		{open, "/analyze-bias", "400", `{}`},
		{open, "/v1/evaluate", "400", `{}`},
		{open, "/v1/traces", "200", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"no"}]}]}]}`},
		{open, "/v1/logs", "200", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"gen_ai.choice"}]}]}]}`},
		{open, "/api/public/otel/v1/traces", "200", `{}`},
		{open, "/v1/traces", "400", `{"resourceSpans":1}`},
		{locked, "/v1/traces", "401", `{}`},
		{locked, "/v1/logs", "401", `{}`},
		{locked, "/api/public/otel/v1/traces", "401", `{}`},
		{open, "/v1/guard", "200", `{"response":"` + emotional + `","domain":"hr","options":{"biasAction":"block"}}`},
		{open, "/v1/guard", "200", `{"response":"I will transfer $5,000 to account 7.","options":{"hitlGate":true}}`},
		{open, "/v1/guard", "200", `{"response":"My card is 4111 1111 1111 1111.","options":{"safetyFilter":true,"check":"both"}}`},
		{open, "/v1/guard", "400", `{"domain":"hospital"}`},
		{open, "/v1/guard", "403", `{"tenant_id":"elsewhere"}`},
		{open, "/v1/guard", "413", `{"response":"` + strings.Repeat("x", 2<<20) + `"}`},
		{locked, "/v1/guard", "401", `{}`},
		{open, liteLLMDoor, "200", `{"input_type":"response","texts":["` + emotional + `"],"additional_provider_specific_params":{"domain":"hr","biasAction":"block"}}`},
		{open, liteLLMDoor, "200", `{"input_type":"response","texts":["jane@example.com"],"additional_provider_specific_params":{"mask":true}}`},
		{open, liteLLMDoor, "400", `{}`},
		{locked, liteLLMDoor, "401", `{}`},
	} {
		headers := []string{"Content-Type", "application/json"}
		if tc.status == "403" {
			headers = append(headers, "X-Evenhand-Tenant", "mine")
		}
		w := send(tc.h, "POST", tc.path, tc.body, headers...)
		if tc.status != strconv.Itoa(w.Code) {
			t.Errorf("%s: %d, want %s", tc.path, w.Code, tc.status)
		}
		doc.check("post", tc.path, tc.status, w.Body.Bytes())
	}
	for _, name := range []string{"analyze_bias.json", "analyze_empty.json"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		doc.check("post", "/analyze-bias", "200", b)
	}
	judged := deps(&log{})
	for _, kind := range append([]string{""}, audit.Mitigations...) {
		v := verdict()
		v.Mitigation = kind
		judged.Analyze = func(context.Context, *audit.Interaction) *audit.Verdict { return v }
		doc.check("post", "/analyze-bias", "200", send(Handler(judged), "POST", "/analyze-bias", biased, "X-Evenhand-Tenant", "acme").Body.Bytes())
	}
	real := guardtest.Current(t)
	judged.Advice = real.Advice
	judged.Analyze = func(ctx context.Context, in *audit.Interaction) *audit.Verdict { return real.Analyze(ctx, in) }
	for _, text := range []string{"The chairman said the manpower is short.", "Women are too emotional to lead.", "My number is 078-05-1120.", "Delete the production database now.", "It rained.", ""} {
		b, _ := json.Marshal(map[string]string{"llm_response": text})
		doc.check("post", "/analyze-bias", "200", send(Handler(judged), "POST", "/analyze-bias", string(b)).Body.Bytes())
	}
	doc.valid("/components/schemas/AnalyzeRequest", []byte(biased))
	doc.valid("/components/schemas/GuardRequest", []byte(`{"response":"a","wait":30,"options":{"domain":"hr","biasThreshold":0.1,"hitlGateRules":[{"id":"x","description":"d","pattern":"/x/i","category":"c"}]}}`))
	for _, body := range guardCaptures(t) {
		doc.valid("/components/schemas/LiteLLMRequest", []byte(body))
	}
	for _, code := range []string{reply.BadRequest, CodeBadEvents, reply.Unauthorized, reply.Forbidden, reply.NotFound, reply.MethodNotAllowed, reply.TooLarge, reply.UnsupportedMedia, reply.Overloaded, reply.Unavailable, reply.Internal, CodeAnalysisFailed} {
		b, _ := json.Marshal(map[string]any{"error": fault{Code: code, Message: "m"}})
		doc.valid("/components/schemas/Error", b)
	}
	for _, code := range []string{ingest.BadJSON, ingest.InvalidUTF8, ingest.TooDeep, ingest.TooLarge, ingest.DuplicateKey, ingest.UnknownField, ingest.WrongType, ingest.BadValue, ingest.AliasConflict, ingest.MissingField, ingest.EventTime, ingest.NoInteraction, ingest.TenantMissing, ingest.TenantMismatch} {
		b, _ := json.Marshal(ingest.Fault{Field: "f", Code: code, Message: "m"})
		doc.valid("/components/schemas/Fault", b)
	}
}

// FuzzHTTPBody: whatever comes in, the answer is JSON of a known status, and everything that was
// produced is an event that the pipeline takes under the id that was answered.
func FuzzHTTPBody(f *testing.F) {
	base := deps(nil)
	inlinedWith(f, &base, guardtest.Light(f))
	for _, s := range []string{`{"response":"a","options":{"hitlGate":true,"check":"both"},"wait":0,"domain":"hr"}`, `{"input_type":"response","texts":["a"],"litellm_call_id":"c","additional_provider_specific_params":{"mask":true}}`, `{"response":"a"}`, `[{"response":"a"},{}]`, "{}\n{}\n", "{}\n{", `[1`, ``, `[]`, biased, logged, `{"specversion":"1.0","id":"1","source":"/a","type":"t","data":{"response":"a"}}`, `{"output":"x","mode":"both"}`, `{"id":"","timestamp":null}`, "{\"a\":1}\n\n[2]", `{"id":"x","id":"y"}`, `{"response":"\ud800"}`} {
		for kind := range uint8(7) {
			f.Add([]byte(s), kind)
		}
	}
	decoder := ingest.NewDecoder(ingest.Options{DefaultTenant: "default"})
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		l := &log{}
		target := []string{"/v1/interactions", "/analyze-bias", "/v1/evaluate", "/v1/cloudevents", "/v1/litellm", "/v1/guard", liteLLMDoor}[kind%7]
		headers := []string{"Content-Type", []string{"application/json", "application/x-ndjson"}[kind>>7]}
		d := base
		d.Producer = l
		w := send(Handler(d), "POST", target, string(body), headers...)
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("not JSON: %q", w.Body)
		}
		switch w.Code {
		case 200:
		case 202:
			var got struct{ IDs []string }
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.IDs) != len(l.ms) || len(l.ms) == 0 && kind%7 < 3 {
				t.Fatalf("%d ids, %d produced", len(got.IDs), len(l.ms))
			}
			for i, m := range l.ms {
				in, rej := decoder.Decode(record(m), audit.Origin{BrokerTime: now})
				if rej != nil || in.ID.String() != got.IDs[i] || in.IDAssumed || bytes.ContainsAny(m.Value, "\n\r") {
					t.Fatalf("produced what the pipeline does not take: %q %+v", m.Value, rej)
				}
			}
			return
		case 400, 403, 413:
		default:
			t.Fatalf("status %d", w.Code)
		}
		if len(l.ms) > 0 {
			t.Fatal("produced though refused")
		}
	})
}

func record(m Message) sources.Record {
	return sources.Record{Key: m.Key, Value: m.Value, Headers: m.Headers, Time: now}
}
