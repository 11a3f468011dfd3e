// Package metric computes how good a classifier is: counts, rates with intervals, areas under curves, calibration.
// Definitions are scikit-learn's: ties share their rank in AUROC, average precision is the sum of precision
// times the step in recall, curves are read at distinct scores.
package metric

import (
	"cmp"
	"math"
	"slices"
)

// Scored is one text's score, whether it was flagged, and the truth.
type Scored struct {
	Score   float64
	Flagged bool
	True    bool
}

// Counts of answers against the truth.
type Counts struct {
	TP int `json:"tp"`
	FP int `json:"fp"`
	TN int `json:"tn"`
	FN int `json:"fn"`
}

// Count sorts answers by the truth.
func Count(xs []Scored) (c Counts) {
	for _, x := range xs {
		switch {
		case x.Flagged && x.True:
			c.TP++
		case x.Flagged:
			c.FP++
		case x.True:
			c.FN++
		default:
			c.TN++
		}
	}
	return c
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Precision is the share of flagged texts that are rightly so; 0 when none is flagged.
func (c Counts) Precision() float64 { return ratio(c.TP, c.TP+c.FP) }

// Recall is the share of true texts that are flagged; 0 when there are none.
func (c Counts) Recall() float64 { return ratio(c.TP, c.TP+c.FN) }

// FPR is the share of harmless texts that are flagged; 0 when there are none.
func (c Counts) FPR() float64 { return ratio(c.FP, c.FP+c.TN) }

// F1 is the harmonic mean of precision and recall.
func (c Counts) F1() float64 { return ratio(2*c.TP, 2*c.TP+c.FP+c.FN) }

// Accuracy is the share of right answers.
func (c Counts) Accuracy() float64 { return ratio(c.TP+c.TN, c.TP+c.TN+c.FP+c.FN) }

// Wilson gives the 95 % interval of k of n.
func Wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	p, m := float64(k)/float64(n), float64(n)
	centre, half := p+z*z/(2*m), z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, (centre-half)/(1+z*z/m)), min(1, (centre+half)/(1+z*z/m))
}

// byScore orders by score, highest first.
func byScore(xs []Scored) []Scored {
	out := slices.Clone(xs)
	slices.SortStableFunc(out, func(a, b Scored) int { return cmp.Compare(b.Score, a.Score) })
	return out
}

// Step is the state of a curve at a threshold: what has at least this score is flagged.
type Step struct {
	Threshold float64
	Counts
}

// Curve gives the counts at every distinct score, highest first.
func Curve(xs []Scored) (steps []Step) {
	all := Counts{}
	for _, x := range xs {
		if x.True {
			all.FN++
		} else {
			all.TN++
		}
	}
	sorted := byScore(xs)
	for i := 0; i < len(sorted); {
		at := sorted[i].Score
		for ; i < len(sorted) && sorted[i].Score == at; i++ {
			if sorted[i].True {
				all.TP, all.FN = all.TP+1, all.FN-1
			} else {
				all.FP, all.TN = all.FP+1, all.TN-1
			}
		}
		steps = append(steps, Step{at, all})
	}
	return steps
}

// AUROC is the chance that a true text has a higher score than a harmless one, ties half; NaN without both.
func AUROC(xs []Scored) float64 {
	area, last := 0.0, Counts{}
	steps := Curve(xs)
	for _, s := range steps {
		area += float64(s.FP-last.FP) * float64(s.TP+last.TP) / 2
		last = s.Counts
	}
	if last.TP == 0 || last.FP == 0 {
		return math.NaN()
	}
	return area / (float64(last.TP) * float64(last.FP))
}

// AveragePrecision is Σ precision × step in recall; NaN without true texts.
func AveragePrecision(xs []Scored) float64 {
	sum, last := 0.0, 0.0
	steps := Curve(xs)
	if len(steps) == 0 || steps[len(steps)-1].TP == 0 {
		return math.NaN()
	}
	for _, s := range steps {
		sum += (s.Recall() - last) * s.Precision()
		last = s.Recall()
	}
	return sum
}

// RecallAt is the highest recall whose rate of false positives is at most fpr, and its threshold.
func RecallAt(xs []Scored, fpr float64) (recall, threshold float64) {
	threshold = math.Inf(1)
	for _, s := range Curve(xs) {
		if s.FPR() > fpr {
			break
		}
		recall, threshold = s.Recall(), s.Threshold
	}
	return recall, threshold
}

// FPRAt is the lowest rate of false positives whose recall is at least recall; 1 when there is none.
func FPRAt(xs []Scored, recall float64) float64 {
	for _, s := range Curve(xs) {
		if s.Recall() >= recall {
			return s.FPR()
		}
	}
	return 1
}

// Bin of a reliability curve: mean score and share of true texts among the scores of [Low, Low+width).
type Bin struct {
	Low  float64 `json:"low"`
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	True float64 `json:"true"`
}

// Reliability gives the non-empty ones of n bins of equal width.
func Reliability(xs []Scored, n int) (bins []Bin) {
	all := make([]Bin, n)
	for _, x := range xs {
		b := &all[min(n-1, max(0, int(x.Score*float64(n))))]
		b.N++
		b.Mean += x.Score
		if x.True {
			b.True++
		}
	}
	for i, b := range all {
		if b.N > 0 {
			bins = append(bins, Bin{float64(i) / float64(n), b.N, b.Mean / float64(b.N), b.True / float64(b.N)})
		}
	}
	return bins
}

// ECE is the expected calibration error over ten bins: Σ share of the bin × |mean score − share of true texts|.
func ECE(xs []Scored) float64 {
	sum := 0.0
	for _, b := range Reliability(xs, 10) {
		sum += float64(b.N) / float64(len(xs)) * math.Abs(b.Mean-b.True)
	}
	return sum
}
