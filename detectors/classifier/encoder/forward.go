package encoder

import (
	"math"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/kernel"
)

// blocks of Column outputs are multiplied at once.
const blocks = 4

// scratch is what a pass writes to, for MaxTokens tokens.
type scratch struct {
	ids           []int32
	x, y, heads   []float32 // tokens × width
	qkv           []float32 // tokens × 3 width
	inner         []float32 // tokens × inner
	scores        []float32 // tokens × tokens
	keys          []float32 // of a head, packed for the kernel
	mean, glanced []float32
	bytes         []uint8
	units, zeros  [MaxTokens]float32
	acc           [blocks * MaxTokens * kernel.Column]int32
	nothing       []float32
}

func newScratch(t *Meta) *scratch {
	f := func(n int) []float32 { return make([]float32, MaxTokens*n) }
	inner := max(t.Inner, 3*t.Width)
	return &scratch{
		x: f(t.Width), y: f(t.Width), heads: f(t.Width), qkv: f(3 * t.Width), inner: f(t.Inner), scores: f(MaxTokens), keys: f(HeadWidth), mean: make([]float32, t.Width), glanced: make([]float32, Glanced),
		bytes: make([]uint8, MaxTokens*inner), nothing: make([]float32, t.Width),
	}
}

// Logits are what a model says of a sentence. Where an early exit answers, which is a no, those of grounds are -Inf: it knows none.
type Logits [NumOutputs]float32

// Early tells whether an early exit answers.
func (l *Logits) Early() bool { return math.IsInf(float64(l[len(Heads)]), -1) }

// Read gives what the model says of a sentence between what stands before and after it. All of it is read, and the answer is about
// the sentence: the mean over its tokens. Of a passage that is too long what is farthest before is not looked at, then what is last. An early
// exit answers where that is enough.
func (m *Model) Read(before, sentence, after string, stops Stops, prior *Prior) (out Logits) {
	stopped := false
	var hidden [Hidden]float32
	m.read(before, sentence, after, &out, stops.Asks, func(exit int, seen []float32) bool {
		z := m.exits[exit].Answer(seen, &hidden)
		if stopped = stops.Stop(exit, &z, prior); stopped {
			copy(out[:], z[:])
		}
		return stopped
	})
	if stopped {
		for i := len(Heads); i < len(out); i++ {
			out[i] = float32(math.Inf(-1))
		}
	}
	return out
}

// Depths gives what each early exit and all layers say of a sentence: what stops are chosen by.
func (m *Model) Depths(before, sentence, after string) (exits [][len(Heads)]float32, all Logits) {
	var hidden [Hidden]float32
	m.read(before, sentence, after, &all, func(exit int) bool { return exit < len(m.exits) }, func(exit int, seen []float32) bool {
		exits = append(exits, m.exits[exit].Answer(seen, &hidden))
		return false
	})
	return exits, all
}

// Means puts the means over a sentence's tokens after 0, 1, … layers into means, one after the other, as many as there is room for, and gives
// what all layers say: what early exits learn from.
func (m *Model) Means(sentence string, means []float32) (all Logits) {
	s := m.pool.Get().(*scratch)
	defer m.pool.Put(s)
	d, from, to := m.Meta.Width, 0, 0
	s.ids, from, to = passage(m.pieces, s.ids[:0], "", sentence, "", MaxTokens)
	m.forward(s, from, to, &all, func(depth int) bool {
		if depth < len(means)/d {
			s.pool(len(s.ids), from, to, d)
			copy(means[depth*d:], s.mean)
		}
		return false
	})
	return all
}

// Pieces are the ids of a sentence's pieces, with the marks of its beginning and end.
func (m *Model) Pieces(sentence string) []int32 {
	ids, _, _ := passage(m.pieces, nil, "", sentence, "", MaxTokens)
	return ids
}

// Tokens puts what the first layer gets of pieces, Width numbers each, into x.
func (m *Model) Tokens(ids []int32, x []float32) {
	d := m.Meta.Width
	nothing := make([]float32, d)
	m.embed(ids, x, nothing)
}

// read shows early what those early exits hear of a sentence that are asked, and reads no more where that stops it.
func (m *Model) read(before, sentence, after string, out *Logits, asked func(exit int) bool, early func(exit int, seen []float32) (stop bool)) {
	s := m.pool.Get().(*scratch)
	defer m.pool.Put(s)
	ids, from, to := passage(m.pieces, s.ids[:0], before, sentence, after, MaxTokens)
	s.ids = ids
	n, d := len(ids), m.Meta.Width
	mean := func(exit int) bool {
		if !asked(exit) {
			return false
		}
		s.pool(n, from, to, d)
		return early(exit, s.mean)
	}
	m.forward(s, from, to, out, func(depth int) bool {
		if depth > 0 {
			return mean(depth + 1)
		}
		if mean(0) {
			return true
		}
		if !asked(Glancing) {
			return false
		}
		s.glance(m.glance, n, from, to, d)
		return early(Glancing, s.glanced)
	})
}

// LikeliestGround is the highest logit of a ground.
func (l *Logits) LikeliestGround() float32 { return slices.Max(l[len(Heads):]) }

// Grounds are the likeliest, and others that are likelier than not, at most three in all; none where an early exit answered.
func (l *Logits) Grounds() (out []audit.Ground) {
	if l.Early() {
		return nil
	}
	of := l[len(Heads):]
	top := slices.Index(of, l.LikeliestGround())
	out = append(out, audit.Grounds[top])
	for i, z := range of {
		if i != top && z > 0 && len(out) < 3 {
			out = append(out, audit.Grounds[i])
		}
	}
	return out
}

// Reads tells whether a sentence is made of what the model knows. Of English ones most words are pieces of their own; the model of other
// languages reads what is written in Latin letters.
func (m *Model) Reads(sentence string) bool { return m.pieces.reads(sentence) }

// embed puts what the first layer gets of pieces into x: their words and places, normed.
func (m *Model) embed(ids []int32, x, nothing []float32) {
	d := m.Meta.Width
	for i, id := range ids {
		row := x[i*d:][:d]
		copy(row, m.place[i*d:])
		kernel.AddBytes(row, m.wordScale[id], m.word[int(id)*d:][:d])
		kernel.AddNorm(row, nothing, m.first.gain, m.first.shift)
	}
}

// forward reads s.ids, until early stops it, which is asked before each layer; the answer is about those in from..to and the marks of beginning and end.
func (m *Model) forward(s *scratch, from, to int, out *Logits, early func(depth int) (stop bool)) {
	d, n := m.Meta.Width, len(s.ids)
	rows := kernel.Up(n, kernel.Tile)
	m.embed(s.ids, s.x, s.nothing)
	clear(s.x[n*d : rows*d]) // rows that fill up a tile
	for i := range m.layers {
		if early(i) {
			return
		}
		l := &m.layers[i]
		s.linear(&l.attention, s.qkv, s.x, rows)
		keys := n
		if i == len(m.layers)-1 {
			n = s.keep(n, from, to, d)
			from, to = 1, n-1
			rows = kernel.Up(n, kernel.Tile)
		}
		s.attend(d, keys, rows)
		s.linear(&l.join, s.y, s.heads, rows)
		s.addNorms(&l.mid, n, d)
		s.linear(&l.up, s.inner, s.x, rows)
		kernel.GELU(s.inner[:rows*m.Meta.Inner])
		s.linear(&l.down, s.y, s.inner, rows)
		s.addNorms(&l.end, n, d)
	}
	s.pool(n, from, to, d)
	s.answer(out[:], m.out, m.outBias)
}

// pool takes the mean over the tokens that the answer is about.
func (s *scratch) pool(n, from, to, d int) {
	clear(s.mean)
	count := 0
	for i := range n {
		if !asked(i, n, from, to) {
			continue
		}
		count++
		kernel.Axpy(s.mean, 1, s.x[i*d:][:d])
	}
	for k := range s.mean {
		s.mean[k] /= float32(count)
	}
}

// answer makes logits of the mean: one matrix.
func (s *scratch) answer(out, weights, bias []float32) {
	copy(out, bias)
	for k, v := range s.mean {
		for c, w := range weights[k*len(bias):][:len(bias)] {
			out[c] += float32(v * w)
		}
	}
}

// asked tells whether the answer is about token i of n: it is in from..to, or the first or last.
func asked(i, n, from, to int) bool { return i == 0 || from <= i && i < to || i == n-1 }

// keep moves the tokens that the answer is about to the front, with what they ask the others: what the last layer makes of those is not looked at.
func (s *scratch) keep(n, from, to, d int) (kept int) {
	for i := range n {
		if !asked(i, n, from, to) {
			continue
		}
		copy(s.x[kept*d:][:d], s.x[i*d:][:d])
		copy(s.qkv[kept*3*d:][:d], s.qkv[i*3*d:][:d])
		kept++
	}
	return kept
}

func (s *scratch) addNorms(p *normal, n, d int) {
	for i := range n {
		kernel.AddNorm(s.x[i*d:][:d], s.y[i*d:][:d], p.gain, p.shift)
	}
}

// linear multiplies rows of x: bytes by a row's own scale and zero, sums of whole numbers, and floats again.
func (s *scratch) linear(l *linear, y, x []float32, rows int) {
	for r := range rows {
		row := x[r*l.in:][:l.in]
		low, high := kernel.Bounds(row)
		unit := (high - low) / 255
		if unit == 0 {
			unit = 1
		}
		s.units[r], s.zeros[r] = unit, float32(math.Round(float64(-low/unit)))
		kernel.Quantise(s.bytes[r*l.in:], row, 1/unit, s.zeros[r]+.5)
	}
	block := kernel.Up(rows, kernel.Room) * kernel.Column
	for c := 0; c < l.out; c += blocks * kernel.Column {
		n := min(blocks, (l.out-c)/kernel.Column)
		kernel.MatrixInt8(s.acc[:], s.bytes, l.in, rows, l.weights[c*l.in:], l.in, n)
		for b := range n {
			at := c + b*kernel.Column
			kernel.Dequantise(y[at:], l.out, s.acc[b*block:], rows, l.sums[at:], l.scales[at:], l.bias[at:], s.units[:], s.zeros[:])
		}
	}
}

// attend mixes the values of n tokens of d numbers for rows of queries, by how they fit the keys (Vaswani et al. 2017), head by head.
func (s *scratch) attend(d, n, rows int) {
	columns := kernel.Up(n, kernel.Wide)
	scale := float32(1 / math.Sqrt(HeadWidth))
	clear(s.heads[:rows*d])
	var nothing [HeadWidth]float32 // the keys that fill up the last column
	for h := 0; h < d; h += HeadWidth {
		for j := range columns {
			to := (*[HeadWidth * kernel.Wide]float32)(s.keys[j/kernel.Wide*kernel.Wide*HeadWidth:])
			key := &nothing
			if j < n {
				key = (*[HeadWidth]float32)(s.qkv[j*3*d+d+h:])
			}
			for k, v := range key {
				to[k*kernel.Wide+j%kernel.Wide] = v
			}
		}
		clear(s.scores[:rows*columns])
		for c := 0; c < columns; c += kernel.Wide {
			kernel.Matrix(s.scores[c:], columns, s.qkv[h:], 3*d, rows, s.keys[c*HeadWidth:], kernel.Wide, HeadWidth)
		}
		for r := range rows {
			row := s.scores[r*columns:][:columns]
			for j := n; j < columns; j++ {
				row[j] = -1e9
			}
			kernel.Softmax(row, scale)
		}
		for c := 0; c < HeadWidth; c += kernel.Wide {
			kernel.Matrix(s.heads[h+c:], d, s.scores, columns, rows, s.qkv[2*d+h+c:], 3*d, n)
		}
	}
}
