package bias

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/rules"
)

// german is the detector with the German packs alone, and an analyzer of it.
var german = sync.OnceValues(func() (*Detector, *detectors.Analyzer) {
	packs, err := shippedPacks()
	if err != nil {
		return nil, nil // TestPacks tells why
	}
	d, err := New(slices.DeleteFunc(slices.Clone(packs), func(p *rules.Pack) bool { return p.Language != "de" }))
	if err != nil {
		return nil, nil
	}
	a, _ := detectors.NewAnalyzer(detectors.DefaultPolicy(), d)
	return d, a
})

// TestGermanHarmless holds that German rules fire on at most 3 % of harmless sentences that look biased.
func TestGermanHarmless(t *testing.T) {
	texts := lines(t, "testdata/harmless.de.txt")
	fired := firing(t, texts)
	if len(texts) < 100 || len(fired)*100 > 3*len(texts) {
		t.Errorf("%d of %d: %q", len(fired), len(texts), fired)
	}
}

// TestGermanOnEnglish holds that German rules hit no ordinary English text.
func TestGermanOnEnglish(t *testing.T) {
	var texts []string
	for _, row := range detectortest.Rows[struct{ Text string }](t, filepath.Join("..", "classifier", "data", "ordinary.en.jsonl")) {
		texts = append(texts, row.Text)
	}
	if fired := firing(t, texts); len(fired) > 0 {
		t.Errorf("%d of %d: %q", len(fired), len(texts), fired)
	}
}

// TestGermanSpelling holds that one sentence is found however its umlauts and genders are written.
func TestGermanSpelling(t *testing.T) {
	for _, text := range []string{
		"Österreicher sind faul.", "Oesterreicher sind faul.", "Ältere Bewerber sind unflexibel.", "Aeltere Bewerber sind unflexibel.",
		"Ausländer*innen sind kriminell.", "Migrant:innen sind kriminell.", "AUSLÄNDER SIND KRIMINELL!", "Auslaender klauen.",
		"weil Frauen einfach zu emotional sind", "Natürlich sind Frauen zu emotional.", "A\u0308ltere Kollegen sind stur.",
	} {
		if len(firing(t, []string{text})) == 0 {
			t.Errorf("%s: not found", text)
		}
	}
}

// TestGermanRows holds recall and false alarms on our labelled sentences. Rules were made with the rows of split
// train in view, so only those of dev say what to expect of others. The sentences of classes.de.jsonl are of writers
// who knew the meanings of the classes and no rule; those of dev came when the patterns were written.
func TestGermanRows(t *testing.T) {
	for file, limits := range map[string]map[string][2]float64{
		filepath.Join("..", "classifier", "data", "grounds.de.jsonl"): {
			"train biased": {0.65, 1}, "dev biased": {0.15, 1}, "train harmless": {0, 0.02}, "dev harmless": {0, 0.03},
		},
		filepath.Join("testdata", "classes.de.jsonl"): {
			"train biased": {0.25, 1}, "dev biased": {0.16, 1}, "train harmless": {0, 0.01}, "dev harmless": {0, 0.01},
		},
	} {
		texts := map[string][]string{}
		for _, row := range detectortest.Rows[struct {
			Text  string
			Label struct{ Bias int }
			Split string
		}](t, file) {
			kind := row.Split + " harmless"
			if row.Label.Bias == 1 {
				kind = row.Split + " biased"
			}
			texts[kind] = append(texts[kind], row.Text)
		}
		for kind, limit := range limits {
			fired := firing(t, texts[kind])
			share := float64(len(fired)) / float64(len(texts[kind]))
			t.Logf("%s, %s: %d of %d, %.3f", filepath.Base(file), kind, len(fired), len(texts[kind]), share)
			if len(texts[kind]) == 0 || share < limit[0] || share > limit[1] {
				t.Errorf("%s, %s: %.3f, want %v", filepath.Base(file), kind, share, limit)
			}
		}
	}
}

// lines gives a file's lines without comments.
func lines(t *testing.T, file string) (texts []string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			texts = append(texts, line)
		}
	}
	return texts
}

// firing gives the texts on which a German rule fires, with the first rule.
func firing(t *testing.T, texts []string) []string {
	t.Helper()
	d, a := german()
	if a == nil {
		t.Fatal("the German packs do not load")
	}
	return firingOf(t, d, a, texts)
}

// firingOf is firing for the rules of a detector and its analyzer.
func firingOf(t *testing.T, d *Detector, a *detectors.Analyzer, texts []string) (fired []string) {
	t.Helper()
	for _, text := range texts {
		found, err := d.Detect(t.Context(), a.Prepare(detectortest.Interaction("", text)))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			fired = append(fired, found[0].Rule+": "+text)
		}
	}
	return fired
}
