package clickhouse_test

import (
	"fmt"
	"testing"

	"github.com/evenhand/evenhand/audit"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
)

var found = &audit.Personal{Contained: true, Sensitivity: "high", RedactionSummary: `{"by":"pii","total":1,"prompt":{"IBAN":1}}`, SanitizedPrompt: "Pay [IBAN]"}

// What the analysis found fills what the producer left out, and nothing else, in every place that is read.
func TestPersonalDataFillsTheRecord(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	silent, said, clean, unknown := record(1, "silent", 0), record(2, "said", 1), record(3, "clean", 2), record(4, "unknown", 3)
	silent.Verdict.Personal, said.Verdict.Personal, clean.Verdict.Personal = found, found, &audit.Personal{}
	in := said.Interaction
	in.ContainedPII, in.SensitivityScore, in.SanitizedPrompt, in.RedactionSummary = 0, "restricted", "theirs", `{"theirs":1}`
	send(t, s, batch([]audit.Record{silent, said, clean, unknown}))
	for _, tc := range []struct {
		r    audit.Record
		want string
	}{
		{silent, `high true Pay [IBAN] {"by":"pii","total":1,"prompt":{"IBAN":1}} high`},
		{said, `restricted false theirs {"theirs":1} restricted`},
		{clean, `- false - - -`},
		{unknown, `- - - - -`},
	} {
		id := tc.r.Interaction.ID.String()
		const orDash = "ifNull(nullIf(toString(%s), ''), '-')"
		var row string
		for _, c := range []string{"sensitivity_score", "contained_pii", "sanitized_prompt", "redaction_summary"} {
			row += one[string](t, conn, "SELECT "+fmt.Sprintf(orDash, c)+" FROM "+db+".llm_interaction_audit WHERE id = '"+id+"'") + " "
		}
		row += one[string](t, conn, "SELECT "+fmt.Sprintf(orDash, "sensitivity_score")+" FROM "+db+".audit_current FINAL WHERE event_id = '"+id+"'")
		if row != tc.want {
			t.Errorf("%s: %s, want %s", tc.r.Interaction.Response, row, tc.want)
		}
	}
}

// A later analysis fills in what the first could not find, once.
func TestLaterResultsFillTheRecord(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	r := record(1, "one", 0)
	r.Verdict.Status = audit.Partial
	send(t, s, batch([]audit.Record{r, record(2, "two", 1)}))
	v := *r.Verdict
	v.Status, v.Attempt, v.Personal = audit.Done, 1, found
	r.Verdict = &v
	for range 2 {
		if err := s.Results(t.Context(), []audit.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	const q = "SELECT toString((sensitivity_score, contained_pii, sanitized_prompt, prompt_tokens)) FROM %s.llm_interaction_audit WHERE id = '%s'"
	if got := one[string](t, conn, fmt.Sprintf(q, db, r.Interaction.ID)); got != "('high',true,'Pay [IBAN]',3)" {
		t.Error(got)
	}
	if n := one[uint64](t, conn, "SELECT count() FROM "+db+".interactions FINAL"); n != 2 {
		t.Errorf("%d interactions", n)
	}
}
