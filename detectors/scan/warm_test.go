package scan

import (
	"math/rand/v2"
	"regexp"
	"testing"
)

// A warmed Scanner has most of the states that other ordinary text needs.
func TestWarm(t *testing.T) {
	texts := realTexts(t)[:40]
	needed := func(warm bool) int {
		s := mustCompile(t, makeRules(1000), Options{})
		if warm {
			s.Warm()
		}
		before, _ := s.States()
		for _, text := range texts {
			s.Scan(text, nil)
		}
		after, _ := s.States()
		return after - before
	}
	cold, warm := needed(false), needed(true)
	if warm > cold/2 {
		t.Errorf("%d new states after Warm, %d without", warm, cold)
	}
}

// Rules never fall back to package regexp: neither on ordinary text nor on text that is made of their words.
func TestRulesNeedNoRegexp(t *testing.T) {
	s := mustCompile(t, makeRules(benchRules), Options{})
	for i, slow := range s.slow {
		s.slow[i] = func() *regexp.Regexp {
			t.Errorf("pattern %d was given to package regexp", i)
			return slow()
		}
	}
	for _, f := range []func(*rand.Rand) string{makeText, makeHits, makeAttack} {
		for _, text := range makeTexts(50, f) {
			s.Scan(text, nil)
		}
	}
}
