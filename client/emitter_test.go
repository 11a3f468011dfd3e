package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/client"
	"github.com/evenhand/evenhand/ingest"
	doors "github.com/evenhand/evenhand/ingest/door"
)

// log is the topic behind a real door.
type log struct {
	mu sync.Mutex
	ms []ingest.Message
}

func (l *log) Produce(_ context.Context, ms []ingest.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ms = append(l.ms, ms...)
	return nil
}

func (l *log) keys() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.ms {
		out = append(out, string(m.Key))
	}
	return out
}

const staticKey = "a-static-key-of-thirty-two-letters"

// server is the real door, behind what change makes of it.
func server(t *testing.T, change func(http.Handler) http.Handler) (*httptest.Server, *log) {
	t.Helper()
	l := &log{}
	a, err := auth.New(t.Context(), auth.Config{DefaultTenant: "acme", StaticKey: staticKey}, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := doors.Handler(doors.Deps{Auth: a, Decoder: ingest.NewDecoder(ingest.Options{DefaultTenant: "acme"}), Producer: l})
	if change != nil {
		h = change(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s, l
}

func dest(t *testing.T, s *httptest.Server, key string) *client.HTTP {
	t.Helper()
	d, err := client.NewHTTP(client.Server{URL: s.URL, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Events arrive at the door under their ids, in order, tenants and times as they were given.
func TestEmitHTTP(t *testing.T) {
	s, l := server(t, nil)
	e := emitter(t, dest(t, s, staticKey), nil)
	var want []string
	for i := range 1000 {
		id, err := e.Emit(client.Event{Prompt: "Who?", Response: fmt.Sprintf("%d: %s", i, clean), Domain: "hr", Provider: "openai", Model: "gpt-x", Metadata: map[string]any{"i": i}})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.keys(); !slices.Equal(got, want) {
		t.Errorf("%d of %d", len(got), len(want))
	}
	if s := e.Stats(); s.Emitted != 1000 || s.Sent != 1000 || len(s.Dropped) != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := e.Emit(client.Event{Response: "late"}); audit.KindOf(err) != audit.KindOverloaded || e.Dropped() != 1 {
		t.Errorf("closed: %v", err)
	}
}

// Over Kafka the key is the id and the tenant is a header.
func TestEmitKafka(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "llm.interactions"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	k, err := client.NewKafka(client.KafkaOptions{Brokers: c.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	e := emitter(t, k, nil)
	var want []string
	for range 20 {
		id, err := e.Emit(client.Event{Tenant: "acme", Prompt: "Who?", Response: clean})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: c.ListenAddrs(), Topic: "llm.interactions", MaxWait: 10 * time.Millisecond})
	defer r.Close() //nolint:errcheck // a test
	for _, id := range want {
		m, err := r.ReadMessage(t.Context())
		if err != nil || string(m.Key) != id || string(m.Headers[0].Value) != "acme" {
			t.Fatalf("%v %s %v", err, m.Key, m.Headers)
		}
	}
}

// A server that is busy is left alone for as long as it says.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked []time.Duration
		h := roundTrip(func(*http.Request) *http.Response {
			asked = append(asked, time.Since(began))
			switch len(asked) {
			case 1:
				return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"7"}}, Body: http.NoBody}
			case 2:
				return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)}}, Body: http.NoBody}
			case 3:
				return &http.Response{StatusCode: 401, Body: http.NoBody}
			}
			return &http.Response{StatusCode: 202, Body: http.NoBody}
		})
		d, err := client.NewHTTP(client.Server{URL: "http://evenhand", Client: &http.Client{Transport: h}})
		if err != nil {
			t.Fatal(err)
		}
		e, err := client.NewEmitter(d, client.DefaultEmitterOptions())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = e.Emit(client.Event{Response: clean}); err != nil {
			t.Fatal(err)
		}
		if err = e.Close(t.Context()); err != nil || len(asked) != 4 || asked[1]-asked[0] < 7*time.Second || asked[2]-asked[1] < 19*time.Second || asked[3]-asked[2] > 3*time.Second {
			t.Errorf("%v %v", err, asked)
		}
	})
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// One event that the door refuses takes no other with it.
func TestRefused(t *testing.T) {
	s, l := server(t, nil)
	var mu sync.Mutex
	told := map[string]int{}
	e := emitter(t, dest(t, s, staticKey), func(o *client.EmitterOptions) {
		o.Linger = time.Hour // all go together, at the end
		o.OnDrop = func(reason string, n int) {
			mu.Lock()
			defer mu.Unlock()
			told[reason] += n
		}
	})
	for i := range 5 {
		ev := client.Event{Response: clean}
		if i == 2 {
			ev.TraceID = "none"
		}
		if i == 3 {
			ev.Tenant = "another" // 403
		}
		if _, err := e.Emit(ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(t.Context()); err != nil || len(l.keys()) < 3 || e.Stats().Dropped[client.DroppedRefused] != uint64(5-len(l.keys())) {
		t.Errorf("%v %d %+v", err, len(l.keys()), e.Stats())
	}
	if told[client.DroppedRefused] == 0 {
		t.Errorf("told %v", told)
	}
}

// Emit never waits: what finds no room is refused, counted, and told.
func TestNeverBlocks(t *testing.T) {
	release := make(chan struct{})
	m := &memory{fail: func([]client.Encoded) error { <-release; return nil }}
	var drops int
	e := emitter(t, m, func(o *client.EmitterOptions) {
		o.Events, o.EventBytes = 10, 4096
		o.OnDrop = func(string, int) { drops++ }
	})
	taken := 0
	for range 100 {
		if _, err := e.Emit(client.Event{Response: clean}); err == nil {
			taken++
		} else if audit.KindOf(err) != audit.KindOverloaded {
			t.Fatal(err)
		}
	}
	if taken != 10 || drops != 90 || e.Stats().Dropped[client.DroppedFull] != 90 || e.Stats().Waiting != 10 {
		t.Errorf("%d taken, %d dropped, %+v", taken, drops, e.Stats())
	}
	if _, err := e.Emit(client.Event{Response: strings.Repeat("x", 5000)}); audit.KindOf(err) != audit.KindInvalid || strings.Contains(err.Error(), "xxx") {
		t.Errorf("large: %v", err)
	}
	if _, err := e.Emit(client.Event{Metadata: map[string]any{"f": func() {}}}); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("bad: %v", err)
	}
	close(release)
	if err := e.Flush(t.Context()); err != nil || len(m.ids()) != 10 {
		t.Errorf("%v %d", err, len(m.ids()))
	}

	// By bytes, too.
	stuck := make(chan struct{})
	m = &memory{fail: func([]client.Encoded) error { <-stuck; return nil }}
	e = emitter(t, m, func(o *client.EmitterOptions) { o.Bytes = 1000 })
	for range 100 {
		_, _ = e.Emit(client.Event{Response: clean})
	}
	if s := e.Stats(); s.WaitingBytes > 1000 || s.Emitted == 0 || s.Emitted > 5 {
		t.Errorf("%+v", s)
	}
	close(stuck)
}

// What the end takes away is counted, and Close comes back when its context ends.
func TestUnsent(t *testing.T) {
	away := audit.E("test", audit.KindUnavailable, errors.New("away"))
	m := &memory{fail: func([]client.Encoded) error { return away }}
	e := emitter(t, m, nil)
	for range 3 {
		_, _ = e.Emit(client.Event{Response: clean})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := e.Flush(ctx); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("flush: %v", err)
	}
	if err := e.Close(ctx); err == nil || e.Stats().Dropped[client.DroppedUnsent] != 3 || !m.closed {
		t.Errorf("%v %+v", err, e.Stats())
	}
}

// What is redacted never leaves; where redacting fails, nothing does.
func TestRedact(t *testing.T) {
	m := &memory{}
	e := emitter(t, m, func(o *client.EmitterOptions) {
		o.Redact = func(ev *client.Event) {
			if ev.Prompt == "panic" {
				panic("no")
			}
			ev.Prompt, ev.UserEmail = "[PROMPT]", ""
		}
	})
	if _, err := e.Emit(client.Event{Prompt: "I am Ann", UserEmail: "ann@example.com", Response: clean}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Emit(client.Event{Prompt: "panic"}); err == nil || e.Stats().Dropped[client.DroppedBad] != 1 {
		t.Errorf("%v", err)
	}
	_ = e.Flush(t.Context())
	if in := m.events(t); len(in) != 1 || in[0].Prompt != "[PROMPT]" || in[0].UserEmail != "" {
		t.Errorf("%+v", in)
	}
}

// The event's fields are those of the schema: all of them decode.
func TestEventFields(t *testing.T) {
	m := &memory{}
	e := emitter(t, m, nil)
	n, ms, cost := int32(3), int64(4), 0.5
	at := time.Now().Add(-time.Minute)
	if _, err := e.Emit(client.Event{
		ID: "order-7", Tenant: "acme", Timestamp: at, TraceID: strings.Repeat("a", 32), SpanID: strings.Repeat("b", 16), Status: client.Failed, Domain: "hr", Decision: "d1",
		Application: "app", Conversation: "c1", UserID: "u", UserEmail: "e", UserRole: "r", Messages: []client.Message{{Role: "user", Content: "Who?"}}, Response: clean, SanitizedPrompt: "s",
		QueryContext: map[string]any{"k": 1}, Metadata: map[string]any{"m": []int{1}}, Error: "x", Provider: "p", Model: "m", PromptTokens: &n, ResponseTokens: &n, LatencyMS: &ms, CostUSD: &cost,
	}); err != nil {
		t.Fatal(err)
	}
	_ = e.Flush(t.Context())
	in := m.events(t)[0]
	if in.GivenID != "order-7" || in.Tenant != "acme" || !in.Time.Equal(at.UTC().Truncate(time.Millisecond)) || in.TraceID[:2] != "aa" || in.Status != "error" || in.Domain != audit.HR || in.DecisionID != "d1" ||
		in.Prompt != "Who?" || in.QueryContext != `{"k":1}` || in.ErrorMessage != "x" || in.PromptTokens != 3 || in.LatencyMS != 4 || in.CostMicroUSD != 500_000 || in.SanitizedPrompt != "s" {
		t.Errorf("%+v", in)
	}
	var raw map[string]any
	if err := json.Unmarshal(m.es[0].JSON, &raw); err != nil || raw["prompt"] != nil {
		t.Errorf("%s", m.es[0].JSON)
	}
}

// The event of a call that the log would not take whole is cut, and says so.
func TestLargeCall(t *testing.T) {
	long := strings.Repeat(clean+" ", 20_000)
	a := newApp(t, nil)
	if _, _, err := a.post(t, newProvider(t, says(completion(long))).URL+"/v1/chat/completions", `{"messages":[{"role":"system","content":"`+long+`"},{"role":"user","content":"Who?"}]}`); err != nil {
		t.Fatal(err)
	}
	if e := a.event(t); e.Query != "Who?" || len(e.Response) < 200_000 || !strings.Contains(e.Metadata, `"text_cut":true`) {
		t.Errorf("%d %s", len(e.Response), e.Metadata)
	}
}

func TestEmitterRefused(t *testing.T) {
	for want, change := range map[string]func(*client.EmitterOptions){
		"Events":      func(o *client.EmitterOptions) { o.Events = 0 },
		"Spool.Dir":   func(o *client.EmitterOptions) { o.Spool = &client.SpoolOptions{} },
		"Spool.Bytes": func(o *client.EmitterOptions) { o.Spool = client.DefaultSpool("x"); o.Spool.Bytes = 1 },
	} {
		o := client.DefaultEmitterOptions()
		change(&o)
		if _, err := client.NewEmitter(&memory{}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := client.NewHTTP(client.Server{URL: "evenhand:8787"}); audit.KindOf(err) != audit.KindInvalid {
		t.Error(err)
	}
	if _, err := client.NewKafka(client.KafkaOptions{}); audit.KindOf(err) != audit.KindInvalid {
		t.Error(err)
	}
}
