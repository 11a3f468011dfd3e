package train

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
)

func TestCalibrateEncoder(t *testing.T) {
	file, err := os.ReadFile("../encoder/model.bin")
	if err != nil {
		t.Fatal(err)
	}
	m, err := classifier.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	read := func(names ...string) (rows []dataset.Row) {
		for _, name := range names {
			r, err := dataset.ReadFile(filepath.Join("../data", name+".en.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, r...)
		}
		return rows
	}
	rows, recipe := read("age", "disability", "voices", "ordinary"), DefaultRecipe()
	once, err := Calibrate(file, m, rows, recipe)
	if err != nil {
		t.Fatal(err)
	}
	more, err := Calibrate(once.File, m, append(read("unseen"), rows...), recipe)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(once.File, more.File) {
		t.Error("the unseen set calibrates, or the same rows give other bytes")
	}
	heads := classifier.Heads()
	if once.Meta.Classifier != m.Meta.Version || len(once.Meta.Decides) != 2 || len(once.Meta.Efforts) != len(efforts) || len(once.Tuning) != 2*len(efforts) {
		t.Errorf("%+v", once.Meta) // these texts say nothing of safety
	}
	for i, o := range once.Tuning {
		head, effort := i/len(efforts), i%len(efforts)
		if o.Head != heads[head] || o.Effort != efforts[effort].Name || o.Asking != once.Meta.Efforts[effort].Heads[head] || once.Meta.Decides[head].A <= 0 {
			t.Errorf("%d: %+v of %+v", i, o, once.Meta)
		}
		if o.True < 50 || o.Benign < 50 || float64(o.BenignOnes) > recipe.EncoderFPR[o.Effort][head].Benign*float64(o.Benign) {
			t.Errorf("%+v", o)
		}
		if effort > 0 && effort < 3 && (o.Asking.Named.Logit >= once.Tuning[i-1].Asking.Named.Logit || o.Asking.Unnamed.Logit >= once.Tuning[i-1].Asking.Unnamed.Logit) {
			t.Error("efforts do not grow")
		}
	}
	if card := once.Card(); !strings.Contains(card, once.Meta.Version) || !strings.Contains(card, "| thorough |") {
		t.Errorf("the card says\n%s", card)
	}
	if _, err := Calibrate(file, m, rows[:20], recipe); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("twenty rows: %v", err)
	}
	if _, err := Calibrate(file[:100], m, rows, recipe); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("no file: %v", err)
	}
}
