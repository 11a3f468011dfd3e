package rules

import (
	"testing"

	"github.com/evenhand/evenhand/audit"
)

// A guard that the scanner refuses, because it can match nothing at all, keeps its meaning and leaves the
// pack's other guards theirs.
func TestGuardsBesideTheScanner(t *testing.T) {
	p := &Pack{ID: "charter.sex.en", Version: "1", Language: "en", Ground: audit.Sex, Rules: []*Rule{
		{ID: "sex.a", Patterns: []string{"women"}, Unless: []string{"x*"}},
		{ID: "sex.b", Patterns: []string{"women"}, Unless: []string{`\bnot\b`}},
	}}
	if err := Fill(p, "test"); err != nil {
		t.Fatal(err)
	}
	const text = "Women here. Not women there."
	for _, tc := range []struct {
		rule, start int
		want        bool
	}{{0, 0, true}, {0, 16, true}, {1, 0, false}, {1, 16, true}} {
		if got := Suppressed(p.Rules[tc.rule], text, tc.start, tc.start+5); got != tc.want {
			t.Errorf("rule %d at %d: %t, want %t", tc.rule, tc.start, got, tc.want)
		}
	}
}
