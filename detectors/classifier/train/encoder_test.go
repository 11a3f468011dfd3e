package train

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// An encoder without early exits learns them while it is calibrated, the same each time; they let most of what is harmless go and next to
// nothing of what is found.
func TestFitExits(t *testing.T) {
	raw, err := os.ReadFile("../encoder/model.bin")
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = encoder.WithExits(raw, nil, nil); err != nil {
		t.Fatal(err)
	}
	e, err := encoder.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	rd, err := newReader()
	if err != nil {
		t.Fatal(err)
	}
	r := DefaultRecipe()
	rows, err := dataset.ReadFile("../data/disability.en.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	glance, once, err := fitExits(e, rd, rows, &r, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	glanceAgain, again, err := fitExits(e, rd, rows, &r, t.Logf)
	if err != nil || !reflect.DeepEqual(once, again) || !reflect.DeepEqual(glance, glanceAgain) {
		t.Errorf("the same rows give other exits, or %v", err)
	}
	if _, _, err := fitExits(e, rd, rows[:20], &r, t.Logf); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("twenty rows: %v", err)
	}
	with, err := encoder.WithExits(raw, glance, once)
	if err != nil {
		t.Fatal(err)
	}
	if e, err = encoder.Decode(with); err != nil || e.Meta.Exits != e.Meta.Layers {
		t.Fatalf("%d early exits, %v", e.Meta.Exits, err)
	}
	if back, err := encoder.WithExits(with, nil, nil); err != nil || !bytes.Equal(back, raw) {
		t.Errorf("without the exits it is another file, or %v", err)
	}
	var near, pairs float64 // how often the last exit and the whole encoder agree which of two sentences is more biased
	var exits, whole []float32
	for i := range rows {
		if rows[i].Split == "dev" {
			early, all := e.Depths("", rows[i].Text, "")
			exits, whole = append(exits, early[len(early)-1][0]), append(whole, all[0])
		}
	}
	for i := range whole {
		for j := range i {
			pairs++
			if (whole[i] > whole[j]) == (exits[i] > exits[j]) {
				near++
			}
		}
	}
	if near/pairs < 0.85 {
		t.Errorf("the last exit agrees with the encoder on %.2f of the pairs", near/pairs)
	}
	t.Logf("the last exit agrees with the encoder on %.3f of %.0f pairs", near/pairs, pairs)
}

func TestLabel(t *testing.T) {
	e, err := encoder.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	zero := 0.0
	rows := []dataset.Row{
		{Text: "Women are too emotional to lead a team."}, {Text: "The library opens at nine on Saturdays."},
		{Text: "Women are too emotional to lead a team.", Label: dataset.Label{Bias: &zero}}, {Text: "Women are too emotional to lead a team.", Split: "dev"},
		{Text: "Frauen sind zu gefühlsbetont, um ein Team zu führen.", Lang: "de"}, {Text: "Frauen sind zu gefühlsbetont, um ein Team zu führen."},
		{Text: "Women lead teams.", Teacher: map[string]float64{"bias": 0.3}},
	}
	n, err := Label(rows, e)
	if err != nil || n != 2 {
		t.Fatalf("%d labelled, %v", n, err)
	}
	if rows[0].Teacher["bias"] < 0.8 || len(rows[0].Teacher) != len(encoder.Heads) || !slices.Contains(rows[0].Characteristic, "sex") {
		t.Errorf("%+v", rows[0])
	}
	if rows[1].Teacher["bias"] > 0.1 || len(rows[1].Characteristic) > 0 {
		t.Errorf("%+v", rows[1])
	}
	for i, row := range rows[2:6] {
		if row.Teacher != nil {
			t.Errorf("row %d is labelled", i+2)
		}
	}
	if rows[6].Teacher["bias"] != 0.3 {
		t.Error("another teacher's word is gone")
	}
}

// read gives the rows of files of the data.
func read(t *testing.T, names ...string) (rows []dataset.Row) {
	t.Helper()
	for _, name := range names {
		r, err := dataset.ReadFile(filepath.Join("../data", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r...)
	}
	return rows
}

// shipped gives an encoder's file and the classifier.
func shipped(t *testing.T, name string) ([]byte, *classifier.Model) {
	t.Helper()
	file, err := os.ReadFile("../encoder/" + name + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	m, err := classifier.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return file, m
}

func TestCalibrateEncoder(t *testing.T) {
	file, m := shipped(t, "model")
	rows, recipe := read(t, "age.en", "disability.en", "voices.en", "ordinary.en"), DefaultRecipe()
	once, err := Calibrate(file, m, nil, rows, recipe, nil)
	if err != nil {
		t.Fatal(err)
	}
	few := read(t, "age.en", "disability.en") // the same of fewer rows, for it takes a minute
	less, err := Calibrate(once.File, m, nil, few, recipe, nil)
	if err != nil {
		t.Fatal(err)
	}
	more, err := Calibrate(less.File, m, nil, append(read(t, "unseen.en"), few...), recipe, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(once.File, less.File) || !bytes.Equal(less.File, more.File) {
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
	if len(once.Stops) != len(efforts)*once.Meta.Exits-2 { // full and short do without a glance
		t.Errorf("%d outcomes of early exits", len(once.Stops))
	}
	for _, o := range once.Stops {
		if o.Found < 50 || float64(o.Lost) > 0.02*float64(o.Found) {
			t.Errorf("%+v", o)
		}
	}
	if card := once.Card(); !strings.Contains(card, once.Meta.Version) || !strings.Contains(card, "| thorough |") {
		t.Errorf("the card says\n%s", card)
	}
	if _, err := Calibrate(file, m, nil, rows[:20], recipe, nil); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("twenty rows: %v", err)
	}
	if _, err := Calibrate(file[:100], m, nil, rows, recipe, nil); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("no file: %v", err)
	}
}

// One in fifty of what advice refuses is more than it takes to be sure; with few texts nothing is.
func TestSureWithoutAdvice(t *testing.T) {
	no := dataset.Row{Label: dataset.Label{Bias: new(float64)}}
	for _, tc := range []struct {
		found   int
		refused []float32
		want    float64
	}{
		{40, nil, 0}, {40, []float32{3}, 0}, {60, nil, 0.8}, {60, []float32{3}, 0.8}, {60, []float32{1.2345, 3}, 1.235}, {60, []float32{-1, 3}, 0.8}, {110, []float32{1, 2, 3}, 1},
	} {
		c := &headCalibration{h: classifier.Bias, r: new(Recipe), rows: slices.Repeat([]dataset.Row{no}, tc.found+len(tc.refused))}
		said := make([]classifier.Said, len(c.rows))
		for i, z := range tc.refused {
			said[i].Read[classifier.Bias], said[i].Advised[classifier.Bias] = z, -1
		}
		if got := c.sure(said, 0.8, func(s *classifier.Said) bool { return s.Advised[classifier.Bias] >= 0 }); got != tc.want {
			t.Errorf("%d found, %v refused: sure above %v, want %v", tc.found, tc.refused, got, tc.want)
		}
	}
}

// With an adviser an encoder is calibrated alone and with its advice; what is never asked about for a head gets none.
func TestCalibrateWithAdvice(t *testing.T) {
	file, m := shipped(t, "model")
	adviser, err := encoder.ShippedOthers()
	if err != nil {
		t.Fatal(err)
	}
	dev := slices.DeleteFunc(read(t, "voices.en", "veiled.en", "harm.en", "hallucination_indicator.en"), func(row dataset.Row) bool { return row.Split != "dev" })
	recipe := DefaultRecipe()
	res, err := Calibrate(file, m, adviser, dev, recipe, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Meta.Adviser != adviser.Meta.Version {
		t.Errorf("adviser %q, want %s", res.Meta.Adviser, adviser.Meta.Version)
	}
	last := classifier.Head(len(res.Meta.Decides) - 1)
	if last != classifier.Heads()[classifier.NumHeads-1] {
		t.Fatalf("%d heads answer, want all: the texts tell of each", last+1)
	}
	for n, f := range res.Meta.Efforts {
		for h, a := range f.Heads {
			never := classifier.Head(h) == last
			if scale := res.Meta.Decides[h]; a.Advice.Threshold <= 0 || never != (a.Advice.Threshold == 1) || never == (scale.Advised.A > 0) {
				t.Errorf("%s of %s: %+v by %+v", scale.Head, f.Name, a.Advice, scale.Advised)
			}
			if a.Advice.Sure != 0 && a.Advice.Sure < a.Advice.Above {
				t.Errorf("%s: sure above %v, asked above %v", f.Name, a.Advice.Sure, a.Advice.Above)
			}
			if want := advisedAbove[efforts[n].Name][min(h, 2)]; !never && a.Advice.Above != want {
				t.Errorf("%s: asked above %v, want %v", f.Name, a.Advice.Above, want)
			}
		}
	}
	advised := 0
	for _, o := range res.Tuning {
		if !o.Advised {
			continue
		}
		advised++
		if o.True == 0 || float64(o.BenignOnes) > recipe.EncoderFPR[o.Effort][o.Head].Benign*float64(o.Benign) {
			t.Errorf("%+v", o)
		}
	}
	if advised != len(efforts)*int(last) {
		t.Errorf("%d outcomes with advice", advised)
	}
	if card := res.Card(); !strings.Contains(card, "## With advice") || !strings.Contains(card, adviser.Meta.Version) {
		t.Errorf("the card says\n%s", card)
	}
	told := ""
	few, err := Calibrate(file, m, adviser, read(t, "age.en"), recipe, func(format string, args ...any) { told += fmt.Sprintf(format, args...) + "\n" })
	if err != nil || few.Meta.Adviser != "" || !strings.Contains(told, "without advice") || strings.Contains(few.Card(), "## With advice") {
		t.Errorf("few rows: adviser %q, %v; it told\n%s", few.Meta.Adviser, err, told)
	}
}

// The encoder of other languages is calibrated by their rows alone, with doors and thresholds of its own.
func TestCalibrateOthers(t *testing.T) {
	file, m := shipped(t, "others")
	biased, dev := read(t, "pairs.de"), 0
	for _, row := range biased {
		if row.Split == "dev" {
			dev++
		}
	}
	once, err := Calibrate(file, m, nil, append(read(t, "harm.de", "age.en", "unseen.de"), biased...), DefaultRecipe(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := once.Tuning[0]; o.True+o.Benign != dev {
		t.Errorf("%d rows tell of bias, want the %d of pairs.de: English rows and the unseen set calibrate nothing", o.True+o.Benign, dev)
	}
	if len(once.Others) > 0 || len(once.Meta.Decides) < 5 {
		t.Errorf("%+v", once.Meta)
	}
	for i, e := range once.Meta.Efforts {
		if want := effortsOfOthers[i]; e.Name != want.Name || e.Together != want.Together || e.Heads[classifier.Bias].Named != want.Heads[classifier.Bias].Named {
			t.Errorf("%+v", e)
		}
		for _, h := range safety[:3] {
			if x := e.Heads[h].Threshold; x < 0.3 {
				t.Errorf("%s of %s from %v on", h, e.Name, x)
			}
		}
	}
	if card := once.Card(); !strings.Contains(card, "in de, es, fr") || strings.Contains(card, "## Other languages") {
		t.Errorf("the card says\n%s", card)
	}
}
