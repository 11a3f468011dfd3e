package safety

import (
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/rules"
)

// seedCounts is the number of patterns that seed 001 gives each category; ours are at least that.
var seedCounts = map[string]int{
	"violence": 4, "self_harm": 3, "illegal_instructions": 4, "pii_leakage": 4, "hallucination_indicator": 4,
}

// TestPacks runs every pack's own sentences and the lint rules.
func TestPacks(t *testing.T) {
	packs := load(t)
	seen := map[string]bool{}
	for _, p := range packs {
		seen[p.Category] = true
		t.Run(p.ID, func(t *testing.T) {
			one := []*rules.Pack{p}
			for _, f := range append(rules.Lint(one), rules.Test(one)...) {
				t.Error(f)
			}
			if len(p.Rules) < seedCounts[p.Category] {
				t.Errorf("%d rules; want at least %d", len(p.Rules), seedCounts[p.Category])
			}
		})
	}
	for _, c := range audit.SafetyCategories {
		if !seen[c] {
			t.Errorf("no pack for %s", c)
		}
	}
}

func load(t testing.TB) []*rules.Pack {
	t.Helper()
	packs, err := rules.Load(Packs())
	if err != nil {
		t.Fatal(err)
	}
	return packs
}
