package classifier

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// EncoderRule is the rule that findings name where the encoder decided.
const EncoderRule = ID + ".encoder"

// second is what decides English sentences that the model is in doubt about, or holds for biased.
type second struct {
	model  *encoder.Model
	effort encoder.Effort
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
	d.second = &second{e, f}
	d.gates.named, d.gates.unnamed = min(d.gates.named, f.Named.First), min(d.gates.unnamed, f.Unnamed.First)
	return d, nil
}

func (s *second) version() string { return s.model.Meta.Version + "-" + s.effort.Name }

// doubt is a sentence, or a window of a long one, with the classifier's answer and, once it was asked, the encoder's.
type doubt struct {
	best
	to      int32 // the window's end
	logit   float32
	yes     bool               // the classifier's answer
	passage detectors.Sentence // what the encoder read last; empty where that was the window
}

// doubt gives a window, and tells whether the encoder is asked about it.
func (d *Detector) doubt(s detectors.Sentence, ts []token, first, logit float32, named bool) (x doubt, ask bool) {
	p, yes := d.model.answer(Bias, first, logit)
	x = doubt{best: best{sentence: s, from: int(ts[0].start), probability: p}, to: ts[len(ts)-1].end, logit: logit, yes: yes}
	from := d.second.effort.Unnamed
	if named {
		from = d.second.effort.Named
	}
	return x, yes || float64(first) >= from.First && float64(logit) > from.Logit
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

// decide gives the most biased of them; its probability is 0 where none is.
func (s *second) decide(text string, sentences []detectors.Sentence, open *doubts) (top best) {
	for i := range open.list[:open.n] {
		x := &open.list[i]
		s.ask(text, sentences, open, x)
		if x.said != nil && x.probability <= s.effort.Threshold || x.said == nil && !x.yes {
			continue
		}
		if x.probability > top.probability {
			top = x.best
		}
	}
	return top
}

// ask asks about an English sentence, once; of another language the classifier's own probability holds. What may be biased is read
// again in its passage, which has the last word: "Not worth the training." is one thing after a course and another after a person.
// Of the open doubts' passages each is read once.
func (s *second) ask(text string, sentences []detectors.Sentence, open *doubts, x *doubt) {
	sentence := text[x.from:x.to]
	if x.said != nil || !s.model.English(sentence) {
		return
	}
	said := s.model.Read(sentence)
	if float64(said[Bias]) > s.effort.Context {
		if p := s.passage(text, sentences, x.sentence); p != x.sentence {
			x.passage = p
			same := func(y doubt) bool { return y.said != nil && y.passage == p }
			if i := slices.IndexFunc(open.list[:open.n], same); i >= 0 {
				said = *open.list[i].said
			} else {
				said = s.model.Read(text[p.Start:p.End])
			}
		}
	}
	x.said, x.probability = &said, s.model.Meta.Probability(said[Bias])
}

// passageSize is the most bytes of a passage: about as many as the encoder reads, and as the texts have that it learnt from.
const passageSize = 320

// passage gives a sentence with the English ones before and after it, by turns, as long as there is room.
func (s *second) passage(text string, sentences []detectors.Sentence, of detectors.Sentence) detectors.Sentence {
	at, found := slices.BinarySearchFunc(sentences, of, func(a, b detectors.Sentence) int { return cmp.Compare(a.Start, b.Start) })
	if !found {
		return of
	}
	english := func(i int) bool { return s.model.English(text[sentences[i].Start:sentences[i].End]) }
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

// Asked gives the highest logit of bias that the encoder gives to a sentence that it is asked about; false where it is asked about
// none. It is for calibration.
func (d *Detector) Asked(in *detectors.Input, side audit.Side) (logit float32, ok bool) {
	b := d.pool.Get().(*buffers)
	defer d.pool.Put(b)
	text := in.Normal(side).String()
	var open doubts
	d.model.readAll(b, text, in.Sentences(side), func(s detectors.Sentence, ts []token, first float32, named bool) {
		d.model.judge(&b.net, ts, first, named)
		if x, ask := d.doubt(s, ts, first, b.net.heads[Bias], named); ask {
			open.add(x)
		}
	})
	for i := range open.list[:open.n] {
		x := &open.list[i]
		if d.second.ask(text, in.Sentences(side), &open, x); x.said != nil && (!ok || x.said[0] > logit) {
			logit, ok = x.said[0], true
		}
	}
	return logit, ok
}
