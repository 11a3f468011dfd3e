package classifier

import (
	"math"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
	"github.com/evenhand/evenhand/detectors/classifier/kernel"
)

// Sizes of the model. They are part of the file's format.
const (
	gateBits   = 18 // buckets of the first score
	embedBits  = 15 // buckets of the network's embeddings for words that are not in its list
	dim        = 64 // numbers of an embedding
	groundBits = 14 // buckets of the grounds' features
	window     = 3  // tokens that a convolution sees
	channels   = 64 // outputs of each convolution
)

// NumGrounds is the number of protected grounds.
const NumGrounds = 16

// Head is one question that the model answers with a probability.
type Head int

// The heads.
const (
	Bias Head = iota
	Toxicity
	Violence
	SelfHarm
	IllegalInstructions
	HallucinationIndicator
	NumHeads int = iota
)

var headNames [NumHeads]string = encoder.Heads // the same heads, in the same order

// String gives the head's name, as rule ids and reports have it.
func (h Head) String() string { return headNames[h] }

// Heads lists the heads in order.
func Heads() []Head {
	return []Head{Bias, Toxicity, Violence, SelfHarm, IllegalInstructions, HallucinationIndicator}
}

// Model is a trained model. It is read-only and safe for concurrent use.
type Model struct {
	Meta Meta

	gate           []int8 // 1<<gateBits
	gateScale      float32
	gateBias       float32
	words          []uint32  // hashes of the words with an embedding of their own, ascending
	own            []int8    // len(words) × dim
	ownScale       []float32 // of each row
	embed          []int8    // (1<<embedBits) × dim, of all other tokens
	embedScale     []float32
	conv1          dense // window*dim × channels
	bias1          [channels]float32
	conv2          dense // window*channels × channels
	bias2          [channels]float32
	out            [NumHeads][channels]float32
	outBias        [NumHeads]float32
	skip           [NumHeads]float32 // weight of the first score
	ground         []int8            // (1<<groundBits) × NumGrounds, of hashed features
	groundUnit     float32
	groundWord     []int8 // len(words) × NumGrounds
	groundWordUnit float32
	groundBias     [NumGrounds]float32
}

// Meta is what a model says of itself.
type Meta struct {
	Version string   `json:"-"` // digest of the file
	Name    string   `json:"name"`
	Seed    uint64   `json:"seed"`
	Trained string   `json:"trained"` // what it was trained on, in words
	Lexicon string   `json:"lexicon"` // digest of the identity terms that it was trained with
	Gate    float64  `json:"gate"`    // first scores below it end the look at a sentence
	Unnamed float64  `json:"unnamed"` // what the bias logit loses where no group is named, see judge
	Heads   []Tuning `json:"heads"`   // in the order of Heads
	Ground  float64  `json:"ground"`  // probability above which a ground beside the likeliest is named; those of all grounds sum to one
}

// Tuning turns a head's logit into a probability, and the probability into an answer.
type Tuning struct {
	Name      string  `json:"name"`
	A         float64 `json:"a"` // probability = 1/(1+exp(-(A·logit+B)))
	B         float64 `json:"b"`
	Threshold float64 `json:"threshold"` // the answer is yes above it
	FPR       float64 `json:"fpr"`       // share of ordinary text above the threshold when it was chosen
}

// Probability of a logit.
func (t Tuning) Probability(logit float32) float64 {
	return sigmoid(float64(t.A*float64(logit)) + t.B)
}

// Join sets what the first score counts in a head's logit, beside what the network says.
func (m *Model) Join(h Head, weight float32) { m.skip[h] = weight }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// first is the first score of some tokens: a sum over hashed words, pairs and triples of words. buckets are those of
// gateFeatures: a list of its own lets a processor load many of them at once.
func (m *Model) first(buckets []uint32, tokens int) float32 {
	gate, sum := (*[1 << gateBits]int8)(m.gate), int32(0)
	for _, b := range buckets {
		sum += int32(gate[b%(1<<gateBits)])
	}
	return float32(float32(sum)*m.gateScale)/norm(tokens) + m.gateBias
}

// norm keeps scores of long and short sentences alike.
func norm(n int) float32 { return float32(math.Sqrt(float64(n + 4))) }

// gateFeatures appends the buckets of the first score's features.
func gateFeatures(dst []uint32, ts []token) []uint32 {
	const shift = 32 - gateBits
	before, last := uint32(boundaryHash), uint32(boundaryHash)
	for i := range ts {
		t := &ts[i]
		two := pair(last, t.word)
		dst = append(dst, mix(t.word)>>shift, two>>shift, pair(before, two)>>shift)
		if t.prefix != t.word {
			dst = append(dst, mix(t.prefix)>>shift, mix(t.suffix)>>shift)
		}
		before, last = last, t.word
	}
	two := pair(last, boundaryHash)
	return append(dst, two>>shift, pair(before, two)>>shift)
}

// groundFeatures gives the buckets of what tells grounds apart: the words as written and the grounds of
// identity terms.
func groundFeatures(ts []token, use func(bucket uint32)) {
	const shift = 32 - groundBits
	last := uint32(boundaryHash)
	for i := range ts {
		t := &ts[i]
		if t.mark != 0 {
			continue
		}
		use(mix(t.raw^0x5bd1e995) >> shift)
		if t.ground != 0 {
			use(mix(0x67000000+uint32(t.ground)) >> shift)
			use(mix(0x67000000+uint32(t.ground)) >> shift) // twice: a known term says more than the words around it
		} else {
			use(mix(t.suffix) >> shift)
		}
		use(pair(last, t.raw) >> shift)
		last = t.raw
	}
}

// groundWords gives the places in a list of the words that it has. Identity terms are not in it: they have hashes of their own.
func groundWords(list []uint32, ts []token, use func(row int)) {
	for i := range ts {
		if row, ok := slices.BinarySearch(list, ts[i].raw); ok && ts[i].mark == 0 {
			use(row)
		}
	}
}

// scratch is what a forward pass writes to.
type scratch struct {
	x     [(maxTokens + 2) * dim]float32
	h1    [(maxTokens + 2) * channels]float32
	h2    [maxTokens * channels]float32
	pool  [channels]float32
	at    [channels]int32 // token of each maximum
	heads [NumHeads]float32
}

// reset makes room for n embeddings, with zeros around them and in the rows that fill up a tile.
func (s *scratch) reset(n int) { clear(s.x[:(kernel.Up(n, kernel.Tile)+2)*dim]) }

// features gives the embedding rows of a token that is not in the list of words; n of them count.
func (t *token) features() (rows [3]uint32, n int) {
	const shift = 32 - embedBits
	rows[0] = mix(t.word^0x2545f491) >> shift
	if t.prefix == t.word {
		return rows, 1
	}
	rows[1], rows[2] = mix(t.prefix^0x2545f491)>>shift, mix(t.suffix^0x2545f491)>>shift
	return rows, 3
}

// look runs the network over at most maxTokens tokens and leaves the heads' logits in s.
func (m *Model) look(s *scratch, ts []token, first float32) {
	n := len(ts)
	s.reset(n)
	for i := range ts {
		x := s.x[(i+1)*dim : (i+2)*dim]
		if r, ok := slices.BinarySearch(m.words, ts[i].word); ok {
			addRow(x, m.own, m.ownScale, r)
			continue
		}
		rows, k := ts[i].features()
		for _, r := range rows[:k] {
			addRow(x, m.embed, m.embedScale, int(r))
		}
	}
	convolve(s, n, m.conv1.w, &m.bias1, m.conv2.w, &m.bias2)
	for h := range s.heads {
		z := m.outBias[h] + float32(m.skip[h]*first)
		for c, v := range s.pool {
			z += float32(v * m.out[h][c])
		}
		s.heads[h] = z
	}
}

// addRow adds a row of a table to an embedding.
func addRow(x []float32, table []int8, scales []float32, row int) {
	kernel.AddBytes(x, scales[row], table[row*dim:(row+1)*dim])
}

// convolve runs both layers over the n embeddings in s.x, and takes the maximum of each channel.
func convolve(s *scratch, n int, conv1 []float32, bias1 *[channels]float32, conv2 []float32, bias2 *[channels]float32) {
	rows := kernel.Up(n, kernel.Tile)
	h1 := s.h1[channels:][:rows*channels]
	layer(h1, s.x[:], dim, conv1, bias1)
	for i, v := range h1 {
		h1[i] = max(v, 0)
	}
	clear(s.h1[:channels])
	clear(s.h1[(n+1)*channels:][:channels])
	layer(s.h2[:rows*channels], s.h1[:], channels, conv2, bias2)
	clear(s.pool[:])
	for i := range n {
		for c, v := range s.h2[i*channels:][:channels] {
			if v > s.pool[c] {
				s.pool[c], s.at[c] = v, int32(i)
			}
		}
	}
}

// layer gives rows of channels: a bias and the product of weights and a window of x, each window width numbers after the one before.
func layer(y, x []float32, width int, w []float32, bias *[channels]float32) {
	rows := len(y) / channels
	for r := range rows {
		copy(y[r*channels:], bias[:])
	}
	for c := 0; c < channels; c += kernel.Wide {
		kernel.Matrix(y[c:], channels, x, width, rows, w[c:], channels, window*width)
	}
}

// grounds gives the probability that a biased sentence is about each ground: a linear model over its words, by what
// their vectors say and by their hashes.
func (m *Model) grounds(ts []token) (out [NumGrounds]float64) {
	var sums, words [NumGrounds]int32
	n := 0
	add := func(to *[NumGrounds]int32, table []int8, row int) {
		for g, v := range table[row*NumGrounds : (row+1)*NumGrounds] {
			to[g] += int32(v)
		}
	}
	groundFeatures(ts, func(bucket uint32) {
		n++
		add(&sums, m.ground, int(bucket))
	})
	groundWords(m.words, ts, func(row int) { add(&words, m.groundWord, row) })
	var logits [NumGrounds]float32
	for g := range logits {
		logits[g] = float32(float32(sums[g])*m.groundUnit)/norm(n) + float32(float32(words[g])*m.groundWordUnit)/norm(len(ts)) + m.groundBias[g]
	}
	return softmax(&logits)
}

// softmax turns logits into probabilities that sum to one.
func softmax(logits *[NumGrounds]float32) (out [NumGrounds]float64) {
	top, sum := slices.Max(logits[:]), 0.0
	for g, z := range logits {
		out[g] = math.Exp(float64(z - top))
		sum += out[g]
	}
	for g := range out {
		out[g] /= sum
	}
	return out
}

// evidence gives the token that spoke most for a head, by the channels' maxima in s.
func (m *Model) evidence(s *scratch, h Head, n int) int {
	var votes [maxTokens + 2]float32
	for c, v := range s.pool {
		if w := float32(v * m.out[h][c]); w > 0 {
			at := s.at[c] + 1
			votes[at] += w
			votes[at-1] += w / 2
			votes[at+1] += w / 2
		}
	}
	best := 1
	for i := 1; i <= n; i++ {
		if votes[i] > votes[best] {
			best = i
		}
	}
	return best - 1
}

// groundOf is the ground with an index of the model.
func groundOf(i int) audit.Ground { return audit.Grounds[i] }
