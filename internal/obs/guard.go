package obs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// guardMetrics tell of texts that are judged in line.
type guardMetrics struct {
	decisions *prometheus.CounterVec   // door, action
	took      *prometheus.HistogramVec // door
	queue     *prometheus.CounterVec   // queue, outcome
}

func newGuardMetrics(r *prometheus.Registry) guardMetrics {
	m := guardMetrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "evenhand_guard_decisions_total", Help: "Texts judged in line, by door and action; failed: nothing could be decided."}, []string{"door", "action"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "evenhand_guard_seconds", Help: "Time of a decision in line, waiting for people left out at the door guard.",
			Buckets: prometheus.ExponentialBuckets(0.000025, 2, 14)}, []string{"door"}),
		queue: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "evenhand_guard_queue_total", Help: "Audit events of the guard by queue (events, calls) and outcome: sent, lost, refused (the queue was full)."}, []string{"queue", "outcome"}),
	}
	r.MustRegister(m.decisions, m.took, m.queue)
	known(m.decisions, []string{"guard"}, []string{"allow", "warn", "block", "gate", "failed"})
	known(m.decisions, []string{"litellm"}, []string{"NONE", "BLOCKED", "GUARDRAIL_INTERVENED", "failed"})
	known(m.queue, guardQueues, []string{"sent", "lost", "refused", "too_large"})
	return m
}

// Decided counts a decision in line.
func (m *Metrics) Decided(door, action string, took time.Duration) {
	m.guard.decisions.WithLabelValues(door, action).Inc()
	m.guard.took.WithLabelValues(door).Observe(took.Seconds())
}

// GuardQueue counts what became of audit events of the guard.
func (m *Metrics) GuardQueue(queue, outcome string, n int) {
	m.guard.queue.WithLabelValues(queue, outcome).Add(float64(n))
}

var guardQueues = []string{"events", "calls"}

// FollowGuard shows how much waits in the guard's queues, read anew at each scrape. Call it once.
func (m *Metrics) FollowGuard(waiting func(queue string) int) {
	for _, queue := range guardQueues {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "evenhand_guard_queue_waiting", Help: "Audit events of the guard that the log has not acknowledged yet, by queue.", ConstLabels: prometheus.Labels{"queue": queue},
		}, func() float64 { return float64(waiting(queue)) }))
	}
}
