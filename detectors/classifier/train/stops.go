package train

import (
	"maps"
	"math"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// lose is the share of the sentences with something found that an early exit may stop at, of each head.
const lose = 0.0018

// readOn are the shares of long ordinary texts that may have a sentence that is read beyond each early exit, for bias; efforts without lose next
// to nothing, and cost what that costs. One layer's weights come from memory in up to .2 ms, so what is read beyond the glance takes most of a
// millisecond in all: one long answer in a hundred (docs/benchmarks.md, chain).
var readOn = map[string][]float64{
	leastEffort:  readOnLittle,
	"thorough":   readOnThoroughly,
	mediumEffort: readOnThoroughly, suspiciousEffort: readOnLittle,
}

var readOnLittle = []float64{0.045, 0.011, 0.009, 0.008, 0.008, 0.008}

var readOnThoroughly = []float64{0.3, 0.15, 0.12, 0.08, 0.06, 0.05}

// part is what toxicity may have of that.
const part = 0.25

// harmReadOn are the shares for each head of safety where the least effort reads long English texts: what passes the glance is mostly stopped a layer later, which
// knows more. Elsewhere these heads have no limit: nothing of theirs is to be lost.
var harmReadOn = map[string][]float64{leastEffort: {0.02, 0.0012, 0.0008, 0.0006, 0.0005, 0.0005}}

// StopOutcome is what an early exit does, at an effort, to the sentences of the texts that calibrated it.
type StopOutcome struct {
	Effort             string
	Exit               int
	Found, Lost        int // sentences above a threshold in the end; of these, those where the reading has stopped
	Asked, ReadOn      int // sentences of ordinary texts that are asked about; of these, where it has not
	Texts, TextsReadOn int // ordinary texts; of these, with such a sentence
}

// reading is a sentence of a row with what is said of it: by the classifier, after each early exit, in the end.
type reading struct {
	classifier.Window
	row   int
	exits [][len(encoder.Heads)]float32
	all   encoder.Logits
	prior encoder.Prior // at the effort in hand
}

// probability is what encoder and classifier say together in the end.
func (x *reading) probability(scale encoder.Scale, h int) float64 {
	return scale.Probability(scale.Joint(x.all[h], x.Logits[h]))
}

// score is what an early exit and the classifier say together.
func (x *reading) score(h, exit int, weight float64) float64 {
	return float64(x.exits[exit][h]) + float64(weight*float64(x.Logits[h]))
}

// stop chooses where early exits stop, for all efforts.
func (res *EncoderResult) stop(e *encoder.Model, m *classifier.Model, rd *reader, rows []dataset.Row, r *Recipe) {
	of, d := make([][]reading, len(rows)), classifier.New(m)
	each(len(rows), func(i int) {
		for _, w := range d.Windows(rd.read(rows[i].Text), audit.Output) {
			if e.Reads(w.Text) {
				x := reading{Window: w, row: i}
				x.exits, x.all = e.Depths("", w.Text, "")
				of[i] = append(of[i], x)
			}
		}
	})
	readings := slices.Concat(of...)
	weights := make([][]float64, e.Meta.Exits)
	each(len(weights), func(exit int) {
		for h, scale := range res.Meta.Decides {
			weights[exit] = append(weights[exit], beside(scale, readings, h, exit))
		}
	})
	res.Stops = nil
	p := planOf(&res.Meta, nil)
	for n := range res.Meta.Efforts {
		f := &res.Meta.Efforts[n]
		c := newChoice(f, res.Meta.Decides, rows, readings, n == short, r)
		f.InPassage = c.stops(weights, nil, nil)
		f.Alone = c.stops(weights, p.readOn[f.Name], p.harmReadOn[f.Name])
		res.Stops = append(res.Stops, c.outcomes()...)
	}
}

// beside gives what the classifier's logit counts beside an exit's in the probability of being found; 0 where hardly anything is.
func beside(scale encoder.Scale, readings []reading, h, exit int) float64 {
	js, found := make([]judged, len(readings)), 0
	for i := range readings {
		if readings[i].probability(scale, h) > 0.5 {
			js[i].target[h] = 1
			found++
		}
	}
	if found < 20 {
		return 0
	}
	return weigh(js, classifier.Head(h), 1, 0.05, func(i int, weight float64) float32 { return float32(readings[i].score(h, exit, weight)) })
}

// choice is what stops of an effort are chosen by.
type choice struct {
	effort   *encoder.Effort
	decides  []encoder.Scale
	asked    []*reading
	ordinary map[int]bool // the ordinary texts, by row, that the effort reads
}

func newChoice(f *encoder.Effort, decides []encoder.Scale, rows []dataset.Row, readings []reading, brief bool, r *Recipe) *choice {
	c := &choice{effort: f, decides: decides, ordinary: map[int]bool{}}
	for i := range rows {
		if r.ordinary(rows[i].Source) && (len(rows[i].Text) <= classifier.ShortText) == brief {
			c.ordinary[i] = true
		}
	}
	for i := range readings {
		x := &readings[i]
		x.prior = encoder.Prior{Ask: f.Asks(x.First, &x.Logits, x.Named), Logits: x.Logits}
		if slices.Contains(x.prior.Ask[:], true) && (c.ordinary[x.row] || !r.ordinary(rows[x.row].Source)) {
			c.asked = append(c.asked, x)
		}
	}
	return c
}

// stops gives, of each early exit and head, what is too little: what the share lose of the sentences that are above the head's threshold in the end
// does not reach, and, where there are limits, of safety limits of its own, as much more as it takes for no more ordinary texts to be read on.
func (c *choice) stops(weights [][]float64, limits, harm []float64) encoder.Stops {
	stops := make(encoder.Stops, len(weights))
	for h, scale := range c.decides {
		a := &c.effort.Heads[h]
		left := slices.DeleteFunc(slices.Clone(c.asked), func(x *reading) bool { return !x.prior.Ask[h] })
		for exit := range stops {
			if exit == encoder.Glancing && limits == nil {
				continue // a glance is dearer than what it would save
			}
			stop := encoder.Stop{Weight: weights[exit][h], Below: min(a.Context, scale.Logit(a.Threshold/2))}
			if found := c.found(left, h, exit, stop.Weight); len(found) > 0 {
				stop.Below = min(stop.Below, found[int(lose*float64(len(found)))])
			}
			if limits := [...][]float64{limits, limits, harm}[min(h, 2)]; limits != nil {
				limit := limits[min(exit, len(limits)-1)] * float64(len(c.ordinary))
				if classifier.Head(h) == classifier.Toxicity {
					limit *= part
				}
				if within := c.within(left, h, exit, int(limit)); within.Below > stop.Below {
					stop = within
				}
				left = slices.DeleteFunc(left, func(x *reading) bool { return x.score(h, exit, stop.Weight) < stop.Below })
			}
			stops[exit] = append(stops[exit], stop)
		}
	}
	return stops
}

// found gives the scores of those that are above a head's threshold in the end, the lowest first.
func (c *choice) found(of []*reading, h, exit int, weight float64) (scores []float64) {
	for _, x := range of {
		if x.probability(c.decides[h], h) > c.effort.Heads[h].Threshold {
			scores = append(scores, x.score(h, exit, weight))
		}
	}
	slices.Sort(scores)
	return scores
}

// within gives the stop that leaves at most so many ordinary texts, of all weights the one that leaves the most of what is found.
func (c *choice) within(of []*reading, h, exit, texts int) (stop encoder.Stop) {
	most := -1
	for weight := 0.0; weight <= 1; weight += 0.1 {
		top := map[int]float64{} // of ordinary texts
		for _, x := range of {
			if z, ok := top[x.row]; c.ordinary[x.row] && (!ok || x.score(h, exit, weight) > z) {
				top[x.row] = x.score(h, exit, weight)
			}
		}
		tops := slices.Sorted(maps.Values(top))
		if texts >= len(tops) {
			return encoder.Stop{Below: math.Inf(-1)} // it leaves them anyway
		}
		below := math.Nextafter(tops[len(tops)-1-texts], math.Inf(1))
		found := c.found(of, h, exit, weight)
		at, _ := slices.BinarySearch(found, below)
		if len(found)-at > most {
			most, stop = len(found)-at, encoder.Stop{Weight: weight, Below: below}
		}
	}
	return stop
}

// outcomes counts what the effort's stops do.
func (c *choice) outcomes() []StopOutcome {
	out, on := make([]StopOutcome, len(c.effort.Alone)), make([]map[int]bool, len(c.effort.Alone))
	for i := range out {
		out[i], on[i] = StopOutcome{Effort: c.effort.Name, Exit: i, Texts: len(c.ordinary)}, map[int]bool{}
	}
	for _, x := range c.asked {
		found := false
		for h, scale := range c.decides {
			found = found || x.prior.Ask[h] && x.probability(scale, h) > c.effort.Heads[h].Threshold
		}
		stopped := false
		for i := range out {
			o := &out[i]
			stopped = stopped || c.effort.Alone.Stop(i, &x.exits[i], &x.prior)
			o.Found, o.Lost = o.Found+count(found), o.Lost+count(found && stopped)
			if c.ordinary[x.row] {
				if o.Asked, o.ReadOn = o.Asked+1, o.ReadOn+count(!stopped); !stopped {
					on[i][x.row] = true
				}
			}
		}
	}
	for i := range out {
		out[i].TextsReadOn = len(on[i])
	}
	return slices.DeleteFunc(out, func(o StopOutcome) bool { return !c.effort.Alone.Asks(o.Exit) })
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
