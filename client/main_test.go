package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"github.com/evenhand/evenhand/client"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/sources"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		emitUntilKilled(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	clean    = "Maria has led two teams for six years and meets every requirement."
	biased   = "Women are too emotional to be good executives."
	cards    = "Her card is 4111 1111 1111 1111, her other one 5555 5555 5555 4444."
	transfer = "I will transfer $5,000 to account 7."
)

// memory is a Destination that keeps what it takes.
type memory struct {
	mu     sync.Mutex
	es     []client.Encoded
	sends  int
	fail   func(es []client.Encoded) error // nil takes all
	closed bool
	forget bool
}

func (m *memory) Send(_ context.Context, es []client.Encoded) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sends++
	if m.fail != nil {
		if err := m.fail(es); err != nil {
			return err
		}
	}
	if m.forget {
		return nil
	}
	for _, e := range es {
		e.JSON = slices.Clone(e.JSON)
		m.es = append(m.es, e)
	}
	return nil
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// ids are those of what was taken, in order.
func (m *memory) ids() (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.es {
		out = append(out, e.ID)
	}
	return out
}

// events are what was taken, as the pipeline decodes it.
func (m *memory) events(t *testing.T) (out []*audit.Interaction) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	d := ingest.NewDecoder(ingest.Options{DefaultTenant: "default"})
	for _, e := range m.es {
		in, faults := d.Check(sources.Record{Time: time.Now(), Value: e.JSON}, audit.Origin{BrokerTime: time.Now()})
		if len(faults) > 0 {
			t.Fatalf("the pipeline would refuse %s: %v", e.JSON, faults)
		}
		out = append(out, in)
	}
	return out
}

func emitter(t *testing.T, dest client.Destination, change func(*client.EmitterOptions)) *client.Emitter {
	t.Helper()
	o := client.DefaultEmitterOptions()
	o.Linger = 0
	if change != nil {
		change(&o)
	}
	e, err := client.NewEmitter(dest, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = e.Close(ctx)
	})
	return e
}

// completion is a whole answer of /chat/completions.
func completion(texts ...string) string {
	var choices []map[string]any
	for i, s := range texts {
		choices = append(choices, map[string]any{"index": i, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": s}})
	}
	b, _ := json.Marshal(map[string]any{"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-x-2026", "choices": choices,
		"usage": map[string]any{"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46}})
	return string(b)
}

// chunks tells a completion in pieces.
func chunks(text string) string {
	var b strings.Builder
	chunk := func(delta map[string]any, finish any) {
		c, _ := json.Marshal(map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-x-2026",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(&b, "data: %s\n\n", c)
	}
	chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, w := range strings.SplitAfter(text, " ") {
		chunk(map[string]any{"content": w}, nil)
	}
	chunk(map[string]any{}, "stop")
	b.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-x-2026","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46}}` + "\n\ndata: [DONE]\n\n")
	return b.String()
}

// response is a whole answer of /responses.
func response(text string) string {
	q, _ := json.Marshal(text)
	return `{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed","model":"gpt-x-2026","output":[` +
		`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":` + string(q) + `,"annotations":[]}]}],` +
		`"usage":{"input_tokens":12,"output_tokens":34,"total_tokens":46},"x_unknown":1.0}`
}

// responseEvents tells it in pieces.
func responseEvents(text string) string {
	var b strings.Builder
	n := 0
	event := func(kind, fields string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", kind, kind, n, fields)
		n++
	}
	quoted := func(s string) string { q, _ := json.Marshal(s); return string(q) }
	event("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-x-2026","output":[]}`)
	event("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}`)
	for _, w := range strings.SplitAfter(text, " ") {
		event("response.output_text.delta", `"item_id":"msg_1","output_index":0,"content_index":0,"delta":`+quoted(w))
	}
	event("response.output_text.done", `"item_id":"msg_1","output_index":0,"content_index":0,"text":`+quoted(text))
	event("response.completed", `"response":`+response(text))
	return b.String()
}

// provider is a fake upstream that answers with a body.
type provider struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // bodies
}

func newProvider(t *testing.T, serve http.HandlerFunc) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.asked = append(p.asked, string(b))
		p.mu.Unlock()
		serve(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "req_1")
		_, _ = io.WriteString(w, body)
	}
}

func streams(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range strings.SplitAfter(body, "\n\n") {
			_, _ = io.WriteString(w, e)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// inProcess is compiled once.
var inProcess = sync.OnceValues(func() (*client.InProcess, error) { return client.NewInProcess(client.InProcessOptions{}) })

func decider(t testing.TB) *client.InProcess {
	t.Helper()
	d, err := inProcess()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// app is an application: its HTTP client judges, its events go to a memory.
type app struct {
	*http.Client
	transport *client.Transport
	emitter   *client.Emitter
	sent      *memory
}

func newApp(t *testing.T, change func(*client.Options)) *app {
	t.Helper()
	a := &app{sent: &memory{}}
	a.emitter = emitter(t, a.sent, nil)
	o := client.DefaultOptions()
	o.Emitter = a.emitter
	if change != nil {
		change(&o)
	}
	next := &http.Transport{DisableCompression: true}
	t.Cleanup(next.CloseIdleConnections)
	var err error
	if a.transport, err = client.NewTransport(next, decider(t), o); err != nil {
		t.Fatal(err)
	}
	a.Client = &http.Client{Transport: a.transport}
	return a
}

// event is the one event of the calls so far.
func (a *app) event(t *testing.T) *audit.Interaction {
	t.Helper()
	if err := a.emitter.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	es := a.sent.events(t)
	if len(es) != 1 {
		t.Fatalf("%d events", len(es))
	}
	return es[0]
}

// blocks makes HR's options stop what is biased.
func blocks(o *client.Options) { o.Domain, o.BiasAction = audit.HR, audit.Block }

// post asks and reads the answer to its end.
func (a *app) post(t *testing.T, url, body string) (head *reply, got string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := a.Do(req)
	if err != nil {
		return nil, "", err
	}
	return drained(res)
}

// reply is an answer without its body.
type reply struct {
	StatusCode int
	Header     http.Header
}

func drained(res *http.Response) (*reply, string, error) {
	b, err := io.ReadAll(res.Body)
	return &reply{res.StatusCode, res.Header}, string(b), errors.Join(err, res.Body.Close())
}
