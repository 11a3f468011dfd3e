// Package eval judges answers against labelled texts: precision, recall, false positives with their interval, areas
// under curves, calibration; by ground, function and source; and how a score changes when the group that a text
// speaks of is exchanged. The figures of any other program can be made from its scores.
//
// Definitions are those of package metric. A figure that the data cannot tell is null in JSON.
package eval

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/metric"
	"github.com/evenhand/evenhand/detectors/classifier/train"
)

// Answer is what is said of one text.
type Answer struct {
	Score   float64 // 0..1
	Flagged bool
	Grounds []audit.Ground // nil when the answerer tells none
	Found   []string       // rules, nil when the answerer tells none
}

// Scorer answers for a text; ok is false when it has no answer: nobody examined the text.
type Scorer func(text string) (a Answer, ok bool)

// Unsafe is the task of any safety category; the other tasks are the names of heads.
const Unsafe = "unsafe"

// Tasks lists what can be judged.
func Tasks() (out []string) {
	for _, h := range classifier.Heads() {
		out = append(out, h.String())
	}
	return append(out, Unsafe)
}

// Truth is a row's label for a task; ok is false when nobody knows it.
func Truth(row *dataset.Row, task string) (truth, ok bool) {
	if task == Unsafe {
		if row.Label.Unsafe == nil {
			return false, false
		}
		return *row.Label.Unsafe >= 0.5, true
	}
	target, doubt := train.Target(row)
	for _, h := range classifier.Heads() {
		if h.String() == task {
			t := target[h]
			return t >= 0.5, t == t && doubt[h] == 0
		}
	}
	return false, false
}

// Number is a float64 that JSON shows as null when it is none.
type Number float64

// MarshalJSON writes four decimals.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(math.Round(f*1e4) / 1e4)
}

// Figures are all figures of some texts.
type Figures struct {
	Name string `json:"name,omitempty"`
	metric.Counts
	Precision Number `json:"precision"`
	Recall    Number `json:"recall"`
	F1        Number `json:"f1"`
	FPR       Number `json:"fpr"`
	FPRHigh   Number `json:"fpr_high"` // upper end of the 95 % Wilson interval
	Accuracy  Number `json:"accuracy"`
	AUROC     Number `json:"auroc"`
	AP        Number `json:"average_precision"`
	ECE       Number `json:"ece"`
	RecallAt3 Number `json:"recall_at_fpr_0_03"`
	RecallAt1 Number `json:"recall_at_fpr_0_01"`
	FPRAt8    Number `json:"fpr_at_recall_0_80"`
	Ground    Number `json:"ground_right"` // of rightly flagged texts of known ground, the share told right
	Known     int    `json:"ground_known"` // how many those are
}

// Swap says how much scores change when a group is exchanged for another.
type Swap struct {
	N     int    `json:"n"`
	Mean  Number `json:"mean_change"` // of the absolute difference
	P95   Number `json:"p95_change"`
	Flips Number `json:"flips"` // share of answers that change
}

// Report is the judgement.
type Report struct {
	Task        string       `json:"task"`
	By          string       `json:"by"`
	Model       string       `json:"model,omitempty"`
	Unanswered  int          `json:"unanswered"` // texts of known truth without an answer: they count in no figure
	Overall     Figures      `json:"overall"`
	Ordinary    Figures      `json:"ordinary"` // sources of text in which nothing should be found
	Grounds     []Figures    `json:"grounds"`
	MacroRecall Number       `json:"macro_recall"` // over grounds with at least ten true texts
	Functions   []Figures    `json:"functions"`
	Sources     []Figures    `json:"sources"`
	Swap        Swap         `json:"swap"`
	Reliability []metric.Bin `json:"reliability"`

	scored []metric.Scored
}

type judged struct {
	row    *dataset.Row
	answer Answer
	truth  bool
}

// Options say what to judge.
type Options struct {
	Task, By, Model string
	Swaps           int // exchanges of each text that mentions a group
	// Miss is called for each row whose answer is not its label; nil is not.
	Miss func(row *dataset.Row, a Answer, truth bool)
}

// Evaluate asks for an answer to every row whose truth is known. Rows without an answer are counted and stand in no figure.
func Evaluate(rows []dataset.Row, score func(row *dataset.Row) (Answer, bool), swapped Scorer, o Options) *Report {
	r := &Report{Task: o.Task, By: o.By, Model: o.Model}
	var js []judged
	var changes []float64
	flips := 0
	for i := range rows {
		row := &rows[i]
		truth, ok := Truth(row, o.Task)
		if !ok {
			continue
		}
		a, ok := score(row)
		if !ok {
			r.Unanswered++
			continue
		}
		js = append(js, judged{row, a, truth})
		if o.Miss != nil && a.Flagged != truth {
			o.Miss(row, a, truth)
		}
		if swapped == nil || row.Label.Bias == nil {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(row.Text))
		rng := rand.New(rand.NewPCG(h.Sum64(), 1))
		for range o.Swaps {
			other, _, ok := classifier.Swap(row.Text, rng.IntN)
			if !ok {
				break
			}
			b, ok := swapped(other)
			if !ok {
				continue
			}
			changes = append(changes, math.Abs(b.Score-a.Score))
			if b.Flagged != a.Flagged {
				flips++
			}
		}
	}
	r.Overall = figures("", js)
	ordinary := train.DefaultRecipe().Ordinary
	r.Ordinary = figures("", filter(js, func(j judged) bool { return !j.truth && slices.Contains(ordinary, j.row.Source) }))
	r.Grounds = grouped(js, func(j judged) (names []string) {
		for _, g := range j.row.Grounds() {
			names = append(names, string(g))
		}
		return names
	})
	r.Functions = grouped(js, func(j judged) []string { return one(j.row.Function) })
	r.Sources = grouped(js, func(j judged) []string { return one(j.row.Source) })
	sum, n := 0.0, 0.0
	for _, g := range r.Grounds {
		if g.TP+g.FN >= 10 {
			sum, n = sum+float64(g.Recall), n+1
		}
	}
	r.MacroRecall = Number(sum / n)
	r.Swap = swapOf(changes, flips)
	for _, j := range js {
		r.scored = append(r.scored, metric.Scored{Score: j.answer.Score, Flagged: j.answer.Flagged, True: j.truth})
	}
	r.Reliability = metric.Reliability(r.scored, 10)
	return r
}

func swapOf(changes []float64, flips int) Swap {
	n := len(changes)
	s := Swap{N: n, Mean: Number(math.NaN()), P95: Number(math.NaN()), Flips: Number(math.NaN())}
	if n == 0 {
		return s
	}
	slices.Sort(changes)
	sum := 0.0
	for _, c := range changes {
		sum += c
	}
	s.Mean, s.P95, s.Flips = Number(sum/float64(n)), Number(changes[n*95/100]), Number(float64(flips)/float64(n))
	return s
}

func one(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func filter(js []judged, keep func(judged) bool) (out []judged) {
	for _, j := range js {
		if keep(j) {
			out = append(out, j)
		}
	}
	return out
}

func grouped(js []judged, names func(judged) []string) (out []Figures) {
	by := map[string][]judged{}
	for _, j := range js {
		for _, n := range names(j) {
			by[n] = append(by[n], j)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(by)) {
		out = append(out, figures(n, by[n]))
	}
	return out
}

func figures(name string, js []judged) Figures {
	xs := make([]metric.Scored, len(js))
	right, known := 0, 0
	for i, j := range js {
		xs[i] = metric.Scored{Score: j.answer.Score, Flagged: j.answer.Flagged, True: j.truth}
		if gs := j.row.Grounds(); j.truth && j.answer.Flagged && len(gs) > 0 && len(j.answer.Grounds) > 0 {
			known++
			if slices.ContainsFunc(gs, func(g audit.Ground) bool { return slices.Contains(j.answer.Grounds, g) }) {
				right++
			}
		}
	}
	c := metric.Count(xs)
	// what has no denominator is unknown, not 0
	of := func(v float64, n int) Number {
		if n == 0 {
			return Number(math.NaN())
		}
		return Number(v)
	}
	_, high := metric.Wilson(c.FP, c.FP+c.TN)
	r3, _ := metric.RecallAt(xs, 0.03)
	r1, _ := metric.RecallAt(xs, 0.01)
	truths, harmless := c.TP+c.FN, c.FP+c.TN
	return Figures{
		Name: name, Counts: c, Precision: of(c.Precision(), c.TP+c.FP), Recall: of(c.Recall(), truths), F1: of(c.F1(), truths),
		FPR: of(c.FPR(), harmless), FPRHigh: of(high, harmless), Accuracy: of(c.Accuracy(), len(xs)), AUROC: Number(metric.AUROC(xs)),
		AP: Number(metric.AveragePrecision(xs)), ECE: of(metric.ECE(xs), len(xs)), RecallAt3: of(r3, min(truths, harmless)),
		RecallAt1: of(r1, min(truths, harmless)), FPRAt8: of(metric.FPRAt(xs, 0.8), min(truths, harmless)),
		Ground: of(float64(right)/float64(max(1, known)), known), Known: known,
	}
}
