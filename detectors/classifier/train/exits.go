package train

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
	"github.com/evenhand/evenhand/detectors/classifier/kernel"
)

// How early exits learn.
const (
	exitSentences = 100_000 // at most; their means are held in memory, 8 KB each
	exitEpochs    = 12
	exitBatch     = 128
	exitRate      = 2e-3
)

// fitExits gives a glance and the early exits, two before the first layer and one after each but the last, learnt from what the whole encoder says of
// sentences in its languages, of the rows that it learnt from. The same rows and seed give the same bytes.
func fitExits(e *encoder.Model, rd *reader, rows []dataset.Row, r *Recipe, log func(format string, args ...any)) (*encoder.Glance, []encoder.Exit, error) {
	var texts []string
	for i := range rows {
		if !speaks(e, &rows[i]) || rows[i].Split == "dev" {
			continue
		}
		for _, s := range rd.sentences(rows[i].Text) {
			if e.Reads(s) {
				texts = append(texts, s)
			}
		}
	}
	if len(texts) < glanceBatch {
		return nil, nil, audit.E("train: fit early exits", audit.KindInvalid, errors.New("too little for early exits to learn from: want texts of split train in its languages"))
	}
	width, depths := e.Meta.Width, e.Meta.Layers-1
	every := (len(texts) + exitSentences - 1) / exitSentences // one in so many sentences has its means learnt from
	pieces, means, said := make([][]int32, len(texts)), make([][]float32, len(texts)), make([][len(encoder.Heads)]float32, len(texts))
	each(len(texts), func(i int) {
		if i%every == 0 {
			means[i] = make([]float32, depths*width)
		}
		all := e.Means(texts[i], means[i])
		copy(said[i][:], all[:])
		pieces[i] = e.Pieces(texts[i])
	})
	log("%d sentences read, early exits learn from %d means and all of their pieces", len(texts), (len(texts)+every-1)/every)
	ofMeans := make([]encoder.Exit, depths)
	each(depths, func(depth int) {
		var x [][]float32
		var z [][len(encoder.Heads)]float32
		for i := range means {
			if means[i] != nil {
				x, z = append(x, means[i][depth*width:][:width]), append(z, said[i])
			}
		}
		ofMeans[depth] = fitExit(x, z, rand.New(rand.NewPCG(r.Seed, uint64(depth))))
	})
	glance, ofGlance := fitGlance(e, pieces, said, r.Seed, log)
	return glance, slices.Insert(ofMeans, encoder.Glancing, ofGlance), nil
}

// fitExit learns to say of means (of so many numbers) what is said of them, logits of the heads.
func fitExit(means [][]float32, said [][len(encoder.Heads)]float32, rng *rand.Rand) encoder.Exit {
	width, heads := len(means[0]), len(encoder.Heads)
	middle, unit := scales(means)
	x := encoder.NewExit(width)
	for i, part := range x.Parts() { // as a layer begins in PyTorch
		bound := 1 / math.Sqrt(float64([...]int{width, width, encoder.Hidden, encoder.Hidden}[i]))
		for k := range part {
			part[k] = float32(bound * (2*rng.Float64() - 1))
		}
	}
	grad := encoder.NewExit(width)
	var adam [4]*kernel.Adam
	for i, part := range x.Parts() {
		adam[i] = kernel.NewAdam(len(part))
	}
	order := rng.Perm(len(means))
	steps, total := 0, exitEpochs*(len(order)/exitBatch)
	in := make([]float32, width)
	var hidden, down [encoder.Hidden]float32
	for range exitEpochs {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for n, at := range order {
			for k, v := range means[at] {
				in[k] = float32((v - middle[k]) * unit[k])
			}
			z := x.Answer(in, &hidden)
			for h := range z {
				z[h] = float32(sigmoid(float64(z[h])) - sigmoid(float64(said[at][h])))
				grad.OutBias[h] += z[h]
			}
			for k, v := range hidden {
				if down[k] = 0; v == 0 {
					continue
				}
				for h, d := range z {
					grad.Out[k*heads+h] += float32(v * d)
					down[k] += float32(x.Out[k*heads+h] * d)
				}
				grad.InBias[k] += down[k]
			}
			for k, v := range in {
				kernel.Axpy(grad.In[k*encoder.Hidden:], v, down[:])
			}
			if n%exitBatch == exitBatch-1 {
				rate := exitRate * max(0.02, 1-float64(steps)/float64(total))
				steps++
				for i, part := range x.Parts() {
					adam[i].Descend(part, grad.Parts()[i], exitBatch, rate)
				}
			}
		}
	}
	for k := range middle { // the numbers as they come are what it is asked about
		row := x.In[k*encoder.Hidden:][:encoder.Hidden]
		for j := range row {
			row[j] = float32(row[j] * unit[k])
			x.InBias[j] -= float32(row[j] * middle[k])
		}
	}
	return x
}

// scales gives the middle of each number and one over its standard deviation.
func scales(of [][]float32) (middle, unit []float32) {
	middle, unit = make([]float32, len(of[0])), make([]float32, len(of[0]))
	for k := range middle {
		var sum, squares float64
		for _, x := range of {
			sum += float64(x[k])
			squares += float64(float64(x[k]) * float64(x[k]))
		}
		mean := sum / float64(len(of))
		middle[k], unit[k] = float32(mean), float32(1/(math.Sqrt(max(0, squares/float64(len(of))-float64(mean*mean)))+1e-6))
	}
	return middle, unit
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
