package graph_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/store"
)

// later stores what people and an outside analyzer said about an interaction, texts of their own with it.
func (f *fixture) later(r *audit.Record) (review, verdict audit.ID) {
	in := r.Interaction
	review, verdict = audit.NewID(in.Time), audit.NewID(in.Time)
	f.run("INSERT INTO {{db}}.reviews (tenant_id, event_day, event_id, content_digest, review_id, version, reviewer, decision, tags, reviewed_at) VALUES (?, ?, ?, ?, ?, 1, 'eve', 'dismissed', ['language'], ?)",
		in.Tenant, in.Time, uuid.UUID(in.ID), string(in.Digest[:]), uuid.UUID(review), in.Time)
	f.run("INSERT INTO {{db}}.verdicts (tenant_id, event_day, event_id, content_digest, analyzer, analyzer_version, result_id, version, status, bias_detected, bias_types, `scores.name`, `scores.value`, analysis_ts) VALUES (?, ?, ?, ?, 'external:svc', 'svc', ?, 1, 'done', 1, ['language'], ['language'], [700000], ?)",
		in.Tenant, in.Time, uuid.UUID(in.ID), string(in.Digest[:]), uuid.UUID(verdict), in.Time)
	answer := audit.NewID(in.Time)
	f.run("INSERT INTO {{db}}.feedback (tenant_id, event_day, event_id, content_digest, feedback_id, version, subject, helped, given_at) VALUES (?, ?, ?, ?, ?, 1, 'eve', true, ?)",
		in.Tenant, in.Time, uuid.UUID(in.ID), string(in.Digest[:]), uuid.UUID(answer), in.Time)
	for kind, text := range map[string]string{"review_note": "a secret note", "feedback_note": "a secret answer", "outside_report": `{"quote":"a secret quote"}`, "outside_mitigation": `{"details":"a secret rewrite"}`} {
		id := verdict
		switch kind {
		case "review_note":
			id = review
		case "feedback_note":
			id = answer
		}
		f.run("INSERT INTO {{db}}.interaction_texts (tenant_id, event_day, event_id, kind, source_id, version, text) VALUES (?, ?, ?, ?, ?, 1, ?)",
			in.Tenant, in.Time, uuid.UUID(in.ID), kind, string(append(id[:], make([]byte, 16)...)), text)
	}
	f.refresh(in)
	return review, verdict
}

// refresh rewrites the row of the read model, as a writer of facts does.
func (f *fixture) refresh(in *audit.Interaction) {
	columns, sql, args := f.CurrentRows([]store.Key{{Tenant: in.Tenant, Day: in.Day(), ID: in.ID, Digest: in.Digest}}, false)
	f.run("INSERT INTO {{db}}.audit_current ("+strings.Join(columns, ", ")+") "+sql+" SETTINGS do_not_merge_across_partitions_select_final = 1", args...)
}

// What a caller may not see is in no field, whatever is asked for.
func TestMasking(t *testing.T) {
	f := newFixture(t)
	r := sample("acme", 21) // flagged
	f.write(r)
	f.later(&r)
	texts := []string{"hire", "women", "step", "PERSON", "slow", "secret"}
	people := []string{"u-0", "u@example.org", "clerk"}
	for _, tc := range []struct {
		who           *auth.Principal
		texts, people bool
	}{
		{as(auth.Viewer), false, false},
		{as(auth.Reviewer), true, false},
		{as(auth.Service), true, true},
		{as(auth.Admin), true, true},
		{&auth.Principal{Tenant: "acme", Subject: "key:1", May: []auth.Permission{auth.ReadPeople, auth.Read}}, false, true},
	} {
		got := f.one(tc.who, r.Interaction.ID, everything)
		b, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range []struct {
			words []string
			may   bool
		}{{texts, tc.texts}, {people, tc.people}} {
			for _, w := range of.words {
				if strings.Contains(string(b), w) != of.may {
					t.Errorf("%s %v: %q is in the record: %v, want %v\n%s", tc.who.Subject, tc.who.Roles, w, !of.may, of.may, b)
				}
			}
		}
		query, state := "Should we hire her?", "present"
		if !tc.texts {
			query, state = "[masked]", "masked"
			for _, field := range []string{"llmResponse", "promptText", "messages", "responseText", "sanitizedPrompt", "queryContext", "redactionSummary", "errorMessage", "reviewNotes"} {
				if got[field] != nil {
					t.Errorf("%v: %s is %v", tc.who.Roles, field, got[field])
				}
			}
		}
		if got["originalQuery"] != query || got["textState"] != state {
			t.Errorf("%v: originalQuery %v, textState %v", tc.who.Roles, got["originalQuery"], got["textState"])
		}
		note := any("a secret answer")
		if !tc.texts {
			note = nil
		}
		if f := got["feedback"].([]any); len(f) != 1 || f[0].(record)["note"] != note || f[0].(record)["helped"] != true || f[0].(record)["by"] != "eve" {
			t.Errorf("%v: feedback %v", tc.who.Roles, f)
		}
		// Figures are for everybody.
		if !slices.Equal(got["biasType"].([]any), []any{"charter.sex", "language"}) || len(got["findings"].([]any)) != 1 || len(got["verdicts"].([]any)) != 2 || len(got["reviews"].([]any)) != 1 {
			t.Errorf("%v: %v", tc.who.Roles, got)
		}
		if tag, _ := json.Marshal(got["humanBiasTag"]); string(tag) != `{"decision":"dismissed","tags":["language"]}` || got["effectiveBias"] != false || got["biasDetected"] != true {
			t.Errorf("%v: humanBiasTag %s, effectiveBias %v", tc.who.Roles, tag, got["effectiveBias"])
		}
	}
}
