package terms

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/audit"
)

//go:embed terms.yaml
var builtInYAML []byte

// builtIn is the shipped list.
type builtIn struct {
	Version string              `yaml:"version"`
	Terms   map[string][]string `yaml:"terms"`
}

var readBuiltIn = sync.OnceValues(func() (builtIn, error) {
	var b builtIn
	if err := yaml.Unmarshal(builtInYAML, &b); err != nil {
		return b, audit.E("terms: built-in list", audit.KindInternal, err)
	}
	return b, nil
})

// term is one entry of a set.
type term struct {
	text     string // lower case
	category string
	rule     string // id in findings: terms.gender.boys_will_be_boys
}

// set is the terms of one configuration with their automaton.
type set struct {
	version   string
	terms     []term
	automaton *automaton
}

// builtInSets caches the sets without custom terms: one for each choice of categories, 31 at most.
var builtInSets sync.Map // categories joined by a comma, in the order of Categories -> *set

func setOf(c Config) (*set, error) {
	var categories []string
	for _, category := range Categories {
		if len(c.Categories) == 0 || slices.Contains(c.Categories, category) {
			categories = append(categories, category)
		}
	}
	key := strings.Join(categories, ",")
	if len(c.CustomTerms) == 0 {
		if s, ok := builtInSets.Load(key); ok {
			return s.(*set), nil
		}
	}
	s, err := newSet(categories, c.CustomTerms)
	if err == nil && len(c.CustomTerms) == 0 {
		builtInSets.Store(key, s)
	}
	return s, err
}

// newSet joins built-in and custom terms; a custom term that is built in keeps its category.
func newSet(categories, custom []string) (*set, error) {
	b, err := readBuiltIn()
	if err != nil {
		return nil, err
	}
	s := &set{version: b.Version}
	seen, ids := map[string]bool{}, map[string]bool{}
	add := func(category string, texts []string) {
		for _, text := range texts {
			text = lower(strings.TrimSpace(text))
			if !seen[text] {
				seen[text] = true
				s.terms = append(s.terms, term{text, category, ruleID(category, text, ids)})
			}
		}
	}
	for _, category := range categories {
		add(category, b.Terms[category])
	}
	add(customCategory, custom)
	texts := make([]string, len(s.terms))
	for i, t := range s.terms {
		texts[i] = t.text
	}
	s.automaton = newAutomaton(texts)
	return s, nil
}

// lower makes each code point lower case on its own, as the automaton does with the text.
func lower(s string) string { return strings.Map(lowerRune, strings.ToValidUTF8(s, "")) }

// lowerRune also takes the typographic apostrophe for the plain one.
func lowerRune(r rune) rune {
	if r == '’' {
		return '\''
	}
	return unicode.ToLower(r)
}

// ruleID makes a stable id of at most 64 characters; like-sounding terms get a number behind.
func ruleID(category, text string, used map[string]bool) string {
	slug := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, text)
	base := fmt.Sprintf("terms.%s.%s", category, slug)
	base = base[:min(len(base), 60)]
	id := base
	for n := 2; used[id]; n++ {
		id = base + "-" + strconv.Itoa(n)
	}
	used[id] = true
	return id
}
