package train

import (
	"errors"
	"math"
	"math/rand/v2"

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

// fitExits gives early exits after each layer but the last, and before the first, learnt from what the whole encoder says of English
// sentences of the rows that it learnt from. The same rows and seed give the same bytes.
func fitExits(e *encoder.Model, rd *reader, rows []dataset.Row, r *Recipe) ([]encoder.Exit, error) {
	var texts []string
	for i := range rows {
		if !english(&rows[i]) || rows[i].Split == "dev" {
			continue
		}
		for _, s := range rd.sentences(rows[i].Text) {
			if e.English(s) {
				texts = append(texts, s)
			}
		}
	}
	if n := min(len(texts), exitSentences); n < len(texts) {
		for i := range n {
			texts[i] = texts[i*len(texts)/n]
		}
		texts = texts[:n]
	}
	if len(texts) < exitBatch {
		return nil, audit.E("train: fit early exits", audit.KindInvalid, errors.New("too little for early exits to learn from: want English texts of split train"))
	}
	exits := make([]encoder.Exit, e.Meta.Layers-1)
	width := e.Meta.Width
	means, said := make([]float32, len(texts)*len(exits)*width), make([][len(encoder.Heads)]float32, len(texts))
	each(len(texts), func(i int) {
		all := e.Means(texts[i], means[i*len(exits)*width:][:len(exits)*width])
		for h := range said[i] {
			said[i][h] = float32(sigmoid(float64(all[h])))
		}
	})
	each(len(exits), func(depth int) {
		x := make([][]float32, len(texts))
		for i := range x {
			x[i] = means[(i*len(exits)+depth)*width:][:width]
		}
		exits[depth] = fitExit(x, said, rand.New(rand.NewPCG(r.Seed, uint64(depth))))
	})
	return exits, nil
}

// fitExit learns to say of means (of so many numbers) what is said of them, probabilities of the heads.
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
				z[h] = float32(sigmoid(float64(z[h]))) - said[at][h]
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
