package train

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/evenhand/evenhand/detectors/classifier/encoder"
	"github.com/evenhand/evenhand/detectors/classifier/kernel"
)

// How a glance learns.
const (
	glanceEpochs = 6
	glanceBatch  = 256
	glanceParts  = 8 // of a batch: each has gradients of its own, so that the sum is the same however many processors there are
	glanceRate   = 1.5e-3
	glanceStream = 100  // of random numbers; each early exit has its depth's
	glanceTokens = 64   // of a sentence at most
	glanceDrop   = 0.1  // share of channels that are dropped
	glanceLogits = 0.02 // what a logit's squared error counts beside the cross entropy
	glanceFloor  = -7   // logits below are as good as this
	glanceTop    = 5
)

// fitGlance learns a glance and the early exit that hears of it from what the whole encoder says of sentences, given as pieces, by head. The same
// sentences and seed give the same bytes.
func fitGlance(e *encoder.Model, sentences [][]int32, said [][len(encoder.Heads)]float32, seed uint64, log func(format string, args ...any)) (*encoder.Glance, encoder.Exit) {
	width := e.Meta.Width
	rng := rand.New(rand.NewPCG(seed, glanceStream))
	whole := newGlance(width)
	whole.begin(rng)
	var adam []*kernel.Adam
	for _, part := range whole.parts() {
		adam = append(adam, kernel.NewAdam(len(part)))
	}
	learners := make([]*glancer, glanceParts)
	for i := range learners {
		learners[i] = newGlancer(e, glanceDrop)
	}
	order := rng.Perm(len(sentences))
	steps, total := 0, glanceEpochs*(len(order)/glanceBatch)
	for epoch := range glanceEpochs {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for at := 0; at+glanceBatch <= len(order); at += glanceBatch {
			whole.turn()
			step := rng.Uint64()
			each(glanceParts, func(i int) {
				const size = glanceBatch / glanceParts
				learners[i].learn(whole, sentences, said, order[at+i*size:][:size], rand.New(rand.NewPCG(step, uint64(i))))
			})
			rate := glanceRate * max(0.02, 1-float64(steps)/float64(total))
			steps++
			for i, part := range whole.parts() {
				grad := learners[0].grad.parts()[i]
				for _, l := range learners[1:] {
					more := l.grad.parts()[i]
					kernel.Axpy(grad, 1, more)
					clear(more)
				}
				adam[i].Descend(part, grad, glanceBatch, rate)
			}
		}
		log("glance: epoch %d of %d", epoch+1, glanceEpochs)
	}
	return whole.Round(), whole.exit
}

// glance is a glance in floats with the exit that hears of it.
type glance struct {
	encoder.GlanceWeights
	exit   encoder.Exit
	turned turned
	width  int
}

// turned are weights with rows and columns exchanged, for the way back.
type turned struct{ first, attention, join, second, exit []float32 }

func newGlance(width int) *glance {
	g := &glance{GlanceWeights: *encoder.NewGlanceWeights(width), exit: encoder.NewExit(encoder.Glanced), width: width}
	like := func(w []float32) []float32 { return make([]float32, len(w)) }
	g.turned = turned{like(g.First), like(g.Attention), like(g.Join), like(g.Second), like(g.exit.In)}
	return g
}

func (g *glance) parts() [][]float32 {
	w, x := g.Parts(), g.exit.Parts()
	return slices.Concat(w[:], x[:])
}

// begin draws all weights, as a layer begins in PyTorch.
func (g *glance) begin(rng *rand.Rand) {
	inputs := [...]int{ // of an output of each part
		g.width, wide, channels, channels, wide, g.width, wide, channels, channels, wide,
		encoder.Glanced, encoder.Glanced, encoder.Hidden, encoder.Hidden,
	}
	for i, part := range g.parts() {
		bound := 1 / math.Sqrt(float64(inputs[i]))
		for k := range part {
			part[k] = float32(bound * (2*rng.Float64() - 1))
		}
	}
}

func (g *glance) turn() {
	turn(g.turned.first, g.First, channels)
	turn(g.turned.attention, g.Attention, 3*channels)
	turn(g.turned.join, g.Join, channels)
	turn(g.turned.second, g.Second, channels)
	turn(g.turned.exit, g.exit.In, encoder.Hidden)
}

// turn exchanges rows, of so many columns, and columns.
func turn(to, from []float32, columns int) {
	rows := len(from) / columns
	for r := range rows {
		for c, v := range from[r*columns:][:columns] {
			to[c*rows+r] = v
		}
	}
}

// glancer learns from a part of a batch: its sentences stand one below the other, a row a token, an empty row before and after each.
type glancer struct {
	e       *encoder.Model
	drop    float32 // share of channels
	grad    *glance
	at      []span    // the rows of each sentence
	tokens  []float32 // rows × width
	kept    []float32 // rows × Channels, as what follows: by what each was multiplied when it was dropped or not
	narrow  []float32 // of the tokens
	first   []float32 // what the first convolution makes of that
	heads   []float32 // what the attention does
	both    []float32 // both together
	second  []float32 // what the second convolution makes of that
	dNarrow []float32 // gradients
	dFirst  []float32
	dHeads  []float32
	dSum    []float32 // of second + both; then of second
	three   []float32 // rows × 3·Channels: queries, keys and values
	dThree  []float32
	weights []float32 // of the attention, head by head, a row a query
	around  []float32 // rows × Around·Channels: each with its neighbours
	crossed []float32 // rows and columns exchanged
}

// span is of rows from, …, to−1.
type span struct{ from, to int }

func newGlancer(e *encoder.Model, drop float32) *glancer {
	return &glancer{e: e, drop: drop, grad: newGlance(e.Meta.Width)}
}

const (
	channels = encoder.Channels
	wide     = encoder.Around * channels
)

// learn adds the gradients of these sentences.
func (l *glancer) learn(g *glance, sentences [][]int32, said [][len(encoder.Heads)]float32, which []int, rng *rand.Rand) {
	rows := l.lay(sentences, which)
	clear(l.kept)
	clear(l.narrow)
	multiply(l.narrow, l.tokens, g.width, rows, g.In)
	l.rows(func(r int) {
		for c, b := range g.InBias {
			i := r*channels + c
			if rng.Float32() >= l.drop {
				l.kept[i] = 1 / (1 - l.drop)
			}
			l.narrow[i] = float32((l.narrow[i] + b) * l.kept[i])
		}
	})
	l.convolve(l.first, l.narrow, g.First, g.FirstBias)
	l.attend(g)
	l.convolve(l.second, l.both, g.Second, g.SecondBias)
	clear(l.dSum)
	clear(l.dNarrow)
	for k, i := range which {
		l.answer(g, l.at[k], &said[i])
	}
	copy(l.dFirst, l.dSum)
	l.back(l.dSum, l.second, l.both, l.grad.Second, l.grad.SecondBias, g.turned.second, l.dFirst)
	l.unattend(g)
	l.back(l.dFirst, l.first, l.narrow, l.grad.First, l.grad.FirstBias, g.turned.first, l.dNarrow)
	for i, k := range l.kept {
		l.dNarrow[i] *= k
	}
	sum(l.grad.InBias, l.dNarrow)
	l.cross(l.grad.In, l.tokens, g.width, l.dNarrow)
}

// lay puts sentences one below the other.
func (l *glancer) lay(sentences [][]int32, which []int) (rows int) {
	l.at, rows = l.at[:0], 1
	for _, i := range which {
		n := min(len(sentences[i]), glanceTokens)
		l.at = append(l.at, span{rows, rows + n})
		rows += n + 1
	}
	rows = kernel.Up(rows, kernel.Tile)
	width := l.e.Meta.Width
	room := func(columns int, of ...*[]float32) {
		for _, x := range of {
			*x = slices.Grow((*x)[:0], rows*columns)[:rows*columns]
		}
	}
	room(width, &l.tokens)
	room(channels, &l.kept, &l.narrow, &l.first, &l.heads, &l.both, &l.second, &l.dNarrow, &l.dFirst, &l.dHeads, &l.dSum)
	room(3*channels, &l.three, &l.dThree)
	room(glanceTokens*channels/encoder.HeadWidth, &l.weights)
	room(wide, &l.around)
	room(max(wide, width), &l.crossed)
	clear(l.tokens)
	for k, i := range which {
		s := l.at[k]
		l.e.Tokens(sentences[i][:s.to-s.from], l.tokens[s.from*width:])
	}
	return rows
}

// rows calls f for each row that is a token.
func (l *glancer) rows(f func(row int)) {
	for _, s := range l.at {
		for r := s.from; r < s.to; r++ {
			f(r)
		}
	}
}

// surround puts each token's numbers with its neighbours'.
func (l *glancer) surround(x []float32) {
	clear(l.around)
	l.rows(func(r int) { copy(l.around[r*wide:][:wide], x[(r-1)*channels:]) })
}

// convolve gives what a convolution makes of x: nothing where that is negative, or no token is.
func (l *glancer) convolve(y, x, weights, bias []float32) {
	l.surround(x)
	clear(y)
	multiply(y, l.around, wide, len(y)/channels, weights)
	l.rows(func(r int) {
		for c, b := range bias {
			y[r*channels+c] = max(0, y[r*channels+c]+b)
		}
	})
	l.blank(y)
}

// back takes the gradient dy of what a convolution makes of x to its weights and on to dx, to which it adds; dy becomes that before what is negative
// became 0.
func (l *glancer) back(dy, y, x, grad, gradBias, turned, dx []float32) {
	for i, v := range y {
		if v <= 0 {
			dy[i] = 0
		}
	}
	sum(gradBias, dy)
	l.surround(x)
	l.cross(grad, l.around, wide, dy)
	clear(l.around)
	multiply(l.around, dy, channels, len(dy)/channels, turned)
	l.rows(func(r int) { kernel.Axpy(dx[(r-1)*channels:], 1, l.around[r*wide:][:wide]) })
}

// seen is what a glance has of a sentence, and where each channel's maximum stands.
func (l *glancer) seen(at span) (seen [encoder.Glanced]float32, top [channels]int) {
	n := float32(at.to - at.from)
	for c := range top {
		top[c] = at.from*channels + c
	}
	for r := at.from; r < at.to; r++ {
		for c, t := range top {
			i := r*channels + c
			v := l.both[i] + l.second[i]
			if v > l.both[t]+l.second[t] {
				top[c] = i
			}
			seen[channels+c] += float32(v / n)
			seen[2*channels+c] += float32(l.narrow[i] / n)
		}
	}
	for c, i := range top {
		seen[c] = l.both[i] + l.second[i]
	}
	return seen, top
}

// attend adds to what the first convolution gives of each token what it makes of the others.
func (l *glancer) attend(g *glance) {
	rows := len(l.first) / channels
	clear(l.three)
	multiply(l.three, l.first, channels, rows, g.Attention)
	l.rows(func(r int) { kernel.Axpy(l.three[r*3*channels:], 1, g.AttentionBias) })
	clear(l.heads)
	l.queries(func(weights, query, keys, values []float32, to, from int) {
		for j := range weights {
			weights[j] = kernel.AddDot(0, query, keys[j*3*channels:])
		}
		softmax(weights, headScale)
		for j, w := range weights {
			kernel.Axpy(l.heads[to:], w, values[j*3*channels:][:encoder.HeadWidth])
		}
	})
	clear(l.both)
	multiply(l.both, l.heads, channels, rows, g.Join)
	l.rows(func(r int) {
		kernel.Axpy(l.both[r*channels:], 1, g.JoinBias)
		kernel.Axpy(l.both[r*channels:], 1, l.first[r*channels:][:channels])
	})
	l.blank(l.both)
}

// unattend takes the gradient of both, which is in dFirst, to the attention's weights, and adds what comes back to it.
func (l *glancer) unattend(g *glance) {
	rows := len(l.first) / channels
	l.blank(l.dFirst)
	sum(l.grad.JoinBias, l.dFirst)
	l.cross(l.grad.Join, l.heads, channels, l.dFirst)
	clear(l.dHeads)
	multiply(l.dHeads, l.dFirst, channels, rows, g.turned.join)
	clear(l.dThree)
	var dWeights [glanceTokens]float32
	l.queries(func(weights, query, keys, values []float32, to, from int) {
		d := l.dHeads[to:][:encoder.HeadWidth]
		middle := float32(0)
		for j, w := range weights {
			dWeights[j] = kernel.AddDot(0, d, values[j*3*channels:])
			middle += float32(w * dWeights[j])
		}
		row, at := to/channels, to%channels
		dQuery := l.dThree[row*3*channels+at:]
		for j, w := range weights {
			dKey := l.dThree[(from+j)*3*channels+channels+at:]
			by := float32(float32(w*(dWeights[j]-middle)) * headScale)
			kernel.Axpy(dQuery, by, keys[j*3*channels:][:encoder.HeadWidth])
			kernel.Axpy(dKey, by, query)
			kernel.Axpy(dKey[channels:], w, d)
		}
	})
	sum(l.grad.AttentionBias, l.dThree)
	l.cross(l.grad.Attention, l.first, channels, l.dThree)
	multiply(l.dFirst, l.dThree, 3*channels, rows, g.turned.attention)
}

// headScale is by what a product of query and key is multiplied.
var headScale = float32(1 / math.Sqrt(encoder.HeadWidth))

// queries calls f for each head of each token: with its weights of the sentence's tokens, its query, the keys and values (each 3·Channels after the
// last), where in rows of Channels the head is, and which row the sentence begins with.
func (l *glancer) queries(f func(weights, query, keys, values []float32, to, from int)) {
	at := 0
	for _, s := range l.at {
		n := s.to - s.from
		for r := s.from; r < s.to; r++ {
			for h := 0; h < channels; h += encoder.HeadWidth {
				first := s.from*3*channels + h
				f(l.weights[at:][:n], l.three[r*3*channels+h:][:encoder.HeadWidth], l.three[first+channels:], l.three[first+2*channels:], r*channels+h, s.from)
				at += n
			}
		}
	}
}

// blank clears the rows of x that are no token.
func (l *glancer) blank(x []float32) {
	token := 0
	for _, s := range l.at {
		clear(x[token*channels : s.from*channels])
		token = s.to
	}
	clear(x[token*channels:])
}

// cross adds what a gradient dy of products of x, rows of so many numbers, says of the weights.
func (l *glancer) cross(grad, x []float32, columns int, dy []float32) {
	rows := len(x) / columns
	turn(l.crossed[:len(x)], x, columns)
	multiply(grad, l.crossed[:len(x)], rows, columns, dy)
}

// softmax turns x into e^(x·scale), divided by their sum.
func softmax(x []float32, scale float32) {
	top, sum := slices.Max(x), 0.0
	for i, v := range x {
		e := math.Exp(float64((v - top) * scale))
		x[i] = float32(e)
		sum += e
	}
	for i := range x {
		x[i] /= float32(sum)
	}
}

// answer lets the exit say something of a sentence, and takes what is wrong with it back to the channels.
func (l *glancer) answer(g *glance, at span, said *[len(encoder.Heads)]float32) {
	seen, top := l.seen(at)
	var dSeen [encoder.Glanced]float32
	var hidden, dHidden [encoder.Hidden]float32
	z := g.exit.Answer(seen[:], &hidden)
	grad := &l.grad.exit
	for h, z := range z {
		d := float32(sigmoid(float64(z))-sigmoid(float64(said[h]))) + float32(2*glanceLogits*(z-min(glanceTop, max(glanceFloor, said[h]))))
		if h == 0 {
			d *= 2 // bias counts twice
		}
		grad.OutBias[h] += d
		for k, v := range hidden {
			if v > 0 {
				grad.Out[k*len(encoder.Heads)+h] += float32(v * d)
				dHidden[k] += float32(g.exit.Out[k*len(encoder.Heads)+h] * d)
			}
		}
	}
	kernel.Axpy(grad.InBias, 1, dHidden[:])
	for k, v := range seen {
		kernel.Axpy(grad.In[k*encoder.Hidden:], v, dHidden[:])
	}
	for k, d := range dHidden {
		if d != 0 {
			kernel.Axpy(dSeen[:], d, g.turned.exit[k*encoder.Glanced:][:encoder.Glanced])
		}
	}
	n := float32(at.to - at.from)
	for r := at.from; r < at.to; r++ {
		kernel.Axpy(l.dSum[r*channels:], 1/n, dSeen[channels:2*channels])
		kernel.Axpy(l.dNarrow[r*channels:], 1/n, dSeen[2*channels:])
	}
	for c, i := range top {
		l.dSum[i] += dSeen[c]
	}
}

// multiply adds products of rows of x, so many numbers each, and of weights, a row of outputs an input, to y.
func multiply(y, x []float32, inputs, rows int, weights []float32) {
	out := len(weights) / inputs
	for c := 0; c < out; c += kernel.Wide {
		kernel.Matrix(y[c:], out, x, inputs, rows, weights[c:], out, inputs)
	}
}

// sum adds up rows.
func sum(to, rows []float32) {
	for ; len(rows) > 0; rows = rows[len(to):] {
		kernel.Axpy(to, 1, rows[:len(to)])
	}
}
