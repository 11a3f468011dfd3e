package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// listName is a list in braces. A brace that belongs to \p{Greek}, \x{e9} or a{2,3} is none: the
// first two are kept out by what stands before them, the last by its first character.
var listName = regexp.MustCompile(`(\\[pPx])?\{([a-z_][a-z0-9_]*)\}`)

// expandLists turns each list of the pack into one group. Items stand for themselves; an item that
// begins with "re:" is a pattern and may name other lists.
func expandLists(p *Pack, where string) (map[string]string, []Fault) {
	done := map[string]string{}
	var faults []Fault
	var visit func(name string, busy []string) error
	visit = func(name string, busy []string) error {
		if _, ok := done[name]; ok {
			return nil
		}
		items, ok := p.Lists[name]
		if !ok {
			return fmt.Errorf("there is no list {%s}", name)
		}
		if slices.Contains(busy, name) {
			return fmt.Errorf("list {%s} names itself", name)
		}
		alternatives := make([]string, 0, len(items))
		for _, item := range items {
			pattern, isPattern := strings.CutPrefix(item, "re:")
			if !isPattern {
				alternatives = append(alternatives, literal(item))
				continue
			}
			for _, m := range listName.FindAllStringSubmatch(pattern, -1) {
				if m[1] != "" {
					continue
				}
				if err := visit(m[2], append(busy, name)); err != nil {
					return err
				}
			}
			full, err := expand(pattern, done)
			if err != nil {
				return err
			}
			alternatives = append(alternatives, full)
		}
		done[name] = "(?:" + strings.Join(alternatives, "|") + ")"
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Lists)) {
		switch items := p.Lists[name]; {
		case !listName.MatchString("{" + name + "}"):
			faults = append(faults, Fault{where, "", "lists", fmt.Sprintf("name %q: want lower-case letters, digits and _", name)})
		case len(items) == 0 || slices.ContainsFunc(items, func(s string) bool { return strings.TrimSpace(s) == "" }):
			faults = append(faults, Fault{where, "", "lists." + name, "is empty or has an empty item"})
		default:
			if err := visit(name, nil); err != nil {
				faults = append(faults, Fault{where, "", "lists." + name, err.Error()})
			}
		}
	}
	return done, faults
}

// literal makes a pattern of plain text.
func literal(item string) string {
	return soften(strings.Join(strings.Fields(regexp.QuoteMeta(item)), " "))
}

// expand puts lists into a pattern.
func expand(pattern string, lists map[string]string) (string, error) {
	var missing string
	full := listName.ReplaceAllStringFunc(soften(pattern), func(m string) string {
		if m[0] == '\\' {
			return m
		}
		name := m[1 : len(m)-1]
		group, ok := lists[name]
		if !ok {
			missing = name
		}
		return group
	})
	if missing != "" {
		return "", fmt.Errorf("there is no list {%s}", missing)
	}
	return full, nil
}

// soften lets a pattern match what people really type: a space stands for any run of white space,
// an apostrophe for the typographic one too.
func soften(pattern string) string {
	var b strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			b.WriteByte(c)
			i++
			b.WriteByte(pattern[i])
			continue
		case c == '[' && !class:
			class = true
			// A bracket right after the opening one is a member, not the end.
			for _, lead := range []string{"[^]", "[]"} {
				if strings.HasPrefix(pattern[i:], lead) {
					b.WriteString(lead[:len(lead)-1])
					i += len(lead) - 1
					c = ']'
					break
				}
			}
		case c == ']' && class:
			class = false
		case c == '\'' && class:
			b.WriteString(`'’`)
			continue
		case c == '\'':
			b.WriteString(`['’]`)
			continue
		case c == ' ' && !class:
			b.WriteString(space(pattern, i))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// space gives what the space at i stands for; with a quantifier behind it, it needs a group.
func space(pattern string, i int) string {
	if i+1 < len(pattern) && strings.IndexByte("?*+{", pattern[i+1]) >= 0 {
		if pattern[i+1] != '{' || (i+2 < len(pattern) && pattern[i+2] >= '0' && pattern[i+2] <= '9') {
			return `(?:\s+)`
		}
	}
	return `\s+`
}
