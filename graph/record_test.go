package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/graph/model"
	"github.com/evenhand/evenhand/store"
)

// everything selects all fields of an interaction.
const everything = `id tenantId userId userEmail userRole queryContext originalQuery llmProvider llmModel sanitizedPrompt llmResponse
	promptTokens responseTokens estimatedCostUsd redactionSummary sensitivityScore containedPii containedProprietary containedCustomerData
	status errorMessage logTimestamp biasDetected biasType biasScore biasConfidenceScore mitigationAction biasReportSummary humanReviewed
	humanBiasTag reviewNotes effectiveBias biasAnalysisStatus promptText messages responseText textState flagged unsafe gated action severity domain domainGiven application traceId givenId kinds
	findings { kind rule ruleVersion characteristic severity score confidence side start end evidence analyzer }
	verdicts { id analyzer version status reason current biasDetected biasType biasScore confidence flagged action at durationMs findings { kind evidence } }
	reviews { id reviewer decision tags notes at }
	feedback { id by helped note at }
	` + judgementFields + `
	resultId idConflict timeAssumed truncated`

// Nothing that an interaction can be asked for is left out.
func TestEverythingIsEverything(t *testing.T) {
	doc, errs := gqlparser.LoadQueryWithRules(served, `{ llmInteractionAudit(id: "0") { `+everything+` } }`, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	given := map[string]bool{}
	for _, sel := range doc.Operations[0].SelectionSet[0].(*ast.Field).SelectionSet {
		given[sel.(*ast.Field).Name] = true
	}
	for _, f := range served.Types["LlmInteractionAudit"].Fields {
		if !given[f.Name] {
			t.Errorf("%s is not asked for", f.Name)
		}
	}
}

// record is an interaction as JSON.
type record = map[string]any

func (f *fixture) one(p *auth.Principal, id audit.ID, fields string) (r record) {
	f.Helper()
	var got struct{ LlmInteractionAudit record }
	f.get(p, `query($id: ID!) { llmInteractionAudit(id: $id) { `+fields+` } }`, fmt.Sprintf(`{"id":%q}`, id), &got)
	return got.LlmInteractionAudit
}

// view reads the same of the view, JSON columns as JSON.
func (f *fixture) view(id audit.ID) record {
	f.Helper()
	var b bytes.Buffer
	if err := store.WriteJSON(f.Context(), &b, f.conn, "SELECT * FROM "+f.db+".llm_interaction_audit WHERE id = '"+id.String()+"'"); err != nil {
		f.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(b.Bytes(), &r); err != nil {
		f.Fatal(err)
	}
	for _, column := range []string{"llm_response", "redaction_summary", "bias_score", "mitigation_action", "bias_report_summary", "human_bias_tag"} {
		if text, ok := r[column].(string); ok {
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				f.Fatalf("%s: %v", column, err)
			}
			r[column] = v
		}
	}
	return r
}

// same compares the fields of the specification with the view's columns of that name.
func (f *fixture) same(id audit.ID) {
	f.Helper()
	got, want := f.one(admin, id, everything), f.view(id)
	columns := 0
	for field, value := range got {
		column := snake(field)
		w, known := want[column]
		if !known || column == "severity" {
			continue
		}
		columns++
		if text, ok := value.(string); ok && column == "log_timestamp" { // the view's is shown without zeros at its end
			value = strings.TrimSuffix(strings.TrimRight(strings.TrimSuffix(text, "Z"), "0"), ".") + "Z"
		}
		analysed := got["biasType"] != nil
		if !analysed && (column == "bias_type" || column == "bias_score" || column == "bias_confidence_score") {
			continue // null here, empty there
		}
		if !reflect.DeepEqual(value, w) {
			f.Errorf("%s of %s: %v, the view has %v", field, id, value, w)
		}
	}
	if columns < 35 {
		f.Errorf("only %d fields were compared", columns)
	}
}

func snake(field string) string {
	var b strings.Builder
	for _, r := range field {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// What GraphQL answers equals the view, field by field.
func TestRecordEqualsTheView(t *testing.T) {
	f := newFixture(t)
	records := series("acme", 15)
	plain := sample("acme", 15)
	plain.Interaction.Messages, plain.Interaction.Query, plain.Interaction.QueryContext = "", plain.Interaction.Prompt, ""
	structured := sample("acme", 16)
	structured.Interaction.ResponseJSON = `{"choices":[{"text":"Hi","big":12345678901234567890}]}`
	bare := sample("acme", 17)
	bare.Interaction.WithoutContent, bare.Interaction.Prompt, bare.Interaction.Response, bare.Interaction.Messages, bare.Interaction.Query = true, "", "", "", ""
	bare.Interaction.UserID, bare.Interaction.UserEmail, bare.Interaction.UserRole = "", "", ""
	bare.Verdict.Status, bare.Verdict.Findings = audit.Skipped, nil
	f.write(append(records, plain, structured, bare)...)
	for i := range 18 {
		id := sample("acme", i).Interaction.ID
		f.same(id)
		if given := f.one(admin, id, "givenId")["givenId"]; given != fmt.Sprint(i) {
			f.Errorf("the producer's id of the %d-th: %v", i, given)
		}
	}
	gone := sample("acme", 0).Interaction
	f.run("ALTER TABLE {{db}}.interaction_texts DROP PARTITION ('std', '" + gone.Time.Format("2006-01-02") + "')")
	f.same(gone.ID)
	r := f.one(admin, gone.ID, everything)
	if r["originalQuery"] != "[dropped]" || r["textState"] != "dropped" || r["llmResponse"] != nil || r["responseText"] != nil || r["promptText"] != nil || r["messages"] != nil || r["userId"] != nil || r["biasDetected"] != true {
		t.Errorf("after the drop: %v", r)
	}
	if b, _ := json.Marshal(r); bytes.Contains(b, []byte("women")) {
		t.Errorf("text after the drop: %s", b)
	}
}

// What a span points into is shown: of a JSON answer the text that was taken out of it, of a long one what is kept of it.
func TestSpansPointIntoResponseText(t *testing.T) {
	f := newFixture(t)
	tool, long := sample("acme", 0), sample("acme", 3)
	tool.Interaction.ResponseJSON = `{"choices":[{"message":{"content":null,"tool_calls":[{"name":"note","text":"women are bad"}]}}]}`
	tool.Interaction.Response = "note women are bad"
	long.Interaction.ResponseJSON = `{"truncated":true,"bytes":275091}`
	long.Interaction.Response, long.Interaction.TextBytes, long.Interaction.Truncated = strings.Repeat("é", 50)+"women are bad", 100, true
	long.Verdict.Findings[0].Span = audit.Span{Start: 50, End: 63}
	f.write(tool, long)
	const fields = "llmResponse responseText findings { start end evidence }"
	for _, tc := range []struct {
		of       audit.Record
		text     string
		evidence any
	}{{tool, "note women are bad", "women are ba"}, {long, strings.Repeat("é", 50), nil}} {
		got := f.one(as(auth.Reviewer), tc.of.Interaction.ID, fields)
		found := got["findings"].([]any)[0].(record)
		if _, isObject := got["llmResponse"].(record); !isObject || got["responseText"] != tc.text || found["evidence"] != tc.evidence {
			t.Errorf("%v, want %q with %v", got, tc.text, tc.evidence)
		}
	}
	for _, who := range []*auth.Principal{as(auth.Viewer), {Tenant: "acme", Subject: "key:1", May: []auth.Permission{auth.ReadPeople, auth.Read}}} {
		if got := f.one(who, tool.Interaction.ID, fields); got["responseText"] != nil || got["findings"].([]any)[0].(record)["evidence"] != nil {
			t.Errorf("%v: %v", who.May, got)
		}
	}
}

// The conversation that was judged is shown, not its last question alone; by a reveal too, and to nobody who may not see texts.
func TestTheConversationIsShown(t *testing.T) {
	f := newFixture(t)
	talk, plain := sample("acme", 0), sample("acme", 3)
	talk.Interaction.Prompt = "Be brief.\n\nwomen are bad at it?\n\nNo.\n\nShould we hire her?"
	talk.Interaction.Messages = `[{"content":"Be brief.","role":"system"},{"content":"women are bad at it?","role":"user"},{"content":"No.","role":"assistant"},{"content":"Should we hire her?","role":"user"}]`
	talk.Verdict.Findings = append(talk.Verdict.Findings, audit.Finding{Kind: "charter.sex", Rule: "sex.capability", RuleVersion: "3", Ground: audit.Sex, Severity: audit.Low, Side: audit.Input, Span: audit.Span{Start: 11, End: 24}})
	plain.Interaction.Messages, plain.Interaction.Query, plain.Interaction.Prompt = "", "Why?", "Why?"
	f.write(talk, plain)
	f.writing()
	const fields = "promptText messages findings { side evidence }"
	id := talk.Interaction.ID
	var revealed struct{ RevealLlmInteractionAudit record }
	f.get(as(auth.Reviewer), `mutation { revealLlmInteractionAudit(id: "`+id.String()+`", reason: "complaint 7, asked by the user") { `+fields+` } }`, "", &revealed)
	for who, got := range map[string]record{"a reviewer": f.one(as(auth.Reviewer), id, fields), "by a reveal": revealed.RevealLlmInteractionAudit} {
		messages, _ := json.Marshal(got["messages"])
		if got["promptText"] != talk.Interaction.Prompt || string(messages) != talk.Interaction.Messages || !strings.Contains(fmt.Sprint(got["findings"]), "evidence:women are bad side:input") {
			t.Errorf("%s: %v", who, got)
		}
	}
	if got := f.one(admin, plain.Interaction.ID, fields); got["promptText"] != "Why?" || got["messages"] != nil {
		t.Errorf("a plain prompt: %v", got)
	}
	for _, who := range []*auth.Principal{as(auth.Viewer), {Tenant: "acme", Subject: "key:1", May: []auth.Permission{auth.ReadPeople, auth.Read}}} {
		if got := f.one(who, id, fields); got["promptText"] != nil || got["messages"] != nil {
			t.Errorf("%v: %v", who.May, got)
		}
	}
}

// Two decimals, rounded: not cut.
func TestConfidenceHasTwoDecimals(t *testing.T) {
	for given, want := range map[audit.Score]float64{290_000: 0.29, 570_000: 0.57, 575_000: 0.58, 999_999: 1, 4_999: 0, 5_000: 0.01} {
		a := model.Audit{Item: store.Item{AnalysisStatus: audit.Done, Confidence: given}}
		if got := a.BiasConfidenceScore(); got == nil || *got != want {
			t.Errorf("%d: %v, want %v", given, got, want)
		}
	}
}

// A page costs the same number of statements however long it is, and only those that it is asked for.
func TestStatements(t *testing.T) {
	f := newFixture(t)
	f.write(series("acme", 200)...)
	for _, tc := range []struct {
		fields string
		want   int // beside those of the list itself
	}{
		{"id status biasType flagged logTimestamp severity effectiveBias humanReviewed biasConfidenceScore", 0},
		{"promptTokens containedPii", 1},
		{"originalQuery llmResponse promptText messages responseText userId textState", 1},
		{"biasScore mitigationAction findings { kind } verdicts { id }", 1},
		{"biasReportSummary", 2},
		{everything, 5},
	} {
		for _, n := range []int{1, 20, 200} {
			alone := f.statements(fmt.Sprintf(`{ llmInteractionAudits(pagination: {limit: %d}) { id } }`, n))
			got := f.statements(fmt.Sprintf(`{ llmInteractionAudits(pagination: {limit: %d}) { %s } }`, n, tc.fields))
			if got-alone != tc.want {
				t.Errorf("%d rows with %.60s: %d statements more than the list's %d, want %d", n, tc.fields, got-alone, alone, tc.want)
			}
		}
	}
	viewer := as(auth.Viewer)
	texts := `{ llmInteractionAudits { originalQuery llmResponse promptText messages responseText userEmail findings { evidence } } }`
	if n := f.statementsOf(viewer, texts) - f.statementsOf(viewer, `{ llmInteractionAudits { findings { kind } } }`); n != 0 {
		t.Errorf("%d statements for texts that the caller may not see", n)
	}
}

func (f *fixture) statements(query string) int { return f.statementsOf(admin, query) }

func (f *fixture) statementsOf(p *auth.Principal, query string) int {
	f.Helper()
	ctx, count := store.CountStatements(f.Context())
	if a := f.askIn(ctx, p, query, ""); len(a.Errors) > 0 {
		f.Fatalf("%+v", a.Errors)
	}
	return count()
}
