// Package scan finds the matches of many patterns in one text at once.
//
// Patterns are RE2 syntax (package regexp/syntax), matched without regard to case under Unicode simple
// folding. For every pattern the result is exactly what package regexp finds; matches of different
// patterns may overlap, and all are reported. Offsets are bytes.
//
// How it works: one deterministic automaton, built while it runs, looks for the telling parts of all
// patterns in a single pass, at the cost of one table load a byte however many patterns there are
// (walk.filter, planner). Where the parts of a pattern stand in order and near enough (walk.join), that
// pattern is matched from the few places where a match can begin (walk.findAll). So clean text costs the
// pass alone, and a hit costs about its own length. Whole patterns are compiled when first needed.
//
// Cost on one core: 6 µs for 2 KB of text and 1,000 phrases; of the 7,600 patterns that ship, which hold ten
// thousands of words, 30 to 40 µs for texts of one kind and 70 to 90 for those of all kinds, once the automaton is
// warm; no allocation without a match. A new Scanner is cold, its first texts take 0.1 to 0.5 ms; Warm takes that upon
// itself. The automaton is shared by all goroutines, grows with new text up to Options.MaxStates, and then forgets
// the half of its states that came last; a Scanner holds 10 to 60 MB. Scan never fails. Compile takes 0.1 to 0.3 ms a pattern and fails
// with audit.KindInvalid on a bad one.
package scan

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/evenhand/evenhand/audit"
)

// Match is one match of one pattern, in bytes of the text.
type Match struct{ Pattern, Start, End int32 }

// Options tune a Scanner; the zero value means the defaults.
type Options struct {
	// MaxStates bounds the automaton, 16 to 65535. 0 means as many as fit into a table of 16 MiB, about
	// 50,000 for rules in English.
	MaxStates int
}

const (
	defaultBytes = 16 << 20
	leastStates  = 16
	firstStates  = 256 // a cache begins with so many, and grows to four times its size, a large one to twice
	largeStates  = 16 << 10
	leastHalved  = 256 // a smaller one is begun anew: half of it might not hold the states of those who go on in it
)

// ErrEmpty refuses a pattern that can match the empty string.
var ErrEmpty = errors.New("can match the empty string")

// Scanner looks for a fixed list of patterns. It is safe for concurrent use; all goroutines share one
// automaton.
type Scanner struct {
	program   *program
	chains    []chain
	joints    []joint
	sets      []bytes         // that chains and joints name by number
	setIDs    map[bytes]int32 // their numbers, while it is compiled
	triggers  []trigger       // by part
	triggerOf []uint32        // where those of each part begin; and where the last ends
	patterns  int
	wordings  [][]int32       // the patterns of each: several may be the same
	chainsOf  []interval      // by wording: its first and its last chain
	exact     []func() *exact // by wording
	slow      []func() *regexp.Regexp
	maxStates int

	leastAbreast int // a constant but for tests

	mu    sync.Mutex // held to replace cache
	cache atomic.Pointer[cache]
	walks chan *walk // idle ones, as many as can run at once
}

// Compile compiles RE2 patterns, with (?i) put in front of each. A pattern that package regexp refuses,
// or that can match the empty string, is an error naming its index.
func Compile(patterns []string, o Options) (*Scanner, error) {
	s := &Scanner{leastAbreast: leastAbreast, patterns: len(patterns), setIDs: map[bytes]int32{}}
	trees, l := newParser(), newLinker()
	pl := newPlanner(l)
	known := map[string]int{}
	for i, p := range patterns {
		if n, ok := known[p]; ok {
			s.wordings[n] = append(s.wordings[n], int32(i))
			continue
		}
		n := len(s.wordings)
		known[p], s.wordings = n, append(s.wordings, []int32{int32(i)})
		re, err := trees.parse(p)
		if err == nil && pl.of(re).span.min == 0 {
			err = ErrEmpty
		}
		if err != nil {
			return nil, audit.E("scan: compile", audit.KindInvalid, fmt.Errorf("pattern %d: %w", i, err))
		}
		s.add(pl, l, int32(n), re)
		s.exact = append(s.exact, sync.OnceValue(func() *exact { return s.program.exact(treeOf(p)) }))
		s.slow = append(s.slow, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?i)" + p) })) // it did parse
	}
	var err error
	if s.program, err = l.link(); err != nil {
		return nil, audit.E("scan: compile", audit.KindInvalid, err)
	}
	s.setIDs = nil
	s.setTriggers()
	s.maxStates = o.MaxStates
	if s.maxStates == 0 {
		s.maxStates = defaultBytes / (2 * columnsFor(s.program.alphabet))
	}
	s.maxStates = min(max(s.maxStates, leastStates), mostStates)
	s.cache.Store(newCache(s.program, min(firstStates, s.maxStates)))
	s.walks = make(chan *walk, runtime.GOMAXPROCS(0))
	return s, nil
}

// treeOf gives the tree of a pattern that did parse. Compile keeps none: most patterns of a rule set are never
// needed exactly, and their trees would be half of all that the garbage collector looks at.
func treeOf(pattern string) *syntax.Regexp {
	re, _ := newParser().parse(pattern)
	return re
}

// add plans one pattern.
func (s *Scanner) add(pl *planner, l *linker, pattern int32, re *syntax.Regexp) {
	l.learn(re)
	plans := pl.plans(re)
	s.chainsOf = append(s.chainsOf, interval{len(s.chains), len(s.chains) + len(plans) - 1})
	for _, p := range plans {
		first := int32(len(s.joints))
		for i := range p.parts {
			j := &p.parts[i]
			s.joints = append(s.joints, joint{part: l.part(j), after: j.after.reach(), between: s.set(j.between)})
		}
		c := chain{
			pattern: pattern, first: first, last: int32(len(s.joints)) - 1,
			start: p.start.reach(), bytes: s.set(p.bytes), loop: s.set(p.loop), solid: int32(p.solid), spaces: int32(p.spaces), within: true,
		}
		for _, j := range s.joints[first+1:] {
			c.within = c.within && s.sets[j.between].and(sentenceEndBytes) == (bytes{})
		}
		s.chains = append(s.chains, c)
	}
}

// set gives the number of a set of bytes.
func (s *Scanner) set(b bytes) int32 {
	i, ok := s.setIDs[b]
	if !ok {
		i = int32(len(s.sets))
		s.setIDs[b], s.sets = i, append(s.sets, b)
	}
	return i
}

// setTriggers hangs each chain on the part that the fewest chains have.
func (s *Scanner) setTriggers() {
	uses := make([]int, s.program.size)
	for _, c := range s.chains {
		for _, j := range s.jointsOf(&c) {
			uses[j.part]++
		}
	}
	of := make([][]trigger, len(uses))
	for i, c := range s.chains {
		parts := slices.SortedFunc(slices.Values(s.jointsOf(&c)), func(a, b joint) int { return cmp.Compare(uses[a.part], uses[b.part]) })
		part, last := parts[0].part, len(parts)-1
		of[part] = append(of[part], trigger{chain: int32(i), other: parts[min(1, last)].part, third: parts[min(2, last)].part, within: c.within})
	}
	s.triggers, s.triggerOf = nil, make([]uint32, 1, len(of)+1)
	for _, ts := range of {
		slices.SortFunc(ts, func(a, b trigger) int {
			switch {
			case a.within && !b.within:
				return -1
			case b.within && !a.within:
				return 1
			}
			return cmp.Or(cmp.Compare(a.other, b.other), cmp.Compare(a.third, b.third))
		})
		n := len(s.triggers)
		s.triggers = append(s.triggers, ts...)
		for i := len(ts) - 1; i >= 0; i-- {
			t := &s.triggers[n+i]
			t.next = int32(n + i + 1)
			if i+1 < len(ts) && ts[i+1].other == t.other && ts[i+1].within == t.within {
				t.next = s.triggers[n+i+1].next
			}
		}
		s.triggerOf = append(s.triggerOf, uint32(len(s.triggers)))
	}
}

// Patterns is the number of patterns.
func (s *Scanner) Patterns() int { return s.patterns }

// Scan appends to dst the matches in text, ordered by Start, End, Pattern: for every pattern p what
// regexp.MustCompile("(?i)"+p).FindAllStringIndex(text, -1) gives. The text may be any bytes, up to
// 2 GiB of them.
func (s *Scanner) Scan(text string, dst []Match) []Match {
	w := s.walk()
	w.filter(text)
	w.join(text)
	from := len(dst)
	for _, p := range w.hits {
		w.found = w.findAll(text, p, w.found[:0])
		for _, pattern := range s.wordings[p] {
			for _, m := range w.found {
				dst = append(dst, Match{pattern, m.Start, m.End})
			}
		}
	}
	s.release(w)
	slices.SortFunc(dst[from:], func(a, b Match) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Pattern, b.Pattern))
	})
	return dst
}

// walk takes an idle walk or makes one. A pool of package sync would lose them, and they are large.
func (s *Scanner) walk() *walk {
	var w *walk
	select {
	case w = <-s.walks:
	default:
		w = newWalk(s)
	}
	w.cache = s.cache.Load()
	return w
}

func (s *Scanner) release(w *walk) {
	w.reset()
	select {
	case s.walks <- w:
	default:
	}
}

// renew gives the successor of a full cache: a larger one, or, if it cannot grow, one with half of what is in it.
func (s *Scanner) renew(full *cache) *cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cache.Load()
	if c != full {
		return c // somebody else was faster
	}
	if n := len(full.states); n < s.maxStates {
		times := 4
		if n >= largeStates {
			times = 2
		}
		c = full.grown(min(times*n, s.maxStates))
	} else if n >= leastHalved {
		c = full.halved()
	} else {
		c = newCache(s.program, n)
	}
	s.cache.Store(c)
	return c
}
