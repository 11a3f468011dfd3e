package classifier

import (
	"math"
	"slices"

	"github.com/evenhand/evenhand/detectors/classifier/kernel"
)

// Of the network's training: rates, sizes, and what each head's error weighs.
const (
	batchSize  = 32
	denseRate  = 1.5e-3
	embedRate  = 0.04
	groundRate = 2e-3
	blankShare = 16 // one token in so many is blanked
	dropShare  = 5  // one channel in so many is dropped
	plainShare = 2  // one word in so many, of those with a vector, is read by its vector alone
)

var headWeight = [NumHeads]float32{1, 0.7, 0.8, 0.8, 0.8, 0.8}

// network is what training the convolutions needs: weights with rows and columns exchanged, gradients. The
// embedding of a word with a vector is the vector times a matrix, plus a part of its own.
type network struct {
	w              *weights
	t1, t2         []float32 // channels × inputs
	g1, g2         []float32
	rest, restGrad []float32 // biases, out, outBias
	vectors        *Vectors
	project, gp    []float32 // the vectors' size × dim
	adam           [4]*kernel.Adam
	embedSum       []float32 // of each row: sum of squared gradients
	ownSum         []float32
	s              scratch
	dx             [(maxTokens + 2) * dim]float32
	dh             [(maxTokens + 2) * channels]float32
	steps          int
}

const restSize = 2*channels + NumHeads*channels + NumHeads

func newNetwork(w *weights, o FitOptions) *network {
	n := &network{
		w: w, t1: make([]float32, window*dim*channels), t2: make([]float32, window*channels*channels),
		g1: make([]float32, window*dim*channels), g2: make([]float32, window*channels*channels),
		rest: make([]float32, restSize), restGrad: make([]float32, restSize), embedSum: make([]float32, 1<<embedBits), ownSum: make([]float32, len(w.words)),
		vectors: o.Vectors,
	}
	if n.vectors != nil {
		n.project, n.gp = make([]float32, n.vectors.size*dim), make([]float32, n.vectors.size*dim)
	}
	for i, size := range []int{len(n.t1), len(n.t2), restSize, len(n.project)} {
		n.adam[i] = kernel.NewAdam(size)
	}
	rng := o.rng(5)
	fill := func(w []float32, scale float64) {
		for i := range w {
			w[i] = float32((rng.Float64()*2 - 1) * scale)
		}
	}
	fill(w.embed, 0.1)
	fill(n.project, 0.003)
	fill(n.t1, math.Sqrt(3.0/(window*dim)))
	fill(n.t2, math.Sqrt(6.0/(window*channels)))
	fill(n.rest[2*channels:2*channels+NumHeads*channels], 0.1)
	n.spread()
	return n
}

// spread copies what was learnt to where the forward pass reads it.
func (n *network) spread() {
	transpose(n.w.conv1, n.t1)
	transpose(n.w.conv2, n.t2)
	r := n.rest
	copy(n.w.bias1[:], r)
	copy(n.w.bias2[:], r[channels:])
	for h := range NumHeads {
		copy(n.w.out[h][:], r[(2+h)*channels:])
	}
	copy(n.w.outBias[:], r[(2+NumHeads)*channels:])
}

func transpose(rows, columns []float32) {
	inputs := len(rows) / channels
	for c := range channels {
		for j, v := range columns[c*inputs : (c+1)*inputs] {
			rows[j*channels+c] = v
		}
	}
}

// fitNetwork learns the convolutions, the embeddings and the heads.
func fitNetwork(w *weights, ss []*sample, o FitOptions) {
	n, rng := newNetwork(w, o), o.rng(7)
	order := rng.Perm(len(ss))
	size := len(order)
	if o.MaxSamples > 0 {
		size = min(size, o.MaxSamples)
	}
	total := max(1, o.Epochs*(size/batchSize))
	for epoch := range o.Epochs {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		loss, weight := 0.0, 0.0
		for k, i := range order[:size] {
			s := ss[i]
			ts := s.whole
			switch {
			case s.hidden != nil && rng.Uint32()%2 == 0:
				ts = s.hidden
			case s.parts != nil && epoch%2 == 1:
				ts = n.strongest(s)
			}
			blanks, drops := rng.Uint64(), rng.Uint64()
			l, lw := n.learn(ts, s, blanks, drops)
			loss, weight = loss+l, weight+lw
			if k%batchSize == batchSize-1 {
				n.step(1 - 0.95*float64(n.steps)/float64(total))
			}
		}
		o.Log("network: epoch %d of %d, loss %.4f", epoch+1, o.Epochs, loss/max(1, weight))
	}
	for i := range w.words {
		n.addVector(w.own[i*dim:(i+1)*dim], i)
	}
}

// addVector adds what the network makes of a word's vector.
func (n *network) addVector(x []float32, word int) {
	for j, v := range n.vectors.of(word) {
		kernel.Axpy(x, v, n.project[j*dim:][:dim])
	}
}

// strongest gives the sentence that the network now thinks it is.
func (n *network) strongest(s *sample) []token {
	best, top := s.parts[0], float32(math.Inf(-1))
	for _, ts := range s.parts {
		n.forward(ts, 0)
		for h, t := range s.target {
			if t > 0.5 && n.s.heads[h] > top {
				best, top = ts, n.s.heads[h]
			}
		}
	}
	return best
}

func (n *network) forward(ts []token, blanks uint64) {
	s := &n.s
	s.reset(len(ts))
	for i := range ts {
		if blank(blanks, i) {
			continue
		}
		x := s.x[(i+1)*dim : (i+2)*dim]
		if word, ok := slices.BinarySearch(n.w.words, ts[i].word); ok {
			n.addVector(x, word)
			if !plain(blanks, i) {
				kernel.Axpy(x, 1, n.w.own[word*dim:][:dim])
			}
			continue
		}
		rows, k := ts[i].features()
		for _, r := range rows[:k] {
			kernel.Axpy(x, 1, n.w.embed[int(r)*dim:][:dim])
		}
	}
	convolve(s, len(ts), n.w.conv1, &n.w.bias1, n.w.conv2, &n.w.bias2)
	for h := range s.heads {
		z := n.w.outBias[h]
		for c, v := range s.pool {
			z += float32(v * n.w.out[h][c])
		}
		s.heads[h] = z
	}
}

// blank says whether a token is blanked in a pass with the random number r; never when r is 0.
func blank(r uint64, i int) bool {
	return r != 0 && mix(uint32(r)^uint32(i)*0x9e3779b1)%blankShare == 0
}

// plain says whether a word is read by its vector alone in a pass with the random number r; never when r is 0. So the
// network learns to do without what it knows of the words of training only.
func plain(r uint64, i int) bool {
	return r != 0 && mix(uint32(r>>32)^uint32(i)*0x85ebca6b)%plainShare == 0
}

// learn adds an example's gradients to the batch's, and moves the embeddings of its tokens.
func (n *network) learn(ts []token, s *sample, blanks, drops uint64) (loss, weight float64) {
	n.forward(ts, blanks)
	scale := float32(dropShare) / (dropShare - 1)
	var keep [channels]float32
	for c := range keep {
		if mix(uint32(drops)^uint32(c)*0x85ebca6b)%dropShare != 0 {
			keep[c] = scale
		}
	}
	var dz [NumHeads]float32
	for h, t := range s.target {
		if t != t || s.weight[h] == 0 {
			continue
		}
		z := n.w.outBias[h]
		for c, v := range n.s.pool {
			z += float32(float32(v*keep[c]) * n.w.out[h][c])
		}
		p := sigmoid32(z)
		wt := s.weight[h] * headWeight[h]
		loss += float64(wt) * entropy(float64(p), float64(t))
		weight += float64(wt)
		dz[h] = wt * (p - t)
	}
	if weight == 0 {
		return 0, 0
	}
	n.backward(ts, &keep, &dz, blanks)
	return loss, weight
}

func (n *network) backward(ts []token, keep *[channels]float32, dz *[NumHeads]float32, blanks uint64) {
	const in1, in2 = window * dim, window * channels
	s, size := &n.s, len(ts)
	var dpool [channels]float32
	outGrad := n.restGrad[2*channels:]
	for h, d := range dz {
		if d == 0 {
			continue
		}
		n.restGrad[(2+NumHeads)*channels+h] += d
		for c := range dpool {
			dpool[c] += float32(float32(d*keep[c]) * n.w.out[h][c])
			outGrad[h*channels+c] += float32(float32(d*keep[c]) * s.pool[c])
		}
	}
	clear(n.dh[:(size+2)*channels])
	clear(n.dx[:(size+2)*dim])
	for c, g := range dpool {
		if g == 0 || s.pool[c] <= 0 {
			continue
		}
		at := int(s.at[c]) * channels
		n.restGrad[channels+c] += g
		kernel.Axpy(n.g2[c*in2:], g, s.h1[at:][:in2])
		kernel.Axpy(n.dh[at:], g, n.t2[c*in2:][:in2])
	}
	for i := range size {
		row := (i + 1) * channels
		for c := range channels {
			g := n.dh[row+c]
			if g == 0 || s.h1[row+c] <= 0 {
				continue
			}
			n.restGrad[c] += g
			kernel.Axpy(n.g1[c*in1:], g, s.x[i*dim:][:in1])
			kernel.Axpy(n.dx[i*dim:], g, n.t1[c*in1:][:in1])
		}
	}
	for i := range ts {
		if blank(blanks, i) {
			continue
		}
		d := n.dx[(i+1)*dim : (i+2)*dim]
		square := float32(0)
		for _, v := range d {
			square += float32(v * v)
		}
		if square == 0 {
			continue
		}
		if word, ok := slices.BinarySearch(n.w.words, ts[i].word); ok {
			for j, v := range n.vectors.of(word) {
				kernel.Axpy(n.gp[j*dim:], v, d)
			}
			if !plain(blanks, i) {
				descend(n.w.own, n.ownSum, word, d, square)
			}
			continue
		}
		rows, k := ts[i].features()
		for _, r := range rows[:k] {
			descend(n.w.embed, n.embedSum, int(r), d, square)
		}
	}
}

// descend moves a row of embeddings by its gradient d, whose square is given (AdaGrad, one rate a row).
func descend(table, sums []float32, row int, d []float32, square float32) {
	sums[row] += square / dim
	kernel.Axpy(table[row*dim:], -embedRate/float32(math.Sqrt(float64(sums[row])+1e-5)), d)
}

// step moves the dense weights by the batch's gradients (Adam).
func (n *network) step(decay float64) {
	n.steps++
	for i, p := range [...]struct{ w, g []float32 }{{n.t1, n.g1}, {n.t2, n.g2}, {n.rest, n.restGrad}, {n.project, n.gp}} {
		n.adam[i].Descend(p.w, p.g, batchSize, denseRate*decay)
	}
	n.spread()
}
