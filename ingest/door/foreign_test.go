package door

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
)

const logged = `{"call_type":"acompletion","litellm_call_id":"c-1","messages":[{"role":"user","content":"hi"}],"response":{"choices":[{"message":{"content":"yes"}}]},"metadata":{"requester_metadata":{"tenant":"acme"}}}`

// What a Python client posted, structured and binary in turn, one by one and as a batch, is the same seven events.
func TestCloudEventsDoor(t *testing.T) {
	var sent []struct {
		Headers map[string]string
		Body    json.RawMessage
	}
	if err := json.Unmarshal([]byte(captured(t, "cloudevents-python-2.2.0-http.json")), &sent); err != nil {
		t.Fatal(err)
	}
	l := &log{}
	h := Handler(deps(l))
	var batch []json.RawMessage
	for i, s := range sent {
		var headers []string
		for k, v := range s.Headers {
			headers = append(headers, k, v)
		}
		if w := send(h, "POST", "/v1/cloudevents", string(s.Body), headers...); w.Code != http.StatusAccepted {
			t.Fatalf("%d: %d %s", i, w.Code, w.Body)
		}
		if i%2 == 0 {
			batch = append(batch, s.Body)
		}
	}
	one := slices.Clone(l.ms)
	for _, kind := range []string{"application/cloudevents-batch+json; charset=utf-8", "application/json"} {
		l.ms = nil
		b, _ := json.Marshal(batch)
		if w := send(h, "POST", "/v1/cloudevents", zipped(t, string(b)), "Content-Type", kind, "Content-Encoding", "gzip"); w.Code != http.StatusAccepted || len(l.ms) != len(batch) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for i := range l.ms {
			if !bytes.Equal(l.ms[i].Value, one[2*i].Value) {
				t.Errorf("in a batch %s, alone %s", l.ms[i].Value, one[2*i].Value)
			}
		}
	}
	d := ingest.NewDecoder(ingest.Options{})
	for i, m := range one {
		in, rej := d.Decode(record(m), audit.Origin{BrokerTime: now})
		if rej != nil {
			t.Fatal(rej.Detail)
		}
		if id := fmt.Sprintf("i0%d", i+1); in.GivenID != id || in.ID != audit.DeriveID(in.Tenant, id) || in.Conversation != "chat/"+id || in.Application != "/apps/hiring-bot" || !strings.HasSuffix(in.TraceID, fmt.Sprintf("47%x", 0x36+i)) || in.SpanID != "b7ad6b7169203331" || in.TimeAssumed || in.Query == "" || in.Response == "" {
			t.Errorf("%+v", in)
		}
	}
}

func TestCloudEventsRefused(t *testing.T) {
	dev, sign := tokens(t)
	d := deps(&log{})
	d.Auth = guard(auth.Config{Required: true, Dev: dev})
	acme := sign("acme", auth.Service)
	binary := []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/a", "Ce-Type", "t"}
	const good = `{"specversion":"1.0","id":"1","source":"/a","type":"t","data":{"response":"r"}}`
	for _, tc := range []struct {
		name, body string
		headers    []string
		status     int
		want       string
	}{
		{"taken", good, nil, 202, `"accepted":1`},
		{"a percent-encoded and a quoted value", `{"response":"r"}`, append(binary, "Ce-Subject", "a%20b%E2%82%AC", "Ce-Comment", `"say \"hi\""`), 202, `"accepted":1`},
		{"an empty batch", `[]`, []string{"Content-Type", "application/cloudevents-batch+json"}, 202, `{"accepted":0,"ids":[]}`},
		{"a batch that is none", good, []string{"Content-Type", "application/cloudevents-batch+json"}, 400, `wants a JSON array`},
		{"the second of a batch", "[" + good + `,{"specversion":"1.0","id":"2","type":"t","data":{"respons":"SECRET"}}]`, nil, 400, `"line":2,"field":"source"`},
		{"a native event", `{"response":"SECRET"}`, nil, 400, `"field":"specversion","code":"missing_field"`},
		{"another tenant", `{"specversion":"1.0","id":"1","source":"/a","type":"t","tenantid":"b","data":{}}`, nil, 403, `tenant_mismatch`},
		{"a header that stands twice", `{}`, append(binary, "Ce-Id2", "a%ZZ"), 400, `"field":"header ce-id2"`},
		{"a huge header", `{}`, append(binary, "Ce-Subject", strings.Repeat("SECRET", 1000)), 400, `"field":"header ce-subject"`},
		{"not UTF-8 once it is unpacked", `{}`, append(binary, "Ce-Subject", "SECRET%FF"), 400, `UTF-8`},
		{"text", `SECRET`, append(binary, "Content-Type", "text/plain"), 400, `"field":"header ce-datacontenttype"`},
		{"nothing", ``, nil, 400, `bad_json`},
		{"Avro", "SECRET", []string{"Content-Type", "application/cloudevents+avro"}, 400, `bad_json`},
	} {
		w := send(Handler(d), "POST", "/v1/cloudevents", tc.body, append([]string{"Authorization", acme}, tc.headers...)...)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) || strings.Contains(w.Body.String(), "SECRET") {
			t.Errorf("%s: %d %s", tc.name, w.Code, w.Body)
		}
	}
}

// Each capture is taken whole, with the tenant of the credential above the one that the payload claims.
func TestLiteLLMDoor(t *testing.T) {
	for name, want := range map[string]int{"litellm-sdk-1.106.2-generic_api.json": 8, "litellm-proxy-1.106.2-generic_api.json": 7, "litellm-sdk-1.106.2-generic_api.raw-first-event.ndjson": 1} {
		j := &joiner{}
		d := deps(&log{})
		d.Join = j
		w := send(Handler(d), "POST", "/v1/litellm", zipped(t, captured(t, name)), "Content-Encoding", "gzip", "X-Evenhand-Tenant", "gateway")
		if w.Code != http.StatusAccepted || w.Body.String() != fmt.Sprintf("{\"accepted\":%d}\n", want) || len(j.parts) != want {
			t.Errorf("%s: %d %s, %d parts", name, w.Code, w.Body, len(j.parts))
		}
		for _, p := range j.parts {
			if p.Tenant != "gateway" || p.Group == "" || p.Key != p.Group {
				t.Errorf("%+v", p)
			}
		}
	}
	c := &ignoring{}
	d := deps(&log{})
	d.Metrics = c
	j := &joiner{}
	d.Join = j
	w := send(Handler(d), "POST", "/v1/litellm", logged+"\n"+`{"call_type":"aembedding","id":"e","messages":"x"}`)
	if w.Code != 202 || !strings.Contains(w.Body.String(), `{"accepted":1,"ignored":{"embedding":1}}`) || c.n != 1 || len(j.parts) != 1 || j.parts[0].Tenant != "" || j.parts[0].Claimed != "acme" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	d.Limits.Events = 1
	for _, tc := range []struct {
		body   string
		status int
		want   string
	}{
		{`[]`, 202, `{"accepted":0}`},
		{`[` + logged + `,{"prompt":"SECRET"}]`, 400, "payload 2: is no StandardLoggingPayload"},
		{`{"SECRET`, 400, "no JSON at byte"},
		{logged + logged, 413, "2 calls"},
	} {
		j.parts = nil
		if w := send(Handler(d), "POST", "/v1/litellm", tc.body); w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) || strings.Contains(w.Body.String(), "SECRET") || len(j.parts) > 0 {
			t.Errorf("%s: %d %s", tc.want, w.Code, w.Body)
		}
	}
}

type ignoring struct {
	counts
	n int
}

func (i *ignoring) Ignored(format, kind string, n int) {
	if format == "litellm" && kind == "embedding" {
		i.n += n
	}
}

// A body that is small on the wire is bounded by what it unpacks to.
func TestGzip(t *testing.T) {
	h := Handler(deps(&log{}))
	gz := []string{"Content-Encoding", "gzip"}
	whole := zipped(t, `{"response":"a"}`)
	for _, tc := range []struct {
		name, body string
		status     int
	}{
		{"taken", whole, 202},
		{"two members are one body", zipped(t, "{\"response\":\"a\"}\n") + zipped(t, "{\"response\":\"b\"}\n"), 202},
		{"a bomb", zipped(t, strings.Repeat(" ", 17<<20)), 413},
		{"broken off", whole[:len(whole)-4], 400},
		{"no gzip", `{"response":"a"}`, 400},
		{"nothing", ``, 400},
	} {
		if w := send(h, "POST", "/v1/interactions", tc.body, gz...); w.Code != tc.status {
			t.Errorf("%s: %d %s", tc.name, w.Code, w.Body)
		}
	}
}
