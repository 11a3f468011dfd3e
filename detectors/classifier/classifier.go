// Package classifier is the learned detector of the hot path (tier 0): it finds biased, toxic and unsafe
// sentences that nobody wrote a rule for.
//
// A sentence of the normal text becomes tokens, identity terms become the token of their class, the same for
// all grounds. A linear model over hashed words gives a first score; sentences below the gate, nearly all of
// ordinary text, cost no more than that. The others go through a small convolutional network (two layers of
// 64 over three tokens) with a head for each question, and, where it says bias, through a linear model that tells
// the ground. Probabilities are calibrated; thresholds lie in the model file and were chosen for a stated rate
// of false positives (see [Meta]). Of a text the strongest sentence counts.
//
// With encoders (package encoder, tier 1) beside it, one of English and one of other languages, sentences that the model is in doubt about or
// holds for biased or toxic are read by the first that can, at most four of a text and head, what may be biased once more with the sentences around it, and its
// word stands; such findings name the rule "classifier.encoder", the encoder's version and the whole sentence.
//
// Findings name the rule "classifier.<head>", the model's version, the clause that decided, and the probability
// as confidence. Their score is 0: they enter no sum, flag and never block by default.
//
// Cost: some 15 µs for 2 KB of ordinary text, as much again for each sentence above the gate and for each that the encoder is asked about and
// puts down unread, about a millisecond for each that it reads and three for a passage, twice that in other languages; no allocation without findings but
// a few small ones where encoders are asked. The same text gives the same findings on every processor. Nothing leaves the
// process; Detect fails only when its context has ended. What the model was trained on and where it is wrong
// stands in model.md.
package classifier

import (
	"context"
	"math"
	"regexp"
	"slices"
	"sync"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// ID is the detector's id.
const ID = "classifier"

// Detector is safe for concurrent use.
type Detector struct {
	model   *Model
	alone   way
	seconds []*second // at most two; none: the model decides alone
	memory  *memory   // nil: everything is read
	pool    sync.Pool // *buffers
}

// gates are the first scores below which the look at a sentence ends.
type gates struct{ named, unnamed float64 }

// open lowers them to what is asked about.
func (g *gates) open(a encoder.Asking) {
	g.named, g.unnamed = min(g.named, a.Named.First), min(g.unnamed, a.Unnamed.First)
}

func (g gates) of(named bool) float64 {
	if named {
		return g.named
	}
	return g.unnamed
}

type buffers struct {
	tokens   []token
	buckets  []uint32
	net      scratch
	readings []reading // of the text in hand
	excerpts []excerpt // of it, too
}

// excerpt is a sentence, or a part of a long one.
type excerpt struct {
	sentence detectors.Sentence
	from     int32   // its first byte
	first    float32 // its first score
	harm     float32 // the highest logit of harm,
	looked   bool    // if the network looked at it
}

// note notes what the network said of it.
func (x *excerpt) note(net *scratch) {
	x.harm, x.looked = slices.Max(net.heads[Violence:IllegalInstructions+1]), true
}

// buffers are to be put back into the pool.
func (d *Detector) buffers() *buffers {
	b := d.pool.Get().(*buffers)
	b.readings, b.excerpts = b.readings[:0], b.excerpts[:0]
	return b
}

// New makes the detector of a model that decides alone.
func New(m *Model) *Detector {
	d := &Detector{model: m, alone: newWay(m, nil, encoder.Effort{})}
	d.pool.New = func() any { return new(buffers) }
	return d
}

// Info describes the detector.
func (d *Detector) Info() detectors.Info {
	info := detectors.Info{ID: ID, Title: "Learned classifier", Version: d.model.Meta.Version, Family: detectors.Classifier, Deterministic: true}
	for _, s := range d.seconds {
		info.Version += "/" + s.version()
	}
	return info
}

// Kinds lists the kinds that can be found.
func (d *Detector) Kinds() (kinds []string) {
	for _, g := range audit.Grounds {
		kinds = append(kinds, "charter."+string(g))
	}
	for _, h := range Heads()[1:] {
		kinds = append(kinds, h.kind())
	}
	return kinds
}

// kind is the taxonomy key of a head's findings; those of bias have their ground's.
func (h Head) kind() string {
	if h == Toxicity {
		return "toxicity"
	}
	return "safety." + h.String()
}

// best is the strongest sentence of a side for a head.
type best struct {
	sentence    detectors.Sentence
	from        int // first byte of the window
	probability float64
	said        *encoder.Logits // the encoder's answer, where it decided
	by          *way            // of the encoder that can read it; nil: none can
}

// Detect makes at most one finding a side of each head, of bias one a ground: the strongest sentence's.
func (d *Detector) Detect(ctx context.Context, in *detectors.Input) ([]audit.Finding, error) {
	return d.detect(ctx, in, nil)
}

// DetectGraded gives the findings, and of each head how sure it is of the response, found or not: the probability of the strongest
// sentence that was looked at, the encoder's where that was asked.
func (d *Detector) DetectGraded(ctx context.Context, in *detectors.Input) ([]audit.Finding, []audit.NamedScore, error) {
	var sure [NumHeads]float64
	fs, err := d.detect(ctx, in, &sure)
	out := make([]audit.NamedScore, NumHeads)
	for h := range out {
		out[h] = audit.NamedScore{Name: Head(h).String(), Value: audit.ScoreOf(sure[h])}
	}
	return fs, out, err
}

// detect fills sure, where there is one, with what it thinks of the response.
func (d *Detector) detect(ctx context.Context, in *detectors.Input, sure *[NumHeads]float64) ([]audit.Finding, error) {
	var findings []audit.Finding
	b := d.buffers()
	defer d.pool.Put(b)
	for _, side := range [...]audit.Side{audit.Output, audit.Input} {
		text := in.Normal(side).String()
		if text == "" {
			continue
		}
		ws := d.ways(side, text)
		b.readings, b.excerpts = b.readings[:0], b.excerpts[:0]
		passed := sure
		if side != audit.Output {
			passed = nil
		}
		var tops [NumHeads]best
		var open [NumHeads]doubts
		any, refuted := false, false
		look := func(s detectors.Sentence, ts []token, first float32, named bool) {
			b.excerpts = append(b.excerpts, excerpt{sentence: s, from: ts[0].start, first: first})
			if float64(first) < ws.gates.of(named) {
				return
			}
			w, by := d.of(&ws, text, ts)
			if float64(first) < w.gates.of(named) {
				return
			}
			d.model.judge(&b.net, ts, first, named)
			b.excerpts[len(b.excerpts)-1].note(&b.net)
			prior := w.prior(b, first, named)
			for h, z := range b.net.heads {
				if w.decides(Head(h)) {
					if w.silent(Head(h)) && passed == nil {
						continue
					}
					if prior.Ask[h] {
						if !refuted || !Head(h).refuted(in, side, ts) {
							open[h].add(d.doubt(Head(h), s, ts, &prior, by, named))
						}
					} else if passed != nil {
						x := d.doubt(Head(h), s, ts, &prior, by, named)
						passed[h] = max(passed[h], x.unasked())
					}
					continue
				}
				p, yes := d.model.answer(Head(h), first, z)
				if yes && p > tops[h].probability && Head(h).refuted(in, side, ts) {
					p, yes = min(p, d.model.Meta.Heads[h].Threshold), false
				}
				if yes && p > tops[h].probability {
					tops[h], any = best{sentence: s, from: int(ts[0].start), probability: p}, true
				}
				if passed != nil {
					passed[h] = max(passed[h], p)
				}
			}
		}
		d.model.readAll(b, text, in.Sentences(side), look)
		if d.suspect(b, &ws, side, text) {
			tops, open, any = [NumHeads]best{}, [NumHeads]doubts{}, false
			d.model.readAll(b, text, in.Sentences(side), look)
		}
		answers := d.decideAll(b, in, side, &open)
		if answers.hides {
			refuted = true
			tops, open, any = [NumHeads]best{}, [NumHeads]doubts{}, false
			d.model.readAll(b, text, in.Sentences(side), look)
			answers = d.decideAll(b, in, side, &open)
		}
		for h := range open {
			if top := answers.tops[h]; top.probability > tops[h].probability {
				tops[h], any = top, true
			}
			for i := range open[h].list[:open[h].n] {
				if passed != nil {
					passed[h] = max(passed[h], open[h].list[i].probability)
				}
			}
		}
		if any {
			findings = d.report(findings, b, in, side, text, &tops)
		}
	}
	return findings, ctx.Err()
}

// answer gives the probability of a head's logit, and whether it is above the threshold, in a sentence above the gate.
func (m *Model) answer(h Head, first, logit float32) (p float64, yes bool) {
	t := &m.Meta.Heads[h]
	p = t.Probability(logit)
	return p, float64(first) >= m.Meta.Gate && p > t.Threshold
}

// readAll reads the sentences of a text one by one. named tells that a group was named, in the sentence or in the one
// before.
func (m *Model) readAll(b *buffers, text string, sentences []detectors.Sentence, use func(s detectors.Sentence, ts []token, first float32, named bool)) {
	before := false
	for _, s := range sentences {
		here := false
		m.read(b, text, s.Start, s.End, func(ts []token, first float32) {
			here = here || names(ts)
			use(s, ts, first, here || before)
		})
		before = here
	}
}

// readExcerpt reads one again.
func (m *Model) readExcerpt(b *buffers, text string, x excerpt, use func(ts []token)) {
	m.read(b, text, x.sentence.Start, x.sentence.End, func(ts []token, _ float32) {
		if ts[0].start == x.from {
			use(ts)
		}
	})
}

// judge looks at tokens, and asks for more of those where no group was named: such a sentence may mean one, but
// most are about something else.
func (m *Model) judge(s *scratch, ts []token, first float32, named bool) {
	m.look(s, ts, first)
	if !named {
		s.heads[Bias] -= float32(m.Meta.Unnamed)
	}
}

// names says whether a group is named.
func names(ts []token) bool {
	return slices.ContainsFunc(ts, func(t token) bool { return t.ground != 0 })
}

// read gives a sentence's tokens, identity terms folded, in windows with their first score.
func (m *Model) read(b *buffers, text string, start, end int, use func(ts []token, first float32)) {
	b.tokens = identity.fold(words(b.tokens[:0], text, start, end), nil)
	for ts := b.tokens; len(ts) > 0; {
		n := min(len(ts), maxTokens)
		b.buckets = gateFeatures(b.buckets[:0], ts[:n])
		use(ts[:n], m.first(b.buckets, n))
		if n == len(ts) {
			return
		}
		ts = ts[n-maxTokens/4:] // windows overlap: what stands at a seam is seen whole once
	}
}

// report looks at the strongest sentences again to tell what in them decided, and of bias on which grounds.
func (d *Detector) report(findings []audit.Finding, b *buffers, in *detectors.Input, side audit.Side, text string, tops *[NumHeads]best) []audit.Finding {
	m := d.model
	for h, top := range tops {
		if top.probability == 0 {
			continue
		}
		m.read(b, text, top.sentence.Start, top.sentence.End, func(ts []token, first float32) {
			if int(ts[0].start) != top.from {
				return
			}
			m.look(&b.net, ts, first)
			from, to := clause(ts, m.evidence(&b.net, Head(h), len(ts)))
			f := audit.Finding{
				Rule: ID + "." + Head(h).String(), RuleVersion: m.Meta.Version, Confidence: max(1, audit.ScoreOf(top.probability)),
				Side: side, Span: in.NormalSpan(side, int(ts[from].start), int(ts[to-1].end)),
			}
			grounds := m.namedGrounds
			if top.said != nil {
				f.Rule, f.RuleVersion = EncoderRule, top.by.by.version()
				f.Span = statement(in, side, int(ts[0].start), int(ts[len(ts)-1].end)) // it says nothing of parts
				grounds = func([]token) []audit.Ground { return top.said.Grounds() }
			}
			if Head(h) != Bias {
				f.Kind = Head(h).kind()
				if r, ok := audit.SafetySeverity[Head(h).String()]; ok {
					f.Severity = r.Min
				}
				findings = append(findings, f)
				return
			}
			for _, g := range grounds(ts) {
				f.Ground, f.Kind, f.Severity = g, "charter."+string(g), audit.GroundSeverity[g].Min
				findings = append(findings, f)
			}
		})
	}
	return findings
}

// heading is what stands before a statement and is none of it: the number or bullet of an item and a label in bold print. A mark that opens before the
// sentence's first word is no part of its span, so that only the one that closes is sure to be there.
var heading = regexp.MustCompile(`^(?:\d{1,3}[.)]\s+)?(?:(?:\*\*|__)?[^\s*_:][^*_:\n]{0,60}(?::(?:\*\*|__)|(?:\*\*|__):)\s+)?`)

// statement is the span of a sentence from byte start to end of the normal text, without its heading.
func statement(in *detectors.Input, side audit.Side, start, end int) audit.Span {
	start, end = in.Normal(side).Original(start, end)
	start += len(heading.FindString(in.Interaction.Text(side)[start:end]))
	return in.Span(side, start, end)
}

// namedGrounds gives the likeliest ground, and every other that passes the model's threshold, at most three.
func (m *Model) namedGrounds(ts []token) (out []audit.Ground) {
	ps := m.grounds(ts)
	top := slices.Index(ps[:], slices.Max(ps[:]))
	out = append(out, groundOf(top))
	for g, p := range ps {
		if g != top && p > m.Meta.Ground && len(out) < 3 {
			out = append(out, groundOf(g))
		}
	}
	return out
}

// clause gives the tokens [from, to) of the clause around token i: up to commas, semicolons, colons and brackets.
// One of fewer than three tokens is no clause: then it is the whole sentence.
func clause(ts []token, i int) (from, to int) {
	parts := func(t *token) bool {
		switch t.mark {
		case ',', ';', ':', '(', ')':
			return true
		}
		return false
	}
	for from = i; from > 0 && !parts(&ts[from-1]); from-- {
	}
	for to = i + 1; to < len(ts) && !parts(&ts[to]); to++ {
	}
	if to-from < 3 {
		return 0, len(ts)
	}
	return from, to
}

// Scores is what the model says of one side of an interaction.
type Scores struct {
	First   float32           // the highest first score
	Logits  [NumHeads]float32 // of each head the highest, without the encoder
	Heads   [NumHeads]float64 // probabilities, the encoder's where it was asked
	Flagged [NumHeads]bool    // what Detect would say
	Grounds []audit.Ground    // of the most biased sentence, likeliest first
}

// unasked gives the probability of a sentence that no encoder is asked about: next to nothing where one could read it, so that such sentences
// keep their order, below those that it was asked about.
func (x *doubt) unasked() float64 {
	if x.by != nil {
		return 1e-3 * x.probability
	}
	return x.probability
}

// Scores looks at every sentence whatever its first score is: for calibration and evaluation, which want
// a score of each text.
func (d *Detector) Scores(in *detectors.Input, side audit.Side) (out Scores) {
	b := d.buffers()
	defer d.pool.Put(b)
	m, text := d.model, in.Normal(side).String()
	ws := d.ways(side, text)
	out.First = float32(math.Inf(-1))
	for h := range out.Logits {
		out.Logits[h] = float32(math.Inf(-1))
	}
	var open [NumHeads]doubts
	m.readAll(b, text, in.Sentences(side), func(s detectors.Sentence, ts []token, first float32, named bool) {
		m.judge(&b.net, ts, first, named)
		out.First = max(out.First, first)
		w, by := d.of(&ws, text, ts)
		prior := w.prior(b, first, named)
		if float64(first) < ws.gates.of(named) {
			prior.Ask = [NumHeads]bool{}
		}
		for h, z := range b.net.heads {
			p, yes := m.answer(Head(h), first, z)
			grounds := m.namedGrounds
			if w.decides(Head(h)) {
				x := d.doubt(Head(h), s, ts, &prior, by, named)
				if prior.Ask[h] {
					d.ask(Head(h), b, text, in.Sentences(side), &x)
					open[h].add(x)
				}
				if p, yes = x.probability, false; x.said != nil {
					if gs := x.said.Grounds(); gs != nil {
						grounds = func([]token) []audit.Ground { return gs }
					}
				} else {
					p = x.unasked()
				}
			}
			out.Flagged[h] = out.Flagged[h] || yes
			out.Logits[h] = max(out.Logits[h], z)
			if p > out.Heads[h] {
				out.Heads[h] = p
				if Head(h) == Bias {
					out.Grounds = grounds(ts)
				}
			}
		}
	})
	for h := range open {
		if open[h].n > 0 {
			top, _ := d.decide(Head(h), b, in, side, &open[h])
			out.Flagged[h] = top.probability > 0 || out.Flagged[h]
		}
	}
	return out
}
