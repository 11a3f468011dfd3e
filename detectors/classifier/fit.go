package classifier

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/kernel"
)

// Example is one text to learn from. Its sentences are in normal form.
type Example struct {
	Sentences []string
	// Target is each head's wanted probability; NaN where nobody knows.
	Target [NumHeads]float32
	// Doubt, 0..1, takes weight from what is not really known: 0 counts whole.
	Doubt   [NumHeads]float32
	Weight  float32
	Grounds []audit.Ground // nil: unknown
	// Hide shows identity terms as the words they are, half the time: so that unknown ones are learnt too.
	Hide bool
}

// FitOptions say how to learn. The same options and examples give the same model on every processor.
type FitOptions struct {
	Seed       uint64
	Epochs     int                              // of the network; the linear models take their own
	NoNetwork  bool                             // the linear score alone answers, for comparison
	Log        func(format string, args ...any) // may be nil
	MaxSamples int                              // of one epoch; 0: all
	Vectors    *Vectors                         // of words, may be nil
}

// LexiconDigest tells lexicons apart.
func LexiconDigest() string {
	return hex.EncodeToString(lexiconSum[:6])
}

// sample is an example as tokens.
type sample struct {
	whole, hidden []token   // folded; with terms as words, nil unless Hide
	parts         [][]token // sentences, when a positive text has several
	target        [NumHeads]float32
	weight        [NumHeads]float32
	any, anyW     float32
	grounds       []uint8 // nil: unknown
}

// Fit learns a model. Its heads are not calibrated: A is 1, B is 0, thresholds 0.5, the gate open, and the first score is
// no part of their logits yet (see Join).
func Fit(examples []Example, o FitOptions) *Model {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	ss := make([]*sample, 0, len(examples))
	for i := range examples {
		ss = appendSamples(ss, &examples[i])
	}
	var list []uint32
	if o.Vectors != nil {
		list = o.Vectors.words
	}
	w := newWeights(list)
	o.Log("%d examples, %d samples", len(examples), len(ss))
	loss := fitGate(w, ss, o)
	o.Log("first score: loss %.4f", loss)
	fitGrounds(w, ss, o)
	if o.NoNetwork {
		for h := range w.skip {
			w.skip[h] = 1
		}
	} else {
		fitNetwork(w, ss, o)
	}
	m := quantise(w)
	m.Meta = Meta{Name: "tier0", Seed: o.Seed, Lexicon: LexiconDigest(), Gate: -1e9, Ground: 0.25}
	for _, h := range Heads() {
		m.Meta.Heads = append(m.Meta.Heads, Tuning{Name: h.String(), A: 1, Threshold: 0.5})
	}
	return m
}

// appendSamples cuts an example: a clean text has clean sentences, each a sample; of another text nobody
// knows which sentence it is.
func appendSamples(ss []*sample, e *Example) []*sample {
	base := sample{target: e.Target, grounds: []uint8(nil)}
	clean := true
	base.any, base.anyW = 0, 0
	for h, t := range e.Target {
		if t != t {
			continue
		}
		clean = clean && t < 0.5
		base.weight[h] = e.Weight * (1 - e.Doubt[h])
		base.anyW = max(base.anyW, base.weight[h])
		base.any = max(base.any, t)
	}
	for _, g := range e.Grounds {
		base.grounds = append(base.grounds, uint8(slices.Index(audit.Grounds, g)))
	}
	var all []token
	var parts [][]token
	for _, text := range e.Sentences {
		ts := words(nil, text, 0, len(text))
		if len(ts) == 0 {
			continue
		}
		all = append(all, ts...)
		parts = append(parts, ts)
	}
	if len(all) == 0 {
		return ss
	}
	if !clean {
		s := base
		s.whole = cut(identity.fold(slices.Clone(all), nil))
		if e.Hide {
			s.hidden = cut(all)
		}
		if len(parts) > 1 {
			for _, p := range parts {
				s.parts = append(s.parts, cut(identity.fold(p, nil)))
			}
		}
		return append(ss, &s)
	}
	for _, p := range parts {
		s := base
		if e.Hide {
			s.hidden = cut(slices.Clone(p))
		}
		s.whole = cut(identity.fold(p, nil))
		ss = append(ss, &s)
	}
	return ss
}

func cut(ts []token) []token { return ts[:min(len(ts), maxTokens)] }

func (o FitOptions) rng(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, stream)) }

func sigmoid32(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// fitGate learns the first score: is there anything at all? It returns the mean loss of the last epoch.
func fitGate(w *weights, ss []*sample, o FitOptions) float64 {
	const epochs, rate = 4, 0.4
	rng := o.rng(1)
	sums := make([]float32, len(w.gate))
	biasSum := float32(1)
	var buckets []uint32
	order := rng.Perm(len(ss))
	loss, n := 0.0, 0.0
	for epoch := range epochs {
		loss, n = 0, 0
		step := float32(rate) / float32(epoch+1)
		for _, i := range order {
			s := ss[i]
			if s.anyW == 0 {
				continue
			}
			buckets = gateFeatures(buckets[:0], s.whole)
			unit := 1 / norm(len(s.whole))
			z := float32(0)
			for _, b := range buckets {
				z += w.gate[b]
			}
			z = float32(z*unit) + w.gateBias
			p := sigmoid32(z)
			loss += float64(s.anyW) * entropy(float64(p), float64(s.any))
			n += float64(s.anyW)
			g := s.anyW * (p - s.any)
			for _, b := range buckets {
				gb := float32(g*unit) + float32(1e-6*w.gate[b])
				sums[b] += float32(gb * gb)
				w.gate[b] -= float32(step*gb) / float32(math.Sqrt(float64(sums[b])+1e-4))
			}
			biasSum += float32(g * g)
			w.gateBias -= float32(0.1*g) / float32(math.Sqrt(float64(biasSum)))
		}
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return loss / max(n, 1)
}

func entropy(p, t float64) float64 {
	const eps = 1e-7
	return -t*math.Log(max(p, eps)) - (1-t)*math.Log(max(1-p, eps))
}

// fitGrounds learns to tell the grounds apart, by texts whose grounds are known: softmax over a sum of hashed features,
// and of the words' vectors times a matrix, so that words of like meaning speak alike.
func fitGrounds(w *weights, ss []*sample, o FitOptions) {
	const epochs, rate = 8, 0.1
	rng := o.rng(3)
	var known []*sample
	for _, s := range ss {
		if len(s.grounds) > 0 && s.weight[Bias] > 0 {
			known = append(known, s)
		}
	}
	size := 0
	if o.Vectors != nil {
		size = o.Vectors.size
	}
	// The matrix has a row a ground.
	project, grad := make([]float32, NumGrounds*size), make([]float32, NumGrounds*size)
	adam := kernel.NewAdam(len(project))
	x := make([]float32, size)
	sums := make([]float32, len(w.ground))
	var buckets []uint32
	steps, total := 0, epochs*(len(known)/batchSize)
	for epoch := range epochs {
		rng.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
		loss, weight := 0.0, 0.0
		for k, s := range known {
			ts := s.whole
			if s.hidden != nil && rng.Uint32()%4 == 0 {
				ts = s.hidden
			}
			buckets = buckets[:0]
			groundFeatures(ts, func(b uint32) { buckets = append(buckets, b) })
			unit := 1 / norm(len(buckets))
			var z [NumGrounds]float32
			for _, b := range buckets {
				for g, v := range w.ground[b*NumGrounds : (b+1)*NumGrounds] {
					z[g] += v
				}
			}
			clear(x)
			groundWords(w.words, ts, func(row int) { kernel.Axpy(x, 1/norm(len(ts)), o.Vectors.of(row)) })
			for g := range z {
				z[g] = kernel.AddDot(float32(z[g]*unit)+w.groundBias[g], x, project[g*size:])
			}
			var want [NumGrounds]float32
			for _, g := range s.grounds {
				want[g] = 1 / float32(len(s.grounds))
			}
			for g, p := range softmax(&z) {
				loss -= float64(s.weight[Bias]) * float64(want[g]) * math.Log(max(p, 1e-7))
				d := s.weight[Bias] * (float32(p) - want[g])
				w.groundBias[g] -= 0.0005 * d
				z[g] = float32(d * unit)
				kernel.Axpy(grad[g*size:], d, x)
			}
			weight += float64(s.weight[Bias])
			step := float32(rate) / float32(epoch+1)
			for _, b := range buckets {
				row, sum := w.ground[b*NumGrounds:(b+1)*NumGrounds], sums[b*NumGrounds:(b+1)*NumGrounds]
				for g, d := range z {
					d += float32(1e-5 * row[g])
					sum[g] += float32(d * d)
					row[g] -= float32(step*d) / float32(math.Sqrt(float64(sum[g])+1e-4))
				}
			}
			if k%batchSize == batchSize-1 {
				steps++
				adam.Descend(project, grad, batchSize, groundRate*(1-0.9*float64(steps)/float64(total)))
			}
		}
		o.Log("grounds: epoch %d of %d, %d samples, loss %.4f", epoch+1, epochs, len(known), loss/max(1, weight))
	}
	for i := range w.words {
		for g := range NumGrounds {
			w.groundWord[i*NumGrounds+g] = kernel.AddDot(0, o.Vectors.of(i), project[g*size:])
		}
	}
}

// String says what an example is without its text.
func (e *Example) String() string {
	return fmt.Sprintf("%d sentences, targets %v", len(e.Sentences), e.Target)
}
