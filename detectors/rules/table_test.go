package rules

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/evenhand/evenhand/audit"
)

const tablePack = `
pack: idiom.en
title: Idioms
version: "2026.11.1"
language: en
wording: idiom
source: a guideline
rationale: a reason
rules:
  - id: idiom.phrase
    description: 'An idiom: {term}.'
    severity: LOW
    patterns: ['\b{term}\b']
    match: ["They call it {term}.", "Once more: {term}."]
    no_match: ["Nothing here.", "Nor here."]
    terms:
      tone deaf | tone-deaf: insensitive
      a+b: sum
`

// A table is as many rules: each has an id of its own, all its words in its sentences, and advice of the table.
func TestTableOfTerms(t *testing.T) {
	packs := load(t, tablePack)
	for _, f := range append(Lint(packs), Test(packs)...) {
		t.Error(f)
	}
	rs := packs[0].Rules
	ids := []string{rs[0].ID, rs[1].ID}
	if !slices.Equal(ids, []string{"idiom.phrase.a_b", "idiom.phrase.tone_deaf"}) {
		t.Fatal(ids)
	}
	r := rs[1]
	if r.Kind != "idiom" || len(r.Match) != 4 || len(r.NoMatch) != 2 || r.Description != "An idiom: tone deaf." || r.Source != "a guideline" {
		t.Errorf("%+v", r)
	}
	if got, want := r.Advice(), (audit.Advice{Type: audit.MitigationReplace, Term: "tone deaf", Replace: "insensitive"}); got != want {
		t.Errorf("%+v", got)
	}
	text, ok := Explain(packs, "idiom.phrase.tone_deaf", false)
	if !ok || !strings.Contains(text, "instead     insensitive") || !strings.Contains(text, "source      a guideline") {
		t.Error(text)
	}
}

func TestWordingFaults(t *testing.T) {
	for _, tc := range []struct{ name, from, to, want string }{
		{"unknown kind", "wording: idiom", "wording: joke", `"joke" is not one of gendered_language`},
		{"unknown mitigation", "severity: LOW", "severity: LOW\n    mitigation: SHOUT", `"SHOUT" is not one of REPLACE_TERM, `},
	} {
		_, err := Load(fstest.MapFS{"one.yaml": {Data: []byte(strings.Replace(tablePack, tc.from, tc.to, 1))}})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	for _, tc := range []struct{ name, from, to, want string }{
		{"severity", "severity: LOW", "severity: HIGH", `"HIGH" lies outside LOW…LOW`},
		{"source", "source: a guideline", "", "source: is missing"},
		{"rationale", "rationale: a reason", "", "rationale: is missing"},
		{"id", "id: idiom.phrase", "id: phrase", `must begin with "idiom."`},
		{"no wording", "terms:", "mitigation: REPLACE_TERM\n    terms:\n      x y: ''", "replace: is missing: REPLACE_TERM wants"},
	} {
		var said []string
		for _, f := range Lint(load(t, strings.Replace(tablePack, tc.from, tc.to, 1))) {
			said = append(said, f.Error())
		}
		if !strings.Contains(strings.Join(said, "\n"), tc.want) {
			t.Errorf("%s: %v", tc.name, said)
		}
	}
}
