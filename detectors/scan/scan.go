// Package scan finds the matches of many patterns in one text.
package scan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

// Match is one match of one pattern, in bytes of the text.
type Match struct{ Pattern, Start, End int32 }

// Options tune a Scanner; the zero value is the default.
type Options struct {
	MaxStates int // 0 = default
}

// Scanner holds compiled patterns.
type Scanner struct{ res []*regexp.Regexp }

// Compile compiles RE2 patterns case-insensitively. A bad pattern is an error naming its index.
func Compile(patterns []string, o Options) (*Scanner, error) {
	s := &Scanner{}
	for i, p := range patterns {
		re, err := regexp.Compile("(?i)" + p)
		if err != nil {
			return nil, fmt.Errorf("pattern %d: %w", i, err)
		}
		if re.MatchString("") {
			return nil, fmt.Errorf("pattern %d: can match the empty string", i)
		}
		s.res = append(s.res, re)
	}
	return s, nil
}

// Patterns is the number of patterns.
func (s *Scanner) Patterns() int { return len(s.res) }

// Scan appends to dst the matches in text.
func (s *Scanner) Scan(text string, dst []Match) []Match {
	from := len(dst)
	for i, re := range s.res {
		for _, m := range re.FindAllStringIndex(text, -1) {
			dst = append(dst, Match{int32(i), int32(m[0]), int32(m[1])})
		}
	}
	slices.SortFunc(dst[from:], func(a, b Match) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Pattern, b.Pattern))
	})
	return dst
}
