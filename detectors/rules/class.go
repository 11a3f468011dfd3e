package rules

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/detectors/identity"
)

// Common is what all packs of one family and language share: file common.<language>.yaml beside them.
// Its lists may be named by every pack; a pack's own list of the same name is a fault, so that a name
// means one thing. Its guards hold for all rules.
//
// Packs that are loaded beside others share what those have in common, too. There a name of their own wins: a list or class of
// theirs stands in the place of the other's, and guards are added.
//
// Packs of a ground, and the common lists, may also name the lists of the identity lexicon, which hold
// the terms of the pack's ground: see [identity.Lexicon.Lists].
type Common struct {
	ID      string              `yaml:"common"` // family and language: "charter.en"
	Version string              `yaml:"version"`
	Lists   map[string][]string `yaml:"lists,omitempty"`
	Unless  []string            `yaml:"unless,omitempty"`
	// UnlessClause is as in [Pack].
	UnlessClause []string          `yaml:"unless_clause,omitempty"`
	Classes      map[string]*Class `yaml:"classes,omitempty"`

	beside map[string][]string // lists of the other packs, whose names are free
}

// over gives what packs share that have c, nil for nothing, and are loaded beside those that have other.
func (c *Common) over(other *Common) *Common {
	if c == nil {
		c = &Common{}
	}
	if c.beside != nil {
		return c // of an earlier pack beside
	}
	both := &Common{
		ID: other.ID, Version: cmp.Or(c.Version, other.Version), Lists: c.Lists, beside: other.Lists,
		Unless: union(other.Unless, c.Unless), UnlessClause: union(other.UnlessClause, c.UnlessClause),
		Classes: maps.Clone(other.Classes),
	}
	if both.Classes == nil {
		both.Classes = map[string]*Class{}
	}
	maps.Copy(both.Classes, c.Classes)
	return both
}

// union gives the items of a, and behind them those of b that a lacks.
func union(a, b []string) []string {
	both := slices.Clone(a)
	for _, item := range b {
		if !slices.Contains(both, item) {
			both = append(both, item)
		}
	}
	return both
}

// Class is a kind of statement that may be made about people of any ground, such as "calls a group
// lazy". A rule of a class has the class's patterns, guards, sentences and reasons beside its own.
type Class struct {
	Description string `yaml:"description"`
	Rationale   string `yaml:"rationale"`
	Source      string `yaml:"source"`
	// Patterns and Unless name the people by lists, so that each pack puts its own in.
	Patterns []string `yaml:"patterns"`
	Unless   []string `yaml:"unless,omitempty"`
	// UnlessHere drops hits that end with it, see [Rule].
	UnlessHere []string `yaml:"unless_here,omitempty"`
	Abusive    bool     `yaml:"abusive,omitempty"`
	// Match and NoMatch may name lists, too: the first item stands in the first sentence, and so on.
	Match      []string `yaml:"match"`
	NoMatch    []string `yaml:"no_match"`
	Confidence float64  `yaml:"confidence,omitempty"`
}

const commonPrefix = "common."

// loadCommon reads the common files, by id.
func loadCommon(fsys fs.FS, names []string) (map[string]*Common, []Fault) {
	all := map[string]*Common{}
	var faults []Fault
	for _, name := range names {
		if !strings.HasPrefix(path.Base(name), commonPrefix) {
			continue
		}
		raw, err := fs.ReadFile(fsys, name)
		if err != nil {
			faults = append(faults, Fault{Where: name, Problem: err.Error()})
			continue
		}
		c := &Common{}
		dec := yaml.NewDecoder(bytes.NewReader(raw))
		dec.KnownFields(true)
		if err := dec.Decode(c); err != nil {
			faults = append(faults, yamlFaults(name, err)...)
			continue
		}
		if c.ID == "" || c.Version == "" {
			faults = append(faults, Fault{name, "", "common", "common and version must both be set"})
		}
		for id, class := range c.Classes {
			if class == nil || len(class.Patterns) == 0 {
				faults = append(faults, Fault{name, "", "classes." + id, "there must be at least one pattern"})
			}
		}
		all[c.ID] = c
	}
	return all, faults
}

const lexiconPrefix = "terms."

// loadLexicons reads the lexicons, by language: terms.<language>.yaml, which stands in the place of the program's.
func loadLexicons(fsys fs.FS, names []string) (map[string]*identity.Lexicon, []Fault) {
	all := map[string]*identity.Lexicon{}
	var faults []Fault
	for _, name := range names {
		language, is := strings.CutPrefix(path.Base(name), lexiconPrefix)
		if !is {
			continue
		}
		language = strings.TrimSuffix(language, ".yaml")
		raw, err := fs.ReadFile(fsys, name)
		if err != nil {
			faults = append(faults, Fault{Where: name, Problem: err.Error()})
			continue
		}
		if all[language], err = identity.Parse(raw, language); err != nil {
			faults = append(faults, yamlFaults(name, err)...)
		}
	}
	return all, faults
}

// commonOf gives the common file of a pack: that of its family and language.
func commonOf(p *Pack, all map[string]*Common) *Common {
	family, _, _ := strings.Cut(p.ID, ".")
	return all[family+"."+p.Language]
}

// allLists gives the lists that a pack's patterns may name: its own, the common ones, the lexicon's.
func allLists(p *Pack, where string) (map[string][]string, []Fault) {
	all := map[string][]string{}
	if p.lexicon != nil && p.Ground != "" {
		all = p.lexicon.Lists(p.Ground)
	}
	var faults []Fault
	add := func(lists map[string][]string) {
		for name, list := range lists {
			if _, clash := all[name]; clash {
				faults = append(faults, Fault{where, "", "lists." + name, "is a common list already; choose another name"})
			}
			all[name] = list
		}
	}
	if p.Common == nil {
		add(p.Lists)
		return all, faults
	}
	add(p.Common.Lists)
	add(p.Lists)
	for name, list := range p.Common.beside {
		if _, own := all[name]; !own {
			all[name] = list
		}
	}
	return all, faults
}

// inherit gives a rule what its class says, where it does not say it itself; sentences and patterns
// stand beside its own.
func inherit(p *Pack, r *Rule, where string, lists map[string][]string) []Fault {
	if r.Class == "" {
		return nil
	}
	if p.Common == nil || p.Common.Classes[r.Class] == nil {
		return []Fault{{where, r.ID, "class", fmt.Sprintf("there is no class %q in %s<language>.yaml", r.Class, commonPrefix)}}
	}
	c := p.Common.Classes[r.Class]
	for _, text := range []struct{ own, of *string }{
		{&r.Description, &c.Description}, {&r.Rationale, &c.Rationale}, {&r.Source, &c.Source},
	} {
		if *text.own == "" {
			*text.own = *text.of
		}
	}
	if r.Confidence == 0 {
		r.Confidence = c.Confidence
	}
	r.Abusive = r.Abusive || c.Abusive
	r.Patterns = append(r.Patterns, c.Patterns...)
	r.Unless = append(r.Unless, c.Unless...)
	r.UnlessHere = append(r.UnlessHere, c.UnlessHere...)
	var faults []Fault
	for _, part := range []struct {
		field string
		own   *[]string
		of    []string
	}{{"match", &r.Match, c.Match}, {"no_match", &r.NoMatch, c.NoMatch}} {
		for i, s := range part.of {
			full, err := sentenceWith(s, i, lists)
			if err != nil {
				faults = append(faults, Fault{where, r.ID, part.field, err.Error()})
				continue
			}
			*part.own = append(*part.own, full)
		}
	}
	return faults
}

// sentenceWith puts the i-th plain item, or one before it, for each list that a sentence names.
func sentenceWith(s string, i int, lists map[string][]string) (string, error) {
	var missing error
	s = listName.ReplaceAllStringFunc(s, func(name string) string {
		items := plainItems(strings.Trim(name, "{}"), lists)
		if len(items) == 0 {
			missing = fmt.Errorf("no plain item of list %s can stand in %q", name, s)
			return name
		}
		return items[i%len(items)]
	})
	if s != "" && missing == nil {
		first, size := utf8.DecodeRuneInString(s)
		s = string(unicode.ToUpper(first)) + s[size:]
	}
	return s, missing
}

// onlyList is an item that is another list and nothing else.
var onlyList = regexp.MustCompile(`^re:\{([a-z0-9_]+)\}$`)

// plainItems gives the items of a list that stand for themselves, those of lists that it names first.
func plainItems(name string, lists map[string][]string) (items []string) {
	for _, item := range lists[name] {
		if m := onlyList.FindStringSubmatch(item); m != nil && m[1] != name {
			items = append(items, plainItems(m[1], lists)...)
		} else if !strings.HasPrefix(item, "re:") {
			items = append(items, item)
		}
	}
	return items
}

// ground packs must give reasons; lint says so.
func lintReasons(r *Rule, add func(field, format string, args ...any)) {
	if strings.TrimSpace(r.Rationale) == "" {
		add("rationale", "is missing: say why a match is biased")
	}
	if strings.TrimSpace(r.Source) == "" {
		add("source", "is missing: say what the wording was checked against")
	}
}
