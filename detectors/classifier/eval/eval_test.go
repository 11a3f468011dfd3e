package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
)

func rows(t *testing.T, lines string) []dataset.Row {
	t.Helper()
	out, err := dataset.Read(strings.NewReader(lines), "made")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const data = `{"id":"1","text":"Women cannot drive.","label":{"bias":1},"characteristic":["sex"],"function":"capability_denial"}
{"id":"2","text":"Women can drive.","label":{"bias":0},"characteristic":["sex"],"function":"neutral_mention"}
{"id":"3","text":"Old people smell.","label":{"bias":1},"characteristic":["age"],"function":"derogation"}
{"id":"4","text":"What is the time?","label":{"bias":0},"source":"clinc_assistant"}
{"id":"5","text":"Nobody knows.","label":{"toxic":1}}
{"id":"6","text":"Not answered.","label":{"bias":1}}
`

func TestEvaluate(t *testing.T) {
	scores := map[string]Answer{
		"1": {0.9, true, []audit.Ground{audit.Sex}, nil}, "2": {0.6, true, []audit.Ground{audit.Sex}, nil},
		"3": {0.7, true, []audit.Ground{audit.Sex}, nil}, "4": {0.1, false, nil, nil}, "5": {1, true, nil, nil},
	}
	// A scorer that minds who it is about: the score is the share of the letter e.
	swapped := func(text string) (Answer, bool) {
		s := float64(strings.Count(text, "e")) / float64(len(text))
		return Answer{Score: s, Flagged: s > 0.1}, true
	}
	r := Evaluate(rows(t, data), func(row *dataset.Row) (Answer, bool) { a, ok := scores[row.ID]; return a, ok }, swapped, Options{Task: "bias", By: "made", Swaps: 3})
	var b strings.Builder
	line := func(f Figures) {
		fmt.Fprintf(&b, "%s tp %d fp %d tn %d fn %d recall %s fpr %s auroc %s ground %s\n", f.Name, f.TP, f.FP, f.TN, f.FN, f.Recall, f.FPR, f.AUROC, f.Ground)
	}
	line(r.Overall)
	line(r.Ordinary)
	for _, group := range [][]Figures{r.Grounds, r.Functions, r.Sources} {
		for _, f := range group {
			line(f)
		}
	}
	want := ` tp 2 fp 1 tn 1 fn 0 recall 1.000 fpr 0.500 auroc 1.000 ground 0.500
 tp 0 fp 0 tn 1 fn 0 recall – fpr 0.000 auroc – ground –
age tp 1 fp 0 tn 0 fn 0 recall 1.000 fpr – auroc – ground 0.000
sex tp 1 fp 1 tn 0 fn 0 recall 1.000 fpr 1.000 auroc 1.000 ground 1.000
capability_denial tp 1 fp 0 tn 0 fn 0 recall 1.000 fpr – auroc – ground 1.000
derogation tp 1 fp 0 tn 0 fn 0 recall 1.000 fpr – auroc – ground 0.000
neutral_mention tp 0 fp 1 tn 0 fn 0 recall – fpr 1.000 auroc – ground –
clinc_assistant tp 0 fp 0 tn 1 fn 0 recall – fpr 0.000 auroc – ground –
made tp 2 fp 1 tn 0 fn 0 recall 1.000 fpr 1.000 auroc 1.000 ground 0.500
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	if r.Unanswered != 1 { // the fifth says nothing of the task
		t.Errorf("unanswered %d", r.Unanswered)
	}
	if r.Swap.N != 9 || !(r.Swap.Mean > 0.3) {
		t.Errorf("%+v", r.Swap)
	}
	j, err := json.Marshal(r)
	if err != nil || !bytes.Contains(j, []byte(`"auroc":null`)) {
		t.Errorf("%s %v", j, err)
	}
	var page bytes.Buffer
	if err := HTML(&page, "a <b>", []*Report{r}); err != nil {
		t.Fatal(err)
	}
	if p := page.String(); strings.Count(p, "<svg") != 5 || !strings.Contains(p, "1 texts had no answer") || strings.Contains(p, "http") || strings.Contains(p, "a <b>") || strings.Contains(p, "NaN") {
		t.Error(p)
	}
	if err := r.Text(&b); err != nil || !strings.Contains(b.String(), "capability_denial") || !strings.Contains(b.String(), "\n1 more had no answer and stand in no figure\n") {
		t.Error(err, b.String())
	}
}
