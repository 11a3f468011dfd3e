package door

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest/call"
)

const (
	protobuf = "application/x-protobuf"
	langfuse = "/api/public/otel/v1/traces"
)

// oneSpan is a request with a call and with a span whose ids are none.
func oneSpan(t testing.TB) string {
	t.Helper()
	b, err := proto.Marshal(&coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{
		{TraceId: []byte("0123456789abcdef"), SpanId: []byte("01234567"), ParentSpanId: []byte("76543210")}, {SpanId: []byte("short")},
	}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func basic(secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("pk-lf-1:"+secret))
}

func TestOTLPTaken(t *testing.T) {
	traces, logs := captured(t, "otel-openai-v2-2.4b0-span.traces.bin"), captured(t, "otel-openai-v2-2.4b0-event.logs.bin")
	written := captured(t, "decoded/otel-openai-v2-2.4b0-span.traces.json")
	for _, tc := range []struct {
		name, path, body string
		headers          []string
		parts            int
		tenant           string
	}{
		{"traces", "/v1/traces", traces, []string{"Content-Type", protobuf}, 14, ""},
		{"traces of a tenant", "/v1/traces", traces, []string{"Content-Type", protobuf, "X-Evenhand-Tenant", "mine"}, 14, "mine"},
		{"traces in gzip", "/v1/traces", zipped(t, traces), []string{"Content-Type", protobuf, "Content-Encoding", "gzip"}, 14, ""},
		{"traces in JSON", "/v1/traces", written, []string{"Content-Type", "application/json"}, 14, ""},
		{"nothing", "/v1/traces", "", []string{"Content-Type", protobuf}, 0, ""},
		{"logs", "/v1/logs", logs, []string{"Content-Type", protobuf}, 7, ""},
		{"Langfuse", langfuse, zipped(t, captured(t, "langfuse-python-5.0.4-observe.traces.bin")), []string{"Content-Type", protobuf, "Content-Encoding", "gzip"}, 14, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := &joiner{}
			d := deps(&log{})
			d.Join = j
			w := send(Handler(d), "POST", tc.path, tc.body, tc.headers...)
			want := ""
			if tc.headers[1] != protobuf {
				want = "{}"
			}
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != tc.headers[1] || w.Body.String() != want || len(j.parts) != tc.parts {
				t.Fatalf("%d %s %q, %d parts", w.Code, w.Header().Get("Content-Type"), w.Body, len(j.parts))
			}
			for _, p := range j.parts {
				if p.Tenant != tc.tenant {
					t.Errorf("tenant %q", p.Tenant)
				}
			}
		})
	}
}

// What is at fault by itself is told as a partial success, in the encoding of the request.
func TestOTLPPartial(t *testing.T) {
	j := &joiner{}
	d := deps(&log{})
	d.Join = j
	h := Handler(d)
	w := send(h, "POST", "/v1/traces", oneSpan(t), "Content-Type", protobuf)
	var m coltracepb.ExportTraceServiceResponse
	if err := proto.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != 200 || m.PartialSuccess.GetRejectedSpans() != 1 || m.PartialSuccess.GetErrorMessage() == "" || len(j.parts) != 1 {
		t.Errorf("%d %v %v, %d parts", w.Code, &m, err, len(j.parts))
	}
	w = send(h, "POST", "/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"gen_ai.choice"},{"eventName":"other"}]}]}]}`, "Content-Type", "application/json")
	var got struct {
		PartialSuccess struct{ RejectedLogRecords, ErrorMessage string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || got.PartialSuccess.RejectedLogRecords != "1" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	j.err = audit.E("join", audit.KindInvalid, &call.Partial{Refused: 1, Why: "no tenant"})
	w = send(h, "POST", "/v1/traces", oneSpan(t), "Content-Type", protobuf)
	if err := proto.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != 200 || m.PartialSuccess.GetRejectedSpans() != 2 || m.PartialSuccess.GetErrorMessage() != "no tenant" {
		t.Errorf("what the joiner refuses: %d %v %v", w.Code, &m, err)
	}
	w = send(h, "POST", "/v1/litellm", logged)
	if w.Code != 202 || w.Body.String() != `{"accepted":0,"refused":1,"why":"no tenant"}`+"\n" {
		t.Errorf("what the joiner refuses: %d %s", w.Code, w.Body)
	}
	w = send(h, "POST", "/v1/logs", "", "Content-Type", protobuf)
	if err := proto.Unmarshal(w.Body.Bytes(), &collogspb.ExportLogsServiceResponse{}); err != nil || w.Code != 200 {
		t.Error(w.Code, err)
	}
}

func TestOTLPRefused(t *testing.T) {
	const key = "0123456789abcdef"
	locked := guard(auth.Config{Required: true, StaticKey: key, DefaultTenant: "default"})
	open := opened("default")
	broken := errors.New("no class")
	for _, tc := range []struct {
		name, path, body string
		headers          []string
		auth             Guard
		err              error
		want             int
		code             int32
	}{
		{"broken off", "/v1/traces", "\x0a\xff", nil, open, nil, 400, 3},
		{"no gzip", "/v1/traces", "abc", []string{"Content-Encoding", "gzip"}, open, nil, 400, 3},
		{"gzip breaks off", "/v1/traces", zipped(t, "abc")[:12], []string{"Content-Encoding", "gzip"}, open, nil, 400, 3},
		{"another encoding", "/v1/traces", "", []string{"Content-Encoding", "zstd"}, open, nil, 415, 3},
		{"another type", "/v1/traces", "", []string{"Content-Type", "text/plain"}, open, nil, 415, 3},
		{"nobody", "/v1/logs", "", nil, locked, nil, 401, 16},
		{"Basic elsewhere", "/v1/traces", "", []string{"Authorization", basic(key)}, locked, nil, 401, 16},
		{"another secret", langfuse, "", []string{"Authorization", basic("x")}, locked, nil, 401, 16},
		{"no secret", langfuse, "", []string{"Authorization", basic("")}, locked, nil, 401, 16},
		{"the pair", langfuse, "", []string{"Authorization", basic(key)}, locked, nil, 200, 0},
		{"a bearer there", langfuse, "", []string{"Authorization", "Bearer " + key}, locked, nil, 200, 0},
		{"down", "/v1/traces", oneSpan(t), nil, open, audit.E("test", audit.KindUnavailable, broken), 503, 14},
		{"full", "/v1/traces", oneSpan(t), nil, open, audit.E("test", audit.KindOverloaded, broken), 429, 8},
		{"unknown is tried again", "/v1/traces", oneSpan(t), nil, open, broken, 503, 14},
		{"too large for the log", "/v1/traces", oneSpan(t), nil, open, audit.E("test", audit.KindInvalid, broken), 413, 8},
	} {
		for _, kind := range []string{protobuf, "application/json"} {
			if kind != protobuf && (len(tc.body) > 0 || len(tc.headers) > 0 && tc.headers[0] == "Content-Type") {
				continue
			}
			t.Run(tc.name+" "+kind, func(t *testing.T) {
				d := deps(&log{})
				d.Auth, d.Join = tc.auth, &joiner{err: tc.err}
				body := tc.body
				if kind != protobuf {
					body = "{}"
				}
				w := send(Handler(d), "POST", tc.path, body, append([]string{"Content-Type", kind}, tc.headers...)...)
				if w.Code != tc.want {
					t.Fatalf("%d %q", w.Code, w.Body)
				}
				if (w.Code == 503 || w.Code == 429) == (w.Header().Get("Retry-After") == "") {
					t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
				}
				if w.Code == 200 {
					return
				}
				var m statuspb.Status
				if kind == protobuf {
					if err := proto.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Header().Get("Content-Type") != protobuf {
						t.Fatal(err, w.Header())
					}
				} else if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
					t.Fatal(err)
				}
				if m.GetCode() != tc.code || m.GetMessage() == "" || strings.Contains(m.GetMessage(), "no class") {
					t.Errorf("%v", &m)
				}
			})
		}
	}
	d := deps(&log{})
	d.Join = nil
	if w := send(Handler(d), "POST", "/v1/traces", ""); w.Code != 404 {
		t.Errorf("served without what takes parts: %d", w.Code)
	}
}

// OpenTelemetry's own exporter is content with the answers, and sends again what it is asked to.
func TestExporter(t *testing.T) {
	j := &joiner{}
	d := deps(&log{})
	d.Join = j
	h := Handler(d)
	tries := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			w = &otlpAnswer{w, false}
			fail(w, notServed(audit.E("test", audit.KindOverloaded, os.ErrClosed), nil))
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(srv.URL+"/v1/traces"), otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Millisecond, MaxInterval: time.Second, MaxElapsedTime: time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter), trace.WithResource(resource.NewSchemaless(attribute.String("service.name", "desk"))))
	_, span := provider.Tracer("app").Start(t.Context(), "chat m")
	span.SetAttributes(attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.output.messages", "hi"))
	span.End()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if len(j.parts) != 1 || tries != 2 || j.parts[0].Service != "desk" || j.parts[0].Kind != call.Model {
		t.Errorf("%d tries, %+v", tries, j.parts)
	}
}

// A body that does not come gives its place back.
func TestSlowBody(t *testing.T) {
	d := deps(&log{})
	d.Limits = Limits{BodyTime: 20 * time.Millisecond, InFlight: 1}
	srv := httptest.NewServer(Handler(d))
	defer srv.Close()
	for range 2 {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: 100\r\n\r\nab")); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusBadRequest {
			t.Fatalf("%+v %v", res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		_ = conn.Close()
	}
}

// Ten megabytes that unpack to ten gigabytes are refused after the first sixteen megabytes.
func TestGzipBomb(t *testing.T) {
	bomb := strings.Repeat(zipped(t, string(make([]byte, 16<<20))), 640)
	d := deps(&log{})
	d.Join = &joiner{}
	h := Handler(d)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := send(h, "POST", "/v1/traces", bomb, "Content-Type", protobuf, "Content-Encoding", "gzip")
	runtime.ReadMemStats(&after)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d", w.Code)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 150 {
		t.Errorf("%d MiB for a bomb of %d MiB", took, len(bomb)>>20)
	}
}
