package taxonomy

import (
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

func TestLoadHoldsEveryGroundAndCategory(t *testing.T) {
	tax, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, e := range tax.Entries {
		keys[e.Key] = true
		if e.Description == "" {
			t.Errorf("%s has no description", e.Key)
		}
	}
	want := []string{"gate.financial", "gate.data_deletion", "gate.permission_change", "gate.safety_critical",
		"representation", "language", "sentiment", "toxicity", "gendered_language", "sentiment_divergence"}
	for _, g := range audit.Grounds {
		want = append(want, "charter."+string(g))
	}
	for _, c := range audit.SafetyCategories {
		want = append(want, "safety."+c)
	}
	for _, c := range []string{"gender", "race", "age", "disability", "religion", "custom"} {
		want = append(want, "terms."+c)
	}
	for _, k := range want {
		if !keys[k] {
			t.Errorf("%s is missing", k)
		}
	}
}

func TestParseNamesEveryFault(t *testing.T) {
	_, err := Parse([]byte(`
version: 0
entries:
  - {id: 1, key: a.b, severity: 6}
  - {id: 1, key: a.b, severity: 3}
  - {id: 2, key: "A b", severity: 3}
`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"version is missing", `severity 6 of "a.b"`, `"a.b" stands twice`, `id 1 of "a.b"`, `key "A b"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in %q", want, err)
		}
	}
}
