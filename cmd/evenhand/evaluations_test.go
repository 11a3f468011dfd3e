package main

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/facts"
	"github.com/evenhand/evenhand/internal/llm/llmtest"
	"github.com/evenhand/evenhand/store"
)

// backend is an OTLP receiver on loopback.
type backend struct {
	*httptest.Server
	mu  sync.Mutex
	got []string // of each event: name, trace, span, and of its attributes evaluation, label and analyzer
	raw string
}

func newBackend(t *testing.T) *backend {
	b := &backend{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(z)
		var m collogspb.ExportLogsServiceRequest
		if err = errors.Join(err, proto.Unmarshal(body, &m)); err != nil || r.URL.Path != "/v1/logs" || r.Header.Get("X-Key") != "k" {
			t.Error(err, r.URL.Path, r.Header)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.raw += string(body)
		for _, rl := range m.ResourceLogs {
			for _, sl := range rl.ScopeLogs {
				for _, rec := range sl.LogRecords {
					line := []string{rec.EventName, hex.EncodeToString(rec.TraceId), hex.EncodeToString(rec.SpanId)}
					for _, a := range rec.Attributes {
						if a.Key == "evenhand.analyzer" || a.Key == "gen_ai.evaluation.name" || a.Key == "gen_ai.evaluation.score.label" {
							line = append(line, a.Value.GetStringValue())
						}
					}
					b.got = append(b.got, strings.Join(line, " "))
				}
			}
		}
	}))
	t.Cleanup(b.Close)
	return b
}

// holds waits for exactly these events, in any order.
func (b *backend) holds(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	eventually(t, "the events", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		got := slices.Sorted(slices.Values(b.got))
		if !slices.Equal(got, want) {
			return errors.New(strings.Join(got, "\n"))
		}
		return nil
	})
}

const eventSpan = "00f067aa0ba902b7"

// A running process tells an OTLP backend what it found, and what an outside analyzer says later, in the call's
// span and without its texts.
func TestEvaluationsGoOut(t *testing.T) {
	b := newBackend(t)
	s := defaultSettings()
	s.DataDir, s.Tenant.Default, s.HTTP.Addr = t.TempDir(), "acme", "127.0.0.1:0"
	s.Evaluations.Endpoint, s.Evaluations.Headers = b.URL, "x-key=k"
	st, stop := serving(t, s, rolePipeline, roleAPI)
	defer stop()
	file := filepath.Join(t.TempDir(), "in.jsonl")
	const said = "All women are inferior and should not be hired."
	write(t, file, fmt.Sprintf(`{"id":"a","trace_id":%q,"span_id":%q,"domain":"hr","response":%q}`+"\n"+`{"id":"b","response":"The weather is fine."}`+"\n", trace, eventSpan, said))
	must(t, "", "emit", file, "--data-dir", s.DataDir, "--quiet")
	tenant := store.New(st.conn, st.chconfig.Database).WithTenant("acme")
	id := audit.DeriveID("acme", "a")
	eventually(t, "the interaction is stored", func() error { _, err := tenant.Find(t.Context(), id); return err })
	w, err := st.facts()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.UpdateBias(t.Context(), &auth.Principal{Tenant: "acme", Subject: "ann@example.org"}, id, facts.Bias{Types: facts.Of([]string{"charter.sex"})}); err != nil {
		t.Fatal(err)
	}
	const event = "gen_ai.evaluation.result " + trace + " " + eventSpan
	b.holds(t, event+" evenhand.bias flagged hot", event+" evenhand.bias flagged external")
	if strings.Contains(b.raw, "inferior and") || strings.Contains(b.raw, "ann@") {
		t.Error("words or people went out")
	}
	metrics, err := http.Get("http://" + st.listener.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = metrics.Body.Close() }()
	if page, _ := io.ReadAll(metrics.Body); !strings.Contains(string(page), `evenhand_evaluation_events_total{outcome="sent"} 2`) {
		t.Error("sent events are not counted")
	}
}

// What the judge says goes out as evaluations of its own, and the rules' once; a verdict that failed is no pass. What a person asks
// for by the command goes out from there.
func TestEvaluationsOfTheJudge(t *testing.T) {
	b := newBackend(t)
	server := llmtest.NewFunc(t, llmtest.Config{}, func(n int, a llmtest.Asked) llmtest.Reply {
		if strings.Contains(a.Last(), "garbage") {
			return llmtest.Fail(http.StatusBadRequest)
		}
		return judgeSays(n, a)
	})
	s := defaultSettings()
	s.DataDir, s.Tenant.Default, s.HTTP.Addr = t.TempDir(), "acme", "127.0.0.1:0"
	s.Evaluations.Endpoint, s.Evaluations.Headers, s.Evaluations.Only = b.URL, "x-key=k", "all"
	s.Judge.BaseURL, s.Judge.Select.RandomPercent = server.Listen(), 0
	_, stop := serving(t, s, rolePipeline, roleJudge, roleAPI)
	defer stop()
	file := filepath.Join(t.TempDir(), "in.jsonl")
	var lines strings.Builder
	for i, said := range []string{"hr She may be too emotional for this.", "hr The weather is fine.", "hr It is garbage.", "finance The film is too emotional."} {
		domain, response, _ := strings.Cut(said, " ")
		fmt.Fprintf(&lines, `{"id":"%d","trace_id":"%032x","span_id":%q,"domain":%q,"response":%q}`+"\n", i, i+1, eventSpan, domain, response)
	}
	write(t, file, lines.String())
	must(t, "", "emit", file, "--data-dir", s.DataDir, "--quiet")
	event := func(i int, what string) string {
		return fmt.Sprintf("gen_ai.evaluation.result %032x %s evenhand.%s", i+1, eventSpan, what)
	}
	var want []string
	for i, rules := range []string{"flagged", "pass", "pass", "pass"} {
		want = append(want, event(i, "bias "+rules+" hot"), event(i, "safety pass hot"))
	}
	said := func(i int, bias string) {
		want = append(want, event(i, "judge.bias "+bias+" judge"), event(i, "judge.dei pass judge"), event(i, "judge.offensive pass judge"))
	}
	said(0, "flagged")
	said(1, "pass")
	want = append(want, event(2, "judge.bias judge"))
	b.holds(t, want...)
	env := []string{"EVENHAND_JUDGE_BASE_URL=" + s.Judge.BaseURL, "EVENHAND_EVALUATIONS_ENDPOINT=" + b.URL, "EVENHAND_EVALUATIONS_HEADERS=x-key=k"}
	if r := evenhandEnv(t, "", env, "judge", "--id", audit.DeriveID("acme", "3").String(), "--tenant", "acme", "--data-dir", s.DataDir); r.code != 3 {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
	want = append(want, event(3, "judge.bias flagged judge")) // what passes is not told by default
	b.holds(t, want...)
	if strings.Contains(b.raw, "too emotional") || strings.Contains(b.raw, "It is garbage") {
		t.Error("words went out")
	}
}

// serving runs roles of one process inside this one, with the embedded broker and store.
func serving(t *testing.T, s settings, roles ...string) (*stack, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	st, err := start(ctx, s, roles, true, discard())
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- st.serve(ctx) }()
	runs(t, s.DataDir, running{PID: os.Getpid(), HTTP: "http://" + st.listener.Addr().String(), Kafka: st.broker.Addr(), Started: time.Now()})
	return st, func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		st.close(context.WithoutCancel(ctx))
	}
}
