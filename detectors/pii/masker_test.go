package pii_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/pii"
)

func masker(t testing.TB) *pii.Masker {
	t.Helper()
	m, err := pii.NewMasker(newDetector(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Every text is masked, one value by one placeholder, and nothing else changes.
func TestMaskerReachesEveryText(t *testing.T) {
	const ann, bob = "ann@example.org", "bob@example.org"
	in := detectortest.Interaction("Mail "+ann+" please", "I told "+bob+" and "+ann)
	in.Query, in.ErrorMessage, in.SanitizedPrompt = "Mail "+ann+" please", "no route to "+bob, "Mail "+ann
	in.Messages = `[{"content":[{"text":"Mail ` + ann + ` please","type":"text"}],"n":1.50,"role":"user"}]`
	in.ResponseJSON = `{"b":"` + ann + `","to":"<` + bob + `>"}`
	in.QueryContext, in.RetrievedContext, in.Metadata = `{"by":"`+bob+`"}`, `[{"text":"`+ann+`"}]`, `{"a":null,"mail":"carl@example.org"}`
	in.RedactionSummary, in.GroupAttributes = `{"EMAIL":["`+bob+`"],"n":1}`, `{"region":"`+ann+`"}`
	in.UserEmail, in.Digest, in.ContainedPII, in.PromptChars = ann, [32]byte{1}, audit.Unknown, 27
	before := *in
	m := masker(t)
	r := audit.Record{Interaction: in, Verdict: analyzer(t).Analyze(t.Context(), in)}
	spans := slices.Clone(r.Verdict.Findings)
	masked := m.Record(t.Context(), r)
	got := masked.Interaction
	if !reflect.DeepEqual(*in, before) || !reflect.DeepEqual(r.Verdict.Findings, spans) {
		t.Error("the record itself was changed")
	}
	var places []string
	for _, f := range masked.Verdict.Findings {
		places = append(places, f.Span.Slice(got.Text(f.Side)))
	}
	if strings.Join(places, " ") != "[EMAIL_1] [EMAIL_2] [EMAIL_2]" {
		t.Errorf("spans point at %v", places)
	}
	want := before
	want.Response, want.Prompt = "I told [EMAIL_1] and [EMAIL_2]", "Mail [EMAIL_2] please"
	want.Query, want.ErrorMessage, want.SanitizedPrompt = want.Prompt, "no route to [EMAIL_1]", "Mail [EMAIL_2]"
	want.Messages = `[{"content":[{"text":"Mail [EMAIL_2] please","type":"text"}],"n":1.50,"role":"user"}]`
	want.ResponseJSON = `{"b":"[EMAIL_2]","to":"<[EMAIL_1]>"}`
	want.QueryContext, want.RetrievedContext, want.Metadata = `{"by":"[EMAIL_1]"}`, `[{"text":"[EMAIL_2]"}]`, `{"a":null,"mail":"[EMAIL_3]"}`
	want.RedactionSummary, want.GroupAttributes = `{"EMAIL":["[EMAIL_1]"],"n":1}`, `{"region":"[EMAIL_2]"}`
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	for range 20 {
		if again := m.Record(t.Context(), r); !reflect.DeepEqual(again, masked) {
			t.Fatalf("another time: %+v", again)
		}
	}
	clean := audit.Record{Interaction: detectortest.Interaction("Who fits?", "Ask her.")}
	if m.Record(t.Context(), clean) != clean {
		t.Error("a clean record is copied")
	}
}

// What tools are asked is JSON in a string: it is masked inside and stays JSON, however it is escaped; numbers are values too.
func TestMaskerReadsJSONInStrings(t *testing.T) {
	in := detectortest.Interaction("", "mail to ann@example.org n 4111111111111111")
	in.ResponseJSON = `{"tool_calls":[{"function":{"arguments":"{\"to\":\"ann\\u0040example.org\",\"n\": 4111111111111111,\"k\":1}"}}]}`
	in.Messages = `[{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"phone\":\"2125550123\"}"}},{"function":{"arguments":"{\"a\":\"carl@example.org\",\"a\":\"x\"}"}}]}]`
	in.Metadata = `{"card":4111111111111111,"n":1234567,"plain":"{ann@example.org"}`
	got := masker(t).Record(t.Context(), audit.Record{Interaction: in, Verdict: analyzer(t).Analyze(t.Context(), in)}).Interaction
	if got.ResponseJSON != `{"tool_calls":[{"function":{"arguments":"{\"k\":1,\"n\":\"[CREDIT_CARD_1]\",\"to\":\"[EMAIL_1]\"}"}}]}` ||
		got.Metadata != `{"card":"[CREDIT_CARD_1]","n":1234567,"plain":"{[EMAIL_1]"}` ||
		strings.Contains(got.Messages, "2125550123") || strings.Contains(got.Messages, "carl@") {
		t.Errorf("%s\n%s\n%s", got.ResponseJSON, got.Metadata, got.Messages)
	}
}

// What one text knows for personal is masked where another does not say what it is; what cannot be read is not kept.
func TestMaskerKnowsValues(t *testing.T) {
	in := detectortest.Interaction("", "Her SSN: 536228745")
	in.Metadata = `{"ref":"x536228745y"}`
	got := masker(t).Record(t.Context(), audit.Record{Interaction: in}).Interaction
	if got.Response != "Her SSN: [US_SSN_1]" || got.Metadata != `{"ref":"x[US_SSN_1]y"}` {
		t.Errorf("%s %s", got.Response, got.Metadata)
	}
	in.Query, in.Messages = " ", `[{"role":"system","content":"\n"}]`
	if got = masker(t).Record(t.Context(), audit.Record{Interaction: in}).Interaction; got.Response != "Her SSN: [US_SSN_1]" || got.Query != " " || got.Messages != in.Messages {
		t.Errorf("texts of blanks beside it: %+v", got)
	}
	in.Query, in.Messages, in.Metadata = "", "", `{`
	if got = masker(t).Record(t.Context(), audit.Record{Interaction: in}).Interaction; got.Response != pii.NotMasked || got.Metadata != `"`+pii.NotMasked+`"` || got.Prompt != "" {
		t.Errorf("what cannot be read is kept: %+v", got)
	}
}

// Spans of other findings move with the text, and those across a placeholder end at its edges.
func TestMaskerMovesSpans(t *testing.T) {
	in := detectortest.Interaction("", "é a@example.org said é to bob@example.org now")
	v := analyzer(t).Analyze(t.Context(), in)
	span := func(start, end uint32) audit.Finding {
		return audit.Finding{Kind: "x", Side: audit.Output, Span: audit.Span{Start: start, End: end}}
	}
	v.Findings = append(v.Findings, span(0, 1), span(16, 20), span(4, 20), span(16, 30), span(42, 45), span(3, 6))
	r := masker(t).Record(t.Context(), audit.Record{Interaction: in, Verdict: v})
	got := map[string]bool{}
	for _, f := range r.Verdict.Findings {
		got[f.Span.Slice(r.Interaction.Response)] = true
	}
	want := map[string]bool{"[EMAIL_1]": true, "[EMAIL_2]": true, "é": true, "said": true, "[EMAIL_1] said": true, "said é to [EMAIL_2]": true, "now": true}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v\n%s", got, want, r.Interaction.Response)
	}
}

func TestNumbers(t *testing.T) {
	var n pii.Numbers
	find := func(text string) string { return n.Mask(text, audit.Output, find(t, text)) }
	if got := find("a@example.org b@example.org a@example.org") + find(" b@example.org 203.0.113.7"); got != "[EMAIL_1] [EMAIL_2] [EMAIL_1] [EMAIL_2] [IP_ADDRESS_1]" {
		t.Error(got)
	}
}
