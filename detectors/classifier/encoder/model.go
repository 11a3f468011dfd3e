// Package encoder is a small transformer that runs in the process, in whole numbers of a byte: what the classifier asks about sentences that it is
// in doubt about. Two ship, fine-tuned: MiniLM (Wang et al. 2020) for English, multilingual E5 (Wang et al. 2024) for other languages.
//
// After each of the first layers an early exit (Xin et al. 2020, DeeBERT) says what the whole model is going to say: of most ordinary
// sentences "surely not" to all heads, and no more layers are read.
//
// A sentence becomes at most [MaxTokens] pieces of words. Weights are bytes, a scale an output; activations are bytes, a
// scale a token, measured anew before each matrix. Attention, norms and GELU are float32. The same text gives
// the same numbers, to the bit, on every processor: with AVX-512 VNNI, with AVX2, in plain Go.
//
// Cost (AVX-512 VNNI): see BenchmarkEncoder; a [Model] is read-only and safe for concurrent use.
package encoder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/kernel"
	"github.com/evenhand/evenhand/detectors/classifier/modelfile"
)

// MaxTokens of a sentence, beginning and end among them; what comes after is not looked at.
const MaxTokens = 96

// Heads are the questions besides the grounds; bias is the first.
var Heads = [...]string{"bias", "toxicity", "violence", "self_harm", "illegal_instructions", "hallucination_indicator"}

// NumOutputs is the number of logits: of the heads, then of the grounds, in the order of audit.Grounds.
const NumOutputs = len(Heads) + 16

// outputs are their names.
func outputs() []string {
	out := slices.Clone(Heads[:])
	for _, g := range audit.Grounds {
		out = append(out, string(g))
	}
	return out
}

// HeadWidth is how many numbers an attention head has.
const HeadWidth = 32

// Meta is what a model says of itself.
type Meta struct {
	Version string `json:"-"` // digest of the file
	Name    string `json:"name"`
	Trained string `json:"trained"` // what it was made of, in words
	Layers  int    `json:"layers"`
	Exits   int    `json:"exits"` // early ones: after no layer, after layer 1, …
	Width   int    `json:"width"` // numbers of a token
	Inner   int    `json:"inner"` // numbers of a token between the two matrices of a layer's second half
	Pieces  int    `json:"pieces"`
	// Vocabulary is how it cuts words: empty as BERT does, "unigram" as XLM-R does.
	Vocabulary string   `json:"vocabulary,omitempty"`
	Outputs    []string `json:"outputs"`
	// Languages that it learnt and is measured in; none: English. It gets whatever is not English and in Latin letters.
	Languages []string `json:"languages,omitempty"`
	// Adviser is the version of the encoder whose advice was calibrated, too: another one, that reads the same sentences and errs in others. Where it is
	// at hand, nothing is found without it but what this one is sure of. Empty: this one decides alone.
	Adviser string `json:"adviser,omitempty"`

	// Decides are the heads that are asked about, bias the first; one whose threshold is 1 never answers yes. Empty in a file that was not calibrated.
	Decides []Scale `json:"decides"`
	// Efforts are what it may cost, and what is answered then.
	Efforts []Effort `json:"efforts"`
	// Others are the probabilities above which the classifier's own answer is yes in languages that this model cannot read, of each head: in texts of
	// one sentence, and of several, the strongest of which is often strong by chance.
	Others [2][]float64 `json:"others,omitempty"`
	// Classifier is the version of the model that it was calibrated with: whose doubts are asked about.
	Classifier string `json:"classifier"`
}

// English tells whether it is a model of English alone.
func (t *Meta) English() bool { return len(t.Languages) == 0 }

// Scale makes a probability of a head's logit: 1/(1+exp(-(A·logit+B))).
type Scale struct {
	Head string  `json:"head"`
	A    float64 `json:"a"`
	B    float64 `json:"b"`
	// Beside is what the classifier's logit counts beside the encoder's.
	Beside float64 `json:"beside,omitempty"`
	// Advised makes a probability of the joint logit and the adviser's together.
	Advised Line `json:"advised,omitzero"`
}

// Line makes a probability of a logit: 1/(1+exp(-(A·logit+B))).
type Line struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// Probability of a logit.
func (l Line) Probability(logit float32) float64 {
	return 1 / (1 + math.Exp(-(float64(l.A*float64(logit)) + l.B)))
}

// Joint gives the logit of encoder and classifier together.
func (s Scale) Joint(logit, classifier float32) float32 {
	return logit + float32(s.Beside*float64(classifier))
}

// Probability of a joint logit.
func (s Scale) Probability(logit float32) float64 {
	return Line{s.A, s.B}.Probability(logit)
}

// Logit of a probability.
func (s Scale) Logit(p float64) float64 { return (math.Log(p/(1-p)) - s.B) / s.A }

// Effort says for each head that answers which sentences are asked about, and from which probability on the answer is yes.
type Effort struct {
	Name string `json:"name"`
	// Short and Medium are the efforts at which short and medium responses are read instead; empty: this one.
	Short  string   `json:"short,omitempty"`
	Medium string   `json:"medium,omitempty"`
	Heads  []Asking `json:"heads"` // in the order of Decides
	// Suspicious are long texts that are read at another effort.
	Suspicious Suspicion `json:"suspicious,omitzero"`
	// Together: what is asked about for one head is answered for all.
	Together bool `json:"together,omitempty"`
	// Alone are where early exits stop in a sentence, InPassage where they do in one that is read with what stands around it.
	Alone     Stops `json:"alone,omitempty"`
	InPassage Stops `json:"in_passage,omitempty"`
}

// Suspicion is what the classifier must say of a text as a whole, both: of a harmful one every sentence may be harmless, but not all of them are like those of
// other texts.
type Suspicion struct {
	Effort string  `json:"effort"` // at which it is read then; empty: nothing is suspicious
	First  float64 `json:"first"`  // the mean of the three highest first scores is above this
	Harm   float64 `json:"harm"`   // and that of the highest logits of harm of the eight sentences with the highest first scores is above this
}

// Asking is what an effort does for one head.
type Asking struct {
	Named     Doubt   `json:"named"`           // where a group is named, in the sentence or in the one before
	Unnamed   Doubt   `json:"unnamed"`         // elsewhere
	Context   float64 `json:"context"`         // the logit of a sentence above which it is read again with what stands around it
	Plain     float64 `json:"plain,omitempty"` // the logit of a sentence above which the answer is yes whatever stands around it; 0: that has the last word
	Threshold float64 `json:"threshold"`
	FPR       float64 `json:"fpr"` // share of ordinary text above the threshold when it was chosen
	Advice    Advice  `json:"advice,omitzero"`
}

// Advice is what an effort does for one head where there is an adviser.
type Advice struct {
	Above     float64 `json:"above"`     // the joint logit above which it is asked; below that the answer is no
	Sure      float64 `json:"sure"`      // the joint logit above which the answer is yes without advice, as it would be with it; 0: none is sure enough
	Threshold float64 `json:"threshold"` // of the probability of both
	FPR       float64 `json:"fpr"`       // as Asking's
}

// Doubt is what the classifier must say of a sentence for the encoder to be asked.
type Doubt struct {
	First float64 `json:"first"` // its first score, at least
	Logit float64 `json:"logit"` // its logit of the head, above
}

// Prior is what the classifier says of a sentence: the heads that it asks for, and its logits.
type Prior struct {
	Ask    [len(Heads)]bool
	Logits [len(Heads)]float32
}

// Asks tells for which heads the encoder is asked about a sentence with a first score and logits.
func (e *Effort) Asks(first float32, logits *[len(Heads)]float32, named bool) (ask [len(Heads)]bool) {
	for h := range e.Heads {
		from := e.Heads[h].Unnamed
		if named {
			from = e.Heads[h].Named
		}
		ask[h] = float64(first) >= from.First && float64(logits[h]) > from.Logit
	}
	if e.Together && slices.Contains(ask[:], true) {
		for h := range e.Heads {
			ask[h] = true
		}
	}
	return ask
}

// Effort gives the one of a name.
func (t *Meta) Effort(name string) (Effort, bool) {
	i := slices.IndexFunc(t.Efforts, func(e Effort) bool { return e.Name == name })
	if i < 0 {
		return Effort{}, false
	}
	return t.Efforts[i], true
}

// Model is an encoder.
type Model struct {
	Meta      Meta
	pieces    vocabulary
	word      []int8 // Pieces × Width
	wordScale []float32
	place     []float32 // MaxTokens × Width: position and segment
	first     normal
	layers    []layer
	out       []float32 // Width × outputs
	outBias   []float32
	glance    *Glance // nil without early exits
	exits     []Exit
	pool      sync.Pool // *scratch
}

type normal struct{ gain, shift []float32 }

type layer struct {
	attention, join, up, down linear
	mid, end                  normal
}

// linear is y = x·Wᵀ + bias, W packed for the kernel.
type linear struct {
	in, out            int
	weights            []int8 // out/kernel.Column blocks of in/4 groups of kernel.Column × 4
	scales, sums, bias []float32
}

// unigramVocabulary is the Vocabulary of a model that cuts words as XLM-R does.
const unigramVocabulary = "unigram"

const magic = "EVENHAND-T1/3\n" // also in tools/train/export.py

// Decode reads a model file, in the frame of package modelfile: vocabulary (its length and text), numbers in the order
// of sections; little-endian. Bytes of the file are used as they are, so file must not change. Errors
// are of audit.KindInvalid.
func Decode(file []byte) (*Model, error) {
	m, err := decode(file)
	if err != nil {
		return nil, audit.E("encoder: decode model", audit.KindInvalid, err)
	}
	return m, nil
}

func decode(file []byte) (*Model, error) {
	m := &Model{}
	parts, version, err := modelfile.Open(file, magic, &m.Meta)
	if err != nil {
		return nil, err
	}
	c := &cursor{rest: parts}
	t := &m.Meta
	if t.Layers < 1 || t.Layers > 24 || t.Exits < 0 || t.Exits > t.Layers || t.Exits > 0 && t.Width < Channels || t.Width < HeadWidth || t.Width > 1024 || t.Width%HeadWidth != 0 || t.Inner < kernel.Column || t.Inner > 4096 || t.Inner%kernel.Column != 0 ||
		t.Pieces <= lastID || t.Pieces > 1<<17 || len(t.Outputs) != NumOutputs {
		return nil, fmt.Errorf("sizes: %d layers, %d early exits, width %d, inner %d, %d pieces, %d outputs", t.Layers, t.Exits, t.Width, t.Inner, t.Pieces, len(t.Outputs))
	}
	vocabulary := c.text(1 << 24)
	if c.err == nil && strings.Count(vocabulary, "\n")+1 != t.Pieces {
		return nil, fmt.Errorf("%d pieces in the vocabulary, %d in the header", strings.Count(vocabulary, "\n")+1, t.Pieces)
	}
	c.sections(m)
	switch {
	case c.err != nil:
		return nil, c.err
	case len(c.rest) > 0:
		return nil, fmt.Errorf("%d bytes too many", len(c.rest))
	case !c.finite:
		return nil, errors.New("a number is not finite")
	case !slices.Equal(t.Outputs, outputs()):
		return nil, fmt.Errorf("outputs %v, want %v", t.Outputs, outputs())
	}
	if err := t.validate(); err != nil {
		return nil, err
	}
	switch t.Vocabulary {
	case "":
		m.pieces = newPieces(vocabulary)
	case unigramVocabulary:
		if m.pieces, err = newUnigram(vocabulary); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("vocabulary %q is unknown", t.Vocabulary)
	}
	t.Version = version
	m.pool.New = func() any { return newScratch(t) }
	return m, nil
}

// validate looks at what calibration wrote.
func (t *Meta) validate() error {
	if len(t.Decides) > len(Heads) {
		return fmt.Errorf("%d heads answer, there are %d", len(t.Decides), len(Heads))
	}
	for i, s := range t.Decides {
		if s.Head != Heads[i] || !modelfile.Finite(s.A, s.B, s.Beside, s.Advised.A, s.Advised.B) {
			return fmt.Errorf("head %d: %+v, want %s with finite numbers", i, s, Heads[i])
		}
	}
	for _, e := range t.Efforts {
		if !modelfile.Finite(e.Suspicious.First, e.Suspicious.Harm) {
			return fmt.Errorf("effort %s: %+v", e.Name, e.Suspicious)
		}
		for _, other := range [...]string{e.Short, e.Medium, e.Suspicious.Effort} {
			if _, ok := t.Effort(other); other != "" && !ok {
				return fmt.Errorf("effort %s: there is no effort %s", e.Name, other)
			}
		}
		if len(e.Heads) != len(t.Decides) {
			return fmt.Errorf("effort %s: %d heads, want %d", e.Name, len(e.Heads), len(t.Decides))
		}
		for _, a := range e.Heads {
			if !modelfile.Finite(a.Named.First, a.Named.Logit, a.Unnamed.First, a.Unnamed.Logit, a.Context, a.Plain) || !(a.Threshold > 0 && a.Threshold <= 1) {
				return fmt.Errorf("effort %s: %+v", e.Name, a)
			}
			if c := a.Advice; t.Adviser != "" && (!modelfile.Finite(c.Above, c.Sure) || !(c.Threshold > 0 && c.Threshold <= 1)) {
				return fmt.Errorf("effort %s: advice %+v", e.Name, c)
			}
		}
	}
	for _, others := range t.Others {
		if len(others) > len(Heads) || !modelfile.Finite(others...) {
			return fmt.Errorf("thresholds of other languages: %v", others)
		}
	}
	for _, e := range t.Efforts {
		for _, stops := range [...]Stops{e.Alone, e.InPassage} {
			if err := stops.validate(t); err != nil {
				return fmt.Errorf("effort %s: %w", e.Name, err)
			}
		}
	}
	return nil
}

// Retuned gives the file with another header: what calibration found.
func Retuned(file []byte, t Meta) ([]byte, error) {
	parts, _, err := modelfile.Open(file, magic, &Meta{})
	if err != nil {
		return nil, audit.E("encoder: retune", audit.KindInvalid, err)
	}
	return modelfile.Seal(magic, t, parts)
}

// cursor reads a file's parts.
type cursor struct {
	rest   []byte
	err    error
	finite bool
}

func (c *cursor) take(n int) []byte {
	if c.err == nil && n > len(c.rest) {
		c.err = io.ErrUnexpectedEOF
	}
	if c.err != nil {
		return nil
	}
	part := c.rest[:n:n]
	c.rest = c.rest[n:]
	return part
}

func (c *cursor) text(limit uint32) string {
	b := c.take(4)
	if b == nil {
		return ""
	}
	n := binary.LittleEndian.Uint32(b)
	if n > limit {
		c.err = fmt.Errorf("a part of %d bytes", n)
	}
	return string(c.take(int(n)))
}

func (c *cursor) bytes(n int) []int8 {
	b := c.take(n)
	if b == nil {
		return nil
	}
	return unsafe.Slice((*int8)(unsafe.Pointer(&b[0])), n)
}

func (c *cursor) floats(n int) []float32 {
	b := c.take(4 * n)
	if b == nil {
		return nil
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		c.finite = c.finite && modelfile.Finite(float64(out[i]))
	}
	return out
}

func (c *cursor) sections(m *Model) {
	t := &m.Meta
	norm := func() normal { return normal{c.floats(t.Width), c.floats(t.Width)} }
	matrix := func(in, out int) linear {
		l := linear{in: in, out: out, weights: c.bytes(in * out), scales: c.floats(out), bias: c.floats(out)}
		l.sum()
		return l
	}
	c.finite = true
	m.word, m.wordScale = c.bytes(t.Pieces*t.Width), c.floats(t.Pieces)
	m.place, m.first = c.floats(MaxTokens*t.Width), norm()
	for range t.Layers {
		m.layers = append(m.layers, layer{
			attention: matrix(t.Width, 3*t.Width), join: matrix(t.Width, t.Width), mid: norm(),
			up: matrix(t.Width, t.Inner), down: matrix(t.Inner, t.Width), end: norm(),
		})
	}
	m.out, m.outBias = c.floats(t.Width*len(t.Outputs)), c.floats(len(t.Outputs))
	if t.Exits > 0 {
		m.glance = &Glance{
			matrix(t.Width, Channels), matrix(Around*Channels, Channels), matrix(Channels, 3*Channels), matrix(Channels, Channels), matrix(Around*Channels, Channels),
		}
	}
	for i := range t.Exits {
		m.exits = append(m.exits, Exit{c.floats(seen(i, t.Width) * Hidden), c.floats(Hidden), c.floats(Hidden * len(Heads)), c.floats(len(Heads))})
	}
}
