package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// decides are the heads that the encoder answers for, in the order of its heads. Those of safety tell what a text is about, not whether it does harm: see docs/detection.md.
var decides = []classifier.Head{classifier.Bias, classifier.Toxicity}

// never is above every logit.
const never = 1e3

var everything = encoder.Doubt{First: -never, Logit: -never}

// efforts are what the encoder may cost, the cheapest first: about bias it is asked in three of a hundred long answers of a language model,
// in one of seven, in each text. Heads are in the order of decides.
var efforts = []encoder.Effort{
	{Name: "balanced", Heads: []encoder.Asking{
		{Named: encoder.Doubt{First: -1, Logit: -2}, Unnamed: encoder.Doubt{First: 0.87, Logit: -2}, Context: 0.45},
		{Named: encoder.Doubt{First: -1, Logit: 0}, Unnamed: encoder.Doubt{First: 0.87, Logit: 0}, Context: never},
	}},
	{Name: "thorough", Heads: []encoder.Asking{
		{Named: encoder.Doubt{First: -2, Logit: -6}, Unnamed: encoder.Doubt{First: -0.5, Logit: -6}, Context: 0},
		{Named: encoder.Doubt{First: -2, Logit: -2}, Unnamed: encoder.Doubt{First: -0.5, Logit: -2}, Context: never},
	}},
	{Name: "full", Heads: []encoder.Asking{
		{Named: everything, Unnamed: everything, Context: -2},
		{Named: everything, Unnamed: everything, Context: never},
	}},
}

// EncoderResult is a calibrated encoder and what calibration saw.
type EncoderResult struct {
	File   []byte
	Meta   encoder.Meta
	Tuning []EncoderOutcome // of each head and effort
}

// EncoderOutcome is what an effort finds for a head in the texts that calibrated it.
type EncoderOutcome struct {
	Head                             classifier.Head
	Effort                           string
	Asking                           encoder.Asking
	True, Ordinary, Benign           int
	Found, OrdinaryFound, BenignOnes int
	OrdinaryAsked                    int // texts with a sentence that is asked about
}

// Calibrate fits probabilities and thresholds of an encoder to the English rows of split dev, those of the recipe's unseen sources apart: it has
// learnt from all others. Too few rows are an error of KindInvalid.
func Calibrate(file []byte, m *classifier.Model, rows []dataset.Row, r Recipe) (*EncoderResult, error) {
	e, err := encoder.Decode(file)
	if err != nil {
		return nil, err
	}
	rd, err := newReader()
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(row dataset.Row) bool {
		return row.Split != "dev" || row.Lang != "" && row.Lang != "en" || row.Source == "mlma_fr" || slices.Contains(r.Unseen, row.Source)
	})
	res := &EncoderResult{Meta: e.Meta}
	meta := &res.Meta
	meta.Classifier, meta.Decides, meta.Efforts = m.Meta.Version, nil, nil
	for _, f := range efforts {
		meta.Efforts = append(meta.Efforts, encoder.Effort{Name: f.Name})
	}
	for _, h := range decides {
		scale, outcomes, err := calibrateHead(e, m, h, rd, rows, r)
		if err != nil && h != classifier.Bias && audit.KindOf(err) == audit.KindInvalid {
			break // texts that say nothing of toxicity: that stays with the classifier
		}
		if err != nil {
			return nil, err
		}
		meta.Decides, res.Tuning = append(meta.Decides, scale), append(res.Tuning, outcomes...)
		for n, o := range outcomes {
			meta.Efforts[n].Heads = append(meta.Efforts[n].Heads, o.Asking)
		}
	}
	if res.File, err = encoder.Retuned(file, *meta); err != nil {
		return nil, err
	}
	done, err := encoder.Decode(res.File)
	if err != nil {
		return nil, err
	}
	res.Meta = done.Meta
	return res, nil
}

// wanted is what a row says of a head; false where it says nothing. In ordinary text nothing should be found.
func wanted(row *dataset.Row, h classifier.Head, r *Recipe) (target float64, known bool) {
	label := row.Label.Bias
	if h == classifier.Toxicity {
		label = row.Label.Toxic
	}
	switch {
	case label != nil:
		return *label, true
	case r.ordinary(row.Source):
		return 0, true
	}
	return 0, false
}

// calibrateHead fits one head.
func calibrateHead(e *encoder.Model, m *classifier.Model, h classifier.Head, rd *reader, all []dataset.Row, r Recipe) (scale encoder.Scale, outcomes []EncoderOutcome, err error) {
	const op = "train: calibrate encoder"
	var rows []*dataset.Row
	for i := range all {
		if _, known := wanted(&all[i], h, &r); known {
			rows = append(rows, &all[i])
		}
	}
	var asked [][]float64 // of each effort and row the encoder's logit, -Inf where it is not asked
	for _, f := range efforts {
		// Only whom it asks matters here; what it answers does not.
		e.Meta.Decides, e.Meta.Efforts, e.Meta.Classifier = make([]encoder.Scale, len(decides)), []encoder.Effort{f}, m.Meta.Version
		d, err := classifier.NewWithEncoder(m, e, f.Name)
		if err != nil {
			return scale, nil, err
		}
		logits := make([]float64, len(rows))
		for i, row := range rows {
			logits[i] = math.Inf(-1)
			if z, ok := d.Asked(h, rd.read(row.Text), audit.Output); ok {
				logits[i] = float64(z)
			}
		}
		asked = append(asked, logits)
	}
	var js []judged
	for i, z := range asked[len(asked)-1] {
		if !math.IsInf(z, 0) {
			j := judged{}
			target, _ := wanted(rows[i], h, &r)
			j.scores.Logits[h], j.target[h] = float32(z), float32(target)
			js = append(js, j)
		}
	}
	if yes := slices.ContainsFunc(js, func(j judged) bool { return j.target[h] >= 0.5 }); len(js) < 50 || !yes {
		return scale, nil, audit.E(op, audit.KindInvalid, fmt.Errorf("too little to calibrate with: want texts of split dev with and without %s, in English", h))
	}
	scale.Head = h.String()
	scale.A, scale.B, _ = platt(js, h)
	for n, f := range efforts {
		out := EncoderOutcome{Head: h, Effort: f.Name, Asking: f.Heads[h]}
		var ordinary, benign, right []float64
		for i, row := range rows {
			p := 0.0
			if !math.IsInf(asked[n][i], 0) {
				p = scale.Probability(float32(asked[n][i]))
			}
			switch target, _ := wanted(row, h, &r); {
			case target >= 0.5:
				right = append(right, p)
			case r.ordinary(row.Source):
				if ordinary = append(ordinary, p); p > 0 {
					out.OrdinaryAsked++
				}
			case row.Skeleton != "":
				benign = append(benign, p)
			}
		}
		bound, a := r.EncoderFPR[f.Name][h], &out.Asking
		a.Threshold = thousandths(max(above(ordinary, bound.Ordinary), above(benign, bound.Benign), 0.3))
		out.True, out.Ordinary, out.Benign = len(right), len(ordinary), len(benign)
		out.Found, out.OrdinaryFound, out.BenignOnes = exceeding(right, a.Threshold), exceeding(ordinary, a.Threshold), exceeding(benign, a.Threshold)
		if len(ordinary) > 0 {
			a.FPR = float64(out.OrdinaryFound) / float64(len(ordinary))
		}
		outcomes = append(outcomes, out)
	}
	return scale, outcomes, nil
}

// Card is the encoder's model card, in Markdown.
func (r *EncoderResult) Card() string {
	var b strings.Builder
	p := func(format string, a ...any) { fmt.Fprintf(&b, format, a...) }
	t := &r.Meta
	p("# Model card: %s, version %s\n\n", t.Name, t.Version)
	p("%s. %d layers of %d numbers, weights of a byte; %d bytes. Written by `tools/train/export.py` and `evenhand train --encoder`, calibrated with classifier %s.\n\n", t.Trained, t.Layers, t.Width, len(r.File), t.Classifier)
	p("It decides English sentences that the classifier is in doubt about or holds for biased or toxic, and tells the ground of bias. For flags that people or rules look at; " +
		"not for decisions about persons, and not a measure of a language model's character. Data and licences: the classifier's card, [model.md](../model.md).\n\n")
	p("## What calibration saw\nEnglish rows of split dev, those of the unseen sets apart: their sources were learnt from, they were not. And ordinary text of sources that nothing was learnt from (`tools/train/ordinary.py`).\n\n")
	p("Sentences are asked about from the classifier's first score and logit on.\n\n| head | effort | where a group is named | elsewhere | threshold | recall | flagged of ordinary text | of harmless hard cases | ordinary texts asked about |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range r.Tuning {
		a := &o.Asking
		p("| %s | %s | %g, %g | %g, %g | %.3f | %.3f of %d | %s | %s | %s |\n", o.Head, o.Effort, a.Named.First, a.Named.Logit, a.Unnamed.First, a.Unnamed.Logit, a.Threshold,
			float64(o.Found)/float64(max(1, o.True)), o.True, Share(o.OrdinaryFound, o.Ordinary), Share(o.BenignOnes, o.Benign), Share(o.OrdinaryAsked, o.Ordinary))
	}
	p("\n## Known failures\nOther languages than English, irony, what is said over several sentences, sentences that the classifier is not in doubt about, reclaimed words. At most four sentences of a text are asked about for each head.\n")
	return b.String()
}
