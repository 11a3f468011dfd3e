package rules

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/evenhand/evenhand/audit"
)

const good = `
pack: charter.sex.en
title: Sex
version: "2026.11.1"
language: en
ground: sex
lists:
  women: [woman, women, "young lady"]
  people: ["re:{women}|girls?", "men's team"]
unless: ['\bnot true\b']
rules:
  - id: sex.claims
    description: A claim about the abilities of women
    severity: HIGH
    rationale: Denies ability for being a woman.
    source: own list
    patterns: ['\b{people} (?:can''t|cannot) lead\b']
    unless: ['\bsaid\b']
    match: [Women cannot lead., "A  young\nlady can’t lead", The men’s team cannot lead.]
    no_match: [Women lead., They said women cannot lead., It is not true that women cannot lead.]
`

func load(t *testing.T, yaml string) []*Pack {
	t.Helper()
	packs, err := Load(fstest.MapFS{"packs/one.yaml": {Data: []byte(yaml)}})
	if err != nil {
		t.Fatal(err)
	}
	return packs
}

func TestLoadFills(t *testing.T) {
	packs := load(t, good)
	r := packs[0].Rules[0]
	if r.Pack != packs[0] || r.Kind != "charter.sex" || r.Confidence != 0.8 || len(r.Guards) != 2 {
		t.Errorf("%+v", r)
	}
	want := `\b(?:(?:woman|women|young\s+lady)|girls?|men['’]s\s+team)\s+(?:can['’]t|cannot)\s+lead\b`
	if r.Expanded[0] != want {
		t.Errorf("got  %s\nwant %s", r.Expanded[0], want)
	}
	for _, f := range append(Lint(packs), Test(packs)...) {
		t.Error(f)
	}
}

func TestLoadReadsRootAndPacksInOrder(t *testing.T) {
	second := strings.NewReplacer("charter.sex.en", "charter.sex.de", "sex.claims", "sex.other").Replace(good)
	packs, err := Load(fstest.MapFS{
		"b.yaml": {Data: []byte(good)}, "packs/a.yaml": {Data: []byte(second)}, "packs/deep/c.yaml": {Data: []byte("x")}, "readme.md": {Data: []byte("x")},
	})
	if err != nil || len(packs) != 2 || packs[0].ID != "charter.sex.en" || len(All(packs)) != 2 {
		t.Errorf("%v, %v", packs, err)
	}
}

// TestLoadFaults holds that every fault is told at once with file, rule and field.
func TestLoadFaults(t *testing.T) {
	edit := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(good) }
	for _, tc := range []struct {
		name, yaml string
		want       []string
	}{
		{"unknown field", edit("severity:", "severty:"), []string{"one.yaml: ", "field severty not found"}},
		{"broken YAML", "pack: [", []string{"one.yaml: "}},
		{"two documents", good + "---\npack: x\n", []string{"more than one YAML document"}},
		{"unknown ground", edit("ground: sex", "ground: height"), []string{`one.yaml:ground: "height" is not one of`}},
		{"two families", edit("ground: sex", "ground: sex\ngate: true"), []string{"exactly one of ground, category, wording, gate and pii"}},
		{"unknown safety category", edit("ground: sex", "category: fire"), []string{`category: "fire" is not one of`}},
		{"several at once", edit("HIGH", "SEVERE", "{people} ", "{folk} ", "'\\bsaid\\b'", "'('", "    match", "    check: sum\n    confidence: 2\n    match"), []string{
			`one.yaml:sex.claims:severity: "SEVERE" is not one of`, "one.yaml:sex.claims:patterns[0]: there is no list {folk}",
			"one.yaml:sex.claims:unless[0]: ", `one.yaml:sex.claims:check: "sum" is not one of at_svnr, be_nrn, `, "confidence: must lie in (0, 1]",
		}},
		{"bad pattern", edit(`lead\b`, `lead\b(`), []string{"one.yaml:sex.claims:patterns[0]: error parsing regexp"}},
		{"look-ahead", edit(`lead\b`, `lead(?=x)`), []string{"sex.claims:patterns[0]: error parsing regexp"}},
		{"list that names itself", edit("{women}|girls?", "{people}"), []string{"lists.people: list {people} names itself"}},
		{"list that is not there", edit("{women}|girls?", "{ladies}"), []string{"lists.people: there is no list {ladies}"}},
		{"empty item", edit("woman, women", `"", women`), []string{"lists.women: is empty or has an empty item"}},
		{"no patterns", edit(`['\b{people} (?:can''t|cannot) lead\b']`, "[]"), []string{"sex.claims:patterns: there must be at least one"}},
		{"no id", edit("id: sex.claims", "id: ''"), []string{"one.yaml:rules: a rule without an id"}},
		{"bad pack guard", edit(`['\bnot true\b']`, "['[']"), []string{"one.yaml:unless[0]: "}},
		{"no version", edit("version: \"2026.11.1\"\n", ""), []string{"pack, version and language must all be set"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Load(fstest.MapFS{"one.yaml": {Data: []byte(tc.yaml)}})
			if audit.KindOf(err) != audit.KindInvalid {
				t.Fatalf("kind %s of %v", audit.KindOf(err), err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%v", want, err)
				}
			}
		})
	}
	_, err := Load(fstest.MapFS{"a.yaml": {Data: []byte(good)}, "b.yaml": {Data: []byte(good)}})
	if err == nil || !strings.Contains(err.Error(), "b.yaml:sex.claims:id: already used in a.yaml") {
		t.Errorf("an id in two files: %v", err)
	}
}

func TestSoften(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`a b`, `a\s+b`},
		{`a ?b`, `a(?:\s+)?b`},
		{`a {2}b`, `a(?:\s+){2}b`},
		{`a {women}`, `a\s+{women}`},
		{`[ a] b`, `[ a]\s+b`},
		{`don't`, `don['’]t`},
		{`groß(?:e|er)?`, `gro(?:ß|ss)(?:e|er)?`},
		{`[a'b]`, `[a'’b]`},
		{`[]' ]' `, `[]'’ ]['’]\s+`},
		{`[^]' ]x`, `[^]'’ ]x`},
		{`\[ '\]`, `\[\s+['’]\]`},
		{`\ x`, `\ x`},
		{`\'`, `\'`},
	} {
		if got := soften(tc.in); got != tc.want {
			t.Errorf("soften(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestExpandLeavesOtherBraces(t *testing.T) {
	lists := map[string]string{"a": "(?:x|y)"}
	for _, tc := range []struct{ in, want string }{
		{`\b{a}{2,3}\p{Greek}\x{e9}\pL`, `\b(?:x|y){2,3}\p{Greek}\x{e9}\pL`},
		{`\x{a}{a}`, `\x{a}(?:x|y)`},
		{`\{a\}`, `\{a\}`},
	} {
		if got, err := expand(tc.in, lists); err != nil || got != tc.want {
			t.Errorf("expand(%q) = %q, %v; want %q", tc.in, got, err, tc.want)
		}
	}
}

func TestLint(t *testing.T) {
	edit := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(good) }
	pattern := func(p string) string { return edit(`'\b{people} (?:can''t|cannot) lead\b'`, "'"+p+"'") }
	for _, tc := range []struct{ name, yaml, want string }{
		{"severity outside the ground's range", edit("HIGH", "CRITICAL"), `charter.sex.en:sex.claims:severity: "CRITICAL" lies outside MEDIUM…HIGH`},
		{"severity missing", edit("    severity: HIGH\n", ""), `severity: "" lies outside`},
		{"id of another ground", edit("id: sex.claims", "id: age.claims"), `id: must begin with "sex."`},
		{"id form", edit("id: sex.claims", "id: sex.Claims"), "id: want 1 to 64 of"},
		{"pack id", edit("charter.sex.en", "charter.age.en"), "pack: want charter.sex….en"},
		{"version form", edit("2026.11.1", "v1"), `version: "v1": want year.month.number`},
		{"title", edit("title: Sex\n", ""), "title: is missing"},
		{"description", edit("A claim about the abilities of women", "''"), "description: is missing"},
		{"rationale", edit("Denies ability for being a woman.", "''"), "sex.claims:rationale: is missing"},
		{"source", edit("    source: own list\n", ""), "sex.claims:source: is missing"},
		{"one match", edit(`match: [Women cannot lead., "A  young\nlady can’t lead", The men’s team cannot lead.]`, "match: [x]"), "match: want at least two"},
		{"one no_match", edit("no_match: [Women lead., They said women cannot lead., It is not true that women cannot lead.]", "no_match: [x]"), "no_match: want at least two"},
		{"empty match", pattern(`a*|b`), "patterns[0]: can match nothing at all"},
		{"only a boundary", pattern(`\b(?:a|)\b`), "can match nothing at all"},
		{"open gap", pattern(`women.*lead`), "unbounded gap"},
		{"open negated class", pattern(`women[^.]+lead`), "unbounded gap"},
		{"open counted gap", pattern(`women(?:.){3,}lead`), "unbounded gap"},
		{"open brace", pattern(`\btwenty-something {`), "patterns[0]: has a brace that is neither a list"},
		{"brace in a guard", edit(`\bsaid\b`, `\bsaid}`), "unless[0]: has a brace"},
		{"no tag", edit("language: en", "language: english"), `charter.sex.en:language: "english" is no BCP 47 tag`},
		{"too long", pattern(strings.Repeat("abcd|", 8000) + "x"), "at most 32768"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Join(Lint(load(t, tc.yaml)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q is not in: %v", tc.want, err)
			}
		})
	}
	for _, fine := range []string{`women.{0,40}lead`, `women\s+\w+`, `\bx+\b`, `a\{b[{}]\p{Greek}\x{e9}\pL{2}{women}{3}x{1,}`} {
		if err := Join(Lint(load(t, pattern(fine)))); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}

func TestTestFindsFaults(t *testing.T) {
	edit := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(good) }
	for _, tc := range []struct{ name, yaml, want string }{
		{"silent", edit("Women cannot lead.,", "Women rule.,"), `match[0]: does not match: "Women rule."`},
		{"guarded", edit("Women cannot lead.,", "He said women cannot lead.,"), `match[0]: matches "women cannot lead", but a guard or check drops it`},
		{"fires", edit("Women lead.,", "So women cannot lead,"), `no_match[0]: matches "women cannot lead"`},
		{"bare term", edit(`'\b{people} (?:can''t|cannot) lead\b'`, `'\b{people}\b'`), `patterns: fires on the bare term "men's team"`},
		{"check", edit("    match", "    check: luhn\n    match"), "but a guard or check drops it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Join(Test(load(t, tc.yaml)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q is not in: %v", tc.want, err)
			}
		})
	}
	slur := edit(`'\b{people} (?:can''t|cannot) lead\b'`, `'\b{people}\b'`, "    match", "    abusive: true\n    match", "Women lead.,", "Nobody leads.,")
	if err := Join(Test(load(t, slur))); err != nil {
		t.Errorf("a rule for slurs may fire on a bare term: %v", err)
	}
}

func TestSuppressed(t *testing.T) {
	r := load(t, good)[0].Rules[0]
	for _, tc := range []struct {
		text string
		want bool
	}{
		{"He said women cannot lead.", true},
		{"He said so. women cannot lead.", false},
		{"women cannot lead! He said so.", false},
		{"women cannot lead\nhe said", false},
		{"said? women cannot lead", false},
		{"women cannot lead, he said", true},
		{"SAID: women cannot lead", true},
	} {
		start := strings.Index(tc.text, "women")
		if got := Suppressed(r, tc.text, start, start+len("women cannot lead")); got != tc.want {
			t.Errorf("%q: %v", tc.text, got)
		}
	}
}

// "hun" is Dutch for "their": an English pack that says so is silent in sentences of other languages.
func TestEnglishOnly(t *testing.T) {
	p := &Pack{ID: "charter.nationality.en", Version: "1", Language: "en", EnglishOnly: true, Ground: audit.Nationality, Rules: []*Rule{{ID: "nationality.a", Patterns: []string{`\bhun\b`}}}}
	if err := Fill(p, "test"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"Hun kinderen gaan naar school.": true, "Shut up, you dirty hun.": false} {
		at := strings.Index(strings.ToLower(text), "hun")
		if got := Suppressed(p.Rules[0], text, at, at+3); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	p.Language = "nl"
	if err := Fill(p, "test"); err == nil || !strings.Contains(err.Error(), "english_only") {
		t.Errorf("%v", err)
	}
	p.Language, p.EnglishOnly, p.NotInEnglish = "en", false, true
	if err := Fill(p, "test"); err == nil || !strings.Contains(err.Error(), "not_in_english") {
		t.Errorf("%v", err)
	}
}

func TestSuppressedHere(t *testing.T) {
	r := load(t, strings.Replace(good, "    match", "    unless_here: ['\\b(?:never|nor) {people} (?:can''t|cannot) lead']\n    match", 1))[0].Rules[0]
	for _, tc := range []struct {
		text string
		want bool
	}{
		{"Never women cannot lead.", true},
		{"I think: nor WOMEN cannot lead, then", true},
		{"Never mind, women cannot lead.", false},
		{"Women cannot lead, nor women cannot lead", false},
		{"Never. women cannot lead.", false},
	} {
		start := strings.Index(strings.ToLower(tc.text), "women")
		if got := Suppressed(r, tc.text, start, start+len("women cannot lead")); got != tc.want {
			t.Errorf("%q: %v", tc.text, got)
		}
	}
}

// A guard of the clause excuses what stands in its clause, and nothing beside it.
func TestSuppressedInTheClause(t *testing.T) {
	p := load(t, strings.Replace(good, "rules:", "unless_clause: ['\\bin 1\\d\\d\\d\\b']\nrules:", 1))[0]
	for _, tc := range []struct {
		text string
		want bool
	}{
		{"in 1850, women cannot lead", true},
		{"women cannot lead in 1850; so it was", true},
		{"in 1850: women cannot lead", false},
		{"in 1850 she left; women cannot lead", false},
		{"in 1850 she left - women cannot lead", false},
		{"she came in 1850, but women cannot lead", false},
		{"women cannot lead, and in 1850 she left", false},
		{`{"hired": "in 1850", "note": "women cannot lead"}`, false},
		{"women cannot lead. in 1850 she left", false},
	} {
		start := strings.Index(tc.text, "women")
		if got := Suppressed(p.Rules[0], tc.text, start, start+len("women cannot lead")); got != tc.want {
			t.Errorf("%q: %v", tc.text, got)
		}
	}
	if shown, _ := Explain([]*Pack{p}, p.Rules[0].ID, false); !strings.Contains(shown, "Not when its clause holds:") {
		t.Errorf("%s", shown)
	}
}

func TestSetVersion(t *testing.T) {
	other := strings.NewReplacer("charter.sex.en", "charter.sex.de", "sex.claims", "sex.other").Replace(good)
	a, b := load(t, good)[0], load(t, other)[0]
	v := SetVersion([]*Pack{a, b})
	if v != SetVersion([]*Pack{b, a}) || v != SetVersion([]*Pack{load(t, good)[0], b}) || len(v) != 12 {
		t.Errorf("%s is not stable", v)
	}
	for name, changed := range map[string]string{
		"a pattern": strings.Replace(good, `lead\b`, `steer\b`, 1), "a list": strings.Replace(good, "women,", "womyn,", 1),
		"a version": strings.Replace(good, "2026.11.1", "2026.11.2", 1), "a guard": strings.Replace(good, `\bsaid`, `\bsays`, 1),
	} {
		if v == SetVersion([]*Pack{load(t, changed)[0], b}) {
			t.Errorf("%s changes and the version does not", name)
		}
	}
}

func TestExplain(t *testing.T) {
	text, ok := Explain(load(t, good), "sex.claims", false)
	if !ok {
		t.Fatal("not found")
	}
	for _, want := range []string{"sex.claims  (charter.sex, pack charter.sex.en 2026.11.1)", "A claim about", "severity    HIGH", "weight      0.6", "Women cannot lead.", `\bsaid\b`, `\bnot true\b`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if _, ok := Explain(nil, "x", false); ok {
		t.Error("explains what is not there")
	}
}

// FuzzExpand holds that softening and expanding never make a bad pattern of a good one.
func FuzzExpand(f *testing.F) {
	f.Add(`\b{a} (?:can't|[ ']x) ?\p{Greek}`)
	f.Add(`[]' ] [^]'] \Q a' \E`)
	f.Add(`{a_1}{1a}{{b}\\p{c}x{2,3}{}{_`)
	f.Fuzz(func(t *testing.T, pattern string) {
		var want [][2]int
		for _, m := range listName.FindAllStringSubmatchIndex(pattern, -1) {
			if m[2] < 0 {
				want = append(want, [2]int{m[0], m[1]})
			}
		}
		if got := listsIn(pattern); !slices.Equal(got, want) {
			t.Fatalf("lists of %q: %v, want %v", pattern, got, want)
		}
		if strings.Contains(pattern, `\Q`) || strings.Contains(pattern, "[[:") {
			t.Skip()
		}
		if _, err := regexp.Compile("(?i)" + pattern); err != nil {
			t.Skip()
		}
		full, err := expand(pattern, map[string]string{})
		if err != nil {
			t.Skip() // it names a list
		}
		if _, err := regexp.Compile("(?i)" + full); err != nil {
			t.Fatalf("%q became %q: %v", pattern, full, err)
		}
	})
}

// A word that begins with an umlaut is found behind a boundary, wherever it stands in the alternatives: RE2 knows ASCII letters only.
func TestUmlautsBehindBoundaries(t *testing.T) {
	l := &lists{groups: map[string]string{"who": "(?:Ärzte|Aerzte|Polen)"}, umlauts: map[string]string{"who": "(?:Ärzte)"}}
	for _, tc := range []struct{ pattern, want string }{
		{`\b{who} raus\b`, `\B(?:Ärzte)\s+raus\b`},
		{`\b(?:prüfe|überwache|öffne [|]x) (?:a|b)\b`, `\B(?:(?:ü|ue)berwache|(?:ö|oe)ffne\s+[|]x)\s+(?:a|b)\b`},
		{`\bÜbung\w*\b|\bTest\b|\b(?:Ärztin|Arzt)\b`, `\B(?:Ü|Ue)bung\w*\b|\B(?:(?:Ä|Ae)rztin)\b`},
		{`\b(?:a|b)\b|ü`, ``},
		{`(?:über)\b`, ``},
	} {
		if got := l.atUmlaut(tc.pattern); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.pattern, got, tc.want)
		}
	}
}

// Files that look like packs and are passed over are named; those of hidden folders, where mounts keep older ones, are not.
func TestStrays(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{"a.yaml", "packs/b.yaml", "readme.md", "..2026/a.yaml", "..data/a.yml", "c.yml", "packs/d.yml", "mine/e.yaml", "packs/deep/f.yaml"} {
		files[name] = &fstest.MapFile{}
	}
	got := map[string]string{}
	for _, f := range Strays(files) {
		got[f.Where] = strings.TrimPrefix(f.Problem, NotRead)
	}
	const kind, place = "packs are files *.yaml", "packs lie in the folder itself or in its folder packs"
	if want := map[string]string{"c.yml": kind, "packs/d.yml": kind, "mine/e.yaml": place, "packs/deep/f.yaml": place}; !maps.Equal(got, want) {
		t.Error(got)
	}
}

// What keeps a file from loading and what lint finds are told together and once.
func TestLintBesideFaultsOfLoad(t *testing.T) {
	bad := strings.NewReplacer("title: Sex\n", "", "{people} ", "{folk} ", "HIGH", "SEVERE", "  - id: sex.claims", "  - {id: sex.lazy, class: laziness, severity: HIGH}\n  - id: sex.claims").Replace(good)
	packs, err := Load(fstest.MapFS{"one.yaml": {Data: []byte(bad)}})
	known := Faults(err)
	var got []string
	for _, f := range append(known, Lint(packs, known...)...) {
		got = append(got, strings.Join([]string{f.Where, f.Rule, f.Field}, ":"))
	}
	want := "one.yaml:sex.lazy:class one.yaml:sex.claims:patterns[0] one.yaml:sex.claims:severity charter.sex.en::title"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if len(Sound(packs, known)) != 0 {
		t.Error("a pack with faults is sound")
	}
}

// A pack is another when what it says is another, not when its comments are.
func TestMarks(t *testing.T) {
	of := func(text string) Mark {
		return Marks(fstest.MapFS{"a.yaml": {Data: []byte(text)}, "b.yaml": {Data: []byte("pack: [")}})["charter.sex.en"]
	}
	was := of(good)
	if was.Version != "2026.11.1" || was != of("# a comment\n"+good) || was == of(strings.Replace(good, "cannot", "can not", 1)) {
		t.Error(was)
	}
}

// The lists that a rule names are shown when asked for.
func TestExplainLists(t *testing.T) {
	packs := load(t, good)
	if text, _ := Explain(packs, "sex.claims", true); !strings.HasSuffix(text, "  Lists:\n    {people}: re:{women}|girls?, men's team\n    {women}: woman, women, young lady\n") {
		t.Error(text)
	}
	if text, _ := Explain(packs, "sex.claims", false); strings.Contains(text, "Lists:") {
		t.Error(text)
	}
}
