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
	ignored       *prometheus.CounterVec // format, kind
	requestTime   *prometheus.HistogramVec
	engineStarts  prometheus.Counter
	brokerErrors  *prometheus.CounterVec // op
	tickets       *prometheus.CounterVec // target, action, outcome
	auth          *prometheus.CounterVec // credential, outcome
	facts         *prometheus.CounterVec // kind, outcome
	gates         *prometheus.CounterVec // outcome
	reloads       *prometheus.CounterVec // outcome
	evaluations   *prometheus.CounterVec // outcome
	lastWrittenMS atomic.Int64

	jobs    jobMetrics
	calls   callMetrics
	guard   guardMetrics
	gateway gatewayMetrics
	model   modelMetrics
	judge   judgeMetrics

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
	m.tickets = counter("tickets_total", "Attempts to tell a tracker something, by tracker, action, and outcome: sent, or the class of the error.", "target", "action", "outcome")
	m.auth = counter("auth_total", "Callers by kind of credential (token, dev_token, api_key, static_key, none) and outcome: ok, or the reason of the refusal.", "credential", "outcome")
	m.facts = counter("facts_total", "What people and outside analyzers said, by kind and outcome: stored, refused, failed; unshown and unpublished are of those stored and made up for.", "kind", "outcome")
	m.gates = counter("gates_total", "Gates by what became of them: opened, approved, denied, timeout; unannounced are those that a webhook did not take.", "outcome")
	m.reloads = counter("rules_reload_total", "Reloads of an operator's own rules by outcome: swapped, unchanged, refused, failed.", "outcome")
	m.evaluations = counter("evaluation_events_total", "Events gen_ai.evaluation.result by outcome: sent, dropped (the queue was full), lost (the endpoint did not take them).", "outcome")
	m.retries = counter("retries_total", "Failed attempts that are tried again, by stage and class of error.", "stage", "kind")
	m.gaps = counter("offset_gap_total", "Offsets that the log dropped before they were read.").WithLabelValues()
	m.replaced = counter("log_replaced_total", "Times a partition's log was not the one the store remembers.").WithLabelValues()
	m.skipped = counter("ranges_skipped_total", "Ranges found in the store on assignment and only published again.").WithLabelValues()
	m.requests = counter("http_requests_total", "Requests by route and status code.", "route", "code")
	m.ignored = counter("ignored_total", "Payloads of other formats that tell of no call of a model that makes text, by format and kind.", "format", "kind")
	m.engineStarts = counter("engine_restarts_total", "Restarts of the embedded engine after it ended by itself.").WithLabelValues()
	m.brokerErrors = counter("kafka_errors_total", "Errors of the Kafka client by operation.", "op")
	m.batchRows = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "evenhand_batch_rows", Help: "Rows a batch.", Buckets: []float64{1, 10, 100, 500, 1000, 2500, 5000, 10000}})
	m.stage = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "evenhand_stage_seconds", Help: "Time of a batch in fill, write and publish.", Buckets: prometheus.ExponentialBuckets(0.005, 2, 12)}, []string{"stage"})
	m.requestTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "evenhand_http_request_seconds", Help: "Time of a request by route.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14)}, []string{"route"})
	m.lag = prometheus.NewGauge(prometheus.GaugeOpts{Name: "evenhand_freshness_seconds", Help: "Age of the oldest record of the last batch when it was committed."})
	known(m.assumed, []string{"id", "time", "time_suspect", "domain", "provider_or_model", "truncated", "without_content"})
	known(m.gates, []string{"opened", "approved", "denied", "timeout", "unannounced"})
	known(m.reloads, []string{"swapped", "unchanged", "refused", "failed"})
	known(m.evaluations, []string{"sent", "dropped", "lost"})
	m.jobs, m.calls, m.guard = newJobMetrics(m.registry), newCallMetrics(counter), newGuardMetrics(m.registry)
	m.gateway, m.model = newGatewayMetrics(m.registry), newModelMetrics(m.registry)
	m.judge = newJudgeMetrics(m.registry)
	m.registry.MustRegister(m.batchRows, m.stage, m.requestTime, m.lag, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Follow shows a pipeline's progress, read anew at each scrape. Call it once.
func (m *Metrics) Follow(progress func() pipeline.Progress) {
	gauge := func(name, help string, value func(pipeline.Progress) float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "evenhand_" + name, Help: help}, func() float64 { return value(progress()) }))
	}
	gauge("claimed_partitions", "Partitions that this process reads now.", func(p pipeline.Progress) float64 { return float64(p.Partitions) })
	gauge("lag_records", "Records of the claimed partitions behind the committed positions.", func(p pipeline.Progress) float64 { return float64(p.Lag) })
	gauge("oldest_uncommitted_seconds", "Age of the oldest record that was read and is not committed; 0 when there is none.", func(p pipeline.Progress) float64 {
		if p.Oldest.IsZero() {
			return 0
		}
		return time.Since(p.Oldest).Seconds()
	})
	gauge("last_flush_timestamp_seconds", "When a batch last was stored, published and committed, Unix time; 0 before the first.", func(p pipeline.Progress) float64 {
		if p.LastFlush.IsZero() {
			return 0
		}
		return float64(p.LastFlush.UnixMilli()) / 1000
	})
}

// FollowDisk shows how many bytes the file system of a folder has free, read anew at each scrape. Call it once a folder.
func (m *Metrics) FollowDisk(folder string, free func() int64) {
	m.gauge("disk_free_bytes", "Bytes that may still be written to the file system of a folder of 'evenhand up'.", prometheus.Labels{"folder": folder}, free)
}

// FollowBroker shows how full the embedded broker's log of interactions is, in bytes, read anew at each scrape. Call it once.
func (m *Metrics) FollowBroker(size, limit func() int64) {
	m.gauge("broker_log_bytes", "Bytes of llm.interactions in the embedded broker.", nil, size)
	m.gauge("broker_cap_bytes", "Bytes of llm.interactions at which the embedded broker refuses producers.", nil, limit)
}

func (m *Metrics) gauge(name, help string, labels prometheus.Labels, value func() int64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "evenhand_" + name, Help: help, ConstLabels: labels}, func() float64 { return float64(value()) }))
}

// Answers is how often an encoder of the classifier has answered in one way.
type Answers struct {
	Encoder, How string
	N            uint64
}

// FollowEncoders shows how the classifier's encoders came to their answers, read anew at each scrape. Counts begin anew with new detectors. Call it once.
func (m *Metrics) FollowEncoders(answers func() []Answers) {
	m.registry.MustRegister(encoderAnswers{answers, prometheus.NewDesc("evenhand_encoder_answers_total",
		"Sentences and passages that the classifier's encoders were asked about, by encoder and how the answer came about: read, stopped at an early exit, remembered.", []string{"encoder", "how"}, nil)})
}

type encoderAnswers struct {
	now  func() []Answers
	desc *prometheus.Desc
}

func (c encoderAnswers) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

func (c encoderAnswers) Collect(to chan<- prometheus.Metric) {
	for _, a := range c.now() {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(a.N), a.Encoder, a.How)
	}
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
		m.judge.replayed(in.GivenID)
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

// Ticket counts an attempt to tell a tracker something.
func (m *Metrics) Ticket(target, action, outcome string) {
	m.tickets.WithLabelValues(target, action, outcome).Inc()
}

// Authenticated counts a caller who was let in, or why not.
func (m *Metrics) Authenticated(credential, outcome string) {
	m.auth.WithLabelValues(credential, outcome).Inc()
}

// Fact counts what became of something that a person or an outside analyzer said.
func (m *Metrics) Fact(kind, outcome string) { m.facts.WithLabelValues(kind, outcome).Inc() }

// Gate counts what became of a gate, see gates.Observer.
func (m *Metrics) Gate(outcome string) { m.gates.WithLabelValues(outcome).Inc() }

// RulesReloaded counts what became of a reload of the rules.
func (m *Metrics) RulesReloaded(outcome string) { m.reloads.WithLabelValues(outcome).Inc() }

// BrokerError counts an error of the Kafka client.
func (m *Metrics) BrokerError(op string) { m.brokerErrors.WithLabelValues(op).Inc() }

// Ignored counts payloads of another format that tell of no call of a model.
func (m *Metrics) Ignored(format, kind string, n int) {
	m.ignored.WithLabelValues(format, kind).Add(float64(n))
}

// Request counts one HTTP request.
func (m *Metrics) Request(route string, code int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
	m.requestTime.WithLabelValues(route).Observe(took.Seconds())
}
