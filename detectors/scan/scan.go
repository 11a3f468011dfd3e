// Package scan finds the matches of many patterns in one text at once.
//
// Patterns are RE2 syntax (package regexp/syntax), matched without regard to case under Unicode simple
// folding. For every pattern the result is exactly what package regexp finds; matches of different
// patterns may overlap, and all are reported. Offsets are bytes.
//
// How it works: one automaton, built while it runs, looks for the pieces of all patterns in a single
// pass, at the cost of one table load a byte however many patterns there are (filter). Where the
// pieces of a pattern stand in order and near enough (join, see chain), the pattern is matched from
// the few places where a match can begin, by the same automaton (findAll). So clean text costs the
// pass alone, and a hit costs about its own length.
//
// Cost on one core: about 5 µs for 2 KB of clean text and 1,000 patterns once the automaton is warm.
// It grows with new text up to Options.MaxStates and is then thrown away and built anew. Scan never
// fails. Compile fails with audit.KindInvalid on a bad pattern.
package scan

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/evenhand/evenhand/audit"
)

// Match is one match of one pattern, in bytes of the text.
type Match struct{ Pattern, Start, End int32 }

// Options tune a Scanner; the zero value means the defaults.
type Options struct {
	// MaxStates bounds the automaton. 0 means 32768, or fewer where patterns tell so many characters
	// apart that they would need more than 8 MiB; otherwise at least 16.
	MaxStates int
}

const (
	defaultStates = 1 << 15
	defaultBytes  = 8 << 20
	leastStates   = 16
	firstStates   = 256 // a cache begins with so many and grows by growth
	growth        = 4
)

// ErrEmpty refuses a pattern that can match the empty string.
var ErrEmpty = errors.New("can match the empty string")

// Scanner looks for a fixed list of patterns. It is safe for concurrent use; all goroutines share one
// automaton.
type Scanner struct {
	program   *program
	chains    []chain
	uses      [][]use    // by part
	chainsOf  []interval // by pattern: its first and its last chain
	slow      []func() *regexp.Regexp
	maxStates int

	mu    sync.Mutex // held to replace cache
	cache atomic.Pointer[cache]
	walks sync.Pool
}

// Compile compiles RE2 patterns, with (?i) put in front of each. A pattern that package regexp refuses,
// or that can match the empty string, is an error naming its index.
func Compile(patterns []string, o Options) (*Scanner, error) {
	s := &Scanner{slow: make([]func() *regexp.Regexp, len(patterns))}
	l := newLinker()
	for i, p := range patterns {
		re, err := syntax.Parse("(?i)"+p, syntax.Perl)
		if err == nil && measure(re).min == 0 {
			err = ErrEmpty
		}
		if err == nil {
			err = s.add(l, int32(i), re)
		}
		if err != nil {
			return nil, audit.E("scan: compile", audit.KindInvalid, fmt.Errorf("pattern %d: %w", i, err))
		}
		s.slow[i] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?i)" + p) }) // it did parse
	}
	s.program = l.link()
	s.maxStates = o.MaxStates
	if s.maxStates == 0 {
		s.maxStates = min(defaultStates, defaultBytes/(4*s.program.alphabet.columns()))
	}
	s.maxStates = max(s.maxStates, leastStates)
	s.cache.Store(newCache(s.program, min(firstStates, s.maxStates)))
	s.walks.New = func() any { return newWalk(s) }
	return s, nil
}

// add plans one pattern.
func (s *Scanner) add(l *linker, pattern int32, re *syntax.Regexp) error {
	chains := plan(re)
	s.chainsOf = append(s.chainsOf, interval{len(s.chains), len(s.chains) + len(chains) - 1})
	for _, c := range chains {
		c.pattern = pattern
		for j := range c.parts {
			prog, err := syntax.Compile(c.parts[j].re.Simplify())
			if err != nil {
				return err
			}
			part := l.part(prog)
			for int(part) >= len(s.uses) {
				s.uses = append(s.uses, nil)
			}
			s.uses[part] = append(s.uses[part], use{int32(len(s.chains)), int32(j)})
			c.parts[j].re = nil
		}
		s.chains = append(s.chains, c)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return err
	}
	l.pattern(prog)
	return nil
}

// Patterns is the number of patterns.
func (s *Scanner) Patterns() int { return len(s.chainsOf) }

// Scan appends to dst the matches in text, ordered by Start, End, Pattern: for every pattern p what
// regexp.MustCompile("(?i)"+p).FindAllStringIndex(text, -1) gives. The text may be any bytes, up to
// 2 GiB of them.
func (s *Scanner) Scan(text string, dst []Match) []Match {
	w := s.walks.Get().(*walk)
	w.cache = s.cache.Load()
	w.filter(text)
	from := len(dst)
	for _, p := range w.hits {
		dst = w.findAll(text, p, dst)
	}
	w.reset()
	s.walks.Put(w)
	slices.SortFunc(dst[from:], func(a, b Match) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Pattern, b.Pattern))
	})
	return dst
}

// renew gives the successor of a full cache: a larger one, or an empty one if it cannot grow.
func (s *Scanner) renew(full *cache) *cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cache.Load()
	if c != full {
		return c // somebody else was faster
	}
	if n := len(full.states); n < s.maxStates {
		c = full.grown(min(n*growth, s.maxStates))
	} else {
		c = newCache(s.program, min(firstStates, s.maxStates))
	}
	s.cache.Store(c)
	return c
}
