// Package identity knows the words that name people by one of the 16 protected grounds: 2,500 and more
// in English, half as many in German, as data (terms.<language>.yaml), with the sources that each part was checked against.
//
// A mention says that people of a ground are spoken of, never how: an identity term alone is not bias.
// Rule packs take the terms as lists ([Lists]), models and counterfactuals by place ([Find]).
package identity

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/audit"
)

// Form says how a term stands in a sentence.
type Form string

// The forms.
const (
	Plural    Form = "plural"    // people, as the subject of "are"
	Singular  Form = "singular"  // one person, after an article
	Adjective Form = "adjective" // before a noun for people
	Pronoun   Form = "pronoun"   // no mention by itself
	Basis     Form = "basis"     // the trait itself ("age", "accent"); no mention by itself
)

// Mark says how a term is meant.
type Mark string

// The marks.
const (
	Neutral   Mark = "neutral"
	Reclaimed Mark = "reclaimed" // an old slur that some of those it names use for themselves
	Outdated  Mark = "outdated"  // once neutral; style guides advise against it
	Slur      Mark = "slur"
)

// Term is one term in one form.
type Term struct {
	Text   string
	Ground audit.Ground
	Form   Form
	Mark   Mark
	Weak   bool // an everyday word: a mention only before a noun for people
}

type file struct {
	Language string            `yaml:"language"`
	Version  string            `yaml:"version"`
	Persons  map[Form][]string `yaml:"persons"`
	Sections []section         `yaml:"sections"`
	Homonyms []string          `yaml:"homonyms"`
}

type section struct {
	Ground    audit.Ground `yaml:"ground"`
	Source    string       `yaml:"source"`
	Mark      Mark         `yaml:"mark"`
	Weak      bool         `yaml:"weak"`
	Regular   []string     `yaml:"regular"`
	Plural    []string     `yaml:"plural"`
	Singular  []string     `yaml:"singular"`
	Adjective []string     `yaml:"adjective"`
	Inflected []string     `yaml:"inflected"`
	Pronoun   []string     `yaml:"pronoun"`
	Basis     []string     `yaml:"basis"`
}

//go:embed terms.*.yaml
var files embed.FS

// Lexicon is the terms of one language. It is read-only and safe for concurrent use.
type Lexicon struct {
	version  string
	terms    []Term
	persons  map[Form][]string
	homonyms []string
	words    *words
}

var lexicons = load()

// English is the lexicon for English.
func English() *Lexicon { return lexicons["en"] }

// In gives the lexicon of a language, nil if there is none.
func In(language string) *Lexicon { return lexicons[language] }

// load reads the embedded files, which a test holds to be sound: a broken one would leave its language out.
func load() map[string]*Lexicon {
	all := map[string]*Lexicon{}
	names, _ := fs.Glob(files, "*.yaml")
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			continue
		}
		language := strings.Split(name, ".")[1]
		if l, err := Parse(raw, language); err == nil {
			all[language] = l
		}
	}
	return all
}

// faults tells what is wrong with a file that could be decoded.
func (f *file) faults(language string) error {
	var errs []error
	if f.Language != language {
		errs = append(errs, fmt.Errorf("language: %q, but the file's name says %q", f.Language, language))
	}
	if f.Version == "" {
		errs = append(errs, errors.New("version: is missing"))
	}
	if len(f.Persons[Plural]) == 0 || len(f.Persons[Singular]) == 0 {
		errs = append(errs, errors.New("persons: want plural and singular, the nouns for people"))
	}
	if len(f.Sections) == 0 {
		errs = append(errs, errors.New("sections: there must be at least one"))
	}
	for i, s := range f.Sections {
		if !slices.Contains(audit.Grounds, s.Ground) {
			errs = append(errs, fmt.Errorf("sections[%d].ground: %q is not one of %s", i, s.Ground, audit.List(audit.Grounds)))
		}
		if !slices.Contains([]Mark{"", Neutral, Reclaimed, Outdated, Slur}, s.Mark) {
			errs = append(errs, fmt.Errorf("sections[%d].mark: %q is not one of %s", i, s.Mark, audit.List([]Mark{Neutral, Reclaimed, Outdated, Slur})))
		}
	}
	return errors.Join(errs...)
}

// germanEndings are those of an adjective; the bare form is for the predicate ("ist schwul").
var germanEndings = []string{"e", "en", "er", "es", "em", ""}

// germanDative is a plural of one word that takes n: "mit Ausländern", "bei Schwarzen".
var germanDative = regexp.MustCompile(`^\S*(?:e|el|er)$`)

// Parse makes a lexicon of the YAML of a file for a language. What is wrong with it is named all at once, by section and without terms.
func Parse(raw []byte, language string) (*Lexicon, error) {
	const op = "identity: parse"
	var f file
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if err := f.faults(language); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	l := &Lexicon{version: f.Version, persons: f.Persons, homonyms: f.Homonyms}
	seen := map[Term]bool{}
	for _, s := range f.Sections {
		if s.Mark == "" {
			s.Mark = Neutral
		}
		add := func(form Form, texts ...string) {
			for _, text := range texts {
				t := Term{Text: text, Ground: s.Ground, Form: form, Mark: s.Mark, Weak: s.Weak}
				if !seen[t] {
					seen[t] = true
					l.terms = append(l.terms, t)
				}
			}
		}
		for _, text := range s.Regular {
			add(Plural, text+"s")
			add(Singular, text)
			add(Adjective, text)
		}
		for _, text := range s.Plural {
			add(Plural, text)
			if f.Language == "de" && germanDative.MatchString(text) {
				add(Plural, text+"n")
			}
		}
		add(Singular, s.Singular...)
		add(Adjective, s.Adjective...)
		for _, text := range s.Inflected {
			for _, ending := range germanEndings {
				add(Adjective, text+ending)
			}
		}
		add(Pronoun, s.Pronoun...)
		add(Basis, s.Basis...)
	}
	l.words = newWords(l)
	return l, nil
}

// Version changes whenever the terms do.
func (l *Lexicon) Version() string { return l.version }

// Terms gives the terms of a ground, in the order of the data.
func (l *Lexicon) Terms(g audit.Ground) []Term {
	var of []Term
	for _, t := range l.terms {
		if t.Ground == g {
			of = append(of, t)
		}
	}
	return of
}

// traitAfter begins what makes a person of the ground of "people" and the like: "with autism", "over 50".
var traitAfter = regexp.MustCompile(`^(?:people|Menschen) ((?:with|who|from|in|on|of|without|over|under|above|past|near|close|nearing|born|raised|living|attracted|mit|ohne|aus|vom|im|über|unter|ab|kurz|afrikanischer|asiatischer|muslimischen|jüdischen) .*)$`)

// Lists gives the terms of a ground as lists for rule packs, of all marks, in the order of the data:
// id_plural, id_singular, id_adjective, id_basis; id_slur, plural and singular; id_trait, what stands
// behind "people" in a plural, such as "with autism"; and the nouns for people, id_people and id_person.
// A list without terms is left out.
func (l *Lexicon) Lists(g audit.Ground) map[string][]string {
	lists := map[string][]string{"id_people": slices.Clone(l.persons[Plural]), "id_person": slices.Clone(l.persons[Singular])}
	add := func(name, text string) {
		if !slices.Contains(lists[name], text) {
			lists[name] = append(lists[name], text)
		}
	}
	for _, t := range l.Terms(g) {
		trait := traitAfter.FindStringSubmatch(t.Text)
		switch {
		case t.Form == Pronoun:
			continue
		case t.Form == Plural && trait != nil:
			add("id_trait", trait[1])
		default:
			add("id_"+string(t.Form), t.Text)
		}
		if t.Mark == Slur && t.Form != Adjective {
			add("id_slur", t.Text)
		}
	}
	return lists
}
