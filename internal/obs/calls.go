package obs

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenhand/evenhand/audit"
)

// callMetrics are of calls that clients of other formats tell, in parts or whole.
type callMetrics struct {
	parts    *prometheus.CounterVec // format, kind
	told     *prometheus.CounterVec // format
	late     *prometheus.CounterVec // outcome
	withheld prometheus.Counter     // without a name: senders choose it, and whoever reads metrics may not know all tenants
	forced   prometheus.Counter
}

func newCallMetrics(counter func(name, help string, labels ...string) *prometheus.CounterVec) callMetrics {
	m := callMetrics{
		parts:    counter("call_parts_total", "Parts of calls taken, by format and kind (model, outer, content, context; passed: a span that names a model and was not read as its call).", "format", "kind"),
		told:     counter("calls_total", "Calls of other formats that became events, by format.", "format"),
		late:     counter("call_parts_late_total", "Parts of calls that came after their call was told: dropped (nothing new), told_again (texts came late); repeated: an open call had the part.", "outcome"),
		withheld: counter("calls_withheld_total", "Calls told without texts: capture of content is off in a service, or its texts have a form that is not read, which the log says.").WithLabelValues(),
		forced:   counter("call_flushes_forced_total", "Groups of calls that were told early, for want of room.").WithLabelValues(),
	}
	known(m.late, []string{"dropped", "told_again", "repeated"})
	return m
}

// Part counts a part of a call that was taken.
func (m *Metrics) Part(format, kind string) { m.calls.parts.WithLabelValues(format, kind).Inc() }

// Called counts a call that became an event.
func (m *Metrics) Called(format string) { m.calls.told.WithLabelValues(format).Inc() }

// Late counts a part of a call that was told already.
func (m *Metrics) Late(outcome string) { m.calls.late.WithLabelValues(outcome).Inc() }

// Withheld counts a call without texts.
func (m *Metrics) Withheld() { m.calls.withheld.Inc() }

// Forced counts a group of calls that was told early.
func (m *Metrics) Forced() { m.calls.forced.Inc() }

// Refused counts a message that could not become an event.
func (m *Metrics) Refused(reason string) { m.rejected.WithLabelValues(reason).Inc() }

// FollowCalls shows how many groups of calls wait and their bytes, read anew at each scrape. Call it once.
func (m *Metrics) FollowCalls(open func() (groups, bytes int64)) {
	gauge := func(name, help string, value func() int64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "evenhand_" + name, Help: help}, func() float64 { return float64(value()) }))
	}
	gauge("call_groups_open", "Groups of calls that wait for further parts.", func() int64 { n, _ := open(); return n })
	gauge("call_groups_open_bytes", "Bytes of the groups of calls that wait.", func() int64 { _, n := open(); return n })
}

// CallObserver is m as those who join calls see it.
func (m *Metrics) CallObserver() CallObserver { return CallObserver{m} }

// CallObserver tells what joining calls meets beside what [Metrics] counts of it.
type CallObserver struct{ *Metrics }

// Gap counts offsets that a topic of calls no longer held.
func (o CallObserver) Gap(from, to int64) { o.gaps.Add(float64(to - from + 1)) }

// Retried counts a step of joining calls that is tried again.
func (o CallObserver) Retried(step string, kind audit.Kind) { o.Metrics.Retried("calls_"+step, kind) }
