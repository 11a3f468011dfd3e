package train

import (
	"testing"

	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
)

// In other languages than English the classifier's own answers flag what they may of the rows that choose their thresholds, and find something.
func TestOthers(t *testing.T) {
	m, err := classifier.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	rd, err := newReader()
	if err != nil {
		t.Fatal(err)
	}
	var rows []dataset.Row
	for _, name := range []string{"answers.de", "voices.de", "answers.fr", "unseen.de", "age.en"} {
		r, err := dataset.ReadFile("../data/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r...)
	}
	var res EncoderResult
	r := DefaultRecipe()
	res.others(m, rd, rows, &r)
	for _, o := range res.Others {
		several := count(o.Several)
		if got := res.Meta.Others[several][o.Head]; got != o.Threshold {
			t.Errorf("%+v, the model has %v", o, got)
		}
		if o.Head > classifier.Toxicity {
			if o.Threshold != 1 {
				t.Errorf("%+v", o)
			}
			continue
		}
		if o.True < 20 || o.Harmless < 100 || o.Found == 0 || float64(o.HarmlessOnes) > othersFPR[several][o.Head]*float64(o.Harmless) {
			t.Errorf("%+v", o)
		}
	}
	res.others(m, rd, rows[len(rows)-10:], &r) // English ones say nothing of it
	if o := res.Others[0]; o.Threshold != 1 || o.True+o.Harmless > 0 {
		t.Errorf("%+v", o)
	}
}
