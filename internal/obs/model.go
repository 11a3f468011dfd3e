package obs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// modelMetrics are the figures of questions to language models.
type modelMetrics struct {
	asked   *prometheus.CounterVec   // model, outcome
	seconds *prometheus.HistogramVec // model
	tokens  *prometheus.CounterVec   // model, side
	cost    *prometheus.CounterVec   // model
	retries *prometheus.CounterVec   // model, reason
	circuit *prometheus.GaugeVec     // state
}

func newModelMetrics(r *prometheus.Registry) modelMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "evenhand_" + name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	m := modelMetrics{
		asked:   counter("model_questions_total", "Questions to language models by outcome: answered, refused (by the model or the provider's filter), cut; budget, open, limited, server, network, timeout, answer, cancelled, invalid.", "model", "outcome"),
		tokens:  counter("model_tokens_total", "Tokens of questions that were answered, by side: input, output.", "model", "side"),
		cost:    counter("model_cost_usd_total", "US dollars for questions that were answered, where a price is known.", "model"),
		retries: counter("model_retries_total", "Attempts that were made again, by reason: limited, server, network, timeout, answer; adapted when something was left out that the server refused.", "model", "reason"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "evenhand_model_seconds", Help: "Time of a question that was answered, attempts and waits together.", Buckets: prometheus.ExponentialBuckets(0.1, 2, 12)}, []string{"model"}),
		circuit: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "evenhand_model_circuit", Help: "1 for the state that the circuit before the server is in: closed, half-open, open."}, []string{"state"}),
	}
	r.MustRegister(m.seconds, m.circuit)
	return m
}

// ModelAsked implements llm.Observer.
func (m *Metrics) ModelAsked(model, outcome string, took time.Duration, input, output int, usd float64) {
	m.model.asked.WithLabelValues(model, outcome).Inc()
	switch outcome {
	case "answered", "refused", "cut":
		m.model.seconds.WithLabelValues(model).Observe(took.Seconds())
		m.model.tokens.WithLabelValues(model, "input").Add(float64(input))
		m.model.tokens.WithLabelValues(model, "output").Add(float64(output))
		m.model.cost.WithLabelValues(model).Add(usd)
	}
}

// ModelRetried implements llm.Observer.
func (m *Metrics) ModelRetried(model, reason string) {
	m.model.retries.WithLabelValues(model, reason).Inc()
}

// ModelCircuit implements llm.Observer.
func (m *Metrics) ModelCircuit(state string) {
	for _, s := range []string{"closed", "half-open", "open"} {
		m.model.circuit.WithLabelValues(s).Set(0)
	}
	m.model.circuit.WithLabelValues(state).Set(1)
}
