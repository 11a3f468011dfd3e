package detectors

import (
	"maps"
	"testing"

	"github.com/evenhand/evenhand/detectors/rules"
)

// kinded finds kinds without rules.
type kinded struct{ fake }

func (*kinded) Kinds() []string { return []string{"terms.gender", "charter.age"} }

func TestRuleVersions(t *testing.T) {
	en, de, age := &rules.Pack{ID: "charter.sex.en", Version: "2026.11.1"}, &rules.Pack{ID: "charter.sex.de", Version: "2026.10.2"}, &rules.Pack{ID: "charter.age.en", Version: "7"}
	rule := func(kind string, p *rules.Pack) *rules.Rule { return &rules.Rule{Kind: kind, Pack: p} }
	a := &Analyzer{ds: []Detector{
		&fake{id: "bias", rules: []*rules.Rule{rule("charter.sex", en), rule("charter.sex", de), rule("charter.sex", en), rule("charter.age", age), rule("charter.race", age)}},
		&kinded{fake{id: "terms"}}, &fake{id: "other"},
	}}
	want := map[string]string{
		"charter.sex": "charter.sex.de@2026.10.2 charter.sex.en@2026.11.1", "charter.race": "7", "charter.age": "charter.age.en@7 terms@1", "terms.gender": "1",
	}
	if got := a.RuleVersions(); !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}
