package bias

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/rules"
)

// TestPacks runs every file's own sentences and the lint rules, each file with the common one of its
// language, so that one broken file does not hide the others. Run one by its name:
//
//	go test ./detectors/bias -run TestPacks/sex.en
func TestPacks(t *testing.T) {
	names, err := fs.Glob(Packs(), "packs/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	common, seen := fstest.MapFS{}, map[audit.Ground]bool{}
	names = slices.DeleteFunc(names, func(name string) bool {
		is := strings.HasPrefix(path.Base(name), "common.")
		if is {
			common[name] = &fstest.MapFile{Data: read(t, name)}
		}
		return is
	})
	for _, name := range names {
		t.Run(strings.TrimSuffix(path.Base(name), ".yaml"), func(t *testing.T) {
			files := maps.Clone(common)
			files[name] = &fstest.MapFile{Data: read(t, name)}
			packs, err := rules.Load(files)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range append(rules.Lint(packs), rules.Test(packs)...) {
				t.Error(f)
			}
			seen[packs[0].Ground] = true
			testCoverage(t, packs[0])
		})
	}
	if t.Failed() || len(seen) < len(names) {
		return // a part of the files ran, or one has told its own fault
	}
	for _, g := range audit.Grounds {
		if !seen[g] {
			t.Errorf("no pack for %s", g)
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := fs.ReadFile(Packs(), name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// testCoverage holds the number of rules and the example kinds of seed 000's table.
func testCoverage(t *testing.T, p *rules.Pack) {
	if p.Language != "en" {
		return
	}
	if len(p.Rules) < 12 {
		t.Errorf("%d rules; want at least 12", len(p.Rules))
	}
	covered := map[string]bool{}
	for _, r := range p.Rules {
		covered[r.Example] = true
	}
	for _, kind := range exampleKinds[p.Ground] {
		if !covered[kind] {
			t.Errorf("no rule has example: %q", kind)
		}
	}
}

// TestAllPacksTogether holds what no file can see alone: ids are unique, and New takes them.
func TestAllPacksTogether(t *testing.T) {
	d := mustShipped(t)
	if d.Info().Version == "" || len(d.Rules()) < 16*12 {
		t.Errorf("version %q, %d rules", d.Info().Version, len(d.Rules()))
	}
}

// exampleKinds is the column "Example Patterns" of seed 000's table; each kind needs a rule whose
// example field names it.
var exampleKinds = map[audit.Ground][]string{
	audit.Sex:               {"gender stereotypes", "role enforcement", "selection bias"},
	audit.Race:              {"racial generalizations", "supremacy language"},
	audit.Colour:            {"skin colour capability bias"},
	audit.EthnicOrigin:      {"ethnic generalizations", "xenophobic directives"},
	audit.SocialOrigin:      {"class-based bias", "preferential treatment"},
	audit.GeneticFeatures:   {"genetic determinism", "genetic screening for access"},
	audit.Language:          {"language-based competence bias"},
	audit.Religion:          {"religious stereotypes", "discrimination directives"},
	audit.PoliticalOpinion:  {"political stereotyping", "discrimination"},
	audit.NationalMinority:  {"minority exclusion", "group slurs"},
	audit.Property:          {"wealth-based discrimination", "access denial"},
	audit.Birth:             {"birth-based discrimination", "origin prejudice"},
	audit.Disability:        {"capability stereotypes", "exclusion", "slurs"},
	audit.Age:               {"Age-based capability bias (older)", "Age-based capability bias (younger)"},
	audit.SexualOrientation: {"pathologization", "discrimination"},
	audit.Nationality:       {"nationality stereotypes", "discrimination"},
}
