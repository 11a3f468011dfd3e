package ingest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/sources"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"

var decoder = ingest.NewDecoder(ingest.Options{DefaultTenant: "default"})

func decodeRecord(rec sources.Record) (*audit.Interaction, *audit.Rejected) {
	rec.Time = noon
	return decoder.Decode(rec, audit.Origin{Topic: "llm.interactions", BrokerTime: noon})
}

func headers(pairs ...string) (hs []audit.Header) {
	for i := 0; i+1 < len(pairs); i += 2 {
		hs = append(hs, audit.Header{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	return hs
}

// What the context tells fills what the data leaves out, and nothing else.
func TestCloudEventContext(t *testing.T) {
	const context = `"specversion":"1.0","type":"t","source":"/a","id":"x"`
	for _, tc := range []struct{ name, more, data, want string }{ // want: given id, tenant, application, conversation, time, trace
		{"nothing there", `,"time":"2026-11-21T09:00:00Z","subject":"s","tenantid":"acme","traceparent":"` + parent + `"`, `{"response":"r"}`, "/a#x acme /a s 09:00 4bf92f"},
		{"all there", `,"time":"2026-11-21T09:00:00Z","subject":"s","tenantid":"b"`, `{"id":"i","tenant_id":"b","application":"app","conversation_id":"c","timestamp":"2026-11-21T10:00:00Z"}`, "i b app c 10:00 "},
		{"null and the empty text are not there", `,"subject":"s"`, `{"id":null,"conversation_id":""}`, "/a#x default /a s 12:00 "},
		{"the partition key groups", `,"partitionkey":"k"`, `{}`, "/a#x default /a k 12:00 "},
		{"the partition key is the tenant", `,"partitionkey":"acme","tenantid":"acme"`, `{}`, "/a#x acme /a  12:00 "},
		{"extensions of any kind", `,"sequence":7,"sampled":true,"none":null,"datacontenttype":"application/vnd.x+json"`, `{}`, "/a#x default /a  12:00 "},
	} {
		encoded := base64.StdEncoding.EncodeToString([]byte(tc.data))
		for _, data := range []string{`,"data":` + tc.data, `,"data_base64":"` + encoded + `"`} {
			in, rej := decodeRecord(sources.Record{Value: []byte("{" + context + tc.more + data + "}")})
			if rej != nil {
				t.Fatal(tc.name, rej.Detail)
			}
			trace := ""
			if in.SpanID != "" {
				trace = in.TraceID[:6]
			}
			if got := strings.Join([]string{in.GivenID, in.Tenant, in.Application, in.Conversation, in.Time.Format("15:04"), trace}, " "); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
			}
		}
	}
	const uuid = "01a1fdb3-bfcb-7b1e-9d55-0c1f2a3b4c5d"
	in, rej := decodeRecord(sources.Record{Value: []byte(`{"response":"r"}`), Headers: headers("ce_specversion", "1.0", "ce_type", "t", "ce_source", "/a", "ce_id", uuid, "Content-Type", "application/json; charset=utf-8", "traceparent", parent)})
	if rej != nil || in.ID.String() != uuid || in.SpanID == "" || in.Conversation != "" {
		t.Errorf("%+v %+v", in, rej)
	}
}

func TestCloudEventFaults(t *testing.T) {
	const good = `"specversion":"1.0","type":"t","source":"/a","id":"x"`
	long := strings.Repeat("x", 5000)
	binary := func(value string, more ...string) sources.Record {
		return sources.Record{Value: []byte(value), Headers: headers(append([]string{"ce_specversion", "1.0", "ce_type", "t", "ce_source", "/a", "ce_id", "x"}, more...)...)}
	}
	structured := func(s string, hs ...string) sources.Record {
		return sources.Record{Value: []byte(s), Headers: headers(hs...)}
	}
	for _, tc := range []struct {
		name   string
		rec    sources.Record
		reason string
		want   []string // of the detail
	}{
		{"nothing but a version", structured(`{"specversion":"1.0"}`), "missing_field", []string{"id: is missing", "source: is missing", "type: is missing", "data: is missing"}},
		{"another version", structured(`{"specversion":"0.3","type":"t","source":"/a","id":"x","data":{}}`), "bad_value", []string{"specversion: wants 1.0"}},
		{"a content type without a version", structured(`{"id":"x"}`, "content-type", "application/cloudevents+json"), "missing_field", []string{"specversion: is missing"}},
		{"attributes at fault", structured(`{` + good + `,"Tenant_ID":"SECRET","subject":{"SECRET":1},"time":"` + long + `","data":{}}`), "unknown_field", []string{"Tenant_ID: is no name", "subject: wants a string", "time: wants at most 4096 bytes"}},
		{"data twice", structured(`{` + good + `,"data":{},"data_base64":"e30="}`), "bad_value", []string{"data_base64: stands beside data"}},
		{"base64 at fault", structured(`{` + good + `,"data_base64":"SECRET!"}`), "bad_value", []string{"data_base64: wants base64"}},
		{"base64 of no JSON", structured(`{` + good + `,"data_base64":"/w=="}`), "invalid_utf8", []string{"data: "}},
		{"an attribute twice", structured(`{` + good + `,"id":"SECRET","data":{}}`), "duplicate_key", nil},
		{"data that is a text", structured(`{` + good + `,"data":"SECRET"}`), "wrong_type", []string{"data: wants a JSON object"}},
		{"data of another type", structured(`{` + good + `,"datacontenttype":"application/xml","data":{}}`), "bad_value", []string{"datacontenttype: wants application/json"}},
		{"every fault of the event", structured(`{` + good + `,"data":{"respose":"SECRET","model":7}}`), "unknown_field", []string{"respose: ", "did you mean response?", "model: wants a string"}},
		{"a name twice in the event", structured(`{` + good + `,"data":{"model":"a","model":"b"}}`), "duplicate_key", []string{"model: "}},
		{"an envelope in an envelope", structured(`{` + good + `,"data":{` + good + `,"data":{}}}`), "unknown_field", []string{"specversion: "}},
		{"a time at fault", structured(`{` + good + `,"time":"SECRET","data":{}}`), "bad_value", []string{"time: wants an RFC 3339 time"}},
		{"a time at fault that the data has", structured(`{` + good + `,"time":"2026-11-21T10:43:00Z","data":{"timestamp":"SECRET"}}`), "bad_value", []string{"timestamp: wants an RFC 3339 time"}},
		{"binary: a time at fault", binary(`{}`, "ce_time", "SECRET"), "bad_value", []string{"header ce_time: wants an RFC 3339 time"}},
		{"two tenants", structured(`{` + good + `,"tenantid":"a","data":{"tenant_id":"b"}}`), "tenant_mismatch", []string{"tenantid: differs"}},
		{"a tenant that is not the topic's", structured(`{`+good+`,"tenantid":"a","data":{}}`, "evenhand-tenant", "b"), "tenant_mismatch", []string{"tenant_id: differs"}},
		{"deep", structured(`{` + good + `,"data":` + strings.Repeat("[", 50_000) + `}`), "too_deep", nil},
		{"binary: deep", binary(strings.Repeat(`{"a":`, 50_000)), "too_deep", nil},
		{"binary: an attribute twice", binary(`{}`, "ce_id", "SECRET"), "duplicate_key", []string{"header ce_id: stands twice"}},
		{"binary: bytes", binary(`{}`, "ce_subject", "SECRET\xff"), "bad_value", []string{"header ce_subject: wants UTF-8"}},
		{"binary: a line break", binary(`{}`, "ce_subject", "SECRET\n"), "bad_value", []string{"header ce_subject: wants UTF-8 without"}},
		{"binary: a huge value and a huge name", binary(`{}`, "ce_x", strings.Repeat("SECRET", 100_000), "ce_"+long, "v"), "bad_value", []string{"header ce_x: wants at most"}},
		{"binary: no value", binary(``), "missing_field", []string{"header ce_data: is missing"}},
		{"binary: no JSON", binary(`SECRET`, "content-type", "text/plain"), "bad_value", []string{"header ce_datacontenttype: wants application/json"}},
		{"binary: another version", structured(`{}`, "ce_specversion", "2.0"), "bad_value", []string{"header ce_specversion: wants 1.0", "header ce_id: is missing"}},
	} {
		in, rej := decodeRecord(tc.rec)
		if in != nil || rej.Reason != tc.reason || strings.Contains(rej.Detail, "SECRET") || len(rej.Detail) > 1024 {
			t.Errorf("%s: %+v", tc.name, rej)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(rej.Detail, want) {
				t.Errorf("%s: does not say %q: %s", tc.name, want, rej.Detail)
			}
		}
	}
}

// What looks like LiteLLM's and is no call of a model, or no payload, is said so.
func TestLiteLLMRejected(t *testing.T) {
	for _, tc := range []struct{ value, reason string }{
		{`{"call_type":"aembedding","litellm_call_id":"c","messages":["SECRET"],"response":{}}`, ingest.NoInteraction},
		{`{"call_type":"acompletion","litellm_call_id":""}`, ingest.BadValue},
		{`{"call_type":"acompletion","response":"SECRET"}`, ingest.UnknownField}, // one name is a typing error
		{`[{"call_type":"acompletion","litellm_call_id":"c","response":"SECRET"}]`, ingest.WrongType},
	} {
		if in, rej := decodeRecord(sources.Record{Value: []byte(tc.value)}); in != nil || rej.Reason != tc.reason || strings.Contains(rej.Detail, "SECRET") {
			t.Errorf("%s: %+v", tc.reason, rej)
		}
	}
}

// What a door takes in another format it hands on as a native event, the same that the log's reader would see.
func TestPrepareTranslates(t *testing.T) {
	d := decoder
	for _, value := range []string{
		`{"specversion":"1.0","type":"t","source":"/a","id":"x","time":"2026-11-21T09:00:00Z","data":{"response":"r"}}`,
		`{"call_type":"acompletion","litellm_call_id":"c","endTime":1795251195.4,"messages":"hi","response":"yes"}`,
	} {
		m, in, faults := d.Prepare([]byte(value), ingest.Sender{Tenant: "acme", Now: noon})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		direct, rej := decodeRecord(sources.Record{Value: []byte(value), Headers: headers(ingest.HeaderTenant, "acme")})
		if rej != nil || direct.ID != in.ID || direct.Digest != in.Digest || direct.Time != in.Time || bytes.Contains(m.Value, []byte("specversion")) || bytes.Contains(m.Value, []byte("call_type")) {
			t.Errorf("%s\n%+v\n%+v %+v", m.Value, in, direct, rej)
		}
	}
	if _, _, faults := d.Prepare([]byte(`{"specversion":"1.0"}`), ingest.Sender{Now: noon}); len(faults) != 4 {
		t.Error(faults)
	}
	if _, faults := d.Check(sources.Record{Value: []byte(`{"specversion":"1.0","llm_response":"x"}`)}, audit.Origin{BrokerTime: noon}, "llm_response"); len(faults) != 1 || faults[0].Code != ingest.UnknownField {
		t.Error("another format where fields are few", faults)
	}
}

// FuzzForeign: whatever header and envelope say, a record is an interaction or a rejection of bounded detail, the
// same again, and an interaction's texts are those of its data.
func FuzzForeign(f *testing.F) {
	for _, data := range []string{`{"response":"r"}`, `{"id":"","system":"s","prompt":"p"}`, `{"id":"a","id":"b"}`, `[]`, `"x"`, `{"tenant_id":"a\u0062"}`} {
		f.Add("id", "x", "/a", []byte(data))
		f.Add("tenantid", "acme", "é ", []byte(data))
	}
	f.Add("call_type", "completion", "litellm_call_id", []byte(`"hi"`))
	f.Fuzz(func(t *testing.T, name, value, source string, data []byte) {
		quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
		for _, rec := range []sources.Record{
			{Value: data, Key: []byte(value), Headers: headers("ce_specversion", "1.0", "ce_type", "t", "ce_source", source, "ce_"+name, value, "content-type", source)},
			{Value: fmt.Appendf(nil, `{"specversion":"1.0","type":"t","source":%s,%s:%s,"data":%s}`, quoted(source), quoted(name), quoted(value), data)},
			{Value: fmt.Appendf(nil, `{"call_type":"acompletion",%s:%s,"litellm_call_id":%s,"response":%s}`, quoted(name), quoted(value), quoted(source), data)},
			{Value: data, Headers: headers("content-type", "application/cloudevents+json")},
		} {
			kept := sources.Record{Key: slices.Clone(rec.Key), Value: bytes.Clone(rec.Value), Headers: rec.Headers}
			in, rej := decodeRecord(rec)
			if (in == nil) == (rej == nil) || rej != nil && (rej.Detail == "" || len(rej.Detail) > 1024 || rej.Reason == "") {
				t.Fatalf("%+v %+v", in, rej)
			}
			if again, _ := decodeRecord(kept); !reflect.DeepEqual(in, again) {
				t.Fatalf("decoded twice, two results:\n%+v\n%+v", in, again)
			}
		}
	})
}
