package boards

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

//go:embed sql/*.sql
var files embed.FS

// statements are the boards' SQL by file name without its ending, with the shared parts put in:
//
//	{{scope}}                          the variables tenant, domain, app and model; "All" drops a condition
//	{{within}}                         the time range, in audit_current: by event_ts, and by the key as far as that tells
//	{{wilson}}                         rate, lower, upper of the columns k and n
//	{{rolled "all" "bias"}}            rollup rows of these dims in the time range: of the hours up to two weeks, else of the days
//	{{rolledWhere "condition" "bias"}} the same under a condition
//	{{kindTrend "condition"}}          the rate over time of each kind under a condition on its key, value
//	{{said}}                           what the judge said or failed to say in the time range: a row an attempt, of events of the last month
//	{{judged}}                         its newest word on each interaction
//	{{beside}}                         the same of interactions with a verdict, beside the rules': who found bias
//	{{bucket}}                         the time of a rollup row in steps that are whole hours, or days
type statements map[string]string

func load() (statements, error) {
	t := template.New("")
	part := func(name string, data any) (string, error) {
		var b strings.Builder
		err := t.ExecuteTemplate(&b, name+".sql", data)
		return strings.TrimSpace(b.String()), err
	}
	type rolled struct{ Dims, Where string }
	t.Funcs(template.FuncMap{
		"scope":       func() (string, error) { return part("scope", nil) },
		"within":      func() (string, error) { return part("within", nil) },
		"wilson":      func() (string, error) { return part("wilson", nil) },
		"bucket":      func() (string, error) { return part("bucket", nil) },
		"said":        func() (string, error) { return part("said", false) },
		"judged":      func() (string, error) { return part("said", true) },
		"beside":      func() (string, error) { return part("beside", nil) },
		"kindTrend":   func(where string) (string, error) { return part("kind_trend", "dim = 'all' OR "+where) },
		"rolled":      func(dims ...string) (string, error) { return part("rolled", rolled{quoted(dims), ""}) },
		"rolledWhere": func(where string, dims ...string) (string, error) { return part("rolled", rolled{quoted(dims), where}) },
	})
	if _, err := t.ParseFS(files, "sql/*.sql"); err != nil {
		return nil, fmt.Errorf("dashboards: %w", err)
	}
	out := statements{}
	for _, f := range t.Templates() {
		name := strings.TrimSuffix(f.Name(), ".sql")
		if slices.Contains([]string{"", "scope", "within", "wilson", "bucket", "rolled", "kind_trend", "said", "beside"}, name) {
			continue
		}
		sql, err := part(name, nil)
		if err != nil {
			return nil, fmt.Errorf("dashboards: %s: %w", f.Name(), err)
		}
		out[name] = sql
	}
	return out, nil
}

func quoted(dims []string) string { return "'" + strings.Join(dims, "', '") + "'" }
