package pii_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
)

// What one text, or one place, shows to be personal is masked in all of them, before and behind it; a placeholder stands for one value.
func TestTextsKnowEachOther(t *testing.T) {
	m := masker(t)
	for _, tc := range []struct{ name, texts, want string }{
		{"behind", "ssn 536228193|536228193", "ssn [US_SSN_1]|[US_SSN_1]"},
		{"before", "536228193|ssn 536228193", "[US_SSN_1]|ssn [US_SSN_1]"},
		{"in one text", "The number 536228193. That is the SSN: 536228193", "The number [US_SSN_1]. That is the SSN: [US_SSN_1]"},
		{"the question before", "What is your passport number?|A48291736", "What is your passport number?|[PASSPORT_1]"},
		{"with others between", "a@example.org|What is your passport number?||é A48291736|b@example.org", "[EMAIL_1]|What is your passport number?||é [PASSPORT_1]|[EMAIL_2]"},
		{"one value of two kinds", "Her SSN: 536228193|Passport number: 536228193", "Her SSN: [US_SSN_1]|Passport number: [US_SSN_1]"},
		{"a part of a number of JSON", `SSN: 536228193|{"n":4536228193}`, `SSN: [US_SSN_1]|{"n":"[US_SSN_1]"}`},
		{"two texts are not one number", "4539 1488|0343 6467", "4539 1488|0343 6467"},
		{"a placeholder before", "Use [EMAIL_1] for a@example.org and b@example.org.", "Use [EMAIL_1] for [EMAIL_2] and [EMAIL_3]."},
		{"in the text before", "[EMAIL_2]|a@example.org b@example.org", "[EMAIL_2]|[EMAIL_1] [EMAIL_3]"},
		{"one of ours that comes back", "a@example.org|I mailed [EMAIL_1].|And b@example.org", "[EMAIL_1]|I mailed [EMAIL_1].|And [EMAIL_2]"},
	} {
		texts := strings.Split(tc.texts, "|")
		masked, err := m.Texts(t.Context(), texts...)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]string, len(masked))
		for i := range masked {
			got[i] = masked[i].Text
		}
		if strings.Join(got, "|") != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, strings.Join(got, "|"), tc.want)
		}
	}
}

// In a record the last text tells of the first, too, and a placeholder of the texts themselves is given to no value.
func TestRecordKnowsItself(t *testing.T) {
	for _, tc := range []struct{ name, prompt, response, messages, metadata, want string }{
		{"the prompt of the response", "My SSN: 536228193", "I noted 536228193.", "", "", "My SSN: [US_SSN_1]|I noted [US_SSN_1].||"},
		{"metadata of both", "x 536228193", "y 536228193", "", `{"note":"SSN: 536228193"}`, `x [US_SSN_1]|y [US_SSN_1]||{"note":"SSN: [US_SSN_1]"}`},
		{"one value of two kinds", "", "SSN: 536228193", `[{"content":"passport number: 536228193"}]`, "", `|SSN: [US_SSN_1]|[{"content":"passport number: [US_SSN_1]"}]|`},
		{"a placeholder of the texts", "Was it [EMAIL_1]?", "It was a@example.org.", "", `{"note":"[EMAIL_2]"}`, `Was it [EMAIL_1]?|It was [EMAIL_3].||{"note":"[EMAIL_2]"}`},
	} {
		in := detectortest.Interaction(tc.prompt, tc.response)
		in.Messages, in.Metadata = tc.messages, tc.metadata
		r := masker(t).Record(t.Context(), audit.Record{Interaction: in, Verdict: analyzer(t).Analyze(t.Context(), in)})
		if got := strings.Join([]string{r.Interaction.Prompt, r.Interaction.Response, r.Interaction.Messages, r.Interaction.Metadata}, "|"); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		for _, f := range r.Verdict.Findings {
			if s := f.Span.Slice(r.Interaction.Text(f.Side)); strings.HasPrefix(f.Kind, "pii.") && !strings.HasPrefix(s, "[") {
				t.Errorf("%s: a span points at %q", tc.name, s)
			}
		}
	}
}

// Many values, each in many places, are found in time with the text's length.
func TestKnownIsLinear(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "user%05d@example.org é\n", i)
	}
	m := masker(t)
	began := time.Now()
	masked, err := m.Texts(t.Context(), text.String(), text.String())
	if err != nil || strings.Contains(masked[1].Text, "@") || !strings.Contains(masked[1].Text, "[EMAIL_20000]") {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second { // a value a pass takes minutes
		t.Errorf("%v", took)
	} else {
		t.Log(took)
	}
}

func BenchmarkTexts(b *testing.B) {
	m := masker(b)
	text := strings.Repeat("She asked what the others made of it, and mailed ann@example.org. ", 30)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := m.Texts(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}
