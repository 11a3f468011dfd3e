package graph

import (
	"encoding/json"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/evenhand/evenhand/store"
)

// price is what a field costs, in thousandths of a point. A list costs its own, and for each row that it
// may have each and what is asked of a row.
type price struct {
	own  int
	rows int    // that a list may have; 0: one
	page string // the argument that says how many rows, "limit" inside pagination, or the list with one for each; also for lists further in
	each int
}

const (
	point = 1000
	cheap = point / 50 // of a field that comes with its row
	meta  = point / 200
	text  = 3 * point / 10
	row   = point / 5
	inner = -1 // rows: as many as the page asked for around it
)

// prices by type and field; what is not here is cheap. docs/graphql.md says them in words.
var prices = map[string]price{
	"Query.llmInteractionAudit":           {own: 5 * point},
	"Query.llmInteractionAudits":          {own: 5 * point, page: "limit", rows: inner, each: row},
	"Query.llmInteractionAuditConnection": {own: 5 * point, page: "first"},
	"Query.breaches":                      {own: 5 * point, page: "first"},
	"Query.breach":                        {own: 5 * point},
	"Query.gates":                         {own: 5 * point, page: "first"},
	"Query.gate":                          {own: 5 * point},
	"Query.biasTaxonomy":                  {own: 5 * point, rows: 60},
	"Query.biasTrend":                     {own: 30 * point},
	"Query.coverage":                      {own: 10 * point},

	"LlmInteractionAuditConnection.edges":      {rows: inner, each: row},
	"LlmInteractionAuditConnection.nodes":      {rows: inner, each: row},
	"LlmInteractionAuditConnection.totalCount": {own: 20 * point},
	"BreachConnection.nodes":                   {rows: inner, each: row},
	"GateConnection.nodes":                     {rows: inner, each: row},
	"BiasTrend.series":                         {rows: 10},
	"TrendSeries.points":                       {rows: 30},

	"LlmInteractionAudit.originalQuery":     {own: text},
	"LlmInteractionAudit.llmResponse":       {own: text},
	"LlmInteractionAudit.promptText":        {own: text},
	"LlmInteractionAudit.messages":          {own: text},
	"LlmInteractionAudit.responseText":      {own: text},
	"LlmInteractionAudit.sanitizedPrompt":   {own: text},
	"LlmInteractionAudit.queryContext":      {own: text},
	"LlmInteractionAudit.redactionSummary":  {own: text},
	"LlmInteractionAudit.errorMessage":      {own: text},
	"LlmInteractionAudit.reviewNotes":       {own: text},
	"LlmInteractionAudit.mitigationAction":  {own: text},
	"LlmInteractionAudit.biasReportSummary": {own: 7 * point / 10},
	"LlmInteractionAudit.findings":          {own: text, rows: 3, each: cheap},
	"LlmInteractionAudit.verdicts":          {own: text, rows: 3, each: cheap},
	"LlmInteractionAudit.reviews":           {own: text, rows: 2, each: cheap},
	"LlmInteractionAudit.feedback":          {own: text, rows: 2, each: cheap},
	"LlmInteractionAudit.judgement":         {own: text, each: cheap},
	"Judgement.suggestedRemediations":       {rows: 3, each: cheap},
	"Verdict.findings":                      {rows: 3, each: cheap},
	"Finding.evidence":                      {own: point / 10},
	"Review.notes":                          {own: point / 10},
	"Feedback.note":                         {own: point / 10},

	"Gate.interaction":    {own: text, each: row},
	"Gate.request":        {own: text},
	"GateRequest.matches": {rows: 2, each: cheap},
	"Mutation.decideGate": {own: 10 * point},

	"Breach.interactions": {own: point, rows: 20, each: row},
	"Breach.history":      {own: text, rows: 10, each: cheap},
	"Breach.tickets":      {own: text, rows: 5, each: cheap},
	"Breach.topRules":     {rows: 5},

	"Mutation.createLlmInteractionAudit":     {own: 10 * point},
	"Mutation.updateLlmInteractionAuditBias": {own: 10 * point},
	"Mutation.recordBiasReview":              {own: 10 * point},
	"Mutation.recordBiasReviews":             {own: 10 * point, page: "inputs", rows: inner, each: 2 * point},
	"Mutation.recordFeedback":                {own: 10 * point},
	"Mutation.askJudge":                      {own: 20 * point},
	"Mutation.putTaxonomyEntry":              {own: 10 * point},
	"Mutation.revealLlmInteractionAudit":     {own: 20 * point},
	"Subscription.flagged":                   {own: 50 * point},

	"Query.__schema":        {own: 5 * point},
	"__Schema.types":        {rows: 60},
	"__Type.fields":         {rows: 8},
	"__Type.inputFields":    {rows: 2},
	"__Type.enumValues":     {rows: 2},
	"__Schema.directives":   {rows: 6},
	"__Directive.args":      {rows: 2},
	"__Type.interfaces":     {},
	"__Type.possibleTypes":  {},
	"__Field.args":          {},
	"__Directive.locations": {},
}

// affordable refuses an operation that costs more than the limit. The document has been validated and
// its fragments have been counted, so that it can be walked as often as they are spread.
func (c Config) affordable(op *ast.OperationDefinition, vars map[string]any) *gqlerror.Error {
	total := cost(op.SelectionSet, vars, 1)
	if total <= c.Cost*point {
		return nil
	}
	return beyond("cost", (total+point-1)/point, c.Cost, ": ask for fewer rows (pagination.limit, first), or for fewer texts, findings and verdicts of each")
}

// cost of a selection; page is how many rows the page around it may have.
func cost(set ast.SelectionSet, vars map[string]any, page int) (total int) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			if !left(sel.Directives, vars) {
				total += fieldCost(sel, vars, page)
			}
		case *ast.InlineFragment:
			if !left(sel.Directives, vars) {
				total += cost(sel.SelectionSet, vars, page)
			}
		case *ast.FragmentSpread:
			if !left(sel.Directives, vars) && sel.Definition != nil {
				total += cost(sel.Definition.SelectionSet, vars, page)
			}
		}
		total = min(total, 1<<40)
	}
	return total
}

func fieldCost(f *ast.Field, vars map[string]any, page int) int {
	var of string
	if f.ObjectDefinition != nil {
		of = f.ObjectDefinition.Name
	}
	p, known := prices[of+"."+f.Name]
	if !known || p.own == 0 {
		p.own = cheap
		if len(of) > 1 && of[:2] == "__" {
			p.own = meta
		}
	}
	if p.page != "" {
		page = rowsAsked(f, vars, p.page)
	}
	rows := p.rows
	switch rows {
	case inner:
		rows = page
	case 0:
		rows = 1
	}
	return p.own + rows*(p.each+cost(f.SelectionSet, vars, page))
}

// left tells that a field or fragment is left out by @skip or @include.
func left(ds ast.DirectiveList, vars map[string]any) bool {
	for _, d := range ds {
		arg := d.Arguments.ForName("if")
		if arg == nil {
			continue
		}
		v, err := arg.Value.Value(vars)
		if on, ok := v.(bool); err == nil && ok && (d.Name == "skip" && on || d.Name == "include" && !on) {
			return true
		}
	}
	return false
}

// rowsAsked is the size of the page that a field asks for; one that is out of bounds is refused by the
// resolver and counts as the longest.
func rowsAsked(f *ast.Field, vars map[string]any, name string) int {
	args := f.ArgumentMap(vars)
	if name == "limit" {
		args, _ = args["pagination"].(map[string]any)
	}
	n := int64(store.DefaultLimit)
	switch v := args[name].(type) {
	case []any:
		n = int64(len(v))
	case map[string]any: // a list of one may be given without its brackets
		n = 1
	case int64:
		n = v
	case int:
		n = int64(v)
	case float64:
		n = int64(v)
	case json.Number:
		n, _ = v.Int64()
	}
	if n < 0 || n > store.MaxLimit {
		n = store.MaxLimit
	}
	return int(max(n, 1))
}

// omit takes fields of input objects out whose variable was not given: they were not sent, which is not
// null. Documents are read once for each request, so this one may be changed.
func omit(set ast.SelectionSet, vars map[string]any, seen map[*ast.FragmentDefinition]bool) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			for _, a := range sel.Arguments {
				omitValue(a.Value, vars)
			}
			omit(sel.SelectionSet, vars, seen)
		case *ast.InlineFragment:
			omit(sel.SelectionSet, vars, seen)
		case *ast.FragmentSpread:
			if d := sel.Definition; d != nil && !seen[d] {
				seen[d] = true
				omit(d.SelectionSet, vars, seen)
			}
		}
	}
}

func omitValue(v *ast.Value, vars map[string]any) {
	if v == nil {
		return
	}
	kept := v.Children[:0]
	for _, c := range v.Children {
		if v.Kind == ast.ObjectValue && c.Value != nil && c.Value.Kind == ast.Variable {
			if _, given := vars[c.Value.Raw]; !given {
				continue
			}
		}
		omitValue(c.Value, vars)
		kept = append(kept, c)
	}
	v.Children = kept
}
