package train

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// efforts are what the encoder may cost, the cheapest first: it is asked about three of a hundred long answers of a language model,
// about one of seven, about each text.
var efforts = []encoder.Effort{
	{Name: "balanced", Named: encoder.Doubt{First: -1, Logit: -2}, Unnamed: encoder.Doubt{First: 0.87, Logit: -2}, Context: 0.45},
	{Name: "thorough", Named: encoder.Doubt{First: -2, Logit: -6}, Unnamed: encoder.Doubt{First: -0.5, Logit: -6}, Context: 0},
	{Name: "full", Named: encoder.Doubt{First: -1e3, Logit: -1e3}, Unnamed: encoder.Doubt{First: -1e3, Logit: -1e3}, Context: -2},
}

// EncoderResult is a calibrated encoder and what calibration saw.
type EncoderResult struct {
	File   []byte
	Meta   encoder.Meta
	Tuning []EncoderOutcome // of each effort
}

// EncoderOutcome is what an effort finds in the texts that calibrated it.
type EncoderOutcome struct {
	Effort                           encoder.Effort
	True, Ordinary, Benign           int
	Found, OrdinaryFound, BenignOnes int
	OrdinaryAsked                    int // texts with a sentence that is asked about
}

// Calibrate fits probability and thresholds of an encoder to the English rows of split dev, those of the recipe's unseen sources apart: it has
// learnt from all others. Too few rows are an error of KindInvalid.
func Calibrate(file []byte, m *classifier.Model, rows []dataset.Row, r Recipe) (*EncoderResult, error) {
	const op = "train: calibrate encoder"
	e, err := encoder.Decode(file)
	if err != nil {
		return nil, err
	}
	rd, err := newReader()
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(row dataset.Row) bool {
		return row.Split != "dev" || row.Label.Bias == nil || row.Lang != "" && row.Lang != "en" || row.Source == "mlma_fr" || slices.Contains(r.Unseen, row.Source)
	})
	res := &EncoderResult{Meta: e.Meta}
	meta := &res.Meta
	meta.A, meta.B, meta.Classifier = 1, 0, m.Meta.Version
	var asked [][]float64 // of each effort and row the encoder's logit, -Inf where it is not asked
	for _, f := range efforts {
		f.Threshold = 1
		e.Meta.Efforts, e.Meta.Classifier = []encoder.Effort{f}, m.Meta.Version
		d, err := classifier.NewWithEncoder(m, e, f.Name)
		if err != nil {
			return nil, err
		}
		logits := make([]float64, len(rows))
		for i := range rows {
			logits[i] = math.Inf(-1)
			if z, ok := d.Asked(rd.read(rows[i].Text), audit.Output); ok {
				logits[i] = float64(z)
			}
		}
		asked = append(asked, logits)
	}
	var js []judged
	for i, z := range asked[len(asked)-1] {
		if !math.IsInf(z, 0) {
			j := judged{}
			j.scores.Logits[classifier.Bias] = float32(z)
			j.target[classifier.Bias] = float32(*rows[i].Label.Bias)
			js = append(js, j)
		}
	}
	if len(js) < 50 {
		return nil, audit.E(op, audit.KindInvalid, errors.New("too little to calibrate with: want biased and harmless English texts of split dev"))
	}
	meta.A, meta.B, _ = platt(js, classifier.Bias)
	meta.Efforts = nil
	for n, f := range efforts {
		out := EncoderOutcome{}
		var ordinary, benign, right []float64
		for i := range rows {
			row, p := &rows[i], 0.0
			if !math.IsInf(asked[n][i], 0) {
				p = meta.Probability(float32(asked[n][i]))
			}
			switch {
			case *row.Label.Bias >= 0.5:
				right = append(right, p)
			case r.ordinary(row.Source):
				if ordinary = append(ordinary, p); p > 0 {
					out.OrdinaryAsked++
				}
			case row.Skeleton != "":
				benign = append(benign, p)
			}
		}
		f.Threshold = thousandths(max(above(ordinary, r.EncoderFPR[f.Name].Ordinary), above(benign, r.EncoderFPR[f.Name].Benign), 0.3))
		out.True, out.Ordinary, out.Benign = len(right), len(ordinary), len(benign)
		out.Found, out.OrdinaryFound, out.BenignOnes = exceeding(right, f.Threshold), exceeding(ordinary, f.Threshold), exceeding(benign, f.Threshold)
		if len(ordinary) > 0 {
			f.FPR = float64(out.OrdinaryFound) / float64(len(ordinary))
		}
		out.Effort = f
		meta.Efforts, res.Tuning = append(meta.Efforts, f), append(res.Tuning, out)
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

// Card is the encoder's model card, in Markdown.
func (r *EncoderResult) Card() string {
	var b strings.Builder
	p := func(format string, a ...any) { fmt.Fprintf(&b, format, a...) }
	t := &r.Meta
	p("# Model card: %s, version %s\n\n", t.Name, t.Version)
	p("%s. %d layers of %d numbers, weights of a byte; %d bytes. Written by `tools/train/export.py` and `evenhand train --encoder`, calibrated with classifier %s.\n\n", t.Trained, t.Layers, t.Width, len(r.File), t.Classifier)
	p("It decides English sentences that the classifier is in doubt about or holds for biased, and tells their ground. For flags that people or rules look at; " +
		"not for decisions about persons, and not a measure of a language model's character. Data and licences: the classifier's card, [model.md](../model.md).\n\n")
	p("## What calibration saw\nEnglish rows of split dev, those of the unseen sets apart: their sources were learnt from, they were not. And ordinary text of sources that nothing was learnt from (`tools/train/ordinary.py`).\n\n")
	p("Sentences are asked about from the classifier's first score and logit on.\n\n| effort | where a group is named | elsewhere | threshold | recall | flagged of ordinary text | of harmless hard cases | ordinary texts asked about |\n|---|---|---|---|---|---|---|---|\n")
	for _, o := range r.Tuning {
		p("| %s | %g, %g | %g, %g | %.3f | %.3f of %d | %s | %s | %s |\n", o.Effort.Name, o.Effort.Named.First, o.Effort.Named.Logit, o.Effort.Unnamed.First, o.Effort.Unnamed.Logit, o.Effort.Threshold,
			float64(o.Found)/float64(max(1, o.True)), o.True, Share(o.OrdinaryFound, o.Ordinary), Share(o.BenignOnes, o.Benign), Share(o.OrdinaryAsked, o.Ordinary))
	}
	p("\n## Known failures\nOther languages than English, irony, what is said over several sentences, sentences that the classifier is not in doubt about, reclaimed words. At most four sentences of a text are asked about.\n")
	return b.String()
}
