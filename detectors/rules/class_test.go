package rules

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/evenhand/evenhand/audit"
)

const commonFile = `
common: charter.en
version: "2026.11.1"
lists:
  they: ['re:{id_plural}', 're:{id_adjective} {id_people}']
  idle: [lazy, workshy]
unless: ['\bmyth\b']
classes:
  laziness:
    description: Calls people lazy
    rationale: A stereotype
    source: own list
    confidence: 0.7
    patterns: ['\b{they} are {idle}\b']
    unless: ['\bsaid\b']
    match: ['{they} are {idle}.', '{they} are {idle}!']
    no_match: ['It is a myth that {they} are {idle}.', 'He said {they} are lazy.']
`

const classPack = `
pack: charter.religion.en
title: Religion
version: "2026.11.1"
language: en
ground: religion
source: own words
rules:
  - {id: religion.lazy, class: laziness, severity: MEDIUM}
  - id: religion.own
    description: d
    rationale: r
    severity: MEDIUM
    patterns: ['\b{id_adjective} wedding\b']
    match: [A Jewish wedding., A Muslim wedding.]
    no_match: [A wedding., Myth of the Jewish wedding.]
`

func loadBoth(common, pack string) ([]*Pack, error) {
	return Load(fstest.MapFS{"packs/common.en.yaml": {Data: []byte(common)}, "packs/religion.en.yaml": {Data: []byte(pack)}})
}

func TestClass(t *testing.T) {
	packs, err := loadBoth(commonFile, classPack)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(Lint(packs), Test(packs)...) {
		t.Error(f)
	}
	r, own := packs[0].Rules[0], packs[0].Rules[1]
	if r.Description != "Calls people lazy" || r.Rationale != "A stereotype" || r.Source != "own list" || r.Confidence != 0.7 || len(r.Match) != 2 || len(r.Guards) != 2 {
		t.Errorf("%+v", r)
	}
	if own.Source != "own words" || len(own.Guards) != 1 {
		t.Errorf("%+v", own)
	}
	if r.Match[0] == r.Match[1] || !strings.Contains(r.Match[1], "workshy") {
		t.Errorf("%q", r.Match)
	}
	text, _ := Explain(packs, "religion.lazy", false)
	for _, want := range []string{"class       laziness", "rationale   A stereotype", "source      own list"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	changed, err := loadBoth(strings.Replace(commonFile, "workshy", "idle", 1), classPack)
	if err != nil || SetVersion(changed) == SetVersion(packs) {
		t.Errorf("a common list changes and the version does not: %v", err)
	}
}

func TestClassFaults(t *testing.T) {
	for _, tc := range []struct{ name, common, pack, want string }{
		{"no such class", commonFile, strings.Replace(classPack, "class: laziness", "class: sloth", 1), `religion.lazy:class: there is no class "sloth"`},
		{"no common file for the language", strings.Replace(commonFile, "charter.en", "charter.de", 1), classPack, "there is no class"},
		{"clash of lists", commonFile, strings.Replace(classPack, "rules:", "lists: {idle: [x]}\nrules:", 1), "lists.idle: is a common list already"},
		{"clash with the lexicon", commonFile, strings.Replace(classPack, "rules:", "lists: {id_plural: [x]}\nrules:", 1), "lists.id_plural: is a common list already"},
		{"class without patterns", strings.Replace(commonFile, `['\b{they} are {idle}\b']`, "[]", 1), classPack, "common.en.yaml:classes.laziness: there must be at least one pattern"},
		{"sentence without words", strings.Replace(commonFile, "{idle}!", "{none}!", 1), classPack, "no plain item of list {none}"},
		{"unknown field", commonFile + "extra: 1\n", classPack, "field extra not found"},
		{"no id", strings.Replace(commonFile, "common: charter.en\n", "", 1), classPack, "common and version must both be set"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := loadBoth(tc.common, tc.pack)
			if audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q is not in: %v", tc.want, err)
			}
		})
	}
}

func TestWeigh(t *testing.T) {
	pack := `
pack: charter.sex.en
title: Sex
version: "2026.11.1"
language: en
ground: sex
rules:
  - {id: sex.wide, description: d, severity: HIGH, patterns: ['\bone|two\b'], match: [one, two], no_match: [c, d]}
  - {id: sex.narrow, description: d, severity: HIGH, patterns: ['\bone\b'], match: [one, one], no_match: [c, d]}
  - {id: sex.example, description: d, severity: HIGH, example: kind, patterns: ['\bthree\b'], match: [three, three], no_match: [c, d]}
  - {id: sex.slur, description: d, severity: HIGH, abusive: true, patterns: ['\bfour\b'], match: [four, four], no_match: [c, d]}
  - {id: sex.own, description: d, severity: HIGH, patterns: ['\bfive\b'], match: [five, five], no_match: [c, d]}
`
	s, err := NewScales(load(t, pack))
	if err != nil {
		t.Fatal(err)
	}
	s.Add("one", true, "")
	s.Add("two", true, "")
	s.Add("one", false, "")
	if fired := s.Add("five", true, "sex.own"); len(fired) != 1 {
		t.Errorf("%v", fired)
	}
	var got []string
	for _, w := range s.Weigh() {
		got = append(got, w.Rule.ID+"="+w.Keep)
		if w.Rule.ID == "sex.wide" && (w.Hits != 2 || w.Sole != 2 || w.False != 1) {
			t.Errorf("%+v", w)
		}
	}
	if want := []string{"sex.wide=hits", "sex.narrow=", "sex.example=kind", "sex.slur=slurs", "sex.own="}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// TestSkeleton holds that a new pack loads and passes its sentences as it is written, that lint names what is to be filled in, and
// nothing once that is done.
func TestSkeleton(t *testing.T) {
	for name, tc := range map[string]struct {
		draft Draft
		left  int
	}{
		"classes": {Draft{Ground: audit.Age, Language: "en", Classes: []string{"laziness"}}, 7},
		"alone":   {Draft{Ground: audit.Age, Language: "de"}, 7},
		"own":     {Draft{Ground: audit.Age, Language: "de", Own: true}, 7},
		"safety":  {Draft{Category: "violence", Language: "sv"}, 7},
		"wording": {Draft{Wording: "job_advert_wording", Language: "en", Own: true}, 7},
	} {
		files := func(text string) fstest.MapFS {
			return fstest.MapFS{"common.en.yaml": {Data: []byte(commonFile)}, "new.yaml": {Data: []byte(text)}}
		}
		text := Skeleton(tc.draft)
		made, err := Load(files(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range Test(made) {
			t.Errorf("%s: %v", name, f)
		}
		left := Lint(made)
		for _, f := range left {
			if f.Problem != "is still the skeleton's" {
				t.Errorf("%s: %v", name, f)
			}
		}
		if len(left) != tc.left || made[0].ID != tc.draft.PackID() {
			t.Errorf("%s: %s %v", name, made[0].ID, left)
		}
		text = strings.NewReplacer("people of the ground", "old hands", "People of the ground", "Old hands", "the words of the rule", "old hands", "The words of the rule", "Old hands",
			anyDescription, "d", anyRationale, "r", anySource, "s", anyRule, ".one").Replace(text)
		if made, err = Load(files(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range append(Lint(made), Test(made)...) {
			t.Errorf("%s: %v", name, f)
		}
	}
}

// A folder may hold the lexicon of a language; a broken one is named.
func TestLexiconOfAFolder(t *testing.T) {
	const lexicon = "language: sv\nversion: \"1\"\npersons: {plural: [personer], singular: [person]}\nsections: [{ground: religion, plural: [muslimer, judar]}]\n"
	common := strings.NewReplacer("charter.en", "charter.sv", "'re:{id_adjective} {id_people}'", "alla").Replace(commonFile)
	pack := Skeleton(Draft{Ground: audit.Religion, Language: "sv", Classes: []string{"laziness"}})
	load := func(lexicon string) ([]*Pack, error) {
		return Load(fstest.MapFS{"terms.sv.yaml": {Data: []byte(lexicon)}, "common.sv.yaml": {Data: []byte(common)}, "religion.sv.yaml": {Data: []byte(pack)}})
	}
	packs, err := load(lexicon)
	if err != nil {
		t.Fatal(err)
	}
	if got := packs[0].Rules[0].Match[0]; got != "Muslimer are lazy." || len(Test(packs)) > 0 {
		t.Errorf("%q %v", got, Test(packs))
	}
	for name, tc := range map[string]struct{ old, new, want string }{
		"another key":    {"sections:", "grounds:", "terms.sv.yaml: line 4: field grounds not found"},
		"another ground": {"ground: religion", "ground: height", `terms.sv.yaml: sections[0].ground: "height" is not one of`},
		"no persons":     {"persons: {plural: [personer], singular: [person]}\n", "", "terms.sv.yaml: persons: want plural and singular"},
		"other language": {"language: sv", "language: se", `terms.sv.yaml: language: "se", but the file's name says "sv"`},
	} {
		if _, err := load(strings.Replace(lexicon, tc.old, tc.new, 1)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Packs that are loaded beside others have their guards, lists and classes. Names of their own win, and guards are added.
func TestPacksBesideOthersShareWhatThoseShare(t *testing.T) {
	shipped, err := loadBoth(commonFile, classPack)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.NewReplacer("charter.religion.en", "charter.religion.own.en", "religion.", "religion.own.", "religion.own.own.en", "religion.own.en").Replace(classPack)
	ownCommon := "common: charter.en\nversion: \"2026.11.2\"\nlists: {idle: [asleep]}\nunless: ['\\bnever\\b']\n"
	for _, tc := range []struct {
		name, common, pack string
		finds, silent      string
	}{
		{"guards and classes", "", own, "Jews are lazy.", "It is a myth that Jews are lazy."},
		{"a common file adds a guard", ownCommon, own, "Jews are asleep.", "Jews are never asleep, Jews are asleep."},
		{"and keeps the others'", ownCommon, own, "Jews are asleep.", "It is a myth that Jews are asleep."},
		{"a list of that name", ownCommon, own, "Jews are asleep.", "Jews are lazy."},
		{"a list of the pack", "", strings.Replace(own, "rules:", "lists: {idle: [drowsy]}\nrules:", 1), "Jews are drowsy.", "Jews are lazy."},
	} {
		files := fstest.MapFS{"own.yaml": {Data: []byte(tc.pack)}}
		if tc.common != "" {
			files["common.en.yaml"] = &fstest.MapFile{Data: []byte(tc.common)}
		}
		packs, err := Load(files, shipped...)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		scales, err := NewScales(packs)
		if err != nil {
			t.Fatal(err)
		}
		if len(scales.Add(tc.finds, true, "")) == 0 || len(scales.Add(tc.silent, false, "")) > 0 {
			t.Errorf("%s: %q is not found, or %q is", tc.name, tc.finds, tc.silent)
		}
	}
	if _, err := Load(fstest.MapFS{"own.yaml": {Data: []byte(own)}}); err == nil || !strings.Contains(err.Error(), "there is no class") {
		t.Errorf("alone: %v", err)
	}
}
