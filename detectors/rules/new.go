package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// Skeleton gives a new pack of a ground and language, ready to be filled in: a rule of each class that the
// common file of the language has, common may be nil, and one rule of its own.
func Skeleton(g audit.Ground, language string, common *Common) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Rules for discriminatory statements on the ground %[1]s, language %[2]s.
pack: charter.%[1]s.%[2]s
title: %[1]s (EU Charter, Art. 21)
version: "2026.11.1"
language: %[2]s
ground: %[1]s
source: what the wording was checked against

lists:
  group: [people of the ground]

rules:
`, g, language)
	least := audit.GroundSeverity[g].Min
	if common != nil {
		for _, name := range slices.Sorted(maps.Keys(common.Classes)) {
			fmt.Fprintf(&b, "  - {id: %s.%s.%s, class: %s, severity: %s}\n", g, language, name, name, least)
		}
	}
	fmt.Fprintf(&b, `  - id: %s.%s.example
    description: says what the rule is for
    severity: %s
    rationale: says why a match is biased
    patterns:
      - '\b{group} should be avoided\b'
    match:
      - People of the ground should be avoided.
      - I think people of the ground should be avoided!
    no_match:
      - People of the ground were invited.
      - Nobody should avoid people of the ground.
`, g, language, least)
	return b.String()
}
