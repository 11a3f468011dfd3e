package door

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/reply"
	"github.com/evenhand/evenhand/sources"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 11, 21, 10, 43, 0, 0, time.UTC)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
	uuid7   = "01a1fdb3-bfcb-7b1e-9d55-0c1f2a3b4c5d"
)

// log is a Producer that keeps what it took.
type log struct {
	mu  sync.Mutex
	ms  []Message
	err error
}

func (l *log) Produce(_ context.Context, ms []Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.ms = append(l.ms, ms...)
	}
	return l.err
}

// counts is a Metrics.
type counts struct {
	mu   sync.Mutex
	seen []string
}

func (c *counts) Request(route string, code int, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, fmt.Sprintf("%s %d", route, code))
}

// opened asks nobody who calls, as on a loopback listener where nothing is configured.
func opened(defaultTenant string) Guard { return guard(auth.Config{DefaultTenant: defaultTenant}) }

func guard(c auth.Config) Guard {
	a, err := auth.New(context.Background(), c, auth.Options{})
	if err != nil {
		panic(err)
	}
	return a // without issuer and store there is nothing to close
}

func deps(l *log) Deps {
	return Deps{
		Auth:     opened("default"),
		Decoder:  ingest.NewDecoder(ingest.Options{DefaultTenant: "default"}),
		Producer: l,
		Join:     &joiner{},
		Analyze:  func(context.Context, *audit.Interaction) *audit.Verdict { return &audit.Verdict{Status: audit.Done} },
		Evaluate: func(context.Context, EvaluateRequest) (any, error) { return map[string]any{"score": 1}, nil },
		Replay:   func(_ context.Context, r ReplayRequest) (any, error) { return replayed(r) },
		Now:      func() time.Time { return now },
	}
}

func send(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+target, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestInteractionsTaken(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		headers    []string
		want       int
	}{
		{"one", `{"response":"a"}`, nil, 1},
		{"one over several lines", "{\n \"response\": \"a\"\n}\n", nil, 1},
		{"array", `[{"response":"a"},{"response":"b"}]`, nil, 2},
		{"of a file with a byte order mark", "\xef\xbb\xbf" + `[{"response":"a"},{"response":"b"}]`, nil, 2},
		{"NDJSON by its content type", "{\"response\":\"a\"}\n\n{\"response\":\"b\"}\r\n", []string{"Content-Type", "application/x-ndjson; charset=utf-8"}, 2},
		{"NDJSON by its look", "{\"response\":\"a\"}\n{\"response\":\"b\"}", []string{"Content-Type", "application/json"}, 2},
		{"one line of NDJSON", "{\"response\":\"a\"}\n", []string{"Content-Type", "application/jsonl"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &log{}
			w := send(Handler(deps(l)), "POST", "/v1/interactions", tc.body, tc.headers...)
			var got struct {
				Accepted int
				IDs      []string
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusAccepted {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if got.Accepted != tc.want || len(got.IDs) != tc.want || len(l.ms) != tc.want {
				t.Fatalf("%+v, %d produced", got, len(l.ms))
			}
			for i, m := range l.ms {
				if string(m.Key) != got.IDs[i] {
					t.Errorf("key %s, id %s", m.Key, got.IDs[i])
				}
			}
		})
	}
}

// TestStamps: what the log holds decodes to the id that was answered, with time and trace.
func TestStamps(t *testing.T) {
	l := &log{}
	h := Handler(deps(l))
	d := ingest.NewDecoder(ingest.Options{})
	stored := func(body string, headers ...string) (*audit.Interaction, Message) {
		t.Helper()
		l.ms = nil
		if w := send(h, "POST", "/v1/interactions", body, headers...); w.Code != http.StatusAccepted {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		m := l.ms[0]
		in, rej := d.Decode(sources.Record{Key: m.Key, Value: m.Value, Headers: m.Headers, Time: now}, audit.Origin{BrokerTime: now.Add(time.Hour)})
		if rej != nil {
			t.Fatal(rej.Detail)
		}
		if in.ID.String() != string(m.Key) || in.IDAssumed {
			t.Errorf("not stamped: %+v", in)
		}
		return in, m
	}
	in, m := stored(`{"response":"a","tenant_id":"acme"}`, "Traceparent", parent)
	if at, ok := in.ID.Time(); !ok || !at.Equal(now) || !in.Time.Equal(now) || in.TimeAssumed || in.TraceID != traceID || in.SpanID != "00f067aa0ba902b7" {
		t.Errorf("%+v", in)
	}
	if len(m.Headers) != 1 || m.Headers[0].Key != "traceparent" || string(m.Headers[0].Value) != parent {
		t.Errorf("headers %s", m.Headers)
	}
	in, m = stored(`{"response":"a"}`, "X-Evenhand-Tenant", "acme", "Traceparent", "nonsense")
	if in.Tenant != "acme" || !audit.ValidTraceID(in.TraceID) || m.Headers[0].Key != ingest.HeaderTenant {
		t.Errorf("%+v %s", in, m.Headers)
	}
	if trace, _, ok := audit.ParseTraceparent(string(m.Headers[1].Value)); !ok || trace != in.TraceID {
		t.Errorf("the trace of the header is another one: %s", m.Headers[1].Value)
	}
	if in, _ = stored(`{"response":"a","tenant_id":"acme","id":"` + uuid7 + `"}`); in.Time.Equal(now) {
		t.Error("a time was stamped over that of the id")
	}
	if in, _ = stored(`{"response":"a","tenant_id":"acme","id":"order-1"}`); in.GivenID != "order-1" || in.ID != audit.DeriveID("acme", "order-1") || !in.Time.Equal(now) || !in.TimeAssumed {
		t.Errorf("%+v", in)
	}
}

// TestRetries: whoever sends an event again, under its own id or under the one that was answered, sends the same event,
// whatever the time; the key of its row is tenant, day, id, digest.
func TestRetries(t *testing.T) {
	l, clock := &log{}, now
	d := deps(l)
	d.Now = func() time.Time { return clock }
	h := Handler(d)
	sent := func(body string) *audit.Interaction {
		t.Helper()
		clock, l.ms = clock.Add(1200*time.Millisecond), nil
		if w := send(h, "POST", "/v1/interactions", body); w.Code != http.StatusAccepted {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		in, rej := d.Decoder.Decode(sources.Record{Value: l.ms[0].Value, Headers: l.ms[0].Headers}, audit.Origin{BrokerTime: clock.Add(time.Minute)})
		if rej != nil {
			t.Fatal(rej.Detail)
		}
		return in
	}
	for _, id := range []string{"retry-1", uuid7, "6e0f2d3c-51a1-4d6e-9f3a-2b7c1d0e9f11"} {
		body := `{"id":"` + id + `","tenant_id":"rt","response":"same"}`
		direct, rej := d.Decoder.Decode(sources.Record{Value: []byte(body)}, audit.Origin{BrokerTime: now})
		if rej != nil {
			t.Fatal(rej.Detail)
		}
		one, two := sent(body), sent(body)
		if one.ID != two.ID || one.Digest != two.Digest || one.Digest != direct.Digest || !one.SortTime().Equal(two.SortTime()) {
			t.Errorf("%s: another event the second time\n%+v\n%+v", id, one, two)
		}
		if id != uuid7 && (!one.Time.Equal(clock.Add(-1200*time.Millisecond)) || !two.Time.Equal(clock)) {
			t.Errorf("%s: times %s and %s are not those at the door", id, one.Time, two.Time)
		}
	}
	answered := sent(`{"tenant_id":"rt","response":"same"}`)
	if again := sent(`{"id":"` + answered.ID.String() + `","tenant_id":"rt","response":"same"}`); again.Digest != answered.Digest || !again.Time.Equal(answered.Time) {
		t.Errorf("under the id that was answered: %+v, first %+v", again, answered)
	}
}

func TestInteractionsRefused(t *testing.T) {
	long := strings.Repeat("x", 2<<20)
	for _, tc := range []struct {
		name, body string
		headers    []string
		status     int
		want       []string
	}{
		{"every bad line is listed", "{\"response\":\"a\"}\n{\"respose\":\"SECRET\"}\n\n{\"timestamp\":\"SECRET\",\"status\":\"SECRET\"}\n{\"response\":", []string{"Content-Type", "application/x-ndjson"}, 400,
			[]string{`"BAD_EVENTS"`, `3 of 4 events are at fault and none was taken`, `{"line":2,"field":"respose","code":"unknown_field"`, `put your own fields under metadata`,
				`{"line":4,"field":"timestamp","code":"bad_value"`, `{"line":4,"field":"status"`, `{"line":5,"field":"","code":"bad_json"`}},
		{"array position", `[{"response":"a"},7]`, nil, 400, []string{`{"line":2,"field":"","code":"wrong_type"`}},
		{"broken array", `[{"response":"a"},`, nil, 400, []string{`"bad_json"`}},
		{"empty array", `[]`, nil, 400, []string{`the array is empty`}},
		{"empty body", " \n", nil, 400, []string{`the body is empty`}},
		{"tenants differ", `{"tenant_id":"a"}`, []string{"X-Evenhand-Tenant", "b"}, 403, []string{`"tenant_mismatch"`}},
		{"tenant header", `{}`, []string{"X-Evenhand-Tenant", "a b"}, 400, []string{`header X-Evenhand-Tenant`}},
		{"invalid UTF-8", "{\"response\":\"\xff\"}", nil, 400, []string{`"invalid_utf8"`}},
		{"40 levels", strings.Repeat(`{"metadata":`, 40) + "1" + strings.Repeat("}", 40), nil, 400, []string{`"too_deep"`}},
		{"date of 1970", `{"timestamp":"1970-01-01T00:00:00Z"}`, nil, 400, []string{`"event_time"`}},
		{"event of 2 MiB", `{"response":"` + long + `"}`, nil, 413, []string{`"PAYLOAD_TOO_LARGE"`, `"too_large"`}},
		{"body of 17 MiB", strings.Repeat(" ", 17<<20), nil, 413, []string{`16777216 bytes`}},
		{"too many events", "[" + strings.Repeat("{},", 10_000) + "{}]", nil, 413, []string{`10001 events`}},
		{"too many lines", strings.Repeat("{}\n", 10_001), nil, 413, []string{`10001 events`}},
		{"compressed", `{}`, []string{"Content-Encoding", "br"}, 415, []string{`Content-Encoding`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &log{}
			w := send(Handler(deps(l)), "POST", "/v1/interactions", tc.body, tc.headers...)
			if w.Code != tc.status || len(l.ms) != 0 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%d, %d produced: %s", w.Code, len(l.ms), w.Body)
			}
			for _, want := range tc.want {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("does not say %s: %s", want, w.Body)
				}
			}
			if strings.Contains(w.Body.String(), "SECRET") {
				t.Errorf("holds text of the event: %s", w.Body)
			}
		})
	}
}

// TestManyFaults: the list ends, the count does not.
func TestManyFaults(t *testing.T) {
	w := send(Handler(deps(&log{})), "POST", "/v1/interactions", strings.Repeat("{\"a\":1}\n", 1500))
	var got badEvents
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 400 || len(got.Errors) != maxLineFaults || got.Omitted != 500 {
		t.Errorf("%d: %d errors, %d omitted, %v", w.Code, len(got.Errors), got.Omitted, err)
	}
}

func TestMessageLimit(t *testing.T) {
	d := deps(&log{})
	d.Limits.Message = 300
	if w := send(Handler(d), "POST", "/v1/interactions", `{"response":"`+strings.Repeat("x", 200)+`"}`); w.Code != 413 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := send(Handler(d), "POST", "/v1/interactions", `{}`); w.Code != 202 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestBrokerFaults(t *testing.T) {
	for _, tc := range []struct {
		kind   audit.Kind
		status int
		code   string
	}{{audit.KindOverloaded, 429, reply.Overloaded}, {audit.KindUnavailable, 503, reply.Unavailable}, {audit.KindInvalid, 413, reply.TooLarge}, {audit.KindInternal, 500, reply.Internal}} {
		l := &log{err: audit.E("test: produce", tc.kind, errors.New("SECRET"))}
		w := send(Handler(deps(l)), "POST", "/v1/interactions", `{"id":"`+uuid7+`"}`)
		again := tc.status == 429 || tc.status == 503
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.code) || strings.Contains(w.Body.String(), "SECRET") || !strings.Contains(w.Body.String(), uuid7) || (w.Header().Get("Retry-After") != "") != again {
			t.Errorf("%s: %d %s %v", tc.kind, w.Code, w.Body, w.Header())
		}
	}
}

func TestKey(t *testing.T) {
	d := deps(&log{})
	d.Auth = guard(auth.Config{Required: true, StaticKey: "0123456789abcdef", DefaultTenant: "default"})
	h := Handler(d)
	for _, tc := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"none", nil, 401},
		{"bearer", []string{"Authorization", "Bearer 0123456789abcdef"}, 202},
		{"bearer in lower case", []string{"Authorization", "bearer 0123456789abcdef"}, 202},
		{"x-api-key", []string{"X-API-Key", "0123456789abcdef"}, 202},
		{"wrong", []string{"X-API-Key", "0123456789abcdeX"}, 401},
		{"longer", []string{"X-API-Key", "0123456789abcdef0"}, 401},
		{"basic", []string{"Authorization", "Basic 0123456789abcdef"}, 401},
		{"empty", []string{"Authorization", "Bearer "}, 401},
	} {
		w := send(h, "POST", "/v1/interactions", `{}`, tc.headers...)
		if w.Code != tc.want || (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d", tc.name, w.Code)
		}
	}
	for _, path := range []string{"/analyze-bias", "/v1/evaluate"} {
		if w := send(h, "POST", path, `{}`); w.Code != 401 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := send(h, "GET", "/openapi.json", ""); w.Code != 200 {
		t.Errorf("openapi: %d", w.Code)
	}
}

func TestPathsMethodsAndMetrics(t *testing.T) {
	c := &counts{}
	d := deps(&log{})
	d.Metrics = c
	h := Handler(d)
	for _, tc := range []struct {
		method, path string
		want         int
	}{{"GET", "/v1/interactions", 405}, {"PUT", "/analyze-bias", 405}, {"POST", "/openapi.json", 405}, {"HEAD", "/openapi.json", 200}, {"GET", "/nothing", 404}, {"GET", "/", 404}} {
		w := send(h, tc.method, tc.path, "")
		if w.Code != tc.want || w.Header().Get("Content-Type") != "application/json" || (tc.want == 405) != (w.Header().Get("Allow") != "") {
			t.Errorf("%s %s: %d %v", tc.method, tc.path, w.Code, w.Header())
		}
	}
	want := []string{"/v1/interactions 405", "/analyze-bias 405", "/openapi.json 405", "/openapi.json 200", "other 404", "other 404"}
	if !slices.Equal(c.seen, want) {
		t.Errorf("counted %v", c.seen)
	}
	if w := send(Handler(Deps{Decoder: d.Decoder, Analyze: d.Analyze}), "POST", "/v1/interactions", "{}"); w.Code != 404 {
		t.Errorf("a door without its part answers %d", w.Code)
	}
}

func TestPanicAndLogsHoldNoText(t *testing.T) {
	var logged bytes.Buffer
	d := deps(&log{err: errors.New("SECRET")})
	d.Logger = slog.New(slog.NewJSONHandler(&logged, nil))
	d.Evaluate = func(_ context.Context, r EvaluateRequest) (any, error) { panic(r.Output) }
	d.Analyze = func(_ context.Context, in *audit.Interaction) *audit.Verdict { panic(in.Response) }
	h := Handler(d)
	for _, tc := range []struct{ path, body, code string }{
		{"/v1/evaluate", `{"output":"SECRET","api_key":"SECRET"}`, reply.Internal},
		{"/analyze-bias", `{"llm_response":"SECRET"}`, CodeAnalysisFailed},
		{"/v1/interactions", `{"response":"SECRET"}`, reply.Internal},
	} {
		w := send(h, "POST", tc.path, tc.body)
		if w.Code != 500 || !strings.Contains(w.Body.String(), tc.code) || strings.Contains(w.Body.String(), "SECRET") {
			t.Errorf("%s: %d %s", tc.path, w.Code, w.Body)
		}
	}
	if logged.Len() == 0 || strings.Contains(logged.String(), "SECRET") {
		t.Errorf("logged: %s", &logged)
	}
}

func TestTooManyAtOnce(t *testing.T) {
	d := deps(&log{})
	d.Limits.InFlight = 1
	entered, leave := make(chan struct{}), make(chan struct{})
	d.Evaluate = func(context.Context, EvaluateRequest) (any, error) {
		close(entered)
		<-leave
		return "done", nil
	}
	h := Handler(d)
	var wg sync.WaitGroup
	wg.Go(func() { send(h, "POST", "/v1/evaluate", `{"output":"x"}`) })
	<-entered
	if w := send(h, "POST", "/v1/interactions", `{}`); w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d", w.Code)
	}
	close(leave)
	wg.Wait()
	if w := send(h, "POST", "/v1/interactions", `{}`); w.Code != 202 {
		t.Errorf("%d", w.Code)
	}
}

// TestBrokenBody: a body that ends early is the sender's fault.
func TestBrokenBody(t *testing.T) {
	r := httptest.NewRequest("POST", "http://localhost/v1/interactions", io.MultiReader(strings.NewReader("{"), brokenReader{}))
	w := httptest.NewRecorder()
	Handler(deps(&log{})).ServeHTTP(w, r)
	if w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, b.Bytes()) {
		t.Errorf("%s differs; run with -update and look at the change:\n%s", path, b.Bytes())
	}
}
