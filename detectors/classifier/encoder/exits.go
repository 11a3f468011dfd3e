package encoder

import (
	"fmt"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/kernel"
	"github.com/evenhand/evenhand/detectors/classifier/modelfile"
)

// Hidden is the number of hidden values of an early exit.
const Hidden = 64

// Exit is an early exit: a network with one hidden layer that says, of the mean over a sentence's tokens after some of the layers or of a glance,
// what all layers are going to say. (Schwartz et al. 2020, "The Right Tool for the Job"; one linear layer, as there, reads twice as many sentences on.)
type Exit struct {
	In, InBias   []float32 // Width × Hidden, Hidden
	Out, OutBias []float32 // Hidden × Heads, Heads
}

// NewExit is one whose weights are 0, for means of so many numbers.
func NewExit(width int) Exit {
	return Exit{make([]float32, width*Hidden), make([]float32, Hidden), make([]float32, Hidden*len(Heads)), make([]float32, len(Heads))}
}

// Parts are the weights in the order of the file.
func (x *Exit) Parts() [4][]float32 { return [...][]float32{x.In, x.InBias, x.Out, x.OutBias} }

// Answer gives the logits of the heads, and the hidden values in hidden.
func (x *Exit) Answer(mean []float32, hidden *[Hidden]float32) (z [len(Heads)]float32) {
	var rows [kernel.Tile * Hidden]float32 // a product takes as many rows; they are all the same here
	for r := 0; r < len(rows); r += Hidden {
		copy(rows[r:], x.InBias)
	}
	for c := 0; c < Hidden; c += kernel.Wide {
		kernel.Matrix(rows[c:], Hidden, mean, 0, kernel.Tile, x.In[c:], Hidden, len(mean))
	}
	copy(hidden[:], rows[:])
	copy(z[:], x.OutBias)
	for k, v := range hidden {
		if v <= 0 {
			hidden[k] = 0
			continue
		}
		for h, w := range x.Out[k*len(Heads):][:len(Heads)] {
			z[h] += float32(v * w)
		}
	}
	return z
}

// Stop is what is too little for a head: less than Below in all, of what the exit says and Weight times what the classifier says. Two who know
// different things know more: of as many sentences that are read on, half as many again of those that are meant are among them.
type Stop struct {
	Weight float64 `json:"weight"`
	Below  float64 `json:"below"`
}

// Glancing is the early exit that hears of a glance: it comes after the one that hears of the tokens as they are, both before the first layer.
const Glancing = 1

// Stops are those of each early exit, of the heads that answer; an exit without is not asked. Where there are none, all layers are read.
type Stops [][]Stop

// Stop tells whether what an early exit says is too little for all heads that are asked for.
func (s Stops) Stop(exit int, z *[len(Heads)]float32, prior *Prior) bool {
	if !s.Asks(exit) {
		return false
	}
	for h, stop := range s[exit] {
		if prior.Ask[h] && float64(z[h])+float64(stop.Weight*float64(prior.Logits[h])) >= stop.Below {
			return false
		}
	}
	return true
}

// Asks tells whether an early exit is asked.
func (s Stops) Asks(exit int) bool { return exit < len(s) && len(s[exit]) > 0 }

func (s Stops) validate(t *Meta) error {
	if len(s) > 0 && len(s) != t.Exits {
		return fmt.Errorf("stops of %d early exits, there are %d", len(s), t.Exits)
	}
	for exit, stops := range s {
		if len(stops) > 0 && len(stops) != len(t.Decides) {
			return fmt.Errorf("early exit %d has stops of %d heads, want %d", exit, len(stops), len(t.Decides))
		}
		for _, stop := range stops {
			if !modelfile.Finite(stop.Weight, stop.Below) {
				return fmt.Errorf("early exit %d: %+v", exit, stop)
			}
		}
	}
	return nil
}

// ExitName says what an early exit hears of.
func ExitName(exit int) string {
	switch exit {
	case 0:
		return "the pieces"
	case Glancing:
		return "a glance at them"
	case Glancing + 1:
		return "one layer"
	default:
		return fmt.Sprintf("%d layers", exit-Glancing)
	}
}

// seen is how many numbers an early exit hears: a glance's or a mean's.
func seen(exit, width int) int {
	if exit == Glancing {
		return Glanced
	}
	return width
}

// WithExits gives the file with a glance and these early exits, two before the first layer, of which the second hears of the glance, one after it, and so
// on, in place of those that it has; nothing stops at them yet. Without exits glance is nil.
func WithExits(file []byte, glance *Glance, exits []Exit) ([]byte, error) {
	const op = "encoder: with exits"
	had, err := decode(file)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	var t Meta
	parts, _, err := modelfile.Open(file, magic, &t)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	size := len(parts) - len(early(had.glance, had.exits))
	parts = append(parts[:size:size], early(glance, exits)...)
	t.Exits = len(exits)
	for i := range t.Efforts {
		t.Efforts[i].Alone, t.Efforts[i].InPassage = nil, nil
	}
	return modelfile.Seal(magic, t, parts)
}

// early is what a file has at its end.
func early(glance *Glance, exits []Exit) (out []byte) {
	if glance != nil {
		for _, l := range [...]*linear{&glance.in, &glance.first, &glance.attention, &glance.join, &glance.second} {
			out = l.bytes(out)
		}
	}
	for i := range exits {
		for _, part := range exits[i].Parts() {
			out = appendFloats(out, part)
		}
	}
	return out
}
