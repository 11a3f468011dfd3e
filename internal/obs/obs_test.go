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
		if strings.Contains(a.Value.Emit(), secretText) {
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

func TestMetricsCountBatchesWithoutText(t *testing.T) {
	m := NewMetrics(nil)
	m.Written(batch(), pipeline.Stats{Oldest: time.Now().Add(-time.Second)})
	m.Gap(0, 5, 7)
	m.LogReplaced(0, 1)
	m.Retried("store", audit.KindUnavailable)
	m.Request("/v1/interactions", 202, time.Millisecond)
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`evenhand_interactions_total{domain="hr",status="done"} 1`, `evenhand_actions_total{action="warn",domain="hr"} 1`,
		`evenhand_findings_total{kind="charter.sex",side="output"} 1`, `evenhand_assumed_total{what="truncated"} 1`, `evenhand_rejected_total{reason="bad_json"} 1`,
		`evenhand_offset_gap_total 3`, `evenhand_log_replaced_total 1`, `evenhand_retries_total{kind="unavailable",stage="store"} 1`,
		`evenhand_http_requests_total{code="202",route="/v1/interactions"} 1`, `evenhand_freshness_seconds`,
	} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(rec.Body.String(), secretText) {
		t.Error("metrics hold text")
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
	log.Warn("yes")
	if s := out.String(); !strings.HasPrefix(s, "{") || strings.Contains(s, `"no"`) {
		t.Errorf("a pipe gets JSON from warn on: %s", s)
	}
	for key, c := range map[string]LogConfig{"log.level": {Level: "loud", Format: "json"}, "log.format": {Level: "info", Format: "xml"}} {
		if _, err := NewLogger(&out, c); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
}
