package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/guard/guardtest"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/sources"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Texts that the shipped rules know.
const (
	clean  = "The capital of France is Paris. It lies on the Seine."
	biased = "Women are too emotional to be good executives. That is what they say."
	wire   = "I will transfer $5,000 to account 12345 now."
)

// provider is a provider of models on loopback that answers what the prompt's words ask for.
type provider struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []*http.Request
	bodies []string
	serve  http.HandlerFunc
	gone   chan struct{} // closed when a caller went away
}

func newProvider(t testing.TB, serve http.HandlerFunc) *provider {
	p := &provider{serve: serve, gone: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.asked, p.bodies = append(p.asked, r.Clone(context.WithoutCancel(r.Context()))), append(p.bodies, string(b))
		p.mu.Unlock()
		p.serve(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) last() (*http.Request, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[len(p.asked)-1], p.bodies[len(p.bodies)-1]
}

func (p *provider) calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

// completion is a whole answer with fields that we do not know, oddly spaced.
func completion(text string) string {
	return `{"id":"chatcmpl-1", "object":"chat.completion","created":1700000000,"model":"gpt-x-2026","system_fingerprint":"fp_1",` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":` + string(quoted(text)) + `,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46,"x_unknown":{"a":1e2}} , "x_more": [1, 2]}`
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Ratelimit-Remaining-Requests", "99")
		_, _ = io.WriteString(w, completion(text))
	}
}

// pieces cuts a text into chunks of a stream, at spaces.
func pieces(text string) (out []string) {
	out = append(out, `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x-2026","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`)
	for _, word := range strings.SplitAfter(text, " ") {
		out = append(out, `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x-2026","choices":[{"index":0,"delta":{"content":`+string(quoted(word))+`},"finish_reason":null}]}`)
	}
	return append(out,
		`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x-2026","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x-2026","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46}}`,
		`[DONE]`)
}

// streams writes chunks as events, with a line end of its own.
func streams(end string, chunks ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, c := range chunks {
			_, _ = io.WriteString(w, "data: "+c+end+end)
			w.(http.Flusher).Flush()
		}
	}
}

// ledger is the log.
type ledger struct {
	mu  sync.Mutex
	ms  []ingest.Message
	err error
}

func (l *ledger) Produce(_ context.Context, ms []ingest.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.ms = append(l.ms, ms...)
	return nil
}

// figures counts.
type figures struct {
	mu     sync.Mutex
	calls  []string
	events map[string]int
	masked map[string]int
}

func (f *figures) GatewayCall(up string, status int, action string, _ time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf("%s %d %s", up, status, action))
}

func (f *figures) GatewayEvent(outcome string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events == nil {
		f.events = map[string]int{}
	}
	f.events[outcome] += n
}

func (f *figures) GatewayMasked(side, entity string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.masked == nil {
		f.masked = map[string]int{}
	}
	f.masked[side+" "+entity] += n
}

// stand is a gateway before a provider.
type stand struct {
	t       testing.TB
	g       *Gateway
	http    *httptest.Server
	ledger  *ledger
	figures *figures
	close   func()
}

func open() Config {
	c := DefaultConfig()
	c.Enabled, c.KeepAlive = true, 20*time.Millisecond
	c.Overrides = OverrideNames()
	return c
}

// start puts a gateway before a provider; change may alter both settings and parts.
func start(t testing.TB, base string, change func(c *Config, d *Deps)) *stand {
	t.Helper()
	a, err := auth.New(t.Context(), auth.Config{DefaultTenant: "acme"}, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{t: t, ledger: &ledger{}, figures: &figures{}}
	c := open()
	c.BaseURL = base + "/v1"
	c.Guard.Domain = "hr" // under which biased is flagged
	inline := guard.New(guardtest.Current(t), guard.Config{})
	d := Deps{Guard: inline, Mask: inline, Auth: a, Open: true,
		Decoder: ingest.NewDecoder(ingest.Options{}), Producer: s.ledger, Metrics: s.figures}
	if change != nil {
		change(&c, &d)
	}
	if s.g, err = New(c, d); err != nil {
		t.Fatal(err)
	}
	s.http = httptest.NewServer(s.g.Handler())
	s.close = sync.OnceFunc(func() {
		s.http.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.g.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Log(err)
		}
		a.Close()
	})
	t.Cleanup(s.close)
	return s
}

// got is an answer that was read whole.
type got struct {
	status int
	header http.Header
	body   string
	err    error
}

func (s *stand) do(path, body string, headers ...string) got {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.http.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer sk-theirs")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return got{res.StatusCode, res.Header, string(b), err}
}

func prompt(text string, more string) string {
	return `{"model":"gpt-x", "messages":[{"role":"user","content":` + string(quoted(text)) + `}]` + more + `}`
}

// events closes the gateway and gives what the log has, as the pipeline decodes it.
func (s *stand) events() []map[string]any {
	s.t.Helper()
	s.close()
	var out []map[string]any
	for _, m := range s.ledger.ms {
		var e map[string]any
		if err := json.Unmarshal(m.Value, &e); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// event is the only one.
func (s *stand) event() map[string]any {
	s.t.Helper()
	es := s.events()
	if len(es) != 1 {
		s.t.Fatalf("%d events, want 1", len(es))
	}
	return es[0]
}

// recorded is the only event as the pipeline decodes it.
func (s *stand) recorded() *audit.Interaction {
	s.t.Helper()
	s.event()
	m := s.ledger.ms[0]
	in, rej := ingest.NewDecoder(ingest.Options{DefaultTenant: "acme"}).Decode(sources.Record{Value: m.Value, Headers: m.Headers, Time: time.Now()}, audit.Origin{BrokerTime: time.Now()})
	if rej != nil {
		s.t.Fatalf("%+v", rej)
	}
	return in
}

// datas are the data of a stream's events, ":" for comments.
func datas(stream string) (out []string) {
	for block := range strings.SplitSeq(strings.ReplaceAll(stream, "\r\n", "\n"), "\n\n") {
		for line := range strings.SplitSeq(block, "\n") {
			if d, ok := strings.CutPrefix(line, "data: "); ok {
				out = append(out, d)
			} else if strings.HasPrefix(line, ":") {
				out = append(out, ":")
			}
		}
	}
	return out
}

// person answers gates.
type person struct {
	mu     sync.Mutex
	asked  []guard.GateRequest
	answer chan guard.GateDecision
}

func (p *person) Open(_ context.Context, r guard.GateRequest) (audit.ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r)
	return audit.DeriveID("gate", fmt.Sprint(len(p.asked))), nil
}

func (p *person) opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

func (p *person) Wait(ctx context.Context, _ audit.ID) (guard.GateDecision, error) {
	select {
	case d := <-p.answer:
		return d, nil
	case <-ctx.Done():
		return guard.GateDecision{}, audit.E("test", audit.KindUnavailable, ctx.Err())
	}
}

// broken is a guard that cannot look.
type brokenGuard struct{ panics bool }

func (b brokenGuard) Decide(context.Context, *audit.Interaction, guard.Options) (*guard.Decision, error) {
	if b.panics {
		panic("text of people")
	}
	return nil, audit.E("test", audit.KindUnavailable, guard.ErrNotAnalysed)
}
