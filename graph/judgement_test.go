package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
)

const judgementFields = `judgement { id assessment confidence summary redFlags suggestedRemediations { issue originalExcerpt start end suggestedRewrite } verdict }`

// judged stores a verdict of the judge; with words, those of the text kind judge_verdict.
func (f *fixture) judged(r *audit.Record, n int, words string) audit.ID {
	return f.judgedBy(r, n, "", words)
}

// judgedBy says by which model and prompt.
func (f *fixture) judgedBy(r *audit.Record, n int, version, words string) audit.ID {
	in := r.Interaction
	id := audit.DeriveID("judge", in.ID.String(), fmt.Sprint(n))
	f.run("INSERT INTO {{db}}.verdicts (tenant_id, event_day, event_id, content_digest, analyzer, analyzer_version, result_id, rule_set, version, status, analysis_ts) VALUES (?, ?, ?, ?, 'judge', ?, ?, ?, 1, 'done', ?)",
		in.Tenant, in.Time, uuid.UUID(in.ID), string(in.Digest[:]), fmt.Sprintf("attempt-%d", n), uuid.UUID(id), version, in.Time.AddDate(0, 0, n))
	if words != "" {
		f.run("INSERT INTO {{db}}.interaction_texts (tenant_id, event_day, event_id, kind, source_id, version, text) VALUES (?, ?, ?, 'judge_verdict', ?, 1, ?)",
			in.Tenant, in.Time, uuid.UUID(in.ID), string(append(id[:], make([]byte, 16)...)), words)
	}
	f.refresh(in)
	return id
}

// The judge's rewrites are shown to who may read texts, those of its current verdict.
func TestJudgement(t *testing.T) {
	f := newFixture(t)
	r, silent, dropped := sample("acme", 21), sample("acme", 22), sample("acme", 23)
	f.write(r)
	f.write(silent)
	f.write(dropped)
	f.judged(&r, 1, `{"overall":{"assessment":"compliant"}}`)
	const words = `{"overall":{"assessment":"non_compliant","confidence":0.9,"summary":"Sexist."},"red_flags":["hiring"],"suggested_remediations":[{"issue":"sex","original_excerpt":"women","span":[4,9],"suggested_rewrite":"people"}]}`
	id := f.judged(&r, 2, words)
	f.judged(&dropped, 1, "")
	got, _ := json.Marshal(f.one(as(auth.Reviewer), r.Interaction.ID, judgementFields))
	want := `{"judgement":{"assessment":"non_compliant","confidence":0.9,"id":"` + id.String() + `","redFlags":["hiring"],"suggestedRemediations":[{"end":9,"issue":"sex","originalExcerpt":"women","start":4,"suggestedRewrite":"people"}],"summary":"Sexist.","verdict":`
	if !strings.HasPrefix(string(got), want) || !strings.Contains(string(got), `"red_flags":["hiring"]`) {
		t.Errorf("got  %s\nwant %s…", got, want)
	}
	for name, of := range map[string]map[string]any{
		"a viewer":       f.one(as(auth.Viewer), r.Interaction.ID, judgementFields),
		"not asked":      f.one(as(auth.Reviewer), silent.Interaction.ID, judgementFields),
		"words are gone": f.one(as(auth.Reviewer), dropped.Interaction.ID, judgementFields),
	} {
		if j, there := of["judgement"]; j != nil || !there {
			t.Errorf("%s: %v", name, of)
		}
	}
}
