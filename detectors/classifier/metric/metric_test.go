package metric

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Computed by hand; scikit-learn's roc_auc_score, average_precision_score and precision_recall_fscore_support
// give the same.
func TestByHand(t *testing.T) {
	x := func(score float64, truth bool) Scored { return Scored{score, score > 0.5, truth} }
	// Its documentation's example: truth 0 0 1 1, scores .1 .4 .35 .8.
	four := []Scored{x(0.1, false), x(0.4, false), x(0.35, true), x(0.8, true)}
	// Two ties across the truth: pairs (8): .9>.6 .9>.2 .9>.2 | .6=.6 half, .6>.2 .6>.2 | .2<.6, .2=.2 half ×2 → 3+2.5+1 of 9.
	ties := []Scored{x(0.9, true), x(0.6, true), x(0.2, true), x(0.6, false), x(0.2, false), x(0.2, false)}
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	near("auroc", AUROC(four), 0.75)
	near("ap", AveragePrecision(four), 0.5*1+0.5*2.0/3)
	near("auroc, ties", AUROC(ties), 6.5/9)
	near("ap, ties", AveragePrecision(ties), 1.0/3*1+1.0/3*2.0/3+1.0/3*0.5)
	c := Count(ties) // flagged: .9 true, .6 true, .6 false
	if c != (Counts{TP: 2, FP: 1, TN: 2, FN: 1}) {
		t.Fatalf("%+v", c)
	}
	near("precision", c.Precision(), 2.0/3)
	near("recall", c.Recall(), 2.0/3)
	near("f1", c.F1(), 2.0/3)
	near("fpr", c.FPR(), 1.0/3)
	near("accuracy", c.Accuracy(), 4.0/6)
	// Bins [.1,.2) mean .1 true 0, [.3,.4) .35/1, [.4,.5) .4/0, [.8,.9) .8/1.
	near("ece", ECE(four), (0.1+0.65+0.4+0.2)/4)
	recall, at := RecallAt(four, 0)
	near("recall at fpr 0", recall, 0.5)
	near("threshold", at, 0.8)
	near("fpr at recall .8", FPRAt(four, 0.8), 0.5)
	low, high := Wilson(10, 100)
	near("wilson low", low, 0.05522913706067509)
	near("wilson high", high, 0.17436566150491345)
	if !math.IsNaN(AUROC(four[:2])) || !math.IsNaN(AveragePrecision(four[:2])) || !math.IsNaN(AUROC(nil)) {
		t.Error("one class alone has no area")
	}
	if _, high := Wilson(0, 0); high != 1 {
		t.Error("nothing looked at says nothing")
	}
}

func TestAUROCIsTheShareOfPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var xs []Scored
		for range rapid.IntRange(2, 30).Draw(t, "n") {
			xs = append(xs, Scored{Score: float64(rapid.IntRange(0, 5).Draw(t, "score")) / 5, True: rapid.Bool().Draw(t, "true")})
		}
		sum, n := 0.0, 0.0
		for _, a := range xs {
			for _, b := range xs {
				if !a.True || b.True {
					continue
				}
				n++
				switch {
				case a.Score > b.Score:
					sum++
				case a.Score == b.Score:
					sum += 0.5
				}
			}
		}
		if got := AUROC(xs); n > 0 && math.Abs(got-sum/n) > 1e-12 || n == 0 && !math.IsNaN(got) {
			t.Fatalf("%v, want %v of %v", got, sum, n)
		}
	})
}
