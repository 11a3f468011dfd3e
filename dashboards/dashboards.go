// Package dashboards makes the Grafana dashboards. The SQL of each panel is a file under sql/; the
// JSON is committed beside it and loaded by Grafana's file provisioning (provisioning/). After a
// change: go test ./dashboards -update.
//
// The dashboards read the flat read model as the read-only user grafana. They show no text. The
// tenant variable is a filter and no boundary: a viewer can edit it, so give each tenant a data source
// of its own whose user sees that tenant's rows.
package dashboards

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

//go:embed sql/*.sql
var files embed.FS

// object is a JSON object of Grafana's classic dashboard schema.
type object = map[string]any

const (
	plugin        = "grafana-clickhouse-datasource"
	pluginVersion = "4.14.0"
	timeSeries    = 0
	table         = 1
)

var datasource = object{"type": plugin, "uid": "${datasource}"}

// BiasRates gives the dashboard of bias rates as indented JSON.
func BiasRates() ([]byte, error) {
	sql, err := statements()
	if err != nil {
		return nil, err
	}
	rate := object{"unit": "percentunit", "min": 0, "max": 1, "decimals": 1}
	stat := func(title, about, query string, unit object, x int, fields string) object {
		return panel("stat", title, about, sql[query], table, grid(x, 0, 6, 4), object{
			"fieldConfig": object{"defaults": unit, "overrides": []any{}},
			"options":     object{"reduceOptions": object{"calcs": []any{"lastNotNull"}, "fields": fields, "values": false}, "colorMode": "value", "graphMode": "none", "textMode": "auto"},
		})
	}
	lines := func(title, about, query string, defaults object, overrides []any, at object) object {
		return panel("timeseries", title, about, sql[query], timeSeries, at, object{
			"fieldConfig": object{"defaults": defaults, "overrides": overrides},
			"options":     object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true}, "tooltip": object{"mode": "multi", "sort": "desc"}},
		})
	}
	cells := func(title, about, query string, overrides []any, transformations []any, at object) object {
		return panel("table", title, about, sql[query], table, at, object{
			"fieldConfig":     object{"defaults": object{}, "overrides": overrides},
			"options":         object{"showHeader": true, "cellHeight": "sm"},
			"transformations": transformations,
		})
	}
	panels := []any{
		stat("Analysed interactions", "Interactions that were looked at, in whole or in part", "analysed", object{"unit": "short"}, 0, ""),
		stat("Bias detected", "Share of analysed interactions with a finding of a bias detector in the response", "detected", rate, 6, "/^rate$/"),
		stat("Flagged", "Share of analysed interactions that passed their domain's threshold", "flagged", rate, 12, "/^rate$/"),
		stat("Coverage", "Analysed share of what came in: what failed or waits is not clean", "coverage", rate, 18, ""),
		lines("Bias detected over time", "With the 95 % Wilson interval", "trend", rate, band(), grid(0, 4, 12, 8)),
		lines("Bias detected by characteristic", "Grounds of Art. 21 of the EU Charter; an interaction counts once a ground", "trend_by_characteristic", rate, nil, grid(12, 4, 12, 8)),
		cells("Rate by domain and characteristic", "Colour shows the rate", "matrix", []any{matching("byRegexp", "/.*/", heat(rate))}, []any{
			object{"id": "groupingToMatrix", "options": object{"columnField": "characteristic", "rowField": "domain", "valueField": "rate", "emptyValue": "null"}},
		}, grid(0, 12, 24, 7)),
		cells("Rates with intervals", "k of n, with the 95 % Wilson interval", "rates", []any{matching("byRegexp", "/^(rate|lower|upper)$/", properties(rate))}, nil, grid(0, 19, 12, 9)),
		cells("Rules that fired most", "In responses, by interactions", "rules", nil, nil, grid(12, 19, 12, 9)),
		lines("Analysis status", "Interactions by what became of their analysis", "statuses",
			object{"unit": "short", "custom": object{"drawStyle": "bars", "fillOpacity": 60, "stacking": object{"mode": "normal"}}}, nil, grid(0, 28, 24, 6)),
		cells("Latest flagged interactions", "Newest first; texts are not shown here", "latest", nil, nil, grid(0, 34, 24, 10)),
	}
	for i, p := range panels {
		p.(object)["id"] = i + 1
	}
	return indented(object{
		"uid": "evenhand-bias-rates", "title": "Evenhand: bias rates", "tags": []any{"evenhand", "bias"},
		"schemaVersion": 39, "version": 1, "editable": true, "timezone": "utc", "refresh": "1m", "graphTooltip": 1,
		"time":       object{"from": "now-24h", "to": "now"},
		"timepicker": object{}, "annotations": object{"list": []any{}}, "links": []any{},
		"templating": object{"list": []any{
			object{"name": "datasource", "label": "Data source", "type": "datasource", "query": plugin, "refresh": 1, "current": object{}, "hide": 0, "options": []any{}},
			variable("tenant", "Tenant", sql["variable_tenant"]),
			variable("domain", "Domain", sql["variable_domain"]),
		}},
		"panels": panels,
	})
}

func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}

// statements reads the panels' SQL with the shared parts put in.
func statements() (map[string]string, error) {
	part := func(name string) func() (string, error) {
		return func() (string, error) {
			b, err := files.ReadFile("sql/" + name + ".sql")
			return strings.TrimSpace(string(b)), err
		}
	}
	t, err := template.New("").Funcs(template.FuncMap{"scope": part("scope"), "settings": part("settings"), "wilson": part("wilson")}).ParseFS(files, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("dashboards: %w", err)
	}
	out := map[string]string{}
	for _, f := range t.Templates() {
		var b strings.Builder
		if err := f.Execute(&b, nil); err != nil {
			return nil, fmt.Errorf("dashboards: %s: %w", f.Name(), err)
		}
		out[strings.TrimSuffix(f.Name(), ".sql")] = strings.TrimSpace(b.String())
	}
	return out, nil
}

func panel(kind, title, about, sql string, format int, at, extra object) object {
	queryType := "table"
	if format == timeSeries {
		queryType = "timeseries"
	}
	p := object{
		"type": kind, "title": title, "description": about, "datasource": datasource, "gridPos": at,
		"targets": []any{object{"refId": "A", "datasource": datasource, "editorType": "sql", "rawSql": sql, "format": format, "queryType": queryType, "pluginVersion": pluginVersion}},
	}
	for k, v := range extra {
		if list, ok := v.([]any); ok && list == nil {
			v = []any{}
		}
		p[k] = v
	}
	if fc, ok := p["fieldConfig"].(object); ok && fc["overrides"].([]any) == nil {
		fc["overrides"] = []any{}
	}
	return p
}

func variable(name, label, sql string) object {
	return object{
		"name": name, "label": label, "type": "query", "datasource": datasource, "query": object{"rawSql": sql, "refId": name, "editorType": "sql"},
		"definition": sql, "refresh": 2, "multi": true, "includeAll": true, "sort": 1, "hide": 0,
		"current": object{"selected": true, "text": []any{"All"}, "value": []any{"$__all"}}, "options": []any{}, "regex": "",
	}
}

func grid(x, y, w, h int) object { return object{"x": x, "y": y, "w": w, "h": h} }

// band draws upper and lower as an area around the rate.
func band() []any {
	hidden := []any{object{"id": "custom.lineWidth", "value": 0}, object{"id": "custom.hideFrom", "value": object{"legend": true, "tooltip": false, "viz": false}}}
	return []any{
		matching("byName", "upper", append([]any{object{"id": "custom.fillBelowTo", "value": "lower"}, object{"id": "custom.fillOpacity", "value": 15}}, hidden...)),
		matching("byName", "lower", hidden),
	}
}

func matching(matcher, what string, props []any) object {
	return object{"matcher": object{"id": matcher, "options": what}, "properties": props}
}

func properties(defaults object) []any {
	var out []any
	for _, k := range []string{"unit", "min", "max", "decimals"} {
		out = append(out, object{"id": k, "value": defaults[k]})
	}
	return out
}

func heat(defaults object) []any {
	return append(properties(defaults),
		object{"id": "color", "value": object{"mode": "continuous-YlRd"}},
		object{"id": "custom.cellOptions", "value": object{"type": "color-background", "mode": "basic"}})
}
