package encoder

import (
	"encoding/binary"
	"math"

	"github.com/evenhand/evenhand/detectors/classifier/kernel"
)

// Channels is how many numbers a glance has of a token, Glanced how many it gives of a sentence.
const (
	Channels = 96
	Glanced  = 3 * Channels
)

// Around is how many tokens a convolution takes at once: one with its neighbours.
const Around = 3

// Glance is what an early exit has of a sentence before any layer has read it: what the first layer gets, made narrow, through a convolution, an
// attention and a convolution, and over the sentence's tokens the maximum and the mean of each channel. (Kim 2014, "Convolutional Neural Networks for
// Sentence Classification"; that a small network learns from a large encoder what labels do not teach it: Tang et al. 2019, "Distilling Task-Specific
// Knowledge from BERT".) A mean of the tokens alone knows which words there are, and not which stands by which.
type Glance struct{ in, first, attention, join, second linear }

// GlanceWeights are those of a glance in floats, an input a row: Width × Channels, Around·Channels × Channels, Channels × 3·Channels, Channels ×
// Channels, Around·Channels × Channels.
type GlanceWeights struct {
	In, First, Attention, Join, Second                     []float32
	InBias, FirstBias, AttentionBias, JoinBias, SecondBias []float32
}

// NewGlanceWeights are 0, for tokens of so many numbers.
func NewGlanceWeights(width int) *GlanceWeights {
	f := func(n int) []float32 { return make([]float32, n) }
	return &GlanceWeights{
		f(width * Channels), f(Around * Channels * Channels), f(Channels * 3 * Channels), f(Channels * Channels), f(Around * Channels * Channels),
		f(Channels), f(Channels), f(3 * Channels), f(Channels), f(Channels),
	}
}

// Parts are all weights.
func (w *GlanceWeights) Parts() [10][]float32 {
	return [...][]float32{w.In, w.First, w.Attention, w.Join, w.Second, w.InBias, w.FirstBias, w.AttentionBias, w.JoinBias, w.SecondBias}
}

// Round makes bytes of the weights.
func (w *GlanceWeights) Round() *Glance {
	return &Glance{
		newLinear(w.In, w.InBias), newLinear(w.First, w.FirstBias), newLinear(w.Attention, w.AttentionBias), newLinear(w.Join, w.JoinBias),
		newLinear(w.Second, w.SecondBias),
	}
}

// newLinear rounds weights, an input a row, to bytes with a scale an output: the one that brings its weights nearest, by squares, though the largest may
// be cut, as tools/train/export.py does for the layers.
func newLinear(weights, bias []float32) linear {
	out := len(bias)
	l := linear{in: len(weights) / out, out: out, weights: make([]int8, len(weights)), scales: make([]float32, out), bias: bias}
	of := make([]float64, l.in)
	for o := range out {
		largest := 0.0
		for i := range of {
			of[i] = float64(weights[i*out+o])
			largest = max(largest, math.Abs(of[i]))
		}
		if largest == 0 {
			largest = 127
		}
		best, least := 0.0, math.Inf(1)
		for cut := 0.7; cut < 1.005; cut += 0.01 {
			scale, off := largest/127*cut, 0.0
			for _, w := range of {
				d := rounded(w, scale)*scale - w
				off += float64(d * d)
			}
			if off < least {
				best, least = scale, off
			}
		}
		l.scales[o] = float32(best)
		for i, w := range of {
			l.weights[l.at(i, o)] = int8(rounded(w, best))
		}
	}
	l.sum()
	return l
}

func rounded(w, scale float64) float64 { return max(-127, min(127, math.RoundToEven(w/scale))) }

// at is where the weight of an input and an output is: in blocks of Column outputs, in them groups of four inputs, in them outputs.
func (l *linear) at(in, out int) int {
	return out/kernel.Column*l.in*kernel.Column + in/4*4*kernel.Column + out%kernel.Column*4 + in%4
}

// sum adds up the weights of each output.
func (l *linear) sum() {
	l.sums = make([]float32, l.out)
	for i, w := range l.weights { // block, group of four inputs, output, input
		l.sums[i/(l.in*kernel.Column)*kernel.Column+i/4%kernel.Column] += float32(w)
	}
}

// bytes appends a matrix as a file has it.
func (l *linear) bytes(to []byte) []byte {
	for _, w := range l.weights {
		to = append(to, byte(w))
	}
	return appendFloats(appendFloats(to, l.scales), l.bias)
}

func appendFloats(to []byte, of []float32) []byte {
	for _, v := range of {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(v))
	}
	return to
}

// glance looks at the tokens that the answer is about, and puts what it has of them into s.glanced: of each channel the maximum, the mean, and the mean
// before the convolutions.
func (s *scratch) glance(g *Glance, n, from, to, d int) {
	count := 0
	for i := range n {
		if asked(i, n, from, to) {
			copy(s.y[count*d:][:d], s.x[i*d:])
			count++
		}
	}
	rows := kernel.Up(count, kernel.Tile)
	clear(s.y[count*d : rows*d])
	tokens, more := s.inner[:rows*Channels], s.y[:rows*Channels]
	mean, middle, top := s.glanced[2*Channels:], s.glanced[Channels:2*Channels], s.glanced[:Channels]
	s.linear(&g.in, more, s.y, rows) // all rows are bytes before one is overwritten
	total(mean, more[:count*Channels])
	s.convolve(&g.first, tokens, more, count, rows)
	s.linear(&g.attention, s.qkv, tokens, rows)
	s.attend(Channels, count, rows)
	s.linear(&g.join, more, s.heads, rows)
	kernel.Axpy(tokens, 1, more[:count*Channels])
	s.convolve(&g.second, more, tokens, count, rows)
	kernel.Axpy(tokens, 1, more[:count*Channels])
	total(middle, tokens[:count*Channels])
	copy(top, tokens)
	for i := 1; i < count; i++ {
		kernel.Max(top, tokens[i*Channels:][:Channels])
	}
	for i := range s.glanced[Channels:] {
		s.glanced[Channels+i] /= float32(count)
	}
}

// convolve multiplies each of count tokens with its neighbours, nothing standing before the first and after the last; what is negative becomes 0.
func (s *scratch) convolve(l *linear, y, x []float32, count, rows int) {
	const wide = Around * Channels
	in := s.qkv[:rows*wide]
	clear(in)
	for i := range count {
		row := in[i*wide:][:wide]
		if i > 0 {
			copy(row, x[(i-1)*Channels:i*Channels])
		}
		copy(row[Channels:], x[i*Channels:min(i+2, count)*Channels])
	}
	s.linear(l, y, in, rows)
	for i := range count {
		kernel.Max(y[i*Channels:], s.nothing[:Channels])
	}
}

// total adds up rows of Channels numbers.
func total(sum, rows []float32) {
	clear(sum)
	for ; len(rows) > 0; rows = rows[Channels:] {
		kernel.Axpy(sum, 1, rows[:Channels])
	}
}
