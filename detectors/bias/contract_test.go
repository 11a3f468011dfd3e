package bias

import (
	"context"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/rules"
)

func mustNew(t testing.TB, packs []*rules.Pack) *Detector {
	t.Helper()
	d, err := New(packs)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// shipped are the packs that ship, loaded and compiled once: it takes seconds.
var (
	shippedPacks    = sync.OnceValues(func() ([]*rules.Pack, error) { return rules.Load(Packs()) })
	shippedDetector = sync.OnceValues(func() (*Detector, error) {
		packs, err := shippedPacks()
		if err != nil {
			return nil, err
		}
		return New(packs)
	})
)

func loadShipped(t testing.TB) []*rules.Pack {
	t.Helper()
	packs, err := shippedPacks()
	if err != nil {
		t.Fatal(err)
	}
	return packs
}

func mustShipped(t testing.TB) *Detector {
	t.Helper()
	d, err := shippedDetector()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestContract runs the contract on the shipped packs with one sentence of each of them.
func TestContract(t *testing.T) {
	packs := loadShipped(t)
	var firing []string
	for _, p := range packs {
		firing = append(firing, p.Rules[0].Match[0])
	}
	detectortest.Run(t, mustShipped(t), firing...)
}

// TestShippedSentences runs every must-match sentence through the scanner as the pipeline does: the
// rule it stands under is among the findings. Must-not-match sentences give none of that rule.
func TestShippedSentences(t *testing.T) {
	d := mustShipped(t)
	detectortest.Sentences(t, d, d.Rules())
}

const testPack = `
pack: charter.language.en
title: Test
version: "2026.11.1"
language: en
ground: language
rules:
  - {id: language.one, description: d, severity: LOW, patterns: ['\bonely\b'], match: [a, b], no_match: [c, d]}
  - {id: language.two, description: d, severity: LOW, patterns: ['\btwoly\b'], match: [a, b], no_match: [c, d]}
  - {id: language.three, description: d, severity: LOW, patterns: ['\bthreely\b', '\bthree\w*'], match: [a, b], no_match: [c, d]}
  - {id: language.four, description: d, severity: LOW, patterns: ['\bfourly\b'], confidence: 0.5, match: [a, b], no_match: [c, d]}
  - {id: language.wide, description: d, severity: MEDIUM, patterns: ['\bonely twoly\b'], abusive: true, match: [a, b], no_match: [c, d]}
`

func small(t testing.TB, yaml string) *Detector {
	t.Helper()
	packs, err := rules.Load(fstest.MapFS{"test.yaml": {Data: []byte(yaml)}})
	if err != nil {
		t.Fatal(err)
	}
	return mustNew(t, packs)
}

// TestScoring holds seed 000's formula in millionths, end to end: weight × multiplier, the sum, the
// strict comparison.
func TestScoring(t *testing.T) {
	a := detectortest.Analyzer(t, small(t, testPack))
	for _, tc := range []struct {
		name     string
		domain   audit.Domain
		response string
		sum      audit.Score
		flagged  bool
	}{
		{"three LOW in general do not flag", audit.General, "onely, twoly, threely.", 300_000, false},
		{"one more does", audit.General, "onely, twoly, threely, fourly.", 400_000, true},
		{"a rule counts once", audit.General, "onely, onely, onely, onely.", 100_000, false},
		{"of overlapping findings the strongest counts", audit.General, "onely twoly", 300_000, false},
		{"LOW × 1.5 in education is 0.15", audit.Education, "onely", 150_000, false},
		{"two of them pass 0.2", audit.Education, "onely, twoly", 300_000, true},
		{"nothing", audit.General, "quiet", 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := detectortest.Interaction("", tc.response)
			in.Domain = tc.domain
			v := a.Analyze(context.Background(), in)
			if v.BiasSum != tc.sum || v.Flagged != tc.flagged || v.Detected != (tc.sum > 0) || v.Status != audit.Done {
				t.Errorf("sum %v, flagged %v, detected %v, status %s; want %v, %v", v.BiasSum, v.Flagged, v.Detected, v.Status, tc.sum, tc.flagged)
			}
		})
	}
}

// TestHRLow holds the fixed-point case in which floats would flag: 0.1 × 1.5 is not above 0.15.
func TestHRLow(t *testing.T) {
	yaml := `
pack: charter.religion.en
title: Test
version: "2026.11.1"
language: en
ground: religion
rules:
  - {id: religion.one, description: d, severity: LOW, patterns: ['\bonely\b'], match: [a, b], no_match: [c, d]}
`
	in := detectortest.Interaction("", "onely")
	in.Domain = audit.HR
	v := detectortest.Analyzer(t, small(t, yaml)).Analyze(context.Background(), in)
	if v.BiasSum != 150_000 || v.Flagged {
		t.Errorf("sum %v, flagged %v; want 0.15, false", v.BiasSum, v.Flagged)
	}
}

func TestFindingFields(t *testing.T) {
	d := small(t, testPack)
	in := detectortest.Interaction("fourly", "é threely threely, onely twoly")
	in.Domain = audit.Education
	fs, err := d.Detect(context.Background(), detectortest.Analyzer(t, d).Prepare(in))
	if err != nil {
		t.Fatal(err)
	}
	audit.SortFindings(fs)
	want := "charter.language/language.three[2,9) charter.language/language.three[10,17) charter.language/language.one[19,24) " +
		"charter.language/language.wide[19,30) charter.language/language.two[25,30) charter.language/language.four[0,6)"
	if got := detectortest.Describe(fs); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	wide, last := fs[3], fs[5]
	if wide.Ground != audit.Language || wide.Severity != audit.Medium || wide.Score != 450_000 || !wide.Abusive || wide.RuleVersion != "2026.11.1" {
		t.Errorf("%+v", wide)
	}
	if last.Side != audit.Input || last.Confidence != 500_000 || fs[0].Confidence != 800_000 {
		t.Errorf("%+v, %v", last, fs[0].Confidence)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(nil); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("no packs: %v", err)
	}
	other := &rules.Pack{ID: "safety.violence.en", Category: "violence"}
	other.Rules = []*rules.Rule{{ID: "violence.x", Pack: other}}
	if _, err := New([]*rules.Pack{other}); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("another family's pack: %v", err)
	}
	var _ detectors.RuleBased = (*Detector)(nil)
}
