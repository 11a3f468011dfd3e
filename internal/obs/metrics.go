package obs

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/pipeline"
	"github.com/evenhand/evenhand/sinks"
)

// Metrics holds the program's registry and everything counted in it. It observes the pipeline.
type Metrics struct {
	registry *prometheus.Registry

	interactions  *prometheus.CounterVec // domain, status
	flagged       *prometheus.CounterVec // domain, action
	findings      *prometheus.CounterVec // kind, side
	assumed       *prometheus.CounterVec // what
	rejected      *prometheus.CounterVec // reason
	retries       *prometheus.CounterVec // stage, kind
	gaps          prometheus.Counter
	replaced      prometheus.Counter
	skipped       prometheus.Counter
	batchRows     prometheus.Histogram
	stage         *prometheus.HistogramVec // stage
	lag           prometheus.Gauge
	requests      *prometheus.CounterVec // route, code
	requestTime   *prometheus.HistogramVec
	engineStarts  prometheus.Counter
	brokerErrors  *prometheus.CounterVec // op
	lastWrittenMS atomic.Int64

	tracer *Tracer // nil: no spans
}

var _ pipeline.Observer = (*Metrics)(nil)

// NewMetrics makes the registry; t may be nil.
func NewMetrics(t *Tracer) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), tracer: t}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "evenhand_" + name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	m.interactions = counter("interactions_total", "Interactions stored, by domain and analysis status.", "domain", "status")
	m.flagged = counter("actions_total", "Interactions whose threshold was passed, by domain and action.", "domain", "action")
	m.findings = counter("findings_total", "Findings stored, by kind and side.", "kind", "side")
	m.assumed = counter("assumed_total", "Interactions in which something was assumed: id, time, domain, provider_or_model; time_suspect; truncated; without_content.", "what")
	m.rejected = counter("rejected_total", "Messages that could not become interactions, by reason.", "reason")
	m.retries = counter("retries_total", "Failed attempts that are tried again, by stage and class of error.", "stage", "kind")
	m.gaps = counter("offset_gap_total", "Offsets that the log dropped before they were read.").WithLabelValues()
	m.replaced = counter("log_replaced_total", "Times a partition's log was not the one the store remembers.").WithLabelValues()
	m.skipped = counter("ranges_skipped_total", "Ranges found in the store on assignment and only published again.").WithLabelValues()
	m.requests = counter("http_requests_total", "Requests by route and status code.", "route", "code")
	m.engineStarts = counter("engine_restarts_total", "Restarts of the embedded engine after it ended by itself.").WithLabelValues()
	m.brokerErrors = counter("kafka_errors_total", "Errors of the Kafka client by operation.", "op")
	m.batchRows = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "evenhand_batch_rows", Help: "Rows a batch.", Buckets: []float64{1, 10, 100, 500, 1000, 2500, 5000, 10000}})
	m.stage = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "evenhand_stage_seconds", Help: "Time of a batch in fill, write and publish.", Buckets: prometheus.ExponentialBuckets(0.005, 2, 12)}, []string{"stage"})
	m.requestTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "evenhand_http_request_seconds", Help: "Time of a request by route.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14)}, []string{"route"})
	m.lag = prometheus.NewGauge(prometheus.GaugeOpts{Name: "evenhand_freshness_seconds", Help: "Age of the oldest record of the last batch when it was committed."})
	m.registry.MustRegister(m.batchRows, m.stage, m.requestTime, m.lag, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Written implements pipeline.Observer.
func (m *Metrics) Written(b *sinks.Batch, s pipeline.Stats) {
	now := time.Now()
	m.lastWrittenMS.Store(now.UnixMilli())
	m.batchRows.Observe(float64(len(b.Records)))
	m.stage.WithLabelValues("fill").Observe(s.Fill.Seconds())
	m.stage.WithLabelValues("write").Observe(s.Write.Seconds())
	m.stage.WithLabelValues("publish").Observe(s.Publish.Seconds())
	if !s.Oldest.IsZero() {
		m.lag.Set(now.Sub(s.Oldest).Seconds())
	}
	type cell struct{ a, b string }
	done, acted, found, assumed := map[cell]int{}, map[cell]int{}, map[cell]int{}, map[string]int{}
	for i := range b.Records {
		in, v := b.Records[i].Interaction, b.Records[i].Verdict
		done[cell{string(in.Domain), string(v.Status)}]++
		if v.Action != audit.NoAction {
			acted[cell{string(in.Domain), string(v.Action)}]++
		}
		for j := range v.Findings {
			found[cell{v.Findings[j].Kind, string(v.Findings[j].Side)}]++
		}
		for what, is := range map[string]bool{
			"id": in.IDAssumed, "time": in.TimeAssumed, "time_suspect": in.TimeSuspect, "domain": in.DomainGiven != "",
			"provider_or_model": in.Incomplete, "truncated": in.Truncated, "without_content": in.WithoutContent,
		} {
			if is {
				assumed[what]++
			}
		}
	}
	put := func(v *prometheus.CounterVec, counts map[cell]int) {
		for c, n := range counts {
			v.WithLabelValues(c.a, c.b).Add(float64(n))
		}
	}
	put(m.interactions, done)
	put(m.flagged, acted)
	put(m.findings, found)
	for what, n := range assumed {
		m.assumed.WithLabelValues(what).Add(float64(n))
	}
	for i := range b.Rejected {
		m.rejected.WithLabelValues(b.Rejected[i].Reason).Inc()
	}
	if m.tracer != nil {
		m.tracer.Batch(b, now)
	}
}

// Retried implements pipeline.Observer.
func (m *Metrics) Retried(stage string, kind audit.Kind) {
	m.retries.WithLabelValues(stage, string(kind)).Inc()
}

// Gap implements pipeline.Observer.
func (m *Metrics) Gap(_ int, from, to int64) { m.gaps.Add(float64(to - from + 1)) }

// LogReplaced implements pipeline.Observer.
func (m *Metrics) LogReplaced(int, int32) { m.replaced.Inc() }

// Skipped implements pipeline.Observer.
func (m *Metrics) Skipped(int, int64, int64) { m.skipped.Inc() }

// EngineRestarted counts a restart of the embedded engine.
func (m *Metrics) EngineRestarted() { m.engineStarts.Inc() }

// BrokerError counts an error of the Kafka client.
func (m *Metrics) BrokerError(op string) { m.brokerErrors.WithLabelValues(op).Inc() }

// Request counts one HTTP request.
func (m *Metrics) Request(route string, code int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
	m.requestTime.WithLabelValues(route).Observe(took.Seconds())
}
