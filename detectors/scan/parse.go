package scan

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
)

// parser parses patterns without regard to case. Rule packs put the same long lists into hundreds of
// patterns; a group that stands in several of them is parsed once, and is then one node in all of
// their trees. So nodes must not be changed, and what is known of one (see planner) is known of all.
type parser struct {
	ids    map[string]int // by text of the group
	groups []*syntax.Regexp
}

const (
	leastGroup = 24   // shorter groups are not worth it
	groupName  = "zz" // and a number: the capture that stands for a group until it is put in
)

func newParser() *parser { return &parser{ids: map[string]int{}} }

// parse gives the tree of a pattern. Its errors are those of package regexp.
func (p *parser) parse(pattern string) (*syntax.Regexp, error) {
	if len(pattern) >= leastGroup {
		if short, ok := p.shorten(pattern); ok {
			if re, err := syntax.Parse("(?i)"+short, syntax.Perl); err == nil {
				return p.restore(re), nil
			}
		}
	}
	return syntax.Parse("(?i)"+pattern, syntax.Perl)
}

// shorten puts named captures in the place of groups (?:...). It gives up on what it does not
// understand, such as flags, whose effect on a group depends on where it stands.
func (p *parser) shorten(pattern string) (string, bool) {
	var b strings.Builder
	from := 0
	for i := 0; i < len(pattern); {
		group, next, ok := token(pattern, i)
		if !ok {
			return "", false
		}
		if !group {
			i = next
			continue
		}
		end := closing(pattern, i)
		if end < 0 {
			return "", false
		}
		if end-i < leastGroup {
			i = end
			continue
		}
		id, ok := p.group(pattern[i+len("(?:") : end-1])
		if !ok {
			return "", false
		}
		b.WriteString(pattern[from:i])
		fmt.Fprintf(&b, "(?P<%s%d>z)", groupName, id)
		from, i = end, end
	}
	b.WriteString(pattern[from:])
	return b.String(), true
}

// group gives the number of a group by its text.
func (p *parser) group(text string) (int, bool) {
	if id, ok := p.ids[text]; ok {
		return id, id >= 0
	}
	short, ok := p.shorten(text)
	if ok {
		re, err := syntax.Parse("(?i)"+short, syntax.Perl)
		if err == nil {
			id := len(p.groups)
			p.groups = append(p.groups, p.restore(re))
			p.ids[text] = id
			return id, true
		}
	}
	p.ids[text] = -1
	return 0, false
}

// restore puts the groups in the place of the captures that stand for them.
func (p *parser) restore(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpCapture {
		if n, ok := strings.CutPrefix(re.Name, groupName); ok {
			id, _ := strconv.Atoi(n)
			return p.groups[id]
		}
	}
	for i, sub := range re.Sub {
		re.Sub[i] = p.restore(sub)
	}
	return re
}

// token says where the token at i ends, and whether a group (?: begins there; ok is false for a token
// that cannot be understood alone.
func token(pattern string, i int) (group bool, next int, ok bool) {
	switch pattern[i] {
	case '\\':
		if i+1 == len(pattern) || pattern[i+1] == 'Q' {
			return false, 0, false
		}
		return false, i + 2, true
	case '[':
		k := i + 1
		if strings.HasPrefix(pattern[k:], "^") {
			k++
		}
		if strings.HasPrefix(pattern[k:], "]") {
			k++
		}
		for k < len(pattern) && pattern[k] != ']' {
			switch {
			case pattern[k] == '\\':
				k++
			case strings.HasPrefix(pattern[k:], "[:"):
				return false, 0, false
			}
			k++
		}
		return false, k + 1, k < len(pattern)
	case '(':
		if strings.HasPrefix(pattern[i:], "(?:") {
			return true, i + len("(?:"), true
		}
		return false, i + 1, !strings.HasPrefix(pattern[i:], "(?")
	}
	return false, i + 1, true
}

// closing gives where the group that begins at i ends, or -1.
func closing(pattern string, i int) int {
	depth := 0
	for i < len(pattern) {
		switch pattern[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		_, next, ok := token(pattern, i)
		if !ok {
			return -1
		}
		i = next
	}
	return -1
}
