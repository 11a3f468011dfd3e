package classifier

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/modelfile"
)

// A model file, in the frame of package modelfile: the number of words in the list (4 bytes, little endian), numbers in the order of sections. Dense layers are bytes too, with a scale for each output channel.
const (
	magic = "EVENHAND-T0/3\n"
	// MaxFile is the size that a model file may have.
	MaxFile = 8 << 20
)

// weights are a model's numbers as training has them.
type weights struct {
	gate       []float32 // 1<<gateBits
	gateBias   float32
	words      []uint32
	own        []float32 // len(words) × dim
	embed      []float32 // (1<<embedBits) × dim
	conv1      []float32
	bias1      [channels]float32
	conv2      []float32
	bias2      [channels]float32
	out        [NumHeads][channels]float32
	outBias    [NumHeads]float32
	skip       [NumHeads]float32
	ground     []float32 // (1<<groundBits) × NumGrounds
	groundWord []float32 // len(words) × NumGrounds
	groundBias [NumGrounds]float32
}

func newWeights(words []uint32) *weights {
	return &weights{
		words: words, own: make([]float32, len(words)*dim),
		gate: make([]float32, 1<<gateBits), embed: make([]float32, dim<<embedBits),
		conv1: make([]float32, window*dim*channels), conv2: make([]float32, window*channels*channels),
		ground: make([]float32, NumGrounds<<groundBits), groundWord: make([]float32, len(words)*NumGrounds),
	}
}

// quantise gives the model of some weights: tables and convolutions as bytes times a scale.
func quantise(w *weights) *Model {
	m := &Model{
		gateBias: w.gateBias, bias1: w.bias1, bias2: w.bias2, out: w.out, outBias: w.outBias, skip: w.skip, groundBias: w.groundBias,
		conv1: quantiseDense(w.conv1), conv2: quantiseDense(w.conv2), words: w.words,
	}
	m.own, m.ownScale = rowsToBytes(w.own)
	m.embed, m.embedScale = rowsToBytes(w.embed)
	m.gate, m.gateScale = toBytes(nil, w.gate)
	m.ground, m.groundUnit = toBytes(nil, w.ground)
	m.groundWord, m.groundWordUnit = toBytes(nil, w.groundWord)
	return m
}

// rowsToBytes rounds the rows of a table, each with a scale of its own.
func rowsToBytes(w []float32) (q []int8, scales []float32) {
	q, scales = make([]int8, len(w)), make([]float32, len(w)/dim)
	for r := range scales {
		_, scales[r] = toBytes(q[r*dim:(r+1)*dim], w[r*dim:(r+1)*dim])
	}
	return q, scales
}

// toBytes rounds numbers to whole multiples of a scale, at most 127 of it.
func toBytes(dst []int8, w []float32) (q []int8, scale float32) {
	if dst == nil {
		dst = make([]int8, len(w))
	}
	top := float32(0)
	for _, v := range w {
		top = max(top, v, -v)
	}
	if top == 0 {
		return dst, 0
	}
	scale = top / 127
	for i, v := range w {
		dst[i] = int8(math.RoundToEven(float64(v / scale)))
	}
	return dst, scale
}

// dense is a convolution: bytes with a scale for each output channel, and the numbers that they stand for.
type dense struct {
	q      []int8
	scales [channels]float32
	w      []float32 // inputs × channels
}

func newDense(rows int) dense {
	return dense{q: make([]int8, rows*channels), w: make([]float32, rows*channels)}
}

func quantiseDense(w []float32) dense {
	d := newDense(len(w) / channels)
	for i, v := range w {
		d.scales[i%channels] = max(d.scales[i%channels], v, -v)
	}
	for c := range d.scales {
		d.scales[c] /= 127
	}
	for i, v := range w {
		if s := d.scales[i%channels]; s > 0 {
			d.q[i] = int8(math.RoundToEven(float64(v / s)))
		}
	}
	d.fill()
	return d
}

func (d *dense) fill() {
	for i, v := range d.q {
		d.w[i] = float32(v) * d.scales[i%channels]
	}
}

// Encode writes the model file. The same model gives the same bytes.
func (m *Model) Encode() ([]byte, error) {
	var b bytes.Buffer
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(m.words))))
	for _, part := range m.sections() {
		_ = binary.Write(&b, binary.LittleEndian, part) // into memory: cannot fail
	}
	file, err := modelfile.Seal(magic, m.Meta, b.Bytes())
	if err != nil {
		return nil, audit.E("classifier: encode", audit.KindInternal, err)
	}
	return file, nil
}

// sections are the numbers of a file, in order; pointers and slices, to be read into.
func (m *Model) sections() []any {
	return []any{
		&m.gateScale, &m.gateBias, m.gate, m.words, m.ownScale, m.own, m.embedScale, m.embed, &m.bias1, &m.bias2,
		&m.out, &m.outBias, &m.skip, &m.groundUnit, m.ground, &m.groundWordUnit, m.groundWord, &m.groundBias,
		&m.conv1.scales, m.conv1.q, &m.conv2.scales, m.conv2.q,
	}
}

// Decode reads a model file. Whatever is wrong with it is an error of KindInvalid.
func Decode(file []byte) (*Model, error) {
	m, err := decode(file)
	if err != nil {
		return nil, audit.E("classifier: decode model", audit.KindInvalid, err)
	}
	return m, nil
}

func decode(file []byte) (*Model, error) {
	if lexiconFault != nil {
		return nil, lexiconFault
	}
	if len(file) > MaxFile {
		return nil, fmt.Errorf("%d bytes, more than %d", len(file), MaxFile)
	}
	var meta Meta
	parts, version, err := modelfile.Open(file, magic, &meta)
	if err != nil {
		return nil, err
	}
	if len(parts) < 4 {
		return nil, errors.New("the number of words is cut off")
	}
	n := binary.LittleEndian.Uint32(parts)
	if n > maxWords {
		return nil, fmt.Errorf("%d words, more than %d", n, maxWords)
	}
	m := &Model{
		Meta:  meta,
		words: make([]uint32, n), own: make([]int8, n*dim), ownScale: make([]float32, n),
		gate: make([]int8, 1<<gateBits), embed: make([]int8, dim<<embedBits), embedScale: make([]float32, 1<<embedBits),
		ground: make([]int8, NumGrounds<<groundBits), groundWord: make([]int8, n*NumGrounds), conv1: newDense(window * dim), conv2: newDense(window * channels),
	}
	r := bytes.NewReader(parts[4:])
	for i, part := range m.sections() {
		if err := binary.Read(r, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("section %d is cut off", i)
		}
	}
	m.conv1.fill()
	m.conv2.fill()
	if r.Len() > 0 {
		return nil, fmt.Errorf("%d bytes too many", r.Len())
	}
	m.Meta.Version = version
	return m, m.validate()
}

// validate refuses numbers that would make every answer the same.
func (m *Model) validate() error {
	if len(m.Meta.Heads) != NumHeads {
		return fmt.Errorf("%d heads, want %d", len(m.Meta.Heads), NumHeads)
	}
	for h, t := range m.Meta.Heads {
		if t.Name != Head(h).String() {
			return fmt.Errorf("head %d is %q, want %q", h, t.Name, Head(h))
		}
		if !(t.Threshold > 0 && t.Threshold <= 1) || t.A <= 0 || !modelfile.Finite(t.A, t.B) {
			return fmt.Errorf("head %s: threshold %v, a %v, b %v", t.Name, t.Threshold, t.A, t.B)
		}
	}
	for i := 1; i < len(m.words); i++ {
		if m.words[i] <= m.words[i-1] {
			return errors.New("the words are not in order")
		}
	}
	if !modelfile.Finite(m.Meta.Gate, m.Meta.Unnamed) || !(m.Meta.Ground > 0 && m.Meta.Ground <= 1) {
		return fmt.Errorf("gate %v, unnamed %v, ground %v", m.Meta.Gate, m.Meta.Unnamed, m.Meta.Ground)
	}
	groups := [][]float32{{m.gateScale, m.gateBias, m.groundUnit, m.groundWordUnit}, m.ownScale, m.embedScale, m.bias1[:], m.bias2[:], m.conv1.scales[:], m.conv2.scales[:], m.outBias[:], m.skip[:], m.groundBias[:]}
	for h := range m.out {
		groups = append(groups, m.out[h][:])
	}
	for _, g := range groups {
		for _, v := range g {
			if !modelfile.Finite(float64(v)) {
				return errors.New("a number is not finite")
			}
		}
	}
	return nil
}
