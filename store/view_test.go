package store_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// The columns of the audit record that the specification names, in snake_case.
var auditColumns = map[string]string{
	"id": "UUID", "tenant_id": "String", "user_id": "Nullable(String)", "user_email": "Nullable(String)", "user_role": "Nullable(String)",
	"query_context": "Nullable(String)", "original_query": "String", "llm_provider": "LowCardinality(String)", "llm_model": "LowCardinality(String)",
	"sanitized_prompt": "Nullable(String)", "llm_response": "Nullable(String)", "prompt_tokens": "Nullable(Int32)", "response_tokens": "Nullable(Int32)",
	"estimated_cost_usd": "Nullable(Float64)", "redaction_summary": "Nullable(String)", "sensitivity_score": "Nullable(String)",
	"contained_pii": "Nullable(Bool)", "contained_proprietary": "Nullable(Bool)", "contained_customer_data": "Nullable(Bool)",
	"status": "String", "error_message": "Nullable(String)", "log_timestamp": "DateTime64(3, 'UTC')",
	"bias_detected": "Bool", "bias_type": "Array(String)", "bias_score": "String", "bias_confidence_score": "Decimal(5, 2)",
	"mitigation_action": "Nullable(String)", "bias_report_summary": "Nullable(String)", "human_reviewed": "Bool", "human_bias_tag": "Nullable(String)",
	"review_notes": "Nullable(String)", "text_state": "String",
}

func TestViewHoldsEveryColumn(t *testing.T) {
	f := newFixture(t)
	got := map[string]string{}
	rows, err := f.conn.Query(t.Context(), "SELECT name, type FROM system.columns WHERE database = ? AND table = 'llm_interaction_audit'", f.db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, typ string
		if err := rows.Scan(&name, &typ); err != nil {
			t.Fatal(err)
		}
		got[name] = typ
	}
	for name, typ := range auditColumns {
		if got[name] != typ {
			t.Errorf("column %s is %q, want %q", name, got[name], typ)
		}
	}
}

// auditRecord is a row of the view as far as the tests look at it.
type auditRecord struct {
	ID                  string   `json:"id"`
	OriginalQuery       string   `json:"original_query"`
	LLMResponse         *string  `json:"llm_response"`
	UserID              *string  `json:"user_id"`
	ContainedPII        *bool    `json:"contained_pii"`
	ContainedCustomer   *bool    `json:"contained_customer_data"`
	PromptTokens        *int     `json:"prompt_tokens"`
	EstimatedCostUSD    *float64 `json:"estimated_cost_usd"`
	BiasDetected        bool     `json:"bias_detected"`
	BiasType            []string `json:"bias_type"`
	BiasScore           string   `json:"bias_score"`
	BiasConfidenceScore float64  `json:"bias_confidence_score"`
	MitigationAction    *string  `json:"mitigation_action"`
	Summary             *string  `json:"bias_report_summary"`
	TextState           string   `json:"text_state"`
	AnalysisStatus      string   `json:"bias_analysis_status"`
}

type summary struct {
	Status    string
	Flagged   bool
	Threshold float64
	Analyzers []struct{ Analyzer string }
	Findings  []struct {
		Analyzer, Rule, Kind, Severity, Side string
		Score                                float64
		Span                                 [2]int
		Evidence                             *string
	}
}

func (f *fixture) view(where string) (out []auditRecord) {
	f.Helper()
	var b bytes.Buffer
	if err := store.WriteJSON(f.Context(), &b, f.conn, "SELECT * FROM "+f.db+".llm_interaction_audit WHERE "+where+" ORDER BY log_timestamp DESC, id DESC"); err != nil {
		f.Fatal(err)
	}
	for dec := json.NewDecoder(&b); dec.More(); {
		var r auditRecord
		if err := dec.Decode(&r); err != nil {
			f.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestView(t *testing.T) {
	f := newFixture(t)
	f.keepUnmerged()
	e := sample("acme", 0)
	again := e
	again.offset, again.broker = 99, e.broker.Add(time.Minute)
	f.write(e, sample("acme", 1))
	f.write(again)
	rows := f.view("tenant_id = 'acme'")
	if len(rows) != 2 {
		t.Fatalf("%d rows, want one for each interaction", len(rows))
	}
	r, clean := rows[0], rows[1]
	if r.ID != e.id.String() || r.OriginalQuery != e.prompt || *r.LLMResponse != `"`+e.response+`"` || *r.UserID != e.user || r.TextState != "present" {
		t.Errorf("record %+v", r)
	}
	if r.ContainedPII != nil || !*r.ContainedCustomer || r.PromptTokens != nil || *r.EstimatedCostUSD != 0.0025 {
		t.Error("unknown must be null, the rest as sent")
	}
	if !r.BiasDetected || strings.Join(r.BiasType, " ") != "charter.sex" || r.BiasScore != `{"bias":0.6,"toxicity":0.25}` || r.BiasConfidenceScore != 0.8 || r.MitigationAction != nil {
		t.Errorf("bias fields %+v", r)
	}
	var s summary
	if err := json.Unmarshal([]byte(*r.Summary), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Findings) != 2 || s.Threshold != 0.3 || !s.Flagged || s.Findings[0].Severity != "HIGH" || s.Findings[0].Span != [2]int{5, 17} ||
		*s.Findings[0].Evidence != "women are ba" || *s.Findings[1].Evidence != "Should" {
		t.Errorf("summary %+v", s)
	}
	if clean.BiasDetected || len(clean.BiasType) != 0 || clean.AnalysisStatus != "done" {
		t.Errorf("clean record %+v", clean)
	}

	f.exec("ALTER TABLE {{db}}.interaction_texts DROP PARTITION ('std', '" + e.at.Format(time.DateOnly) + "')")
	r = f.view("id = '" + e.id.String() + "'")[0]
	if r.TextState != "dropped" || r.OriginalQuery != "[dropped]" || r.LLMResponse != nil || r.UserID != nil || !r.BiasDetected || strings.Contains(*r.Summary, "women") {
		t.Errorf("after the drop: %+v", r)
	}
}

// Facts of several analyzers merge: or, union, maximum, the strongest's confidence.
func TestViewMergesAnalyzers(t *testing.T) {
	f := newFixture(t)
	e := sample("acme", 0)
	f.write(e)
	judge := e.verdictRow()
	maps.Copy(judge, row{"analyzer": "judge", "result_id": audit.DeriveID("j").String(), "bias_types": []string{"judge.stereotype"}, "confidence": int32(910_000),
		"max_severity": uint8(4), "mitigation": audit.MitigationRephrase, "scores.name": []string{"judge", "toxicity"}, "scores.value": []int64{1_400_000, 100_000},
		"findings.kind": []string{"judge.stereotype", "judge.othering"}, "status": "partial"})
	older := e.verdictRow() // replaced by the newer fact of the same analyzer
	maps.Copy(older, row{"analyzer": "judge", "result_id": audit.DeriveID("old").String(), "bias_types": []string{"judge.dehumanization"}, "analysis_ts": e.broker.Add(-time.Hour)})
	f.insert("verdicts", judge)
	f.insert("verdicts", older)
	r := f.view("tenant_id = 'acme'")[0]
	if got := strings.Join(r.BiasType, " "); got != "charter.sex judge.stereotype" {
		t.Errorf("bias types %s", got)
	}
	if r.BiasScore != `{"bias":0.6,"judge":1,"toxicity":0.25}` || r.BiasConfidenceScore != 0.91 || r.AnalysisStatus != "partial" {
		t.Errorf("score %s, confidence %v, status %s", r.BiasScore, r.BiasConfidenceScore, r.AnalysisStatus)
	}
	if !strings.Contains(*r.MitigationAction, `"type":"REPHRASE_RESPONSE"`) || !strings.Contains(*r.MitigationAction, `"details":"The response`) {
		t.Errorf("mitigation %s", *r.MitigationAction)
	}
	if n := f.count("SELECT count() FROM {{db}}.findings WHERE tenant_id = 'acme'"); n != 4 {
		t.Errorf("%d findings of current verdicts, want 4", n)
	}
}

// The last user message has no row of its own when it is the whole prompt.
func TestViewOriginalQuery(t *testing.T) {
	f := newFixture(t)
	for i, tc := range []struct{ name, query, messages, want string }{
		{"plain prompt", "", "", "The prompt"},
		{"query of its own", "Last message", `[{"role":"system","content":"a"},{"role":"user","content":"Last message"}]`, "Last message"},
		{"one user message", "", `[{"role":"user","content":"The prompt"}]`, "The prompt"},
		{"no user message", "", `[{"role":"system","content":"The prompt"}]`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := sample("acme", i)
			e.prompt = "The prompt"
			f.write(e)
			d := e.digest()
			for kind, text := range map[string]string{"query": tc.query, "messages": tc.messages} {
				if text != "" {
					f.insert("interaction_texts", row{"tenant_id": e.tenant, "event_day": e.at, "event_id": e.id.String(), "kind": kind, "source_id": string(d[:]), "text": text})
				}
			}
			if got := f.view("id = '" + e.id.String() + "'")[0].OriginalQuery; got != tc.want {
				t.Errorf("view: %q, want %q", got, tc.want)
			}
			if r, err := f.WithTenant("acme").Get(t.Context(), e.id); err != nil || r.Interaction.Query != tc.want {
				t.Errorf("get: %q, %v, want %q", r.Interaction.Query, err, tc.want)
			}
		})
	}
}

// The view shows the rows of the read model.
func TestViewEqualsAuditCurrent(t *testing.T) {
	f := newFixture(t)
	f.keepUnmerged()
	es := series("acme", 40)
	f.write(es...)
	f.write(es[:10]...)
	f.write(series("beta", 7)...)
	const columns = "tenant_id, id, log_timestamp, llm_provider, llm_model, sensitivity_score, status, bias_detected, bias_type, bias_confidence_score, human_reviewed, bias_analysis_status, domain, application, trace_id"
	view := "SELECT " + columns + " FROM {{db}}.llm_interaction_audit"
	current := `SELECT tenant_id, event_id, event_ts, provider, model, toNullable(sensitivity_score), status, CAST(bias_detected AS Bool), bias_types,
		CAST(toDecimal32(intDiv(toInt32(confidence) + 5000, 10000), 2) / 100 AS Decimal(5, 2)), CAST(human_reviewed AS Bool), analysis_status, domain, app, trace_id FROM {{db}}.audit_current FINAL`
	if n := f.count("SELECT count() FROM (" + view + " INTERSECT " + current + ")"); n != 47 {
		t.Errorf("%d rows are the same in both, want 47", n)
	}
	for _, q := range []string{view + " EXCEPT " + current, current + " EXCEPT " + view} {
		if n := f.count("SELECT count() FROM (" + q + ")"); n != 0 {
			t.Errorf("%d rows stand on one side only: %s", n, q[:60])
		}
	}
}

// What people and outside analyzers said: each column of it, present and absent.
func TestViewShowsLaterFacts(t *testing.T) {
	f := newFixture(t)
	plain, told := sample("acme", 1), sample("acme", 5)
	f.write(plain, told)
	d := told.digest()
	key := row{"tenant_id": "acme", "event_day": told.at, "event_id": told.id.String(), "content_digest": string(d[:])}
	with := func(more row) row {
		out := maps.Clone(key)
		maps.Copy(out, more)
		return out
	}
	review := func(id, reviewer, decision string, at time.Time) row {
		return with(row{"review_id": audit.DeriveID(id).String(), "version": uint64(1), "reviewer": reviewer, "decision": decision, "tags": []string{"terms.age"}, "reviewed_at": at})
	}
	f.insert("reviews", review("first", "ann", "dismissed", told.at), review("second", "ann", "confirmed", told.at.Add(time.Minute)), review("bob", "bob", "unsure", told.at.Add(2*time.Minute)), review("back", "bob", "withdrawn", told.at.Add(3*time.Minute)),
		review("third", "cid", "unsure", told.at.Add(4*time.Minute)))
	result := audit.DeriveID("outside")
	v := told.verdictRow()
	maps.Copy(v, row{"analyzer": "external:vendor", "analyzer_version": "vendor", "result_id": result.String(), "said": []string{"report"}, "bias_types": []string{}, "scores.name": []string{"x"}, "scores.value": []int64{0}})
	f.insert("verdicts", v)
	text := func(kind string, id audit.ID, text string) row {
		return row{"tenant_id": "acme", "event_day": told.at, "event_id": told.id.String(), "kind": kind, "source_id": string(append(id[:], make([]byte, 16)...)), "version": uint64(1), "text": text}
	}
	f.insert("interaction_texts", text("review_note", audit.DeriveID("second"), "a \"note\""), text("review_note", audit.DeriveID("bob"), "not shown"), text("review_note", audit.DeriveID("third"), "overturns nothing"),
		text("outside_report", result, `{"deep":{"a":"é"}}`), text("outside_mitigation", result, `{"type":"X"}`), text("outside_report", audit.DeriveID("older"), `{"not":"current"}`))
	const columns = "SELECT human_reviewed, human_bias_tag, review_notes, effective_bias, mitigation_action, JSONExtractRaw(assumeNotNull(bias_report_summary), 'outside'), JSONExtractInt(assumeNotNull(bias_report_summary), 'threshold') >= 0 FROM "
	for _, tc := range []struct{ id, want string }{
		{told.id.String(), "true\t{\"decision\":\"confirmed\",\"tags\":[\"terms.age\"]}\ta \"note\"\ttrue\t{\"type\":\"X\"}\t{\"vendor\":{\"deep\":{\"a\":\"é\"}}}\t1\n"},
		{plain.id.String(), "false\t\\N\t\\N\tfalse\t\\N\t\t1\n"},
	} {
		var b bytes.Buffer
		if err := store.WriteTSV(t.Context(), &b, f.conn, columns+f.db+".llm_interaction_audit WHERE id = '"+tc.id+"'"); err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(b.String(), "\n"); got != tc.want {
			t.Errorf("got\n%swant\n%s", got, tc.want)
		}
	}
}
