package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
)

const biased = `{"llm_response":"Él é: too old to learn Go.","original_query":"Can he learn?","query_context":{"domain":"HR","n":1},
	"user_id":"u-1","tenant_id":"acme","llm_model":"gpt-4o","trace_id":"` + traceID + `"}`

func verdict() *audit.Verdict {
	return &audit.Verdict{
		Analyzer: audit.HotAnalyzer, RuleSet: "2026.11.1", Status: audit.Done, Detected: true, BiasTypes: []string{"charter.age"},
		BiasSum: 1_200_000, SafetySum: 0, Threshold: 150_000, Flagged: true, Action: audit.Warn, Confidence: 900_000,
		Mitigation: audit.MitigationRephrase, Scores: []audit.NamedScore{{Name: audit.ScoreBias, Value: 1_200_000}, {Name: audit.ScoreToxicity, Value: 250_000}},
		Findings: []audit.Finding{{
			Kind: "charter.age", Rule: "age.capability", RuleVersion: "2026.11.1", Ground: audit.Age, Severity: audit.High, Score: 1_200_000,
			Confidence: 900_000, Side: audit.Output, Span: audit.Span{Start: 6, End: 22},
		}},
		Duration: 1500 * time.Microsecond,
	}
}

func TestAnalyzeBias(t *testing.T) {
	var seen *audit.Interaction
	d := deps(&log{})
	d.Analyze = func(_ context.Context, in *audit.Interaction) *audit.Verdict {
		seen = in
		return verdict()
	}
	h := Handler(d)
	w := send(h, "POST", "/analyze-bias", biased)
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	golden(t, "analyze_bias.json", w.Body.Bytes())
	if seen.Domain != audit.HR || seen.Tenant != "acme" || seen.UserID != "u-1" || seen.Model != "gpt-4o" || seen.Query != "Can he learn?" || seen.TraceID != traceID {
		t.Errorf("%+v", seen)
	}
	send(h, "POST", "/analyze-bias?domain=finance", biased)
	if seen.Domain != audit.Finance {
		t.Errorf("domain %s", seen.Domain)
	}
	w = send(h, "POST", "/analyze-bias", `{"llm_response":"x","query_context":{"domain":"forecasting"}}`, "Traceparent", parent)
	if seen.Domain != audit.General || !strings.Contains(w.Body.String(), `"domain_given":"forecasting"`) || seen.TraceID != traceID || seen.Tenant != "default" {
		t.Errorf("%+v %s", seen, w.Body)
	}
	first := *seen
	send(h, "POST", "/analyze-bias", `{"llm_response":"x"}`)
	if second := *seen; first.ID == second.ID || first.TraceID == second.TraceID {
		t.Error("two requests share an id")
	}
}

func TestAnalyzeBiasWithoutFindings(t *testing.T) {
	d := deps(&log{})
	d.Analyze = func(context.Context, *audit.Interaction) *audit.Verdict {
		return &audit.Verdict{Analyzer: audit.HotAnalyzer, Status: audit.Skipped, Reason: "no_content", Action: audit.NoAction, Threshold: 300_000}
	}
	w := send(Handler(d), "POST", "/analyze-bias", `{"llm_response":"","trace_id":"`+traceID+`"}`)
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	golden(t, "analyze_empty.json", w.Body.Bytes())
}

func TestAnalyzeBiasRefused(t *testing.T) {
	for _, tc := range []struct {
		name, target, body string
		headers            []string
		status             int
		want               []string
	}{
		{"no response", "/analyze-bias", `{"original_query":"SECRET"}`, nil, 400, []string{`"field":"llm_response","code":"missing_field"`}},
		{"null response", "/analyze-bias", `{"llm_response":null}`, nil, 400, []string{`"missing_field"`}},
		{"all at once", "/analyze-bias?domain=SPACE", `{"query_context":"SECRET","user_id":1,"llm_respons":"SECRET"}`, nil, 400,
			[]string{`"llm_response"`, `"query_context"`, `"user_id"`, `did you mean llm_response?`, `"?domain"`, `general, hr, finance, healthcare, education`}},
		{"a misspelt query", "/analyze-bias?domian=hr", `{"llm_response":"x"}`, nil, 400, []string{`"field":"?domian","code":"unknown_field"`, `?domain`}},
		{"a field twice", "/analyze-bias", `{"llm_response":"x","llm_response":"y"}`, nil, 400, []string{`"field":"llm_response","code":"duplicate_key","message":"stands twice in the request"`}},
		{"fields of an event are none of this door", "/analyze-bias", `{"llm_response":"x","model":"m"}`, nil, 400, []string{`"field":"model","code":"unknown_field"`}},
		{"no object", "/analyze-bias", `[]`, nil, 400, []string{`"wrong_type"`}},
		{"broken", "/analyze-bias", `{"llm_response":"SECRET`, nil, 400, []string{`"bad_json"`}},
		{"empty", "/analyze-bias", ``, nil, 400, []string{`"bad_json"`}},
		{"another tenant", "/analyze-bias", `{"llm_response":"x","tenant_id":"a"}`, []string{"X-Evenhand-Tenant", "b"}, 403, []string{`"FORBIDDEN"`}},
		{"too large", "/analyze-bias", `{"llm_response":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, []string{`"PAYLOAD_TOO_LARGE"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := send(Handler(deps(&log{})), "POST", tc.target, tc.body, tc.headers...)
			if w.Code != tc.status || strings.Contains(w.Body.String(), "SECRET") || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			for _, want := range tc.want {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("does not say %s: %s", want, w.Body)
				}
			}
		})
	}
	for _, v := range []*audit.Verdict{nil, {Status: audit.Failed}} {
		d := deps(&log{})
		d.Analyze = func(context.Context, *audit.Interaction) *audit.Verdict { return v }
		if w := send(Handler(d), "POST", "/analyze-bias", `{"llm_response":"x"}`); w.Code != 500 || !strings.Contains(w.Body.String(), CodeAnalysisFailed) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// keyedFault is what package terms says of a configuration.
type keyedFault struct{ key, say string }

func (f keyedFault) Error() string            { return f.key + ": " + f.say }
func (f keyedFault) Keyed() (key, say string) { return f.key, f.say }

func TestEvaluate(t *testing.T) {
	doc := openAPI(t)
	wanted, err := doc.compiler.Compile("mem:///openapi.json#/components/schemas/EvaluateRequest")
	if err != nil {
		t.Fatal(err)
	}
	var seen EvaluateRequest
	d := deps(&log{})
	d.Evaluate = func(_ context.Context, r EvaluateRequest) (any, error) {
		if r.Mode == "faults" {
			return nil, audit.E("terms: config", audit.KindInvalid, errors.Join(keyedFault{"mode", `"faults" is not one of ours`}, keyedFault{"check", "is none"}))
		}
		if seen = r; r.Mode == "wrong" {
			return nil, audit.E("terms: config", audit.KindInvalid, fmt.Errorf("mode: %q is not one of deterministic, llm, both", r.Mode))
		}
		return map[string]any{"score": 0.85, "pass": false, "reasoning": "gender: chairman", "terms": []string{}}, nil
	}
	h := Handler(d)
	body := `{"input":"i","output":"o","mode":"both","model":"gpt-4o","api_key":"sk-1","categories":["gender","age"],"custom_terms":["chairman"],"check":"output"}`
	if w := send(h, "POST", "/v1/evaluate", body); w.Code != 200 || !strings.Contains(w.Body.String(), `"score":0.85`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if fmt.Sprintf("%v", seen) != "{default i o both gpt-4o *** [gender age] [chairman] output}" || seen.APIKey != "sk-1" || strings.Contains(fmt.Sprintf("%#v", seen), "sk-1") {
		t.Errorf("%#v", seen)
	}
	if b, _ := json.Marshal(seen); strings.Contains(string(b), "sk-1") {
		t.Errorf("%s", b)
	}
	for _, tc := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"output":"","mode":null}`, 200, `score`},
		{`{"output":"x","mode":"faults"}`, 400, `"details":[{"field":"mode","code":"bad_value","message":"\"faults\" is not one of ours"},{"field":"check","code":"bad_value","message":"is none"}]`},
		{`{"output":"x","check":""}`, 200, `score`},
		{`{"output":"x","check":null}`, 200, `score`},
		{`{"input":"","check":"input"}`, 200, `score`},
		{`{"input":"","output":"","check":"both"}`, 200, `score`},
		{`{"input":"x"}`, 400, `[{"field":"output","code":"missing_field","message":"is missing; the check wants this text (check is output)"}]`},
		{`{"input":"x","output":null}`, 400, `"field":"output","code":"missing_field"`},
		{`{"output":"x","check":"input"}`, 400, `"field":"input","code":"missing_field","message":"is missing; the check wants this text (check is input)"`},
		{`{"output":"x","check":"both"}`, 400, `"field":"input","code":"missing_field"`},
		{`{"check":"both"}`, 400, `[{"field":"input","code":"missing_field","message":"is missing; the check wants this text (check is both)"},{"field":"output","code":"missing_field",`},
		{`{"text":"x"}`, 400, `[{"field":"output","code":"missing_field","message":"is missing; the check wants this text (check is output)"},{"field":"text","code":"unknown_field","message":"is not a field of this request (did you mean output?)"}]`},
		{`{"output":"x","prompt":"y"}`, 400, `"field":"prompt","code":"unknown_field","message":"is not a field of this request (did you mean input?)"`},
		{`{"output":"women are bad","output":""}`, 400, `"code":"duplicate_key"`},
		{`{"output":"women are bad","outp\u0075t":""}`, 400, `"field":"output","code":"duplicate_key"`},
		{`{"outp\u0075t":""}`, 200, `score`},
		{`{"mode":"both"}`, 400, `"field":"output","code":"missing_field"`},
		{`{"output":1,"categories":"gender","modes":"x"}`, 400, `[{"field":"categories","code":"wrong_type","message":"wants an array of strings"},{"field":"modes","code":"unknown_field","message":"is not a field of this request (did you mean mode?)"},{"field":"output"`},
		{`{"output":"x","mode":"wrong"}`, 400, `mode: \"wrong\" is not one of`}, // an error without keys
		{`[]`, 400, `"wrong_type"`},
		{`null`, 400, `"wrong_type"`},
		{`{"output":"x"`, 400, `"bad_json"`},
	} {
		if w := send(h, "POST", "/v1/evaluate", tc.body); w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: %d %s", tc.body, w.Code, w.Body)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(tc.body))
		if err != nil || strings.Contains(tc.want, ingest.DuplicateKey) { // no schema tells of names that stand twice
			continue
		}
		if err := wanted.Validate(v); (err == nil) != (tc.status == 200) {
			t.Errorf("%s: by the document %v, by the door %d", tc.body, err, tc.status)
		}
	}
	for kind, status := range map[audit.Kind]int{audit.KindUnavailable: 503, audit.KindOverloaded: 429, audit.KindInternal: 500} {
		d.Evaluate = func(context.Context, EvaluateRequest) (any, error) {
			return nil, audit.E("test", kind, fmt.Errorf("SECRET"))
		}
		if w := send(Handler(d), "POST", "/v1/evaluate", `{"output":"x"}`); w.Code != status || strings.Contains(w.Body.String(), "SECRET") {
			t.Errorf("%s: %d %s", kind, w.Code, w.Body)
		}
	}
}
