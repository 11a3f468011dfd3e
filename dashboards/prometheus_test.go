package dashboards

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/internal/obs"
	"github.com/evenhand/evenhand/pipeline"
)

var evenhandMetric = regexp.MustCompile(`\bevenhand_[a-z_]+`)

// Every metric that an alert rule asks for is one that a process shows.
func TestAlertRulesAskForMetricsThatExist(t *testing.T) {
	raw, err := files.ReadFile("prometheus/evenhand.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(raw, &rules); err != nil {
		t.Fatal(err)
	}
	m := obs.NewMetrics(nil)
	m.Follow(func() pipeline.Progress { return pipeline.Progress{} })
	m.FollowUpstreams([]string{"default"})
	m.FollowJudge(func() time.Time { return time.Time{} })
	m.FollowDisk("data", func() int64 { return 0 })
	m.FollowBroker(func() int64 { return 0 }, func() int64 { return 0 })
	m.FollowChecks([]obs.Check{{Name: "store", Run: func(context.Context) error { return nil }}})
	m.JobKnown("remediation", "done", time.Now(), time.Now(), map[string]int64{"dead": 0})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	asked := 0
	for _, r := range rules.Groups[0].Rules {
		for _, name := range evenhandMetric.FindAllString(r.Expr, -1) {
			asked++
			if !strings.Contains(w.Body.String(), "\n# TYPE "+name+" ") {
				t.Errorf("%s asks for %s, which no process shows", r.Alert, name)
			}
		}
	}
	if asked < 14 {
		t.Errorf("%d metrics were asked for", asked)
	}
}

// What each alert says, and when it is silent, by Prometheus' own tester.
func TestAlertRulesFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool (Debian: prometheus)")
	}
	cmd := exec.CommandContext(t.Context(), promtool, "test", "rules", "prometheus_test.yaml")
	cmd.Dir = "testdata"
	cmd.Stderr = os.Stderr
	if out, err := cmd.Output(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
