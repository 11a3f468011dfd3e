package rules

import (
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// listName is a list in braces. A brace that belongs to \p{Greek}, \x{e9} or a{2,3} is none: the
// first two are kept out by what stands before them, the last by its first character.
var listName = regexp.MustCompile(`(\\[pPx])?\{([a-z_][a-z0-9_]*)\}`)

// listsIn gives where lists stand in a pattern, from brace to behind brace: what [listName] finds without a class before it,
// which at thousands of patterns takes its time.
func listsIn(pattern string) (at [][2]int) {
	for from := 0; ; {
		open := strings.IndexByte(pattern[from:], '{')
		if open < 0 {
			return at
		}
		open += from
		from = open + 1
		for from < len(pattern) && inListName(pattern[from], from > open+1) {
			from++
		}
		if from == open+1 || from == len(pattern) || pattern[from] != '}' {
			continue
		}
		from++
		if open < 2 || pattern[open-2] != '\\' || !strings.ContainsRune("pPx", rune(pattern[open-1])) {
			at = append(at, [2]int{open, from})
		}
	}
}

// inListName says whether a list's name may have the byte: digits stand behind its beginning only.
func inListName(c byte, behind bool) bool {
	return c >= 'a' && c <= 'z' || c == '_' || behind && c >= '0' && c <= '9'
}

// expandLists turns each list into one group. Items stand for themselves; an item that
// begins with "re:" is a pattern and may name other lists.
func expandLists(all map[string][]string, where string, sound *sound) (*lists, []Fault) {
	done, umlauts := map[string]string{}, map[string]string{}
	var faults []Fault
	var visit func(name string, busy []string) error
	visit = func(name string, busy []string) error {
		if _, ok := done[name]; ok {
			return nil
		}
		items, ok := all[name]
		if !ok {
			return fmt.Errorf("there is no list {%s}", name)
		}
		if slices.Contains(busy, name) {
			return fmt.Errorf("list {%s} names itself", name)
		}
		alternatives := make([]string, 0, len(items))
		var late []string // those that begin with an umlaut
		for _, item := range items {
			pattern, isPattern := strings.CutPrefix(item, "re:")
			if !isPattern {
				alternatives = append(alternatives, literals(item)...)
				if item >= "\x80" {
					late = append(late, literal(item))
				}
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
			if m := listName.FindStringSubmatchIndex(pattern); m != nil && m[0] == 0 && umlauts[pattern[m[4]:m[5]]] != "" {
				rest, _ := expand(pattern[m[1]:], done) // as a part of full it is sound
				late = append(late, umlauts[pattern[m[4]:m[5]]]+rest)
			}
		}
		if len(late) > 0 {
			umlauts[name] = "(?:" + strings.Join(late, "|") + ")"
		}
		done[name] = "(?:" + strings.Join(alternatives, "|") + ")"
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch items := all[name]; {
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
	return &lists{groups: done, umlauts: umlauts, sound: sound, repeats: map[string]int{}, guards: map[string]Guard{}}, faults
}

// lists holds the lists of a pack, and what was made with them.
type lists struct {
	groups  map[string]string // by name
	umlauts map[string]string // by name, of the items that begin with an umlaut
	sound   *sound
	repeats map[string]int   // by list: the product of its counts
	guards  map[string]Guard // by pattern

	guardPatterns []string // expanded, by number of the guard
}

// counted is a counted repeat.
var counted = regexp.MustCompile(`\{(\d+)(?:,(\d*))?\}`)

// mostRepeats is what package regexp allows of repeats within repeats.
const mostRepeats = 1000

// repeats multiplies the counts of a pattern.
func repeats(pattern string) int {
	n := 1
	for _, m := range counted.FindAllStringSubmatch(pattern, -1) {
		for _, s := range m[1:] {
			if c, _ := strconv.Atoi(s); c > 1 {
				n = min(n*c, mostRepeats+1)
			}
		}
	}
	return n
}

// expand puts lists into a pattern that may be compiled then.
func (l *lists) expand(pattern string) (string, error) {
	soft := soften(pattern)
	full, err := put(soft, l.groups)
	if err != nil {
		return "", err
	}
	// Lists are long and stand in many patterns. A short group takes the place of each: what is good with
	// that is good with the list, if the list is, and if its repeats are not too many.
	short, times := soft, repeats(pattern)
	for _, at := range listsIn(soft) {
		group := l.groups[soft[at[0]+1:at[1]-1]]
		if l.sound.parses(group) != nil {
			continue
		}
		if _, known := l.repeats[group]; !known {
			l.repeats[group] = repeats(group)
		}
		short, times = strings.ReplaceAll(short, soft[at[0]:at[1]], "(?:x)"), min(times*l.repeats[group], mostRepeats+1)
	}
	if times <= mostRepeats && l.sound.parses(short) == nil {
		return full, nil
	}
	return full, l.sound.parses(full)
}

// atUmlaut gives the pattern once more for what may begin with an umlaut behind a word boundary at the start of an alternative: an item of
// a list, or a part of a group; or "". No word boundary of RE2 stands before Ä, since it knows ASCII letters only; between a space and Ä there is
// its opposite.
func (l *lists) atUmlaut(pattern string) string {
	var late []string
	for _, part := range alternatives(pattern) {
		rest, ok := strings.CutPrefix(part, `\b`)
		if !ok {
			continue
		}
		if m := listName.FindStringSubmatchIndex(rest); m != nil && m[0] == 0 && m[2] < 0 {
			if items := l.umlauts[rest[m[4]:m[5]]]; items != "" {
				late = append(late, `\B`+items+l.rest(rest[m[1]:]))
			}
		} else if end := groupEnd(rest); end > 0 {
			var some []string
			for _, a := range alternatives(rest[len("(?:") : end-1]) {
				if a >= "\x80" {
					some = append(some, a)
				}
			}
			if len(some) > 0 {
				late = append(late, `\B`+l.rest("(?:"+strings.Join(some, "|")+")"+rest[end:]))
			}
		} else if rest >= "\x80" {
			late = append(late, `\B`+l.rest(rest))
		}
	}
	return strings.Join(late, "|")
}

// rest expands a part of a pattern; what is wrong with it is said of the whole.
func (l *lists) rest(pattern string) string {
	full, _ := expand(pattern, l.groups)
	return full
}

// alternatives splits a pattern where no group and no class is open.
func alternatives(pattern string) (parts []string) {
	from := 0
	outside(pattern, func(i, depth int) bool {
		if depth == 0 && pattern[i] == '|' {
			parts = append(parts, pattern[from:i])
			from = i + 1
		}
		return true
	})
	return append(parts, pattern[from:])
}

// groupEnd gives the offset behind the group that a pattern begins with; 0 when there is none.
func groupEnd(pattern string) (end int) {
	if !strings.HasPrefix(pattern, "(?:") {
		return 0
	}
	outside(pattern, func(i, depth int) bool {
		if depth == 0 && pattern[i] == ')' {
			end = i + 1
		}
		return end == 0
	})
	return end
}

// outside calls f for the bytes of a pattern that are neither escaped nor in a class, with how many groups are open behind them, until it
// says no.
func outside(pattern string, f func(i, depth int) bool) {
	depth, class := 0, -1 // where the class began
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
			continue
		case class >= 0:
			if c == ']' && i > class+1 && !(i == class+2 && pattern[class+1] == '^') {
				class = -1
			}
			continue
		case c == '[':
			class = i
			continue
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if !f(i, depth) {
			return
		}
	}
}

// sound remembers what is wrong with patterns, their lists left out, and with lists, for all packs that are loaded
// together: they have most lists in common. It is safe for concurrent use.
type sound struct{ known sync.Map } // pattern -> func() error

// parses gives what is wrong with a pattern.
func (s *sound) parses(pattern string) error {
	f, ok := s.known.Load(pattern)
	if !ok {
		f, _ = s.known.LoadOrStore(pattern, sync.OnceValue(func() error {
			_, err := syntax.Parse("(?i)"+pattern, syntax.Perl)
			return err
		}))
	}
	return f.(func() error)()
}

// guard gives the guard of a pattern; equal ones are one.
func (l *lists) guard(pattern string) (Guard, error) {
	if g, ok := l.guards[pattern]; ok {
		return g, nil
	}
	full, err := l.expand(pattern)
	if err != nil {
		return 0, err
	}
	if more := l.atUmlaut(pattern); more != "" {
		full += "|" + more
	}
	g := Guard(len(l.guardPatterns))
	l.guards[pattern], l.guardPatterns = g, append(l.guardPatterns, full)
	return g, nil
}

// digraphs are what German keyboards without umlauts give.
var digraphs = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "Ä", "Ae", "Ö", "Oe", "Ü", "Ue")

// literals makes patterns of plain text: one, and for German umlauts one with ae, oe, ue. Both are words
// without alternatives inside, which the scanner holds as a tree.
func literals(item string) []string {
	all := []string{literal(item)}
	if plain := digraphs.Replace(item); plain != item {
		all = append(all, literal(plain))
	}
	return all
}

func literal(item string) string {
	return soft(strings.Join(strings.Fields(regexp.QuoteMeta(item)), " "), false)
}

// expand puts lists into a pattern.
func expand(pattern string, lists map[string]string) (string, error) {
	return put(soften(pattern), lists)
}

// put puts lists into a softened pattern.
func put(soft string, lists map[string]string) (string, error) {
	var b strings.Builder
	from := 0
	for _, at := range listsIn(soft) {
		name := soft[at[0]+1 : at[1]-1]
		group, ok := lists[name]
		if !ok {
			return "", fmt.Errorf("there is no list {%s}", name)
		}
		b.WriteString(soft[from:at[0]])
		b.WriteString(group)
		from = at[1]
	}
	b.WriteString(soft[from:])
	return b.String(), nil
}

// soften lets a pattern match what people really type: a space stands for any run of white space,
// an apostrophe for the typographic one too, ß for ss, an umlaut for its two letters.
func soften(pattern string) string { return soft(pattern, true) }

func soft(pattern string, umlauts bool) string {
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
		case strings.HasPrefix(pattern[i:], "ß") && !class:
			b.WriteString("(?:ß|ss)")
			i++
			continue
		case umlauts && c == '\xc3' && !class && i+1 < len(pattern) && digraphs.Replace(pattern[i:i+2]) != pattern[i:i+2]:
			b.WriteString("(?:" + pattern[i:i+2] + "|" + digraphs.Replace(pattern[i:i+2]) + ")")
			i++
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
