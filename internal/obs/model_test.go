package obs

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestModelsAreCounted(t *testing.T) {
	m := NewMetrics(nil)
	m.ModelCircuit("closed")
	m.ModelAsked("m", "answered", time.Second, 100, 20, 0.25)
	m.ModelAsked("m", "budget", 0, 0, 0, 0)
	m.ModelRetried("m", "limited")
	m.ModelCircuit("open")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`evenhand_model_questions_total{model="m",outcome="answered"} 1`, `evenhand_model_questions_total{model="m",outcome="budget"} 1`,
		`evenhand_model_tokens_total{model="m",side="input"} 100`, `evenhand_model_tokens_total{model="m",side="output"} 20`,
		`evenhand_model_cost_usd_total{model="m"} 0.25`, `evenhand_model_seconds_count{model="m"} 1`, `evenhand_model_retries_total{model="m",reason="limited"} 1`,
		`evenhand_model_circuit{state="closed"} 0`, `evenhand_model_circuit{state="open"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s", want)
		}
	}
}
