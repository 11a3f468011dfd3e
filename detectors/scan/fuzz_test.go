package scan

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"sync"
	"testing"
)

var fuzzed = sync.OnceValues(func() (*Scanner, oracle) {
	s, err := Compile(nasty.patterns, Options{MaxStates: 2000})
	if err != nil {
		panic(err)
	}
	return s, newOracle(nasty.patterns)
})

// FuzzScan compares any text with package regexp.
func FuzzScan(f *testing.F) {
	for _, text := range nasty.texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		s, o := fuzzed()
		if d := different(s, o, nasty.patterns, text); d != "" {
			t.Fatal(d)
		}
	})
}

// FuzzCompile takes any pattern that package regexp takes, unless it can match the empty string, and
// finds the same with it.
func FuzzCompile(f *testing.F) {
	for i, p := range nasty.patterns {
		f.Add(p, nasty.texts[i%len(nasty.texts)])
	}
	f.Add(`(a)\1`, "aa")
	f.Add(`a{1001}`, "a")
	f.Add(`(?i`, "a")
	f.Fuzz(func(t *testing.T, p, text string) {
		if len(p) > 60 || len(text) > 1<<10 {
			return
		}
		if re, err := syntax.Parse("(?i)"+p, syntax.Perl); err == nil && size(re) > 1<<14 {
			return // nested repeats of millions of instructions
		}
		re, want := regexp.Compile("(?i)" + p)
		s, err := Compile([]string{p}, Options{})
		switch {
		case want != nil && err == nil:
			t.Fatalf("%q: compiled, but package regexp says %v", p, want)
		case want != nil:
		case errors.Is(err, ErrEmpty):
		case err != nil:
			t.Fatalf("%q: %v", p, err)
		case re.MatchString(""):
			t.Fatalf("%q: compiled, but matches the empty string", p)
		default:
			if d := different(s, oracle{re}, []string{p}, text); d != "" {
				t.Fatal(d)
			}
		}
	})
}

// size is about the number of instructions.
func size(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += size(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}
