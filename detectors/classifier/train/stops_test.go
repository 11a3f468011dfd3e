package train

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// With limits, about as many ordinary texts are read on as may be (what one head would stop at an exit may go on for another at the next), and what the
// classifier says is used; without, next to nothing is lost.
func TestStopsKeepWithinLimits(t *testing.T) {
	t.Run("bias and toxicity", func(t *testing.T) { testStops(t, 2, 1+part) })
	t.Run("and violence", func(t *testing.T) { testStops(t, 3, 1.25*(1+part+0.2)) })
}

// testStops has the first heads ask; with limits at most so many times what bias may have is read on.
func testStops(t *testing.T, heads int, most float64) {
	r := DefaultRecipe()
	rng := rand.New(rand.NewPCG(1, 2))
	rows, readings := make([]dataset.Row, 4_000), make([]reading, 0, 12_000)
	decides := []encoder.Scale{{Head: "bias", A: 1}, {Head: "toxicity", A: 1}, {Head: "violence", A: 1}}[:heads]
	long := string(make([]byte, classifier.ShortText+1))
	for i := range rows {
		rows[i].Text = long
		if i%2 == 0 {
			rows[i].Source = r.Ordinary[0]
		}
		for range 3 {
			x := reading{row: i, exits: make([][len(encoder.Heads)]float32, 3)}
			for h := range decides {
				meant := -5.0 // of ordinary text; exits and classifier guess it, each in its own way
				if i%2 == 1 {
					meant = 4
				}
				x.all[h] = float32(meant + rng.NormFloat64())
				x.Logits[h] = float32(meant + 3*rng.NormFloat64())
				for exit := range x.exits {
					x.exits[exit][h] = float32(meant + float64(4-exit)*rng.NormFloat64())
				}
			}
			readings = append(readings, x)
		}
	}
	weights := slices.Repeat([][]float64{slices.Repeat([]float64{0.5}, heads)}, 3)
	f := encoder.Effort{Name: "x", Heads: slices.Repeat([]encoder.Asking{{Named: everything, Unnamed: everything, Context: never, Threshold: 0.5}}, heads)}
	c := newChoice(&f, decides, rows, readings, false, &r)
	if len(c.ordinary) != 2_000 || len(c.asked) != len(readings) {
		t.Fatalf("%d ordinary texts, %d sentences asked about", len(c.ordinary), len(c.asked))
	}
	limits := []float64{0.05, 0.02}
	f.Alone = c.stops(weights, limits, []float64{0.01, 0.004})
	for i, o := range c.outcomes() {
		limit := limits[min(i, 1)]
		if o.Texts != 2_000 || float64(o.TextsReadOn) > most*limit*2_000 || i == 0 && float64(o.TextsReadOn) < 0.8*limit*2_000 || o.Lost == 0 || o.Lost > o.Found/2 {
			t.Errorf("with limits: %+v", o)
		}
		if f.Alone[i][classifier.Bias].Weight == 0 {
			t.Errorf("exit %d makes nothing of what the classifier says", i)
		}
	}
	f.Alone = c.stops(weights, nil, nil)
	if f.Alone.Asks(encoder.Glancing) || len(c.outcomes()) != len(weights)-1 {
		t.Errorf("without: a glance, %+v", c.outcomes())
	}
	for i, o := range c.outcomes() {
		if float64(o.Lost) > 2*lose*float64(i+1)*float64(o.Found) || o.ReadOn == o.Asked {
			t.Errorf("without: %+v", o)
		}
		if !slices.Contains(weights[o.Exit], f.Alone[o.Exit][classifier.Bias].Weight) {
			t.Errorf("exit %d: %+v", o.Exit, f.Alone[o.Exit])
		}
	}
}
