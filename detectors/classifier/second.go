package classifier

import (
	"errors"
	"fmt"

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
	d.second, d.gate = &second{e, f}, min(d.gate, f.Gate)
	return d, nil
}

func (s *second) version() string { return s.model.Meta.Version + "-" + s.effort.Name }

// doubts tells whether a sentence is asked about, by its first score and its logit of bias.
func (s *second) doubts(first, logit float32) bool {
	return float64(first) >= s.effort.Gate && float64(logit) > s.effort.Doubt
}

// doubt is a sentence, or a window of a long one, that is asked about.
type doubt struct {
	sentence    detectors.Sentence
	from, to    int32 // bytes of the window
	logit       float32
	probability float64 // the model's
	yes         bool    // the model's answer
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
func (s *second) decide(text string, open *doubts) (top best) {
	for i := range open.list[:open.n] {
		x := &open.list[i]
		b := s.ask(text, x, true)
		if b.said != nil && b.probability <= s.effort.Threshold || b.said == nil && !x.yes {
			continue
		}
		if b.probability > top.probability {
			top = b
		}
	}
	return top
}

// ask asks about an English sentence; of another language, and where ask is false, the model's own probability holds.
func (s *second) ask(text string, x *doubt, ask bool) best {
	b := best{sentence: x.sentence, from: int(x.from), probability: x.probability}
	if sentence := text[x.from:x.to]; ask && s.model.English(sentence) {
		said := s.model.Read(sentence)
		b.said, b.probability = &said, s.model.Meta.Probability(said[0])
	}
	return b
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
		z := b.net.heads[Bias]
		if p, yes := d.model.answer(Bias, first, z); yes || d.second.doubts(first, z) {
			open.add(doubt{s, ts[0].start, ts[len(ts)-1].end, z, p, yes})
		}
	})
	for i := range open.list[:open.n] {
		if top := d.second.ask(text, &open.list[i], true); top.said != nil && (!ok || top.said[0] > logit) {
			logit, ok = top.said[0], true
		}
	}
	return logit, ok
}
