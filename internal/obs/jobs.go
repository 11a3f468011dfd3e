package obs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// jobMetrics are the figures of recurring jobs. Those of the last run are shown by the process that
// leads, and by no other.
type jobMetrics struct {
	leader  prometheus.Gauge
	running *prometheus.GaugeVec     // job
	runs    *prometheus.CounterVec   // job, status
	seconds *prometheus.HistogramVec // job
	last    *prometheus.GaugeVec     // job
	success *prometheus.GaugeVec     // job
	ok      *prometheus.GaugeVec     // job
	figures *prometheus.GaugeVec     // job, figure
}

func newJobMetrics(r *prometheus.Registry) jobMetrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "evenhand_" + name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	m := jobMetrics{
		leader:  gauge("jobs_leader", "1 while this process runs the jobs.").WithLabelValues(),
		running: gauge("job_running", "Runs of a job under way in this process.", "job"),
		last:    gauge("job_last_run_timestamp_seconds", "When the last run of a job ended.", "job"),
		success: gauge("job_last_success_timestamp_seconds", "When a job last ended without an error.", "job"),
		ok:      gauge("job_last_ok", "1 when the last run of a job ended without an error.", "job"),
		figures: gauge("job_figure", "Figures of the last run of a job.", "job", "figure"),
		runs:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "evenhand_job_runs_total", Help: "Runs of jobs by outcome: done, failed, timeout, panic, canceled; skipped when still running."}, []string{"job", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "evenhand_job_seconds", Help: "Time of a run of a job.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 9)}, []string{"job"}),
	}
	r.MustRegister(m.runs, m.seconds)
	return m
}

// JobsLead tells whether this process runs the jobs. When it no longer does, what it knows of the last
// runs is out of date and goes.
func (m *Metrics) JobsLead(leads bool) {
	if leads {
		m.jobs.leader.Set(1)
		return
	}
	m.jobs.leader.Set(0)
	for _, g := range []*prometheus.GaugeVec{m.jobs.last, m.jobs.success, m.jobs.ok, m.jobs.figures} {
		g.Reset()
	}
}

// JobKnown sets the figures of a run that another process made.
func (m *Metrics) JobKnown(job, status string, finished, success time.Time, figures map[string]int64) {
	m.jobs.last.WithLabelValues(job).Set(seconds(finished))
	m.jobs.ok.WithLabelValues(job).Set(0)
	if status == "done" {
		m.jobs.ok.WithLabelValues(job).Set(1)
	}
	if !success.IsZero() {
		m.jobs.success.WithLabelValues(job).Set(seconds(success))
	}
	for name, n := range figures {
		m.jobs.figures.WithLabelValues(job, name).Set(float64(n))
	}
}

// JobStarted counts a run that begins.
func (m *Metrics) JobStarted(job string) { m.jobs.running.WithLabelValues(job).Inc() }

// JobRan counts a run that ended and keeps its figures.
func (m *Metrics) JobRan(job, status string, finished time.Time, took time.Duration, figures map[string]int64) {
	m.jobs.running.WithLabelValues(job).Dec()
	m.jobs.runs.WithLabelValues(job, status).Inc()
	m.jobs.seconds.WithLabelValues(job).Observe(took.Seconds())
	success := time.Time{}
	if status == "done" {
		success = finished
	}
	m.JobKnown(job, status, finished, success, figures)
}

// JobSkipped counts a slot that came while the job still ran.
func (m *Metrics) JobSkipped(job string) { m.jobs.runs.WithLabelValues(job, "skipped").Inc() }

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }
