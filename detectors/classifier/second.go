package classifier

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
	"github.com/evenhand/evenhand/detectors/language"
)

// EncoderRule is the rule that findings name where the encoder decided.
const EncoderRule = ID + ".encoder"

// ShortText is the most bytes of a response that the encoder reads at every effort, but for sentences that the model is sure of: in a short
// answer they are all that there is, and reading one to the end costs a millisecond.
const ShortText = passageSize

// MediumText is the most bytes of a response of which the least effort asks as much as a greater one: some ten sentences. In one of 2 KB that
// takes as long as all other detectors.
const MediumText = 1024

// second is what decides about English sentences: those that the model is in doubt about or sure of.
type second struct {
	model  *encoder.Model
	effort string
	long   way  // texts
	medium *way // texts of at most MediumText bytes; nil: as others
	short  *way // texts of at most ShortText bytes; nil: as others
}

// way is what an effort asks for.
type way struct {
	encoder.Effort
	gates gates
}

func newWay(m *Model, e encoder.Effort) way {
	closed := gates{m.Meta.Gate, m.Meta.Gate}
	w := way{e, closed}
	for _, a := range e.Heads {
		w.gates.open(a)
	}
	return w
}

// NewWithEncoder makes the detector of a model whose doubts an encoder decides, at one of the encoder's efforts. An encoder that was
// calibrated with another model is an error of KindInvalid.
func NewWithEncoder(m *Model, e *encoder.Model, effort string) (*Detector, error) {
	const op = "classifier: new with encoder"
	f, ok := e.Meta.Effort(effort)
	if !ok {
		return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("the encoder has no effort %q", effort))
	}
	if e.Meta.Classifier != m.Meta.Version {
		return nil, audit.E(op, audit.KindInvalid, errors.New("the encoder was calibrated with another classifier: 'evenhand train --encoder' calibrates it anew"))
	}
	d := New(m)
	d.second = &second{model: e, effort: effort, long: newWay(m, f)}
	other := func(name string) *way {
		if f, ok := e.Meta.Effort(name); ok {
			w := newWay(m, f)
			return &w
		}
		return nil
	}
	d.second.medium, d.second.short = other(f.Medium), other(f.Short)
	return d, nil
}

func (s *second) version() string { return s.model.Meta.Version + "-" + s.effort }

// way gives what is asked for about a text: without an encoder that the model look at what passes its gate. Prompts, which set nothing,
// are read as long texts are.
func (d *Detector) way(side audit.Side, text string) *way {
	s, output := d.second, side == audit.Output
	switch {
	case s == nil:
		return &d.alone
	case s.short != nil && output && len(text) <= ShortText:
		return s.short
	case s.medium != nil && output && len(text) <= MediumText:
		return s.medium
	default:
		return &s.long
	}
}

// decides tells whether the encoder answers for a head.
func (w *way) decides(h Head) bool { return int(h) < len(w.Heads) }

// silent tells of a head that the encoder answers for that it never answers yes.
func (w *way) silent(h Head) bool { return w.Heads[h].Threshold >= 1 }

// doubt is a sentence, or a window of a long one, with the classifier's answer for a head and, once it was asked, the encoder's.
type doubt struct {
	best
	to     int32 // the window's end
	logit  float32
	silent bool // the classifier never answers yes
	prior  encoder.Prior
}

// doubt gives a window with the model's answer for a head.
func (d *Detector) doubt(h Head, s detectors.Sentence, ts []token, prior *encoder.Prior) doubt {
	t, z := &d.model.Meta.Heads[h], prior.Logits[h]
	return doubt{best: best{sentence: s, from: int(ts[0].start), probability: t.Probability(z)}, to: ts[len(ts)-1].end, logit: z, silent: t.Threshold >= 1, prior: *prior}
}

// prior gives what the classifier says of the window that it judged last.
func (w *way) prior(b *buffers, first float32, named bool) encoder.Prior {
	return encoder.Prior{Ask: w.Asks(first, &b.net.heads, named), Logits: b.net.heads}
}

// doubts are the strongest of a text. More are not asked about, so that no text costs more than four sentences.
type doubts struct {
	list [4]doubt
	n    int
}

func (l *doubts) add(x doubt) {
	if l.n < len(l.list) {
		l.n++
	} else if x.logit <= l.list[l.n-1].logit {
		return
	}
	at := l.n - 1
	for ; at > 0 && l.list[at-1].logit < x.logit; at-- {
		l.list[at] = l.list[at-1]
	}
	l.list[at] = x
}

// reading is a part of a text with what the encoder says of it within its passage.
type reading struct {
	part, passage detectors.Sentence
	said          *encoder.Logits
}

// decide gives the one of them to which the answer is yes with the highest probability; that is 0 where there is none.
func (s *second) decide(w *way, h Head, b *buffers, text string, sentences []detectors.Sentence, open *doubts) (top best) {
	sure := 1.0 // where the encoder cannot read
	if others := s.model.Meta.Others[min(len(sentences), 2)-1]; int(h) < len(others) {
		sure = others[h]
	}
	for i := range open.list[:open.n] {
		x := &open.list[i]
		s.ask(w, h, b, text, sentences, x)
		yes := !x.silent && x.probability > sure
		if x.said != nil {
			yes = !x.said.Early() && x.probability > w.Heads[h].Threshold
		}
		if yes && x.probability > top.probability {
			top = x.best
		}
	}
	return top
}

// ask asks about an English sentence, once; of another language the classifier's own probability holds. What may well be so is read
// again in its passage, which has the last word: "Not worth the training." is one thing after a course and another after a person.
func (s *second) ask(w *way, h Head, b *buffers, text string, sentences []detectors.Sentence, x *doubt) {
	window := detectors.Sentence{Start: x.from, End: int(x.to)}
	if x.said != nil || !s.english(text[window.Start:window.End]) {
		return
	}
	x.said = s.read(b, text, window, window, w.Alone, &x.prior)
	if !x.said.Early() && float64(s.joint(h, x)) > w.Heads[h].Context {
		if p := s.passage(text, sentences, x.sentence); p != x.sentence {
			x.said = s.read(b, text, x.sentence, p, w.InPassage, &x.prior)
		}
	}
	x.probability = s.model.Meta.Decides[h].Probability(s.joint(h, x))
	if x.said.Early() {
		x.probability = min(x.probability, w.Heads[h].Threshold)
	}
}

// joint gives the logit of the encoder's answer and the classifier's together.
func (s *second) joint(h Head, x *doubt) float32 {
	return s.model.Meta.Decides[h].Joint(x.said[h], x.prior.Logits[h])
}

// english tells whether the encoder can read a sentence. Short ones of other languages may be made of words that it knows: "Visitate lo zoo di Roma."
func (s *second) english(sentence string) bool {
	return s.model.English(sentence) && !language.Other(sentence)
}

// read reads a part of a text within its passage, once for all heads.
func (s *second) read(b *buffers, text string, part, passage detectors.Sentence, stops encoder.Stops, prior *encoder.Prior) *encoder.Logits {
	for _, r := range b.readings {
		if r.part == part && r.passage == passage {
			return r.said
		}
	}
	said := s.model.Read(text[passage.Start:part.Start], text[part.Start:part.End], text[part.End:passage.End], stops, prior)
	b.readings = append(b.readings, reading{part, passage, &said})
	return &said
}

// passageSize is the most bytes of a passage: about as many as the encoder reads, and as the texts have that it learnt from.
const passageSize = 320

// passage gives a sentence with the English ones before and after it, by turns, as long as there is room.
func (s *second) passage(text string, sentences []detectors.Sentence, of detectors.Sentence) detectors.Sentence {
	at, found := slices.BinarySearchFunc(sentences, of, func(a, b detectors.Sentence) int { return cmp.Compare(a.Start, b.Start) })
	if !found {
		return of
	}
	english := func(i int) bool { return s.english(text[sentences[i].Start:sentences[i].End]) }
	for before, after := at-1, at+1; ; {
		whole := of
		if before >= 0 && of.End-sentences[before].Start <= passageSize && english(before) {
			of.Start = sentences[before].Start
			before--
		}
		if after < len(sentences) && sentences[after].End-of.Start <= passageSize && english(after) {
			of.End = sentences[after].End
			after++
		}
		if of == whole {
			return of
		}
	}
}

// Asked gives the highest joint logits of sentences that the encoder is asked about, and to those of them that it reads to the end; -Inf
// where there are none, or it does not answer for the head. It is for calibration.
func (d *Detector) Asked(in *detectors.Input, side audit.Side) (asked, read [NumHeads]float32) {
	b := d.buffers()
	defer d.pool.Put(b)
	text := in.Normal(side).String()
	w := d.way(side, text)
	var open [NumHeads]doubts
	d.model.readAll(b, text, in.Sentences(side), func(s detectors.Sentence, ts []token, first float32, named bool) {
		d.model.judge(&b.net, ts, first, named)
		prior := w.prior(b, first, named)
		for h := range w.Heads {
			if prior.Ask[h] {
				open[h].add(d.doubt(Head(h), s, ts, &prior))
			}
		}
	})
	for h := range asked {
		asked[h], read[h] = float32(math.Inf(-1)), float32(math.Inf(-1))
		for i := range open[h].list[:open[h].n] {
			x := &open[h].list[i]
			if d.second.ask(w, Head(h), b, text, in.Sentences(side), x); x.said != nil {
				z := d.second.joint(Head(h), x)
				if asked[h] = max(asked[h], z); !x.said.Early() {
					read[h] = max(read[h], z)
				}
			}
		}
	}
	return asked, read
}

// Window is a sentence, or a part of a long one, with what the model says of it.
type Window struct {
	Text   string
	First  float32
	Named  bool
	Logits [NumHeads]float32
}

// Windows gives all of a text, whatever their first scores are. It is for calibration.
func (d *Detector) Windows(in *detectors.Input, side audit.Side) (out []Window) {
	b := d.buffers()
	defer d.pool.Put(b)
	text := in.Normal(side).String()
	d.model.readAll(b, text, in.Sentences(side), func(_ detectors.Sentence, ts []token, first float32, named bool) {
		d.model.judge(&b.net, ts, first, named)
		out = append(out, Window{Text: text[ts[0].start:ts[len(ts)-1].end], First: first, Named: named, Logits: b.net.heads})
	})
	return out
}
