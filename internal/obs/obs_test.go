package obs

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/pipeline"
	"github.com/evenhand/evenhand/sinks"
)

const secretText = "words that people said"

func batch() *sinks.Batch {
	return &sinks.Batch{
		Records: []audit.Record{{
			Origin: audit.Origin{Topic: "llm.interactions", Offset: 7, BrokerTime: time.Now()},
			Interaction: &audit.Interaction{ID: audit.NewID(time.Now()), Tenant: "acme", Domain: audit.HR, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
				Prompt: secretText, Response: secretText, UserEmail: secretText, Truncated: true},
			Verdict: &audit.Verdict{Status: audit.Done, Action: audit.Warn, Detected: true, BiasTypes: []string{"charter.sex"},
				Findings: []audit.Finding{{Kind: "charter.sex", Rule: "sex.a", Side: audit.Output}}},
		}},
		Rejected: []audit.Rejected{{Reason: "bad_json", Value: []byte(secretText)}},
	}
}

func TestSpansStandInTheCallersTraceWithoutText(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tr := newTracer(sdktrace.WithSyncer(spans), 1, "test")
	m := NewMetrics(tr)
	m.Written(batch(), pipeline.Stats{Oldest: time.Now()})
	got := spans.GetSpans()
	if len(got) != 1 || got[0].SpanContext.TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" || got[0].Name != "evenhand.audit" {
		t.Fatalf("%v", got)
	}
	for _, a := range got[0].Attributes {
		if strings.Contains(a.Value.String(), secretText) {
			t.Errorf("%s holds text", a.Key)
		}
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Error(err)
	}
	var none *Tracer
	if err := none.Close(t.Context()); err != nil {
		t.Error("no tracer closes without a word")
	}
}

// The setting is a collector's base address; the path of spans is ours to add.
func TestSpansReachACollector(t *testing.T) {
	paths := make(chan string, 4)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths <- r.URL.Path }))
	defer srv.Close()
	for endpoint, want := range map[string]string{srv.URL: "/v1/traces", srv.URL + "/otlp/": "/otlp/v1/traces", srv.URL + "/v1/traces": "/v1/traces"} {
		tr, err := NewTracer(t.Context(), TraceConfig{Endpoint: endpoint, Ratio: 1}, "test")
		if err != nil {
			t.Fatal(err)
		}
		tr.Batch(batch(), time.Now())
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-paths; got != want {
			t.Errorf("%s: sent to %s", endpoint, got)
		}
	}
	if _, err := NewTracer(t.Context(), TraceConfig{Endpoint: "4318"}, ""); err == nil || !strings.Contains(err.Error(), "trace.endpoint") {
		t.Error(err)
	}
}

func TestMetricsCountBatchesWithoutText(t *testing.T) {
	m := NewMetrics(nil)
	m.Written(batch(), pipeline.Stats{Oldest: time.Now().Add(-time.Second)})
	m.Gap(0, 5, 7)
	m.LogReplaced(0, 1)
	m.Retried("store", audit.KindUnavailable)
	m.Request("/v1/interactions", 202, time.Millisecond)
	m.Ignored("litellm", "embedding", 2)
	m.EvaluationEvent("dropped", 2)
	m.JobsLead(true)
	m.JobStarted("repair")
	m.JobRan("repair", "done", time.Unix(1000, 0), time.Second, map[string]int64{"rewritten": 3})
	m.JobRan("retry", "panic", time.Unix(1001, 0), time.Second, nil)
	m.JobSkipped("repair")
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`evenhand_interactions_total{domain="hr",status="done"} 1`, `evenhand_actions_total{action="warn",domain="hr"} 1`,
		`evenhand_findings_total{kind="charter.sex",side="output"} 1`, `evenhand_assumed_total{what="truncated"} 1`, `evenhand_rejected_total{reason="bad_json"} 1`,
		`evenhand_offset_gap_total 3`, `evenhand_log_replaced_total 1`, `evenhand_retries_total{kind="unavailable",stage="store"} 1`,
		`evenhand_http_requests_total{code="202",route="/v1/interactions"} 1`, `evenhand_ignored_total{format="litellm",kind="embedding"} 2`, `evenhand_freshness_seconds`,
		`evenhand_evaluation_events_total{outcome="dropped"} 2`,
		`evenhand_jobs_leader 1`, `evenhand_job_running{job="repair"} 0`, `evenhand_job_runs_total{job="repair",status="done"} 1`, `evenhand_job_runs_total{job="repair",status="skipped"} 1`,
		`evenhand_job_last_run_timestamp_seconds{job="retry"} 1001`, `evenhand_job_last_success_timestamp_seconds{job="repair"} 1000`,
		`evenhand_job_last_ok{job="retry"} 0`, `evenhand_job_last_ok{job="repair"} 1`, `evenhand_job_figure{figure="rewritten",job="repair"} 3`,
	} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(rec.Body.String(), secretText) {
		t.Error("metrics hold text")
	}
	m.JobsLead(false)
	rec = httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if page := rec.Body.String(); !strings.Contains(page, "evenhand_jobs_leader 0") || strings.Contains(page, "evenhand_job_last") || !strings.Contains(page, "evenhand_job_runs_total") {
		t.Error("figures of the last runs belong to the leader")
	}
}

func TestReadyzTellsWhatIsNot(t *testing.T) {
	ok := Check{"store", func(context.Context) error { return nil }}
	down := Check{"broker", func(context.Context) error { return errors.New("no route") }}
	for _, tc := range []struct {
		checks []Check
		code   int
		want   string
	}{{[]Check{ok}, 200, `"status":"ready"`}, {[]Check{ok, down}, 503, `"error":"no route"`}, {nil, 200, `"checks":{}`}} {
		rec := httptest.NewRecorder()
		Readyz(tc.checks).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if rec.Code != tc.code || !strings.Contains(rec.Body.String(), tc.want) {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
}

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, LogConfig{Level: "warn", Format: "auto"})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("no")
	log.Warn("yes", "after", 1500*time.Millisecond)
	if s := out.String(); !strings.HasPrefix(s, "{") || strings.Contains(s, `"no"`) || !strings.Contains(s, `"after":"1.5s"`) {
		t.Errorf("a pipe gets JSON from warn on, with durations that name their unit: %s", s)
	}
	for key, c := range map[string]LogConfig{"log.level": {Level: "loud", Format: "json"}, "log.format": {Level: "info", Format: "xml"}} {
		if _, err := NewLogger(&out, c); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
}

func TestProgressIsReadAtEachScrape(t *testing.T) {
	m := NewMetrics(nil)
	now := pipeline.Progress{Partitions: 3, Lag: 42, Oldest: time.Now().Add(-time.Hour), LastFlush: time.UnixMilli(1_790_000_000_500)}
	m.Follow(func() pipeline.Progress { return now })
	scrape := func() string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	body := scrape()
	for _, want := range []string{"evenhand_lag_records 42\n", "evenhand_claimed_partitions 3\n", "evenhand_oldest_uncommitted_seconds 36", "evenhand_last_flush_timestamp_seconds 1.7900000005e+09"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the metrics", want)
		}
	}
	now = pipeline.Progress{}
	if body := scrape(); !strings.Contains(body, "evenhand_lag_records 0\n") || !strings.Contains(body, "evenhand_oldest_uncommitted_seconds 0\n") || !strings.Contains(body, "evenhand_last_flush_timestamp_seconds 0\n") {
		t.Error("nothing to do is not shown as zero")
	}
}
