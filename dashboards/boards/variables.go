package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// whole says what a range counts, on boards that read the rollups.
const whole = ". The end of the range is outside; an hour that it begins or ends in, or a day beyond two weeks, is counted whole"

// filters adds the variables that {{scope}} reads.
func filters(d *builder, sql statements) *builder {
	for _, v := range [][2]string{{"tenant", "Tenant"}, {"domain", "Domain"}, {"app", "Application"}, {"model", "Model"}} {
		d.WithVariable(choice(v[0], v[1], sql))
	}
	return d
}

// choice is a variable with the values that a statement gives; many can be chosen, or all.
func choice(name, label string, sql statements) *dashboard.QueryVariableBuilder {
	statement, all := sql["variable_"+name], "$__all"
	return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(source()).Definition(statement).
		Query(dashboard.StringOrMap{Map: map[string]any{"rawSql": statement, "refId": name, "editorType": "sql", "format": rowsOf, "queryType": "table", "pluginVersion": pluginVersion}}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).Multi(true).IncludeAll(true).
		Current(dashboard.VariableOption{Selected: new(true), Text: dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}}, Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{all}}})
}

// notes marks what may explain a step in a rate: new rules, new models, breaches.
func notes(d *builder, sql statements) *builder {
	for _, n := range [][3]string{{"Rules", "note_rules", "purple"}, {"Models", "note_models", "green"}, {"Breaches", "note_breaches", "red"}} {
		d.Annotation(dashboard.NewAnnotationQueryBuilder().Name(n[0]).Datasource(source()).IconColor(n[2]).Enable(true).Target(ask(sql[n[1]], rowsOf)))
	}
	return d
}
