package linguistic

import (
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/rules"
)

// ordinary are sets of texts that nobody would complain about; posts are sets of forum posts and comments.
var (
	ordinary = []string{"vicuna_eval_answers", "self_instruct", "clinc_assistant", "sgd_dialogue", "gsm8k", "bold_wikipedia_neutral"}
	posts    = []string{"surge_toxicity", "wiki_comments", "civil_toxic_spans", "davidson", "edos", "vicomtech_stormfront"}
)

// row is a row of a shared data set.
type row struct {
	ID, Text, Split string
	Label           struct{ Toxic *int }
}

// shared gives the rows of a shared data set, or skips.
func shared(tb testing.TB, name string) []row {
	tb.Helper()
	return detectortest.Rows[row](tb, detectortest.Shared(tb, "data", name+".jsonl"))
}

func load(t testing.TB) []*rules.Pack {
	t.Helper()
	packs, err := rules.Load(Packs())
	if err != nil {
		t.Fatal(err)
	}
	return packs
}

func mustNew(t testing.TB) *Detector {
	t.Helper()
	d, err := New(load(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// looker runs the detector on responses of a domain.
func looker(t testing.TB, d *Detector) func(domain audit.Domain, text string) ([]audit.Finding, []audit.NamedScore) {
	a := detectortest.Analyzer(t, d)
	return func(domain audit.Domain, text string) ([]audit.Finding, []audit.NamedScore) {
		in := *detectortest.Interaction("", text)
		in.Domain = domain
		x := a.Prepare(&in)
		fs, scores, err := d.DetectScored(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		audit.SortFindings(fs)
		return fs, scores
	}
}

// tableOf gives the id under which a rule stands in its pack: that of its table where it was made of one.
func tableOf(d *Detector, id string) string {
	for _, r := range d.rules[:d.inPacks] {
		if r.ID == id && r.Term != "" {
			if table, ok := strings.CutSuffix(id, "."+slugOf(r.Term)); ok {
				return table
			}
		}
	}
	return id
}

func slugOf(term string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(term), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }), "_")
}

func prepared(t testing.TB, d *Detector, text string) *detectors.Input {
	return detectortest.Analyzer(t, d).Prepare(detectortest.Interaction("", text))
}
