package boards

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

var update = flag.Bool("update", false, "rewrite the committed JSON")

func file(uid string) string {
	return filepath.Join("..", "json", strings.TrimPrefix(uid, "evenhand-")+".json")
}

func TestJSONIsUpToDate(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, b := range all {
		path := file(b.UID)
		want[path] = true
		made, err := b.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, made, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, made) {
			t.Errorf("%s differs from what the code makes (%v): go test ./dashboards/boards -update", path, err)
		}
	}
	found, err := filepath.Glob("../json/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if !want[path] {
			t.Errorf("%s is no board's", path)
		}
	}
}

// committed reads a board's JSON as strictly as the SDK can: unknown and missing keys are faults.
func committed(t *testing.T, uid string) classic {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	cog.NewRuntime().RegisterDataqueryVariant(variants.DataqueryConfig{
		Identifier:           Plugin,
		DataqueryUnmarshaler: readQuery, StrictDataqueryUnmarshaler: readQuery,
	})
	b, err := os.ReadFile(file(uid))
	if err != nil {
		t.Fatal(err)
	}
	// The SDK's strict reading gives an empty list of faults where there is none, and drops the panels.
	var strict, d classic
	var faults cog.BuildErrors
	if err := strict.UnmarshalJSONStrict(b); err != nil && (!errors.As(err, &faults) || len(faults) > 0) {
		t.Fatalf("%s: %v", uid, err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func readQuery(raw []byte) (variants.Dataquery, error) {
	var q query
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(&q)
	return q, err
}

func TestJSONIsStrict(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		d := committed(t, b.UID)
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", b.UID, err)
		}
		if d.Uid == nil || *d.Uid != b.UID || len(*d.Uid) > 40 {
			t.Errorf("%s: uid", b.UID)
		}
	}
}

// A fault of each sort that the strict reading is there for is found.
func TestStrictReadingFindsFaults(t *testing.T) {
	good, err := os.ReadFile(file("evenhand-bias-rates"))
	if err != nil {
		t.Fatal(err)
	}
	_ = committed(t, "evenhand-bias-rates") // registers the panels
	for old, wrong := range map[string]string{
		`"schemaVersion"`: `"schemaVersoin"`, `"rawSql"`: `"rawSQL2"`, `"showHeader"`: `"showHeaders"`, `"lineWidth"`: `"lineWidht"`,
	} {
		var d classic
		var faults cog.BuildErrors
		err := d.UnmarshalJSONStrict([]byte(strings.ReplaceAll(string(good), old, wrong)))
		if !bytes.Contains(good, []byte(old)) || err == nil || errors.As(err, &faults) && len(faults) == 0 {
			t.Errorf("%s is not told from %s (%v)", wrong, old, err)
		}
	}
}

func TestPanelsAreWellFormed(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		d := committed(t, b.UID)
		variables := map[string]bool{}
		for _, v := range d.Templating.List {
			variables[v.Name] = true
			if v.Type == dashboard.VariableTypeQuery && (*v.Datasource.Uid != "${datasource}" || !*v.IncludeAll || !*v.Multi || v.AllValue != nil) {
				t.Errorf("%s: variable %s", b.UID, v.Name)
			}
		}
		ids, taken := map[uint32]bool{}, map[[2]uint32]string{}
		for _, at := range d.Panels {
			if at.RowPanel != nil {
				continue
			}
			p := at.Panel
			name := b.UID + ", " + *p.Title
			if p.Id == nil || ids[*p.Id] {
				t.Errorf("%s: no id, or one that is taken", name)
			} else {
				ids[*p.Id] = true
			}
			g := *p.GridPos
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if other := taken[[2]uint32{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s lies over %s or beyond the edge", name, other)
					}
					taken[[2]uint32{x, y}] = name
				}
			}
			if b.UID == "evenhand-doors" { // see TestMetricsOfTheDoors
				continue
			}
			q := p.Targets[0].(query)
			if *p.Datasource.Uid != "${datasource}" || len(p.Targets) != 1 || *q.Datasource.Uid != "${datasource}" || *p.Description == "" {
				t.Errorf("%s: data source, targets or description", name)
			}
			if (p.Type == "timeseries") != (q.Format == timeSeries) {
				t.Errorf("%s: format %d", name, q.Format)
			}
			if repeat, ok := strings.CutPrefix(*p.Title, "$"); ok && (p.Repeat == nil || *p.Repeat != repeat || !variables[repeat]) {
				t.Errorf("%s: is repeated by no variable", name)
			}
			for _, m := range regexp.MustCompile(`\$\{(\w+):singlequote\}|, \$(\w+)\)`).FindAllStringSubmatch(q.RawSQL, -1) {
				if !variables[m[1]+m[2]] {
					t.Errorf("%s: the board has no variable %s", name, m[1]+m[2])
				}
			}
		}
	}
}

// Grafana shows a link whatever its variables hold, so links lead only to boards that there are, and to addresses that a row has.
func TestLinksLeadSomewhere(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	link, n := regexp.MustCompile(`"url":"([^"]*)"`), 0
	for _, b := range all {
		raw, err := json.Marshal(committed(t, b.UID).Panels)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(raw, -1) {
			n++
			url, known := string(m[1]), strings.HasPrefix(string(m[1]), "${__data.fields.") || strings.HasPrefix(string(m[1]), "/d/${__data.fields.board}?")
			for _, to := range all {
				known = known || strings.HasPrefix(url, "/d/"+to.UID+"?")
			}
			if !known {
				t.Errorf("%s links to %s", b.UID, url)
			}
		}
	}
	if n == 0 {
		t.Error("no links were found")
	}
}

// Columns that panels name in overrides, links and transformations are columns of their statements.
func TestPanelsNameColumns(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	field := regexp.MustCompile(`__data\.fields\.(\w+)`)
	for _, b := range all {
		for _, at := range committed(t, b.UID).Panels {
			if at.Panel == nil || b.UID == "evenhand-doors" {
				continue
			}
			p := at.Panel
			columns := want[b.UID+"/"+p.Type+"/"+*p.Title]
			has := func(what, column string) {
				if !strings.Contains(", "+columns, ", "+column+" ") {
					t.Errorf("%s, %s: %s names the column %s of %s", b.UID, *p.Title, what, column, columns)
				}
			}
			for _, o := range p.FieldConfig.Overrides {
				if o.Matcher.Id == "byName" {
					has("an override", o.Matcher.Options.(string))
				}
			}
			for _, tr := range p.Transformations {
				for _, key := range []string{"rowField", "columnField", "valueField"} {
					has("a transformation", tr.Options.(map[string]any)[key].(string))
				}
			}
			raw, err := json.Marshal(p.FieldConfig)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range field.FindAllStringSubmatch(string(raw), -1) {
				has("a link", m[1])
			}
		}
	}
}

// Where a table has severities by level, it shows their names.
func TestSeveritiesHaveNames(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range all {
		for _, at := range committed(t, b.UID).Panels {
			if at.Panel == nil || b.UID == "evenhand-doors" || !strings.Contains(want[b.UID+"/"+at.Panel.Type+"/"+*at.Panel.Title], "severity UInt8") {
				continue
			}
			n++
			raw, err := json.Marshal(at.Panel.FieldConfig.Overrides)
			if err != nil {
				t.Fatal(err)
			}
			for level, name := range []string{"none", "LOW", "MEDIUM", "HIGH", "CRITICAL"} {
				if !strings.Contains(string(raw), fmt.Sprintf(`"%d":{"index":%d,"text":%q}`, level, level, name)) {
					t.Errorf("%s, %s: severity %d is not shown as %s in %s", b.UID, *at.Panel.Title, level, name, raw)
				}
			}
		}
	}
	if n != 3 {
		t.Errorf("%d tables with levels, want 3", n)
	}
}
