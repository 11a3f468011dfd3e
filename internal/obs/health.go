package obs

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
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

// Readyz runs all checks at once, each bounded by two seconds, and answers 200 when all passed, else
// 503; the body says which did not and why.
func Readyz(checks []Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		type result struct {
			Status string `json:"status"`
			Error  string `json:"error,omitempty"`
			MS     int64  `json:"ms"`
		}
		results := make([]result, len(checks))
		var wg sync.WaitGroup
		for i, c := range checks {
			wg.Go(func() {
				start := time.Now()
				results[i] = result{Status: "ok"}
				if err := c.Run(ctx); err != nil {
					results[i] = result{Status: "failed", Error: err.Error()}
				}
				results[i].MS = time.Since(start).Milliseconds()
			})
		}
		wg.Wait()
		body := struct {
			Status string            `json:"status"`
			Checks map[string]result `json:"checks"`
		}{"ready", map[string]result{}}
		code := http.StatusOK
		for i, c := range checks {
			body.Checks[c.Name] = results[i]
			if results[i].Status != "ok" {
				body.Status, code = "not ready", http.StatusServiceUnavailable
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	})
}
