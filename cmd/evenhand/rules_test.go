package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/detectors/rules"
)

// A pack of one's own with an id that a shipped one has is refused at the start in words, and by lint and test, to which the start sends.
func TestIDsOfShippedRulesAreTaken(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "own.yaml"), strings.ReplaceAll(ownPack("2026.11.1", "gleeb", "This gleeb is old."), "age.own.word", "age.older.too_old"))
	const want = "charter.age.own.en:age.older.too_old:id: is taken by the shipped pack charter.age.en; choose one of your own"
	command(t, "", "run", "--roles", "analyzer", "--http", "127.0.0.1:0", "--set", "rules.dir="+dir).says(t, 2, "", "rules.dir: "+want)
	for _, cmd := range []string{"lint", "test"} {
		command(t, "", "rules", cmd, "--dir", dir).says(t, 3, want+"\n"+cmd+": 1 pack, 1 rule, 4 sentences, 1 fault\n", "")
		command(t, "", "rules", cmd, "--set", "rules.dir="+dir).says(t, 3, want+"\n"+cmd+": 1 pack, 1 rule, 4 sentences, 1 fault\n", "")
		command(t, "", "rules", cmd, "--set", "rules.dir="+dir+"/nosuch").says(t, 2, "", "rules.dir: open "+dir+"/nosuch: no such file or directory")
	}
}

// list and explain know the packs of rules.dir, and say that they are one's own.
func TestRulesOfTheSettingsAreListed(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "own.yaml"), ownPack("2026.11.1", "gleeb", "This gleeb is old."))
	set := "rules.dir=" + dir
	r := command(t, "", "rules", "list", "--kind", "charter.age", "--set", set)
	r.says(t, 0, "Finds a made-up word. (own)\n", "")
	if !strings.Contains(r.out, "age.older.too_old ") || strings.Count(r.out, "(own)") != 1 {
		t.Error(r.out)
	}
	command(t, "", "rules", "list", "--json", "--set", set).says(t, 0, `"description":"Finds a made-up word.","own":true}`, "")
	command(t, "", "rules", "explain", "age.own.word", "--set", set).says(t, 0, "\n  Own: pack charter.age.own.en of rules.dir.\n", "")
	if r := command(t, "", "rules", "explain", "age.older.too_old", "--set", set); r.code != 0 || strings.Contains(r.out, "Own:") {
		t.Errorf("%+v", r)
	}
	command(t, "", "rules", "explain", "age.own.word").says(t, 1, "", `no rule "age.own.word"`)
	command(t, "", "rules", "explain", "age.older.too_odl").says(t, 1, "", `no rule "age.older.too_odl"; did you mean age.older.too_old?`)
	for id, want := range map[string]string{"classifier.encoder": "an encoder, a learned model", "classifier.violence": "holds the sentence for violence", "terms.gender.chairman": "the list of biased terms"} {
		command(t, "", "rules", "explain", id).says(t, 0, id+"\n\n  ", "")
		command(t, "", "rules", "explain", id).says(t, 0, want, "")
	}
	command(t, "", "rules", "explain", "gate.financial").says(t, 0, "financial", "")
	command(t, "", "rules", "explain", "charter.sex").says(t, 1, "", `no rule "charter.sex", but a kind of several: 'evenhand rules list --kind charter.sex' shows them`)
	command(t, "", "rules", "explain", "classifier.nosuch").says(t, 1, "", `no rule "classifier.nosuch"`)
	if r := command(t, "", "doctor", "--set", set); !strings.Contains(r.out, ", 1 of them of rules.dir\n") {
		t.Error(r.out)
	}
}

// The skeleton of a pack is written to a folder that is made for it, and rules.dir takes its ids.
func TestASkeletonMakesItsFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "packs", "mine")
	command(t, "", "rules", "new", "--ground", "age", "--language", "de", "--dir", dir).says(t, 0, filepath.Join(dir, "age.de.yaml")+"\n", "")
	if r := command(t, "", "rules", "test", "--dir", dir); r.code != 0 || strings.Contains(r.out, "taken") {
		t.Errorf("%+v", r)
	}
	b, err := os.ReadFile(filepath.Join(dir, "age.de.yaml"))
	if err != nil || !strings.Contains(string(b), "\npack: charter.age.own.de\n") {
		t.Errorf("%s %v", b, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	command(t, "", "rules", "new", "--ground", "age", "--language", "de", "--dir", dir).says(t, 2, "", "age.de.yaml is there already; nothing was written")
	command(t, "", "rules", "new", "--ground", "age", "--dir", file).says(t, 2, "", "--dir: ")
}

// A pack of one's own has the guards of its language without a file beside it: what is quoted or countered is no hit.
func TestShippedGuardsHoldForOwnPacks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "own.yaml"), ownPack("2026.11.1", "digital native", "We want a digital native."))
	shipped, err := shippedPacks()
	if err != nil {
		t.Fatal(err)
	}
	own, err := (rulesSettings{Dir: dir}).load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	scales, err := rules.NewScales(own)
	if err != nil {
		t.Fatal(err)
	}
	for text, hit := range map[string]bool{
		"We are looking for a digital native.":                               true,
		"The recruiter said that we are looking for a digital native.":       false,
		"It would be wrong to say that we are looking for a digital native.": false,
		"It is a stereotype that a digital native learns faster.":            false,
	} {
		if got := len(scales.Add(text, hit, "")) > 0; got != hit {
			t.Errorf("%q: hit %v, want %v", text, got, hit)
		}
	}
	command(t, "", "rules", "explain", "age.own.word", "--set", "rules.dir="+dir).says(t, 0, "Nor when its sentence matches one of the pack's ", "")
}

// A skeleton of a shipped language doubles no shipped class; what a folder shares makes its rules; flags that name nothing are refused.
func TestNewPacks(t *testing.T) {
	dir := t.TempDir()
	made := func(name string, args ...string) string {
		t.Helper()
		command(t, "", append([]string{"rules", "new", "--dir", dir}, args...)...).says(t, 0, filepath.Join(dir, name)+"\n", "")
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if s := made("age.en.yaml", "--ground", "age"); strings.Contains(s, "class:") || strings.Count(s, "- id:") != 1 {
		t.Error(s)
	}
	if s := made("violence.en.yaml", "--category", "violence"); !strings.Contains(s, "\npack: safety.violence.own.en\n") || !strings.Contains(s, "\ncategory: violence\n") {
		t.Error(s)
	}
	if s := made("idiom.de.yaml", "--wording", "idiom", "--language", "de"); !strings.Contains(s, "\npack: idiom.de\n") {
		t.Error(s)
	}
	write(t, filepath.Join(dir, "common.sv.yaml"), "common: charter.sv\nversion: \"2026.11.1\"\nclasses:\n  lat: {description: d, rationale: r, source: s, patterns: ['\\b{id_plural} är lata\\b'], match: ['{id_plural} är lata.'], no_match: ['{id_plural} är här.']}\n")
	r := command(t, "", "rules", "new", "--dir", dir, "--ground", "age", "--language", "sv")
	r.says(t, 0, "age.sv.yaml\n", "no lexicon of sv has terms of age: add them to terms.sv.yaml")
	write(t, filepath.Join(dir, "terms.sv.yaml"), "language: sv\nversion: \"1\"\npersons: {plural: [personer], singular: [person]}\nsections: [{ground: religion, plural: [muslimer, judar]}]\n")
	if s := made("religion.sv.yaml", "--ground", "religion", "--language", "sv"); !strings.Contains(s, "{id: religion.sv.lat, class: lat, severity: MEDIUM}") {
		t.Error(s)
	}
	command(t, "", "rules", "test", "--dir", dir).says(t, 0, "test: 5 packs, 6 rules, ", "")
	command(t, "", "rules", "lint", "--dir", dir).says(t, 3, "charter.age.own.en:lists.group: is still the skeleton's\n", "")

	for args, want := range map[string]string{
		"--ground violence":                  `--ground: "violence" is a safety category: --category violence`,
		"--ground idiom":                     `--ground: "idiom" is a kind of wording: --wording idiom`,
		"--ground height":                    `--ground: "height" is not one of sex, `,
		"--ground age --language klingon":    `--language: "klingon" is no BCP 47 tag`,
		"--ground age --language EN":         `--language: "EN": want en`,
		"--ground age --language xx-YY-bad_": `--language: "xx-YY-bad_" is no BCP 47 tag`,
		"--language en":                      "one of --ground, --category and --wording is missing",
	} {
		command(t, "", append([]string{"rules", "new", "--dir", dir}, strings.Fields(args)...)...).says(t, 2, "", want)
	}
}

// The packs that the documentation shows lint, pass their sentences, and are taken by rules.dir.
func TestPacksOfTheDocumentation(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "detection.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, section, _ := strings.Cut(string(raw), "\n## Writing a rule\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```yaml\n")[1:]
	for i, block := range blocks {
		pack, _, _ := strings.Cut(block, "```")
		write(t, filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), pack)
	}
	shipped, err := shippedPacks()
	if err != nil {
		t.Fatal(err)
	}
	own, err := rules.Load(os.DirFS(dir), shipped...)
	if err != nil || len(own) != len(blocks) || len(own) < 3 {
		t.Fatalf("%d of %d: %v", len(own), len(blocks), err)
	}
	for _, f := range slices.Concat(rules.Lint(own), rules.Test(own), taken(shipped, own)) {
		t.Error(f)
	}
}

// lint names all faults of a folder at once with one status, and what it does not read.
func TestLintNamesEverythingAtOnce(t *testing.T) {
	dir := t.TempDir()
	command(t, "", "rules", "lint", "--dir", dir).says(t, 3, dir+": holds no packs: files *.yaml in it", "")
	write(t, filepath.Join(dir, "a.yaml"), "pack: [")
	write(t, filepath.Join(dir, "b.yaml"), strings.Replace(ownPack("v1", "gleeb", "This gleeb is old."), "severity: MEDIUM", "severity: SEVERE", 1))
	write(t, filepath.Join(dir, "c.yml"), "")
	r := command(t, "", "rules", "lint", "--dir", dir)
	r.says(t, 3, "c.yml: is not read: packs are files *.yaml\n", "")
	for _, want := range []string{"a.yaml: yaml: ", "b.yaml:age.own.word:severity: ", `charter.age.own.en:version: "v1": want `, "lint: 1 pack, 1 rule, 4 sentences, 4 faults\n"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in %s", want, r.out)
		}
	}
}

// prune weighs the packs of rules.dir, and says when no row is labelled.
func TestPruneWeighsOwnPacks(t *testing.T) {
	dir, rows, none := t.TempDir(), filepath.Join(t.TempDir(), "rows.jsonl"), filepath.Join(t.TempDir(), "none.jsonl")
	write(t, filepath.Join(dir, "own.yaml"), ownPack("2026.11.1", "gleeb", "This gleeb is old."))
	write(t, rows, `{"text":"A gleeb again.","label":{"bias":1},"split":"train"}`+"\n")
	write(t, none, `{"text":"A gleeb again."}`+"\n")
	set := "rules.dir=" + dir
	command(t, "", "rules", "prune", "--all", "--files", rows, "--set", set).says(t, 0, "1 rule, 0 may go\n", "")
	command(t, "", "rules", "prune", "--files", none, "--set", set).says(t, 2, "", "--files: no row of "+none+" says label.bias, 0 or 1")
	command(t, "", "rules", "prune", "--files", rows, "--split", "dev", "--set", set).says(t, 2, "", `--split: no labelled row is of split "dev"`)
}

// Rules of the gate that the settings have are listed and explained as they are in force, in the place of the built-in ones.
func TestRulesKnowThoseOfTheGate(t *testing.T) {
	dir := t.TempDir()
	replaced, added := filepath.Join(dir, "replaced.yaml"), filepath.Join(dir, "added.yaml")
	const rule = "\n    - {id: own.fax, description: Sends a telefax, category: communication, pattern: 'telefax'}\n"
	write(t, replaced, "detect:\n  gate_rules:"+rule)
	write(t, added, "detect:\n  gate_extra_rules:"+rule)
	for _, tc := range []struct {
		file     string
		built    bool
		args     string
		code     int
		out, err string
	}{
		{replaced, false, "list", 0, "Sends a telefax [communication] (own)", ""},
		{added, true, "list", 0, "Sends a telefax [communication] (own)", ""},
		{replaced, false, "list --kind gate.own.fax --json", 0, `"category":"communication","own":true`, ""},
		{replaced, false, "list --kind gate.financial", 2, "", "no rule is of kind"},
		{added, true, "list --kind gate.financial", 0, "Moves money [financial_transaction]", ""},
		{replaced, false, "explain own.fax", 0, "communication", ""},
		{replaced, false, "explain gate.own.fax", 0, "Own: of detect.gate_rules", ""},
		{replaced, false, "explain financial", 1, "", `no rule "financial"`},
	} {
		r := command(t, "", append([]string{"--config", tc.file, "rules"}, strings.Fields(tc.args)...)...)
		r.says(t, tc.code, tc.out, tc.err)
		if tc.args == "list" && strings.Contains(r.out, "gate.financial") != tc.built {
			t.Errorf("%s: the built-in rules are listed: %t", tc.file, !tc.built)
		}
	}
}
