package scan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The made-up rules of the benchmarks agree with package regexp, too.
func TestMadeRules(t *testing.T) {
	rules := makeRules(300)
	s, o := mustCompile(t, rules, Options{}), newOracle(rules)
	hits := 0
	for _, f := range []func(*rand.Rand) string{makeText, makeHits, makeAttack} {
		for _, text := range makeTexts(10, f) {
			if d := different(s, o, rules, text); d != "" {
				t.Fatal(d)
			}
			hits += len(s.Scan(text, nil))
		}
	}
	if hits < 100 {
		t.Errorf("%d hits only", hits)
	}
}

func TestCleanTextAllocatesNothing(t *testing.T) {
	s := mustCompile(t, makeRules(300), Options{})
	texts := makeTexts(20, makeText)
	var dst []Match
	scan := func() {
		for _, text := range texts {
			dst = s.Scan(text, dst[:0])
		}
	}
	scan()
	if n := testing.AllocsPerRun(20, scan); n >= 1 {
		t.Errorf("%v allocations for %d texts", n, len(texts))
	}
}

// Rules whose gaps are all open at once must not multiply states.
func TestGapsStayOutsideTheAutomaton(t *testing.T) {
	var rules []string
	var text strings.Builder
	r := rand.New(rand.NewPCG(3, 3))
	for i := range 200 {
		gap := []string{`.*`, `.{0,40}`, `[^.!?\n]{0,60}`, `(?:\w+\s+){0,4}`}[i%4]
		rules = append(rules, fmt.Sprintf(`\bl%d\b%s\br%d\b`, i, gap, i))
	}
	for range 20_000 {
		fmt.Fprintf(&text, "%s%d ", []string{"l", "l", "x", "y"}[r.IntN(4)], r.IntN(200))
	}
	s := mustCompile(t, rules, Options{})
	s.Scan(text.String(), nil)
	if n, _ := s.States(); n > 2000 {
		t.Errorf("%d states", n)
	}
}

// A counted repeat of something separated must not multiply states by the places where it can begin.
func TestCountsStayOutsideTheAutomaton(t *testing.T) {
	s := mustCompile(t, []string{`\b(?:\d[ -]?){13,16}\b`, `\b(?:\w{2}:?){20}\b`}, Options{})
	var text strings.Builder
	r := rand.New(rand.NewPCG(4, 4))
	for range 20_000 {
		text.WriteByte("0123456789 -:"[r.IntN(13)])
	}
	s.Scan(text.String(), nil)
	if n, _ := s.States(); n > 2000 {
		t.Errorf("%d states", n)
	}
}
