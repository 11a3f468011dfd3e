package classifier

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

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

// second is an encoder: what decides about sentences that the model is in doubt about or sure of, in the languages that an encoder reads.
type second struct {
	model   *encoder.Model
	adviser *encoder.Model // nil: it decides alone
	effort  string
	long    way  // texts
	suspect *way // long ones that are suspicious; nil: as others
	medium  *way // texts of at most MediumText bytes; nil: as others
	short   *way // texts of at most ShortText bytes; nil: as others
	answers [3]atomic.Uint64
}

// How an answer of an encoder came about.
const (
	wholly     = iota // all layers read the sentence or passage
	early             // an early exit knew enough
	remembered        // it was read before
)

// Answered is how many answers of each kind an encoder has given, as reader and as adviser.
type Answered struct {
	Encoder                   string // what it reads: English, or the languages' codes
	Read, Stopped, Remembered uint64
}

// Answered tells it of each encoder, the first reader's first.
func (d *Detector) Answered() (all []Answered) {
	for _, s := range d.seconds {
		name := "en"
		if !s.model.Meta.English() {
			name = strings.Join(s.model.Meta.Languages, "+")
		}
		all = append(all, Answered{name, s.answers[wholly].Load(), s.answers[early].Load(), s.answers[remembered].Load()})
	}
	return all
}

// way is what an effort asks for.
type way struct {
	encoder.Effort
	gates gates
	by    *second // nil: the model decides alone
}

func newWay(m *Model, by *second, e encoder.Effort) way {
	closed := gates{m.Meta.Gate, m.Meta.Gate}
	w := way{e, closed, by}
	for _, a := range e.Heads {
		w.gates.open(a)
	}
	return w
}

// NewWithEncoder makes the detector of a model whose doubts encoders decide, at one of their efforts: of a sentence the first that can read it. The
// first asks the second for advice if it was calibrated with that. An encoder that was calibrated with another model is an error of KindInvalid.
func NewWithEncoder(m *Model, effort string, es ...*encoder.Model) (*Detector, error) {
	const op = "classifier: new with encoder"
	d := New(m)
	if len(es) > len(ways{}.list) {
		return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("%d encoders, at most %d", len(es), len(ways{}.list)))
	}
	for _, e := range es {
		f, ok := e.Meta.Effort(effort)
		if !ok {
			return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("the encoder has no effort %q", effort))
		}
		if e.Meta.Classifier != m.Meta.Version {
			return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("%s was calibrated with another classifier: 'evenhand train --encoder' calibrates it anew", e.Meta.Name))
		}
		s := &second{model: e, effort: effort}
		s.long = newWay(m, s, f)
		other := func(name string) *way {
			if f, ok := e.Meta.Effort(name); ok {
				w := newWay(m, s, f)
				return &w
			}
			return nil
		}
		s.medium, s.short, s.suspect = other(f.Medium), other(f.Short), other(f.Suspicious.Effort)
		d.seconds = append(d.seconds, s)
	}
	if len(es) > 1 && es[0].Meta.Adviser == es[1].Meta.Version {
		d.seconds[0].adviser = es[1]
	}
	return d, nil
}

func (s *second) version() string {
	if s.adviser != nil {
		return s.model.Meta.Version + "+" + s.adviser.Meta.Version + "-" + s.effort
	}
	return s.model.Meta.Version + "-" + s.effort
}

// way gives what is asked for about a text. Prompts, which set nothing, are read as long texts are.
func (s *second) way(side audit.Side, text string) *way {
	switch output := side == audit.Output; {
	case s.short != nil && output && len(text) <= ShortText:
		return s.short
	case s.medium != nil && output && len(text) <= MediumText:
		return s.medium
	default:
		return &s.long
	}
}

// reads tells whether an encoder can read a sentence. Short ones of other languages may be made of words that the English one knows: "Visitate lo
// zoo di Roma."
func (s *second) reads(sentence string) bool {
	return s.model.Reads(sentence) && (!s.model.Meta.English() || !language.Other(sentence))
}

// reader is the place of the first encoder that reads a sentence; -1 where none can.
func (d *Detector) reader(sentence string) int {
	return slices.IndexFunc(d.seconds, func(s *second) bool { return s.reads(sentence) })
}

// beginning is as many bytes of a text as tell its language.
const beginning = 128

// ways are what is asked for about a text, of each encoder, or that the model look at what passes its gate; and what a sentence needs to be looked
// at: in a text that begins in the first encoder's language what that asks for, elsewhere what any of them does.
type ways struct {
	list  [2]*way
	gates gates
}

func (d *Detector) ways(side audit.Side, text string) (ws ways) {
	ws.list[0] = &d.alone
	for i, s := range d.seconds {
		ws.list[i] = s.way(side, text)
	}
	d.setGates(&ws, text)
	return ws
}

func (d *Detector) setGates(ws *ways, text string) {
	ws.gates = ws.list[0].gates
	if w := ws.list[1]; w != nil && w.gates != ws.gates && !d.seconds[0].reads(text[:min(len(text), beginning)]) {
		ws.gates = gates{min(ws.gates.named, w.gates.named), min(ws.gates.unnamed, w.gates.unnamed)}
	}
}

// suspect sets another effort for a long response that is suspicious as a whole, by its excerpts.
func (d *Detector) suspect(b *buffers, ws *ways, side audit.Side, text string) bool {
	if side != audit.Output || len(d.seconds) == 0 || ws.list[0] != &d.seconds[0].long || d.seconds[0].suspect == nil || !d.suspicious(b, text, &ws.list[0].Suspicious) {
		return false
	}
	ws.list[0] = d.seconds[0].suspect
	d.setGates(ws, text)
	return true
}

func (d *Detector) suspicious(b *buffers, text string, than *encoder.Suspicion) bool {
	const few, some = 3, 8
	slices.SortStableFunc(b.excerpts, func(x, y excerpt) int { return cmp.Compare(y.first, x.first) })
	top := b.excerpts[:min(len(b.excerpts), some)]
	n := len(top)
	first := float32(0)
	for _, w := range top[:min(n, few)] {
		first += w.first
	}
	if n == 0 || float64(first) <= than.First*float64(min(n, few)) {
		return false
	}
	harm := float32(0)
	for i := range top {
		if x := &top[i]; !x.looked {
			d.model.readExcerpt(b, text, *x, func(ts []token) {
				d.model.look(&b.net, ts, x.first)
				x.note(&b.net)
			})
		}
		harm += top[i].harm
	}
	return float64(harm) > than.Harm*float64(n)
}

// of gives the way of a window, and that way again if an encoder can read it; where none can, it is asked about like an English one, and the
// model's own answer holds.
func (d *Detector) of(ws *ways, text string, ts []token) (w, by *way) {
	if i := d.reader(text[ts[0].start:ts[len(ts)-1].end]); i >= 0 {
		return ws.list[i], ws.list[i]
	}
	return ws.list[0], nil
}

// decides tells whether the encoder answers for a head.
func (w *way) decides(h Head) bool { return int(h) < len(w.Heads) }

// threshold is the probability above which the answer for a head that the encoder answers for is yes.
func (w *way) threshold(h Head) float64 {
	if w.by.adviser != nil {
		return w.Heads[h].Advice.Threshold
	}
	return w.Heads[h].Threshold
}

// silent tells of a head that the encoder answers for that it never answers yes.
func (w *way) silent(h Head) bool { return w.threshold(h) >= 1 }

// doubt is a sentence, or a window of a long one, with the classifier's answer for a head and, once it was asked, the encoder's.
type doubt struct {
	best
	to     int32 // the window's end
	logit  float32
	silent bool // the classifier never answers yes
	named  bool // it names people of a ground
	prior  encoder.Prior
	advice *encoder.Logits // the adviser's answer, where it was asked
	yes    bool            // what the encoder, and its adviser, answer
}

// doubt gives a window with the model's answer for a head.
func (d *Detector) doubt(h Head, s detectors.Sentence, ts []token, prior *encoder.Prior, by *way, named bool) doubt {
	t, z := &d.model.Meta.Heads[h], prior.Logits[h]
	return doubt{best: best{by: by, sentence: s, from: int(ts[0].start), probability: t.Probability(z)}, to: ts[len(ts)-1].end, logit: z, silent: t.Threshold >= 1, named: named, prior: *prior}
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
	by            *encoder.Model
	part, passage detectors.Sentence
	said          *encoder.Logits
}

// decide gives the one of them to which the answer is yes with the highest probability, and which the text around it does not refute; that is 0
// where there is none.
func (d *Detector) decide(h Head, b *buffers, in *detectors.Input, side audit.Side, open *doubts) (top best, refuted bool) {
	text, sentences := in.Normal(side).String(), in.Sentences(side)
	sure := 1.0 // where no encoder can read
	if others := d.seconds[0].model.Meta.Others[min(len(sentences), 2)-1]; int(h) < len(others) {
		sure = others[h]
	}
	for i := range open.list[:open.n] {
		x := &open.list[i]
		d.ask(h, b, text, sentences, x)
		yes := !x.silent && x.probability > sure
		if x.said != nil {
			yes = x.yes
		}
		if !yes || x.probability <= top.probability {
			continue
		}
		groundless := h == Bias && x.groundless()
		if groundless || h.refutable() && in.Refuted(side, x.from, int(x.to)) {
			refuted = refuted || !groundless
			if x.by != nil {
				x.probability = min(x.probability, x.by.threshold(h)) // the answer is no
			}
			continue
		}
		top = x.best
	}
	return top, refuted
}

// leastGround is the logit, .27, that the likeliest ground has at least of a biased sentence that names no people of one: contempt of cyclists, gamers or
// customers reads much like that of a protected group. Of 902 biased texts of public sets that are found it hides 4, and of 726 that are
// abusive and not biased it spares 38; at -.5 15 and 54.
const leastGround = -1

// groundless tells of a sentence that the encoder holds for biased that it is about nobody whom a ground protects. Measured of English alone.
func (x *doubt) groundless() bool {
	return !x.named && x.said != nil && x.by.by.model.Meta.English() && x.said.LikeliestGround() < leastGround
}

// answers are those of all heads.
type answers struct {
	tops  [NumHeads]best
	hides bool // what is refuted took the place of others
}

func (d *Detector) decideAll(b *buffers, in *detectors.Input, side audit.Side, open *[NumHeads]doubts) (out answers) {
	for h := range open {
		if l := &open[h]; l.n > 0 {
			top, refuted := d.decide(Head(h), b, in, side, l)
			out.tops[h] = top
			out.hides = out.hides || refuted && l.n == len(l.list)
		}
	}
	return out
}

// refuted tells of a window whether the text around it refutes what the head finds.
func (h Head) refuted(in *detectors.Input, side audit.Side, ts []token) bool {
	return h.refutable() && in.Refuted(side, int(ts[0].start), int(ts[len(ts)-1].end))
}

// refutable tells of a head that what it finds is nothing where the text around it says that it is wrong: how to build a bomb is told, or
// threatened, all the same.
func (h Head) refutable() bool { return h == Bias || h == Toxicity }

// ask asks about a sentence, once; of one that no encoder reads the classifier's own probability holds. What may well be so is read
// again in its passage, which has the last word unless the sentence is plain: "Not worth the training." is one thing after a course and another
// after a person.
func (d *Detector) ask(h Head, b *buffers, text string, sentences []detectors.Sentence, x *doubt) {
	if x.said != nil || x.by == nil {
		return
	}
	w, s, window := x.by, x.by.by, detectors.Sentence{Start: x.from, End: int(x.to)}
	part, passage := window, window
	x.said = d.read(b, s.model, text, part, passage, w.Alone, &x.prior)
	plain := w.Heads[h].Plain != 0 && !x.said.Early() && float64(s.joint(h, x)) > w.Heads[h].Plain
	if !x.said.Early() && !plain && float64(s.joint(h, x)) > w.Heads[h].Context {
		if p := d.passage(s, text, sentences, x.sentence); p != x.sentence {
			part, passage = x.sentence, p
			x.said = d.read(b, s.model, text, part, passage, w.InPassage, &x.prior)
		}
	}
	scale, z := &s.model.Meta.Decides[h], s.joint(h, x)
	advice, limit := &w.Heads[h].Advice, w.threshold(h)
	x.probability = scale.Probability(z)
	switch {
	case x.said.Early() || s.adviser != nil && float64(z) <= advice.Above:
		x.probability = min(x.probability, limit)
		return // the answer is no
	case plain:
		x.probability, x.yes = max(x.probability, limit), true
		return
	case s.adviser != nil && advice.Sure != 0 && float64(z) > advice.Sure:
		x.probability, x.yes = max(x.probability, limit), true
		return
	case s.adviser != nil:
		x.advice = d.read(b, s.adviser, text, part, passage, nil, &encoder.Prior{})
		x.probability = scale.Advised.Probability(s.joint(h, x))
	}
	x.yes = x.probability > limit
}

// joint gives the logit of the encoder's answer, the classifier's and, if there is one, the adviser's together.
func (s *second) joint(h Head, x *doubt) float32 {
	z := s.model.Meta.Decides[h].Joint(x.said[h], x.prior.Logits[h])
	if x.advice != nil {
		z += x.advice[h]
	}
	return z
}

// read has an encoder read a part of a text within its passage, once for all heads.
func (d *Detector) read(b *buffers, by *encoder.Model, text string, part, passage detectors.Sentence, stops encoder.Stops, prior *encoder.Prior) *encoder.Logits {
	for _, r := range b.readings {
		if r.by == by && r.part == part && r.passage == passage {
			return r.said
		}
	}
	said := d.recall(by, text[passage.Start:part.Start], text[part.Start:part.End], text[part.End:passage.End], stops, prior)
	b.readings = append(b.readings, reading{by, part, passage, &said})
	return &said
}

// recall reads, but for what is remembered.
func (d *Detector) recall(by *encoder.Model, before, part, after string, stops encoder.Stops, prior *encoder.Prior) encoder.Logits {
	if d.memory == nil {
		return d.readAnew(by, before, part, after, stops, prior)
	}
	q := question{by: by}
	if len(stops) > 0 { // without them all layers answer, whatever was thought before
		q.stops, q.prior = &stops[0], *prior
	}
	k := d.memory.key(before, part, after, q)
	said, ok := d.memory.get(k)
	if ok {
		d.count(by, remembered)
		return said
	}
	said = d.readAnew(by, before, part, after, stops, prior)
	d.memory.put(k, &said)
	return said
}

func (d *Detector) readAnew(by *encoder.Model, before, part, after string, stops encoder.Stops, prior *encoder.Prior) encoder.Logits {
	said := by.Read(before, part, after, stops, prior)
	if said.Early() {
		d.count(by, early)
	} else {
		d.count(by, wholly)
	}
	return said
}

func (d *Detector) count(by *encoder.Model, how int) {
	for _, s := range d.seconds {
		if s.model == by {
			s.answers[how].Add(1)
		}
	}
}

// passageSize is the most bytes of a passage: about as many as the encoder reads, and as the texts have that it learnt from.
const passageSize = 320

// passage gives a sentence with those before and after it that the same encoder reads, by turns, as long as there is room.
func (d *Detector) passage(by *second, text string, sentences []detectors.Sentence, of detectors.Sentence) detectors.Sentence {
	at, found := slices.BinarySearchFunc(sentences, of, func(a, b detectors.Sentence) int { return cmp.Compare(a.Start, b.Start) })
	if !found {
		return of
	}
	own := slices.Index(d.seconds, by)
	reads := func(i int) bool { return d.reader(text[sentences[i].Start:sentences[i].End]) == own }
	for before, after := at-1, at+1; ; {
		whole := of
		if before >= 0 && of.End-sentences[before].Start <= passageSize && reads(before) {
			of.Start = sentences[before].Start
			before--
		}
		if after < len(sentences) && sentences[after].End-of.Start <= passageSize && reads(after) {
			of.End = sentences[after].End
			after++
		}
		if of == whole {
			return of
		}
	}
}

// Advised has the first encoder ask another for advice, whatever it was calibrated with. It is for calibration.
func (d *Detector) Advised(by *encoder.Model) { d.seconds[0].adviser = by }

// Said are the highest joint logits of the sentences of a text, of each head: of those that the encoder is asked about, of those of them that it reads to the
// end, and of those about which its adviser is asked; -Inf where there are none, or it does not answer for the head.
type Said struct{ Asked, Read, Advised [NumHeads]float32 }

// Asked gives what is said of a text. It is for calibration.
func (d *Detector) Asked(in *detectors.Input, side audit.Side) (out Said) {
	b := d.buffers()
	defer d.pool.Put(b)
	text := in.Normal(side).String()
	ws := d.ways(side, text)
	var open [NumHeads]doubts
	d.model.readAll(b, text, in.Sentences(side), func(s detectors.Sentence, ts []token, first float32, named bool) {
		d.model.judge(&b.net, ts, first, named)
		w, by := d.of(&ws, text, ts)
		prior := w.prior(b, first, named)
		for h := range w.Heads {
			if prior.Ask[h] {
				open[h].add(d.doubt(Head(h), s, ts, &prior, by, named))
			}
		}
	})
	for h := range open {
		nothing := float32(math.Inf(-1))
		out.Asked[h], out.Read[h], out.Advised[h] = nothing, nothing, nothing
		for i := range open[h].list[:open[h].n] {
			x := &open[h].list[i]
			d.ask(Head(h), b, text, in.Sentences(side), x)
			if x.said == nil {
				continue
			}
			z := x.by.by.model.Meta.Decides[h].Joint(x.said[h], x.prior.Logits[h])
			if out.Asked[h] = max(out.Asked[h], z); !x.said.Early() {
				out.Read[h] = max(out.Read[h], z)
			}
			if x.advice != nil {
				out.Advised[h] = max(out.Advised[h], z+x.advice[h])
			}
		}
	}
	return out
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
