package train

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// never is above every logit.
const never = 1e3

var (
	everything = encoder.Doubt{First: -never, Logit: -never}
	unasked    = alike(never, never) // answers with the others where an effort is Together
	always     = alike(-never, -never)
)

// alike asks from one doubt on, whether a group is named or not, and about the sentence alone.
func alike(first, logit float64) encoder.Asking {
	d := encoder.Doubt{First: first, Logit: logit}
	return encoder.Asking{Named: d, Unnamed: d, Context: never}
}

// advisedAbove are the joint logits of bias, toxicity and safety above which the adviser is asked, of each effort. It has twice the layers: in long texts it is
// asked about what would be found without it, in short ones about what might be.
var advisedAbove = map[string][3]float64{
	leastEffort: {0.8, 0.5, -1}, "thorough": {-1, -1, -1}, "full": {-5, -5, -5}, shortEffort: {-2, -2, -2}, mediumEffort: {-1, -1, -1}, suspiciousEffort: {0.8, 0.5, -1},
}

// inPassage asks alike, and again in the passage about what may be meant: "Wait until she is alone on the stairs." is a help or a threat by what follows.
func inPassage(first, logit float64) encoder.Asking {
	a := alike(first, logit)
	a.Context = 0
	return a
}

// The places in efforts of the one that asks about everything, and of short: what full does not ask about for a head, that does.
const full, short = 2, 3

// The least effort for long responses; those of short and of medium ones, where the greatest asks about everything, too; and that of long ones that are suspicious.
const leastEffort, shortEffort, mediumEffort, suspiciousEffort = "balanced", "short", "medium", "suspicious"

// efforts are what the encoder may cost, the cheapest first; then that for short responses, where it is asked in two of five ordinary ones and one
// in 200 of those that it finds something in is missed; then that for medium ones: as wide, but surer of what it finds; last that for suspicious ones, where harm is asked about as widely as by thorough. In long texts the first early exit hears of
// one in five ordinary ones or of one in three; what is read beyond it is in stops.go. Heads are in the order of the classifier's.
var efforts = []encoder.Effort{
	{Name: leastEffort, Short: shortEffort, Medium: mediumEffort, Suspicious: suspicious, Heads: []encoder.Asking{biasInLong, toxicityInLong, harmInLong, harmInLong, harmInLong, unasked}},
	{Name: "thorough", Short: shortEffort, Medium: mediumEffort, Together: true, Heads: thorough},
	{Name: "full", Short: shortEffort, Heads: []encoder.Asking{{Named: everything, Unnamed: everything, Context: -2}, always, inPassage(-never, -never), inPassage(-never, -never), inPassage(-never, -never), unasked}},
	{Name: shortEffort, Together: true, Heads: wideDoors},
	{Name: mediumEffort, Together: true, Heads: wideDoors},
	{Name: suspiciousEffort, Heads: []encoder.Asking{biasInLong, toxicityInLong, harmInSuspicious, harmInSuspicious, harmInSuspicious, unasked}},
}

// What is asked about in long texts at the least effort.
var (
	biasInLong     = encoder.Asking{Named: encoder.Doubt{First: -2, Logit: -5}, Unnamed: encoder.Doubt{First: 0.5, Logit: -5}, Context: 0.8}
	toxicityInLong = encoder.Asking{Named: encoder.Doubt{First: -2, Logit: -1}, Unnamed: encoder.Doubt{First: 0.5, Logit: -1}, Context: never}
)

// harmInLong asks about harm in long texts: where a group is named, from the first scores on that bias is asked about, elsewhere from higher ones; each lower one is a
// look of the network at more sentences, and a text in a hundred more that is read on.
var harmInLong = encoder.Asking{Named: encoder.Doubt{First: -2, Logit: -2}, Unnamed: encoder.Doubt{First: 0.9, Logit: -2}}

// harmInSuspicious asks about nearly all sentences that may be about people.
var harmInSuspicious = encoder.Asking{Named: encoder.Doubt{First: -2, Logit: -6}, Unnamed: encoder.Doubt{First: -0.5, Logit: -6}, Context: 0}

// suspicious are one in a hundred ordinary texts of more than 1 KB, none of 199 pieces of 2 KB of models' answers, and one in two of harmful ones, in which what this effort
// finds is found nearly always. The first limit keeps the cost down: one piece in twenty is above it, and has eight sentences looked at.
var suspicious = encoder.Suspicion{Effort: suspiciousEffort, First: 0.3, Harm: -3.35}

// wideDoors ask about what the classifier is not sure of.
var wideDoors = []encoder.Asking{
	{Named: encoder.Doubt{First: -4, Logit: -10.3}, Unnamed: encoder.Doubt{First: -4, Logit: -10.3}, Context: -2},
	alike(-4, -3.6), inPassage(-4, -4.9), inPassage(-4, -6.1), inPassage(-4, -5.8), unasked,
}

// unfitted are the heads with what the classifier's logit counts beside the encoder's: the two are wrong about other texts. Of harm it knows little.
var unfitted = [classifier.NumHeads]encoder.Scale{classifier.Bias: {Beside: 0.25}, classifier.Toxicity: {Beside: 0.25}}

// effortsOfOthers are those of the encoder of other languages, in the same order. There the classifier knows little: with the doors of English .53 of the biased
// texts of dev were found by medium and .30 by balanced, .66 by full. So they are wide, and the early exits, which know more, keep the cost down.
var effortsOfOthers = []encoder.Effort{
	{Name: leastEffort, Short: shortEffort, Medium: mediumEffort, Together: true, Heads: together(-2, -8, 0)},
	{Name: "thorough", Short: shortEffort, Together: true, Heads: together(-4, -10.3, 0)},
	{Name: "full", Short: shortEffort, Heads: append([]encoder.Asking{{Named: everything, Unnamed: everything, Context: -2, Plain: plainBias}}, efforts[full].Heads[1:]...)},
	{Name: shortEffort, Together: true, Heads: together(-never, -never, -2)}, // the first exit takes as long as the classifier's network
	{Name: mediumEffort, Together: true, Heads: together(-4, -10.3, 0)},
}

// plainBias is the logit, some .93, from which on a sentence of another language is biased whatever stands around it. That encoder learnt from few passages: three neutral
// sentences before a biased one hid it mostly. Of 82 biased texts behind four such sentences 15 were found, with this 46; of 2,417 ordinary texts of several
// sentences two more are flagged (9, 11), of 525 others of strangers.others two more of those that are toxic or harmful. From .9 on it were 52, and 15 ordinary ones.
const plainBias = 4.25

// together asks from a doubt about bias on, for all heads together, and about bias again in the passage from a logit on.
func together(first, logit, context float64) []encoder.Asking {
	bias := alike(first, logit)
	bias.Context, bias.Plain = context, plainBias
	return []encoder.Asking{bias, alike(-0.5, -3), inPassage(-0.5, -3), inPassage(-0.5, -3), inPassage(-0.5, -3), unasked}
}

// plan is how an encoder is calibrated.
type plan struct {
	efforts    []encoder.Effort
	readOn     map[string][]float64 // of stops
	harmReadOn map[string][]float64 // of each head of safety; nil: no limit
	harm       float64              // the lowest threshold of safety
}

// planOf an encoder: harm is found where it is likelier than not; in other languages, where it is rare among what calibrates, from a lower probability on.
func planOf(t *encoder.Meta, adviser *encoder.Model) plan {
	p := plan{efforts, readOn, harmReadOn, 0.5}
	if !t.English() {
		p = plan{effortsOfOthers, map[string][]float64{leastEffort: readOnThoroughly, "thorough": readOnThoroughly, mediumEffort: readOnThoroughly}, nil, 0.3}
	}
	if adviser != nil {
		return p.advised()
	}
	return p
}

// advised is the plan with what an adviser is asked about.
func (p plan) advised() plan {
	p.efforts = slices.Clone(p.efforts)
	for n := range p.efforts {
		f := &p.efforts[n]
		f.Heads = slices.Clone(f.Heads)
		for h := range f.Heads {
			f.Heads[h].Advice.Above = advisedAbove[f.Name][min(h, 2)]
		}
	}
	return p
}

// least is the lowest threshold of a head at an effort.
func (p *plan) least(effort string, h classifier.Head) float64 {
	switch harm := slices.Contains(safety, h); {
	case harm && effort == suspiciousEffort:
		return suspiciousHarm
	case harm:
		return p.harm
	}
	return 0.3
}

// suspiciousHarm is the lowest threshold of harm in suspicious texts: among them are most of those that speak of harm and do none. From .5 on, 39 of 72 long harmful texts
// that nothing was learnt from were found and 11 of their twins, from here on 35 and 5; without suspicion it was 27 and 5.
const suspiciousHarm = 0.7

var thorough = []encoder.Asking{
	{Named: encoder.Doubt{First: -2, Logit: -6}, Unnamed: encoder.Doubt{First: -0.5, Logit: -6}, Context: 0},
	{Named: encoder.Doubt{First: -2, Logit: -3}, Unnamed: encoder.Doubt{First: -0.5, Logit: -3}, Context: never},
	inPassage(-0.5, -3), inPassage(-0.5, -3), inPassage(-0.5, -3), unasked,
}

// EncoderResult is a calibrated encoder and what calibration saw.
type EncoderResult struct {
	File   []byte
	Meta   encoder.Meta
	Tuning []EncoderOutcome // of each head and effort
	Stops  []StopOutcome    // of each effort and early exit
	Others []OthersOutcome
}

// EncoderOutcome is what an effort finds for a head in the texts that calibrated it.
type EncoderOutcome struct {
	Head                             classifier.Head
	Effort                           string
	Asking                           encoder.Asking
	True, Ordinary, Benign           int
	Found, OrdinaryFound, BenignOnes int
	OrdinaryAsked, OrdinaryAdvised   int  // texts with a sentence that it is asked about, and that its adviser is
	Advised                          bool // with its advice
}

// Calibrate fits probabilities and thresholds of an encoder to the rows of split dev in its languages, those of the recipe's unseen sources apart: it has
// learnt from all others. An encoder without early exits gets them, learnt from these. With an adviser, which may be nil, the advice to one of English is calibrated, too, unless the rows are too few for it.
// log may be nil. Too few rows are an error of KindInvalid.
func Calibrate(file []byte, m *classifier.Model, adviser *encoder.Model, rows []dataset.Row, r Recipe, log func(format string, args ...any)) (*EncoderResult, error) {
	if log == nil {
		log = func(string, ...any) {}
	}
	e, err := encoder.Decode(file)
	if err != nil {
		return nil, err
	}
	if !e.Meta.English() {
		adviser = nil
	}
	rd, err := newReader()
	if err != nil {
		return nil, err
	}
	if e.Meta.Exits == 0 { // as export.py writes it
		glance, exits, err := fitExits(e, rd, rows, &r, log)
		if err != nil {
			return nil, err
		}
		if file, err = encoder.WithExits(file, glance, exits); err != nil {
			return nil, err
		}
		if e, err = encoder.Decode(file); err != nil {
			return nil, err
		}
	}
	res := &EncoderResult{Meta: e.Meta}
	if e.Meta.English() {
		res.others(m, rd, rows, &r)
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(row dataset.Row) bool {
		return row.Split != "dev" || !speaks(e, &row) || slices.Contains(r.Unseen, row.Source)
	})
	meta := &res.Meta
	meta.Classifier, meta.Adviser = m.Meta.Version, ""
	if adviser != nil {
		meta.Adviser = adviser.Meta.Version
	}
	log("calibrating with %d rows of split dev", len(rows))
	if err := res.tune(e, m, nil, rd, rows, r, nil); err != nil {
		return nil, err
	}
	log("choosing where early exits stop")
	res.stop(e, m, rd, rows, &r) // chosen by what is found without early exits; then all once more, with them
	log("calibrating with them")
	err = res.tune(e, m, adviser, rd, rows, r, res.Meta.Efforts)
	if adviser != nil && audit.KindOf(err) == audit.KindInvalid {
		log("without advice, for there is too little to calibrate that with: %v", err)
		meta.Adviser = ""
		err = res.tune(e, m, nil, rd, rows, r, res.Meta.Efforts)
	}
	if err != nil {
		return nil, err
	}
	if res.File, err = encoder.Retuned(file, *meta); err != nil {
		return nil, err
	}
	done, err := encoder.Decode(res.File)
	if err != nil {
		return nil, err
	}
	res.Meta = done.Meta
	return res, nil
}

// english tells whether a row is in English.
func english(row *dataset.Row) bool {
	return (row.Lang == "" || row.Lang == "en") && row.Source != "mlma_fr"
}

// speaks tells whether a row is an encoder's to read: English, or not.
func speaks(e *encoder.Model, row *dataset.Row) bool {
	return english(row) == e.Meta.English()
}

// tune fits the heads, with the stops of these efforts and with an adviser, if there are any.
func (res *EncoderResult) tune(e *encoder.Model, m *classifier.Model, adviser *encoder.Model, rd *reader, rows []dataset.Row, r Recipe, stops []encoder.Effort) error {
	meta := &res.Meta
	meta.Decides, meta.Efforts, res.Tuning = nil, nil, nil
	p := planOf(meta, adviser)
	for n, f := range p.efforts {
		if f = (encoder.Effort{Name: f.Name, Short: f.Short, Medium: f.Medium, Suspicious: f.Suspicious, Together: f.Together}); stops != nil {
			f.Alone, f.InPassage = stops[n].Alone, stops[n].InPassage
		}
		meta.Efforts = append(meta.Efforts, f)
	}
	said, err := ask(e, m, adviser, rd, rows, meta.Efforts)
	if err != nil {
		return err
	}
	for _, h := range classifier.Heads() {
		scale, outcomes, err := calibrateHead(h, rows, said, adviser != nil, &r, &p)
		if err != nil && len(outcomes) == 0 && h != classifier.Bias && audit.KindOf(err) == audit.KindInvalid {
			return nil // texts that say nothing of toxicity: that, and what comes after, stays with the classifier
		}
		if err != nil {
			return err
		}
		meta.Decides, res.Tuning = append(meta.Decides, scale), append(res.Tuning, outcomes...)
		for n, o := range outcomes[:len(p.efforts)] {
			meta.Efforts[n].Heads = append(meta.Efforts[n].Heads, o.Asking)
		}
	}
	return nil
}

// ask reads all rows at all efforts.
func ask(e *encoder.Model, m *classifier.Model, adviser *encoder.Model, rd *reader, rows []dataset.Row, stops []encoder.Effort) (said [][]classifier.Said, err error) {
	p := planOf(&e.Meta, adviser)
	var first *classifier.Detector // efforts that stop nowhere early read the same
	for n, f := range p.efforts {
		// Only whom it asks matters here, and all texts are asked about alike; what it answers does not.
		f.Short, f.Medium, f.Suspicious = "", "", encoder.Suspicion{}
		f.Alone, f.InPassage = stops[n].Alone, stops[n].InPassage
		e.Meta.Decides, e.Meta.Efforts, e.Meta.Classifier = unfitted[:], []encoder.Effort{f}, m.Meta.Version
		d, err := classifier.NewWithEncoder(m, f.Name, e)
		if err != nil {
			return nil, err
		}
		d.Advised(adviser)
		if first == nil {
			first = d
			first.Remember(32 * len(rows))
		}
		d.RememberWith(first)
		of := make([]classifier.Said, len(rows))
		each(len(rows), func(i int) { of[i] = d.Asked(rd.read(rows[i].Text), audit.Output) })
		said = append(said, of)
	}
	return said, nil
}

// each calls f with 0..n, on all processors.
func each(n int, f func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// wanted is what a row says of a head; false where it says nothing, or nothing sure. In ordinary text nothing should be found.
func wanted(row *dataset.Row, h classifier.Head, r *Recipe) (yes, known bool) {
	target, doubt := Target(row)
	switch {
	case target[h] == target[h] && doubt[h] == 0:
		return target[h] >= 0.5, true
	case r.ordinary(row.Source):
		return false, true
	}
	return false, false
}

// calibrateHead fits one head: what comes out is of each effort, and with an adviser then of each with its advice.
func calibrateHead(h classifier.Head, rows []dataset.Row, said [][]classifier.Said, advised bool, r *Recipe, p *plan) (scale encoder.Scale, outcomes []EncoderOutcome, err error) {
	c := &headCalibration{h, rows, r, p}
	alone, err := c.line(func(i int) float32 {
		if z := said[full][i].Asked[h]; !math.IsInf(float64(z), 0) {
			return z
		}
		return said[short][i].Asked[h]
	})
	if err != nil {
		return scale, nil, err
	}
	scale = encoder.Scale{Head: h.String(), A: alone.A, B: alone.B, Beside: unfitted[h].Beside}
	for n := range p.efforts {
		outcomes = append(outcomes, c.outcome(n, said[n], alone, func(s *classifier.Said) float32 { return s.Read[h] }))
	}
	if !advised {
		return scale, outcomes, nil
	}
	if p.efforts[full].Heads[h].Named == unasked.Named {
		for n := range outcomes {
			outcomes[n].Asking.Advice = encoder.Advice{Above: never, Threshold: 1}
		}
		return scale, outcomes, nil
	}
	if scale.Advised, err = c.line(func(i int) float32 { return said[full][i].Advised[h] }); err != nil {
		return scale, outcomes, err
	}
	for n := range p.efforts {
		out := c.outcome(n, said[n], scale.Advised, func(s *classifier.Said) float32 { return s.Advised[h] })
		out.Advised = true
		advice := &outcomes[n].Asking.Advice
		advice.Threshold, advice.FPR = out.Asking.Threshold, out.Asking.FPR
		if out.Effort == leastEffort || out.Effort == suspiciousEffort { // in long texts, where it is dear; elsewhere two more of 720 harmless answers were flagged
			advice.Sure = c.sure(said[n], advice.Above, func(s *classifier.Said) bool { return scale.Advised.Probability(s.Advised[h]) > advice.Threshold })
			out.Asking.Advice.Sure = advice.Sure
		}
		outcomes = append(outcomes, out)
	}
	return scale, outcomes, nil
}

// headCalibration fits a head to rows.
type headCalibration struct {
	h    classifier.Head
	rows []dataset.Row
	r    *Recipe
	p    *plan
}

// line fits probabilities to logits of rows; too few are an error of KindInvalid.
func (c *headCalibration) line(logit func(i int) float32) (encoder.Line, error) {
	var js []judged
	for i := range c.rows {
		yes, known := wanted(&c.rows[i], c.h, c.r)
		if z := logit(i); known && !math.IsInf(float64(z), 0) {
			j := judged{}
			if j.scores.Logits[c.h] = z; yes {
				j.target[c.h] = 1
			}
			js = append(js, j)
		}
	}
	if yes := slices.ContainsFunc(js, func(j judged) bool { return j.target[c.h] > 0 }); len(js) < 50 || !yes {
		return encoder.Line{}, audit.E("train: calibrate encoder", audit.KindInvalid, fmt.Errorf("too little to calibrate with: want texts of split dev with and without %s, in its languages", c.h))
	}
	a, b, _ := platt(js, c.h)
	return encoder.Line{A: a, B: b}, nil
}

// outcome chooses the threshold of an effort and tells what it finds, by one of the logits of each row.
func (c *headCalibration) outcome(n int, said []classifier.Said, line encoder.Line, logit func(*classifier.Said) float32) EncoderOutcome {
	f := &c.p.efforts[n]
	out := EncoderOutcome{Head: c.h, Effort: f.Name, Asking: f.Heads[c.h]}
	var ordinary, benign, right []float64
	for i := range c.rows {
		row := &c.rows[i]
		yes, known := wanted(row, c.h, c.r)
		found := 0.0
		if z := logit(&said[i]); !math.IsInf(float64(z), 0) {
			found = line.Probability(z)
		}
		switch brief := len(row.Text) <= classifier.ShortText; {
		case !known:
		case yes:
			right = append(right, found)
		case c.r.ordinary(row.Source) && brief == (n == short): // long ones have more sentences to be wrong about
			ordinary = append(ordinary, found)
			out.OrdinaryAsked += count(!math.IsInf(float64(said[i].Asked[c.h]), 0))
			out.OrdinaryAdvised += count(!math.IsInf(float64(said[i].Advised[c.h]), 0))
		case row.Skeleton != "":
			benign = append(benign, found)
		}
	}
	a := &out.Asking
	a.Threshold = 1
	if bounds := c.r.EncoderFPR[f.Name]; int(c.h) < len(bounds) {
		a.Threshold = thousandths(max(above(ordinary, bounds[c.h].Ordinary), above(benign, bounds[c.h].Benign), c.p.least(f.Name, c.h)))
	}
	out.True, out.Ordinary, out.Benign = len(right), len(ordinary), len(benign)
	out.Found, out.OrdinaryFound, out.BenignOnes = exceeding(right, a.Threshold), exceeding(ordinary, a.Threshold), exceeding(benign, a.Threshold)
	if len(ordinary) > 0 {
		a.FPR = float64(out.OrdinaryFound) / float64(len(ordinary))
	}
	return out
}

// sure is the joint logit above which no advice is needed: of texts in which nothing should be found, at most one is found above it that would not be found with
// advice, for every fifty that would. It is not less than that above which advice is asked for.
func (c *headCalibration) sure(said []classifier.Said, above float64, found func(*classifier.Said) bool) float64 {
	var refused []float64
	yes := 0
	for i := range c.rows {
		s := &said[i]
		if meant, known := wanted(&c.rows[i], c.h, c.r); meant || !known || math.IsInf(float64(s.Advised[c.h]), 0) {
			continue
		}
		if found(s) {
			yes++
		} else {
			refused = append(refused, float64(s.Read[c.h]))
		}
	}
	switch spare := yes / 50; {
	case spare == 0:
		return 0 // too few to tell
	case spare < len(refused):
		slices.Sort(refused)
		above = max(above, math.Ceil(1000*refused[len(refused)-1-spare])/1000)
	}
	return cmp.Or(above, 0.001)
}

// languages that a model reads, in words.
func languages(t *encoder.Meta) string {
	if t.English() {
		return "English"
	}
	return strings.Join(t.Languages, ", ")
}

// Card is the encoder's model card, in Markdown.
func (r *EncoderResult) Card() string {
	var b strings.Builder
	p := func(format string, a ...any) { fmt.Fprintf(&b, format, a...) }
	t := &r.Meta
	english := t.English()
	p("# Model card: %s, version %s\n\n", t.Name, t.Version)
	p("%s. %d layers of %d numbers, weights of a byte; %d bytes. Written by `tools/train/export.py` and `evenhand train --encoder`, calibrated with classifier %s.\n\n", t.Trained, t.Layers, t.Width, len(r.File), t.Classifier)
	p("It decides sentences in %s that the classifier is in doubt about or holds for biased, toxic or harmful, and tells the ground of bias. For flags that people or rules look at; "+
		"not for decisions about persons, and not a measure of a language model's character. Data and licences: the classifier's card, [model.md](../model.md).\n\n",
		languages(t))
	p("## What calibration saw\nRows of split dev in %s, those of the unseen sets apart: their sources were learnt from, they were not. And ordinary text that nothing was learnt from (`%s`).\n\n",
		languages(t), map[bool]string{true: "tools/train/ordinary.py", false: "tools/train/ordinary_others.py"}[english])
	long := ""
	if x := t.Efforts[0].Suspicious; x.Effort != "" {
		long = fmt.Sprintf("Longer ones are read at effort %s where %s is set and they are suspicious as a whole: the mean of their three highest first scores is above %g, that of what the classifier says of harm in the eight sentences with the highest above %g. ", x.Effort, t.Efforts[0].Name, x.First, x.Harm)
	}
	p("Sentences are asked about from the classifier's first score and logit on; those of responses of at most %d bytes by effort short, whatever the effort is, and those of at most %d by effort medium where balanced or thorough is set; there, what is asked about for one head is answered for all. %sA head with threshold 1 never answers yes: it grades.\n\n| head | effort | where a group is named | elsewhere | threshold | recall | flagged of ordinary text | of harmless hard cases | ordinary texts asked about |\n|---|---|---|---|---|---|---|---|---|\n", classifier.ShortText, classifier.MediumText, long)
	for _, o := range r.Tuning {
		a := &o.Asking
		if a.Named == unasked.Named || o.Advised {
			continue
		}
		p("| %s | %s | %g, %g | %g, %g | %.3f | %.3f of %d | %s | %s | %s |\n", o.Head, o.Effort, a.Named.First, a.Named.Logit, a.Unnamed.First, a.Unnamed.Logit, a.Threshold,
			float64(o.Found)/float64(max(1, o.True)), o.True, Share(o.OrdinaryFound, o.Ordinary), Share(o.BenignOnes, o.Benign), Share(o.OrdinaryAsked, o.Ordinary))
	}
	if t.Adviser != "" {
		p("\n## With advice\nWhere the encoder of other languages, version %s, is at hand, that reads English as well, what this one holds for likely enough is read by it, too, "+
			"and their logits are added: nothing is found without it but what this one is sure enough of.\n\n| head | effort | asked above the logit | sure without advice above | threshold | recall | flagged of ordinary text | of harmless hard cases | ordinary texts asked about |\n|---|---|---|---|---|---|---|---|---|\n", t.Adviser)
	}
	for _, o := range r.Tuning {
		if a := &o.Asking; o.Advised && a.Named != unasked.Named {
			p("| %s | %s | %g | %g | %.3f | %.3f of %d | %s | %s | %s |\n", o.Head, o.Effort, a.Advice.Above, a.Advice.Sure, a.Threshold,
				float64(o.Found)/float64(max(1, o.True)), o.True, Share(o.OrdinaryFound, o.Ordinary), Share(o.BenignOnes, o.Benign), Share(o.OrdinaryAdvised, o.Ordinary))
		}
	}
	p("\n## Early exits\nWhere they and the classifier say too little together, no more is read.\n\n| effort | of | ordinary sentences asked about that are read on | ordinary texts with one | sentences above a threshold in the end that are not read on |\n|---|---|---|---|---|\n")
	for _, o := range r.Stops {
		p("| %s | %s | %s | %s | %s |\n", o.Effort, encoder.ExitName(o.Exit), Share(o.ReadOn, o.Asked), Share(o.TextsReadOn, o.Texts), Share(o.Lost, o.Found))
	}
	if len(r.Others) > 0 {
		p("\n## Other languages\nThis encoder reads English. What no encoder reads has the classifier's own answers, above thresholds chosen by rows of split dev in other languages.\n\n| head | texts of | threshold | recall | flagged of harmless hard cases |\n|---|---|---|---|---|\n")
	}
	for _, o := range r.Others {
		if o.Threshold >= 1 {
			continue
		}
		of := map[bool]string{false: "one sentence", true: "several sentences"}[o.Several]
		p("| %s | %s | %.3f | %.3f of %d | %s |\n", o.Head, of, o.Threshold, float64(o.Found)/float64(max(1, o.True)), o.True, Share(o.HarmlessOnes, o.Harmless))
	}
	p("\n## Known failures\n%sIrony, what is said over several sentences, sentences that the classifier is not in doubt about, reclaimed words. At most four sentences of a text are asked about for each head.\n",
		map[bool]string{true: "Other languages than English. ", false: "Other languages in Latin letters and English that does not read as such, which it gets to read, too. "}[english])
	return b.String()
}
