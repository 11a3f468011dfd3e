package obs

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	grows    = regexp.MustCompile(`(?:increase|rate)\((evenhand_[a-z_]+)(?:\{([^}]*)\})?\[`)
	selector = regexp.MustCompile(`(\w+)(=~|!~|!=|=)\\?"([^"\\]*)\\?"`)
)

// openLabels are metrics whose labels have values that nobody knows before: names of models and services, formats.
var openLabels = map[string]bool{
	"evenhand_call_parts_total": true, "evenhand_calls_total": true, "evenhand_calls_withheld_total": true, "evenhand_ignored_total": true,
	"evenhand_model_questions_total": true, "evenhand_model_seconds_bucket": true, "evenhand_judge_seconds_bucket": true,
}

// Every counter whose growth an alert rule or a board asks for is there before anything has happened: Prometheus sees no
// increase in a series that begins at 1.
func TestSeriesAreThereBeforeTheirFirstEvent(t *testing.T) {
	m := NewMetrics(nil)
	m.FollowUpstreams([]string{"default"})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for file, least := range map[string]int{"../../dashboards/prometheus/evenhand.yaml": 6, "../../dashboards/json/doors.json": 25} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		asked := grows.FindAllStringSubmatch(strings.ReplaceAll(string(raw), `\"`, `"`), -1)
		if len(asked) < least {
			t.Errorf("%s asks for %d", file, len(asked))
		}
		for _, a := range asked {
			if openLabels[a[1]] && strings.HasSuffix(file, ".json") || a[2] == `reason!=""` {
				continue
			}
			if !strings.HasSuffix(a[1], "_bucket") && !hasSeries(t, w.Body.String(), a[1], a[2]) {
				t.Errorf("%s asks for %s{%s}, which begins with its first event", file, a[1], a[2])
			}
		}
	}
	for _, want := range []string{
		`evenhand_gateway_unchecked_total{upstream="default"} 0`, `evenhand_rules_reload_total{outcome="refused"} 0`, `evenhand_guard_queue_total{outcome="lost",queue="events"} 0`,
		`evenhand_guard_queue_total{outcome="lost",queue="calls"} 0`, `evenhand_gateway_events_total{outcome="dropped"} 0`, `evenhand_gateway_events_total{outcome="refused"} 0`, `evenhand_gateway_events_total{outcome="lost"} 0`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	m.GatewayCall("default", 503, "unchecked", 0)
	m.GatewayCall("default", 200, "allow", 0)
	w = httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if want := `evenhand_gateway_unchecked_total{upstream="default"} 1`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("no %s", want)
	}
}

// hasSeries tells whether a page of metrics has one of that name that the selectors fit.
func hasSeries(t *testing.T, page, name, selectors string) bool {
	t.Helper()
	for line := range strings.SplitSeq(page, "\n") {
		labels, ok := strings.CutPrefix(line, name)
		if !ok || labels[0] != '{' && labels[0] != ' ' {
			continue
		}
		fits := true
		for _, s := range selector.FindAllStringSubmatch(selectors, -1) {
			value := ""
			if _, after, ok := strings.Cut(labels, s[1]+`="`); ok {
				value, _, _ = strings.Cut(after, `"`)
			}
			is := value == s[3]
			if strings.HasSuffix(s[2], "~") {
				is = regexp.MustCompile("^(?:" + s[3] + ")$").MatchString(value)
			}
			fits = fits && is == !strings.HasPrefix(s[2], "!")
		}
		if fits {
			return true
		}
	}
	return false
}
