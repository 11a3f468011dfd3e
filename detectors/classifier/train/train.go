package train

import (
	"errors"
	"fmt"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
)

// Result is a model and what is to be said about it.
type Result struct {
	Model  *classifier.Model
	File   []byte
	Split  Split
	Swaps  int       // counterfactuals learnt from
	Tuning []Outcome // of each head
	Passed float64   // share of ordinary texts with a sentence above the gate
}

// reader prepares texts as the hot path does.
type reader struct{ a *detectors.Analyzer }

func newReader() (*reader, error) {
	a, err := detectors.NewAnalyzer(detectors.DefaultPolicy())
	return &reader{a}, err
}

func (r *reader) read(text string) *detectors.Input {
	return r.a.Prepare(&audit.Interaction{Domain: audit.General, Response: text})
}

func (r *reader) sentences(text string) (out []string) {
	in := r.read(text)
	normal := in.Normal(audit.Output).String()
	for _, s := range in.Sentences(audit.Output) {
		out = append(out, normal[s.Start:s.End])
	}
	return out
}

// Train makes a model of rows. log may be nil. Without rows that say something of bias it fails with KindInvalid.
func Train(rows []dataset.Row, recipe Recipe, log func(format string, args ...any)) (*Result, error) {
	const op = "train: train"
	if log == nil {
		log = func(string, ...any) {}
	}
	rd, err := newReader()
	if err != nil {
		return nil, err
	}
	res := &Result{Split: recipe.split(rows)}
	if n := res.Split.unlearn(rd); n > 0 {
		log("%d rows of a teacher are of texts held back", n)
	}
	examples, swaps := recipe.examples(rd, res.Split.Fit)
	res.Swaps = swaps
	bias := 0
	for _, e := range examples {
		if e.Target[classifier.Bias] > 0.5 {
			bias++
		}
	}
	if bias == 0 || bias == len(examples) || len(res.Split.Calibrate) == 0 {
		return nil, audit.E(op, audit.KindInvalid, errors.New("too little to learn from: want biased and harmless texts, and some to calibrate with"))
	}
	log("%d rows to learn from, %d counterfactuals, %d rows to calibrate with", len(res.Split.Fit), swaps, len(res.Split.Calibrate))
	m := classifier.Fit(examples, classifier.FitOptions{Seed: recipe.Seed, Epochs: recipe.Epochs, Vectors: recipe.Vectors, Log: log})
	m.Meta.Trained = fmt.Sprintf("%d texts of %d sources, %d counterfactuals", len(res.Split.Fit), len(res.Split.Counts), swaps)
	return res, recipe.finish(rd, m, res)
}

// finish calibrates and writes the file.
func (r *Recipe) finish(rd *reader, m *classifier.Model, res *Result) (err error) {
	r.calibrate(rd, m, res)
	if res.File, err = m.Encode(); err != nil {
		return err
	}
	if len(res.File) > classifier.MaxFile {
		return audit.E("train: finish", audit.KindInternal, fmt.Errorf("the model has %d bytes", len(res.File)))
	}
	res.Model, err = classifier.Decode(res.File)
	return err
}

// examples turns rows into examples and adds counterfactuals of those that mention a group.
func (r *Recipe) examples(rd *reader, rows []dataset.Row) (out []classifier.Example, swaps int) {
	rng := r.rng(11)
	for i := range rows {
		row := &rows[i]
		e := classifier.Example{Sentences: rd.sentences(row.Text), Weight: float32(r.weight(row)), Grounds: row.Grounds()}
		e.Target, e.Doubt = Target(row)
		soften(&e.Target, &e.Doubt, row.Teacher, r.Alpha)
		mentions := false
		for _, s := range e.Sentences {
			mentions = mentions || len(classifier.Mentions(s)) > 0
		}
		e.Hide = mentions
		b := e.Target[classifier.Bias]
		if mentions && b < 0.5 {
			e.Weight *= float32(r.Hard)
		}
		if b < 0.5 && !r.ordinary(row.Source) {
			e.Grounds = nil // who is mentioned harmlessly need not be whom it is about
		}
		out = append(out, e)
		if !mentions || b != b || r.ordinary(row.Source) {
			continue
		}
		for range r.Swaps {
			c := e
			c.Weight *= 0.5
			c.Sentences, c.Grounds = nil, nil
			for _, s := range e.Sentences {
				swapped, to, ok := classifier.Swap(s, rng.IntN)
				c.Sentences = append(c.Sentences, swapped)
				if ok && c.Grounds == nil && b >= 0.5 {
					c.Grounds = []audit.Ground{to}
				}
			}
			out = append(out, c)
			swaps++
		}
	}
	return out, swaps
}
