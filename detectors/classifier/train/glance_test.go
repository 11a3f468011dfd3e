package train

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// What is taken back to each part of the weights is by how much less wrong the answers become: along it the error changes as it says.
func TestGlanceGradients(t *testing.T) {
	e, err := encoder.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	sentences := [][]int32{e.Pieces("Older people cannot learn."), e.Pieces("The shop opens at nine, and it closes at five."), e.Pieces("No.")}
	said := [][len(encoder.Heads)]float32{{2, -1}, {-4, 0, 3}, {-6, -6, -6, -6, -6, -6}}
	g, l := newGlance(e.Meta.Width), newGlancer(e, glanceDrop)
	g.begin(rand.New(rand.NewPCG(1, 2)))
	wrong := func() (sum float64) {
		for _, part := range l.grad.parts() {
			clear(part)
		}
		g.turn()
		l.learn(g, sentences, said, []int{0, 1, 2}, rand.New(rand.NewPCG(9, 9)))
		for i, at := range l.at {
			seen, _ := l.seen(at)
			var hidden [encoder.Hidden]float32
			for h, z := range g.exit.Answer(seen[:], &hidden) {
				p, q, d := sigmoid(float64(said[i][h])), sigmoid(float64(z)), float64(z-said[i][h])
				loss := glanceLogits*float64(d*d) - p*math.Log(q) - (1-p)*math.Log(1-q)
				if h == 0 {
					loss *= 2
				}
				sum += loss
			}
		}
		return sum
	}
	wrong()
	var grads [][]float32
	for _, part := range l.grad.parts() {
		grads = append(grads, slices.Clone(part))
	}
	for i, part := range g.parts() {
		size := 0.0
		for _, v := range grads[i] {
			size += float64(v * v)
		}
		size = math.Sqrt(size)
		const step = 0.01
		was := slices.Clone(part)
		moved := func(by float64) float64 {
			for k := range part {
				part[k] = was[k] + float32(by*float64(grads[i][k])/size)
			}
			defer copy(part, was)
			return wrong()
		}
		if got := (moved(step) - moved(-step)) / (2 * step); size == 0 || math.Abs(got-size) > 0.03*size {
			t.Errorf("part %d: the error changes by %.4f, want %.4f", i, got, size)
		}
	}
}

// What the program makes of a sentence with bytes is near what training makes of it with floats.
func TestGlanceRounds(t *testing.T) {
	e, err := encoder.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../encoder/model.bin")
	if err != nil {
		t.Fatal(err)
	}
	g, l := newGlance(e.Meta.Width), newGlancer(e, 0)
	g.begin(rand.New(rand.NewPCG(3, 4)))
	for _, part := range g.Parts() { // so that the tokens count, and not the biases alone
		for i := range part {
			part[i] *= 2
		}
	}
	exits := []encoder.Exit{encoder.NewExit(e.Meta.Width), g.exit}
	for range e.Meta.Layers - 2 {
		exits = append(exits, encoder.NewExit(e.Meta.Width))
	}
	if file, err = encoder.WithExits(file, g.Round(), exits); err != nil {
		t.Fatal(err)
	}
	rounded, err := encoder.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"No.", "The shop opens at nine, and it closes at five.", "Older people cannot learn, so do not ask them for anything that is new."}
	var sentences [][]int32
	for _, text := range texts {
		sentences = append(sentences, e.Pieces(text))
	}
	g.turn()
	l.learn(g, sentences, make([][len(encoder.Heads)]float32, len(texts)), []int{0, 1, 2}, rand.New(rand.NewPCG(5, 6)))
	var said [][len(encoder.Heads)]float32
	for i, text := range texts {
		seen, _ := l.seen(l.at[i])
		var hidden [encoder.Hidden]float32
		want := g.exit.Answer(seen[:], &hidden)
		got, _ := rounded.Depths("", text, "")
		for h, z := range want {
			if d := math.Abs(float64(got[encoder.Glancing][h] - z)); d > 0.05 {
				t.Errorf("%q: head %d says %.3f, with float weights %.3f", text, h, got[encoder.Glancing][h], z)
			}
		}
		said = append(said, want)
	}
	if d := math.Abs(float64(said[0][1] - said[2][1])); d < 0.05 {
		t.Errorf("two sentences are the same to it: %v", said)
	}
}
