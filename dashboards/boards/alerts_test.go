package boards

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/dashboards/expand"
	"github.com/evenhand/evenhand/internal/embedded/engine"
)

// alertFile is Grafana's file of alert rules, the form that it exports, as far as ours goes.
type alertFile struct {
	APIVersion int `yaml:"apiVersion"`
	Groups     []struct {
		OrgID    int    `yaml:"orgId"`
		Name     string `yaml:"name"`
		Folder   string `yaml:"folder"`
		Interval string `yaml:"interval"`
		Rules    []alertRule
	}
}

type alertRule struct {
	UID          string            `yaml:"uid"`
	Title        string            `yaml:"title"`
	Condition    string            `yaml:"condition"`
	Data         []alertQuery      `yaml:"data"`
	For          string            `yaml:"for"`
	NoDataState  string            `yaml:"noDataState"`
	ExecErrState string            `yaml:"execErrState"`
	Labels       map[string]string `yaml:"labels"`
	Annotations  map[string]string `yaml:"annotations"`
	IsPaused     bool              `yaml:"isPaused"`
}

type alertQuery struct {
	RefID             string         `yaml:"refId"`
	DatasourceUID     string         `yaml:"datasourceUid"`
	RelativeTimeRange map[string]int `yaml:"relativeTimeRange"`
	Model             struct {
		RefID         string            `yaml:"refId"`
		Datasource    map[string]string `yaml:"datasource"`
		EditorType    string            `yaml:"editorType"`
		Format        int               `yaml:"format"`
		QueryType     string            `yaml:"queryType"`
		PluginVersion string            `yaml:"pluginVersion"`
		RawSQL        string            `yaml:"rawSql"`
		Type          string            `yaml:"type"`
		Expression    string            `yaml:"expression"`
		Conditions    []struct {
			Evaluator struct {
				Type   string    `yaml:"type"`
				Params []float64 `yaml:"params"`
			} `yaml:"evaluator"`
		} `yaml:"conditions"`
	} `yaml:"model"`
}

func strictly(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func alertRules(t *testing.T) map[string]alertRule {
	t.Helper()
	var f alertFile
	strictly(t, "../provisioning/alerting/evenhand.yaml", &f)
	out := map[string]alertRule{}
	for _, g := range f.Groups {
		if _, err := time.ParseDuration(g.Interval); err != nil || g.Name == "" || g.Folder != "Evenhand" || g.OrgID != 1 || f.APIVersion != 1 {
			t.Errorf("group %q: %v", g.Name, err)
		}
		for _, r := range g.Rules {
			out[r.UID] = r
		}
	}
	return out
}

func TestAlertRulesAreWellFormed(t *testing.T) {
	all := alertRules(t)
	if len(all) != 9 {
		t.Errorf("%d rules", len(all))
	}
	for uid, r := range all {
		if len(uid) > 40 || r.Title == "" || r.Condition != "B" || len(r.Data) != 2 || r.IsPaused || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: %+v", uid, r)
			continue
		}
		if _, err := time.ParseDuration(r.For); err != nil || !slices.Contains([]string{"OK", "NoData", "Alerting"}, r.NoDataState) || r.ExecErrState != "Error" {
			t.Errorf("%s: for %q, %s, %s", uid, r.For, r.NoDataState, r.ExecErrState)
		}
		a, b := r.Data[0], r.Data[1]
		if a.RefID != "A" || a.Model.RefID != "A" || a.DatasourceUID != "evenhand" || a.Model.Datasource["uid"] != "evenhand" || a.Model.Datasource["type"] != Plugin || a.Model.Format != int(rowsOf) || a.Model.PluginVersion != pluginVersion {
			t.Errorf("%s: query %+v", uid, a)
		}
		if b.RefID != "B" || b.Model.RefID != "B" || b.DatasourceUID != "__expr__" || b.Model.Type != "threshold" || b.Model.Expression != "A" || len(b.Model.Conditions) != 1 || len(b.Model.Conditions[0].Evaluator.Params) != 1 {
			t.Errorf("%s: condition %+v", uid, b)
		}
		for _, s := range append(slices.Collect(maps.Values(r.Annotations)), a.Model.RawSQL) {
			if strings.Contains(s, "$") {
				t.Errorf("%s: Grafana would read the dollar sign as a variable: %s", uid, s)
			}
		}
	}
}

var label = regexp.MustCompile(`\.Labels\.(\w+)`)

// TestAlertRules runs every rule over demo rows, in which some are broken, and tells which fire.
func TestAlertRules(t *testing.T) {
	conn, _, e := filledEngine(t)
	broken, err := os.ReadFile("testdata/broken.sql")
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(string(broken), ";\n") {
		if err := writer(t, e).Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	fired := map[string][]string{}
	for uid, r := range alertRules(t) {
		raw := r.Data[0].Model.RawSQL
		if uid == "evenhand-quiet" || uid == "evenhand-no-jobs" { // as if nothing had happened since
			raw = strings.ReplaceAll(raw, "now64(3)", "(now64(3) + INTERVAL 3 HOUR)")
		}
		sql, err := expand.Statement(raw, expand.View{})
		if err != nil {
			t.Fatal(uid, err)
		}
		if texts.MatchString(sql) {
			t.Errorf("%s reads what Grafana does not show", uid)
		}
		got := run(t, conn, sql)
		var numbers, labels []string
		for i, c := range strings.Split(got.columns, ", ") {
			switch name, kind, _ := strings.Cut(c, " "); kind {
			case "String", "LowCardinality(String)":
				labels = append(labels, name)
			case "Float64", "UInt64", "Int64":
				numbers = append(numbers, got.names[i])
			default:
				t.Errorf("%s: column %s is neither a text nor a number", uid, c)
			}
		}
		if len(numbers) != 1 {
			t.Errorf("%s: numbers %v, want one", uid, numbers)
			continue
		}
		for _, m := range label.FindAllStringSubmatch(r.Annotations["summary"], -1) {
			if !slices.Contains(labels, m[1]) {
				t.Errorf("%s: the summary names %s, the labels are %v", uid, m[1], labels)
			}
		}
		if len(got.rows) == 0 {
			t.Errorf("%s: no rows", uid)
		}
		at := r.Data[1].Model.Conditions[0].Evaluator
		for i := range got.rows {
			v := got.number(i, numbers[0])
			if at.Type == "gt" && v > at.Params[0] || at.Type == "lt" && v < at.Params[0] {
				var which []string
				for _, l := range labels {
					which = append(which, fmt.Sprint(got.value(i, l)))
				}
				fired[uid] = append(fired[uid], strings.Join(which, " "))
			}
		}
	}
	want := map[string][]string{
		"evenhand-rate":           {"acme hr age"},
		"evenhand-coverage":       {"beta finance"},
		"evenhand-quiet":          {""},
		"evenhand-late":           {"llm.interactions 3"},
		"evenhand-lost":           {"llm.interactions 1"},
		"evenhand-dead-letters":   {"gamma bad_json"},
		"evenhand-no-jobs":        {""},
		"evenhand-jobs":           {"verdict_retry"},
		"evenhand-without-ticket": {"beta education"},
	}
	if fmt.Sprint(fired) != fmt.Sprint(want) {
		t.Errorf("fired\n%v\nwant\n%v", fired, want)
	}
}

// The other provisioning files fit Grafana, our user and the folders of docker-compose.yml.
func TestProvisioningFits(t *testing.T) {
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type string
			IsDefault       bool              `yaml:"isDefault"`
			Editable        bool              `yaml:"editable"`
			JSONData        map[string]any    `yaml:"jsonData"`
			SecureJSONData  map[string]string `yaml:"secureJsonData"`
		} `yaml:"datasources"`
	}
	strictly(t, "../provisioning/datasources/evenhand.yaml", &sources)
	if len(sources.Datasources) != 1 {
		t.Fatal(sources)
	}
	d := sources.Datasources[0]
	if d.UID != "evenhand" || d.Type != Plugin || d.JSONData["username"] != string(engine.Grafana) || d.JSONData["defaultDatabase"] != engine.Database {
		t.Errorf("%+v", d)
	}
	var boards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Folder, FolderUID, Type string
			DisableDeletion               bool           `yaml:"disableDeletion"`
			AllowUIUpdates                bool           `yaml:"allowUiUpdates"`
			UpdateIntervalSeconds         int            `yaml:"updateIntervalSeconds"`
			Options                       map[string]any `yaml:"options"`
		} `yaml:"providers"`
	}
	strictly(t, "../provisioning/dashboards/evenhand.yaml", &boards)
	compose, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, mount := range []string{"./dashboards/provisioning:/etc/grafana/provisioning:ro", fmt.Sprintf("./dashboards/json:%s:ro", boards.Providers[0].Options["path"])} {
		if !strings.Contains(string(compose), mount) {
			t.Errorf("docker-compose.yml does not mount %s", mount)
		}
	}
}
