package model

import (
	"context"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// judged is a source that knows one verdict of every item and no texts.
type judged struct {
	pending
	verdict store.StoredVerdict
}

func (j judged) Verdicts(_ context.Context, items []*store.Item) (map[store.Key][]store.StoredVerdict, error) {
	of := map[store.Key][]store.StoredVerdict{}
	for _, it := range items {
		of[it.Key()] = []store.StoredVerdict{j.verdict}
	}
	return of, nil
}

// The wording comes from the rule, so that it is named to who may see no texts; that of the prompt's findings is not.
func TestMitigationNamesTheWordingOfRules(t *testing.T) {
	v := store.StoredVerdict{Current: true, Verdict: audit.Verdict{Analyzer: audit.HotAnalyzer, Findings: []audit.Finding{
		{Rule: "role.chairman", Side: audit.Output}, {Rule: "role.fireman", Side: audit.Input}, {Rule: "role.gone", Side: audit.Output},
	}}}
	advice := map[string]audit.Advice{"role.chairman": {Type: audit.MitigationReplace, Term: "chairman", Replace: "chair"}, "role.fireman": {Replace: "firefighter"}}
	item := &store.Item{Tenant: "acme", Mitigation: audit.MitigationReplace}
	for _, tc := range []struct {
		of   func(string) audit.Advice
		want string
	}{
		{func(rule string) audit.Advice { return advice[rule] }, `Some terms should be replaced: "chairman" → chair`},
		{nil, "Some terms should be replaced"},
	} {
		got, err := One(judged{verdict: v}, Sight{Advice: tc.of}, item).MitigationAction(t.Context())
		if m, ok := got.(mitigation); err != nil || !ok || m.Type != audit.MitigationReplace || m.Details != tc.want {
			t.Errorf("%v %v, want %s", got, err, tc.want)
		}
	}
}
