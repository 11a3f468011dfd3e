package obs

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Check is one thing that must work before traffic comes: a real query, a real fetch.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// Healthz answers 200 as long as the process runs.
func Healthz() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}` + "\n"))
	})
}

// checksEnd bounds all checks together.
const checksEnd = 2 * time.Second

type checked struct {
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
	MS     int64  `json:"ms"`
}

func (c checked) ok() bool { return c.Status == "ok" }

// runChecks runs all at once, each bounded by [checksEnd]; the results stand in the order of the checks.
func runChecks(ctx context.Context, checks []Check) []checked {
	ctx, cancel := context.WithTimeout(ctx, checksEnd)
	defer cancel()
	results := make([]checked, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() {
			start := time.Now()
			results[i] = checked{Status: "ok"}
			if err := c.Run(ctx); err != nil {
				results[i] = checked{Status: "failed", Error: err.Error()}
			}
			results[i].MS = time.Since(start).Milliseconds()
		})
	}
	wg.Wait()
	return results
}

// Readyz runs all checks at once, each bounded by two seconds, and answers 200 when all passed, else
// 503; the body says which did not and why.
func Readyz(checks []Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		results := runChecks(r.Context(), checks)
		body := struct {
			Status string             `json:"status"`
			Checks map[string]checked `json:"checks"`
		}{"ready", map[string]checked{}}
		code := http.StatusOK
		for i, c := range checks {
			body.Checks[c.Name] = results[i]
			if !results[i].ok() {
				body.Status, code = "not ready", http.StatusServiceUnavailable
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	})
}

// FollowChecks shows what /readyz would say, asked anew at each scrape, so that an alert rule can tell of it. Call it once.
func (m *Metrics) FollowChecks(checks []Check) {
	m.registry.MustRegister(readiness{checks, prometheus.NewDesc("evenhand_ready", "1 where a check of /readyz passes, 0 where it fails, by check.", []string{"check"}, nil)})
}

type readiness struct {
	checks []Check
	desc   *prometheus.Desc
}

func (r readiness) Describe(to chan<- *prometheus.Desc) { to <- r.desc }

func (r readiness) Collect(to chan<- prometheus.Metric) {
	for i, c := range runChecks(context.Background(), r.checks) {
		value := 0.0
		if c.ok() {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, value, r.checks[i].Name)
	}
}
