package obs

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gatewayMetrics are the figures of the gateway.
type gatewayMetrics struct {
	calls     *prometheus.CounterVec // upstream, status, action
	unchecked *prometheus.CounterVec // upstream
	added     prometheus.Histogram
	events    *prometheus.CounterVec // outcome
	masked    *prometheus.CounterVec // side, entity
}

func newGatewayMetrics(r *prometheus.Registry) gatewayMetrics {
	m := gatewayMetrics{
		calls:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "evenhand_gateway_requests_total", Help: "Calls through the gateway by upstream, status answered and what became of them: allow, warn, block, gate, unchecked; empty when nothing was judged."}, []string{"upstream", "status", "action"}),
		unchecked: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "evenhand_gateway_unchecked_total", Help: "Of these calls those that the guard could not look at, whatever their status: they went on, or were refused for it."}, []string{"upstream"}),
		added:     prometheus.NewHistogram(prometheus.HistogramOpts{Name: "evenhand_gateway_added_seconds", Help: "Time of a call beside waiting for the provider and for people.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 14)}),
		events:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "evenhand_gateway_events_total", Help: "Events of calls by outcome: sent, cut (of those sent), dropped, refused, lost."}, []string{"outcome"}),
		masked:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "evenhand_gateway_masked_total", Help: "Values that were masked in calls by what they stood in (request, response) and what they are, such as EMAIL; of one call each value once a side."}, []string{"side", "entity"}),
	}
	r.MustRegister(m.calls, m.unchecked, m.added, m.events, m.masked)
	known(m.events, []string{"sent", "cut", "dropped", "refused", "lost"})
	return m
}

// unchecked is the action of a call that the guard could not look at.
const unchecked = "unchecked"

// FollowUpstreams shows what calls to these upstreams came to before there is one.
func (m *Metrics) FollowUpstreams(names []string) {
	known(m.gateway.unchecked, names)
	known(m.gateway.calls, names, []string{"200"}, []string{"allow", "warn", "block", "gate", unchecked})
}

// GatewayCall counts a call through the gateway.
func (m *Metrics) GatewayCall(upstream string, status int, action string, added time.Duration) {
	m.gateway.calls.WithLabelValues(upstream, strconv.Itoa(status), action).Inc()
	if action == unchecked {
		m.gateway.unchecked.WithLabelValues(upstream).Inc()
	}
	m.gateway.added.Observe(added.Seconds())
}

// GatewayEvent counts what became of events of the gateway.
func (m *Metrics) GatewayEvent(outcome string, n int) {
	m.gateway.events.WithLabelValues(outcome).Add(float64(n))
}

// GatewayMasked counts values that the gateway masked.
func (m *Metrics) GatewayMasked(side, entity string, n int) {
	m.gateway.masked.WithLabelValues(side, entity).Add(float64(n))
}
