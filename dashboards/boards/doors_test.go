package boards

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"go.yaml.in/yaml/v3"
)

var (
	metricName = regexp.MustCompile(`evenhand_[a-z_]+`)
)

// Every panel of doors asks the viewer's Prometheus, with balanced expressions, for metrics that the program has and
// docs/operations.md explains.
func TestMetricsOfTheDoors(t *testing.T) {
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../internal/obs/*.go")
	if err != nil {
		t.Fatal(err)
	}
	code := ""
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		code += string(b)
	}
	panels := 0
	for _, at := range committed(t, "evenhand-doors").Panels {
		if at.Panel == nil {
			continue
		}
		panels++
		p := at.Panel
		if *p.Datasource.Uid != "${prometheus}" || *p.Description == "" || p.Type != "timeseries" || len(p.Targets) == 0 {
			t.Errorf("%s: data source, description or targets", *p.Title)
		}
		for _, target := range p.Targets {
			q, ok := target.(*prometheus.Dataquery)
			if !ok {
				t.Fatalf("%s asks with a %T", *p.Title, target)
			}
			for _, pair := range []string{"()", "[]", "{}"} {
				if strings.Count(q.Expr, pair[:1]) != strings.Count(q.Expr, pair[1:]) {
					t.Errorf("%s: %s", *p.Title, q.Expr)
				}
			}
			names := metricName.FindAllString(q.Expr, -1)
			if names = slices.Compact(names); len(names) != 1 { // a share is of one metric's labels
				t.Errorf("%s: metrics %v", *p.Title, names)
			}
			for _, name := range names {
				name = strings.TrimSuffix(name, "_bucket")
				if !strings.Contains(string(docs), "`"+name) || !strings.Contains(code, `"`+name+`"`) && !strings.Contains(code, `"`+strings.TrimPrefix(name, "evenhand_")+`"`) {
					t.Errorf("%s: there is no metric %s, or no page about it", *p.Title, name)
				}
			}
		}
	}
	if panels < 28 {
		t.Errorf("%d panels", panels)
	}
}

// Prometheus' rules are of exactly the metrics of which docs/operations.md says to alarm on them.
func TestAlertRulesOfPrometheus(t *testing.T) {
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("../prometheus/evenhand.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For string
				Annotations      struct{ Summary string }
			}
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	var named struct {
		Groups []struct {
			Name  string
			Rules []map[string]any
		}
	}
	if err := errors.Join(yaml.Unmarshal(raw, &file), d.Decode(&named)); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, r := range file.Groups[0].Rules {
		if r.Alert == "" || r.Annotations.Summary == "" {
			t.Errorf("%+v", r)
		}
		for _, name := range metricName.FindAllString(r.Expr, -1) {
			asked[name] = true
		}
	}
	for line := range strings.SplitSeq(string(docs), "\n") {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `evenhand_") || !strings.Contains(strings.ToLower(line), "alarm on") && !strings.Contains(line, "alarm at") && !strings.Contains(line, "alarm when") {
			continue
		}
		found := false
		for _, name := range metricName.FindAllString(cells[1], -1) {
			found = found || asked[name]
			delete(asked, name)
		}
		if !found {
			t.Errorf("no rule for %s", cells[1])
		}
	}
	if len(asked) > 0 {
		t.Errorf("rules for %v, of which the docs say nothing", asked)
	}
}
