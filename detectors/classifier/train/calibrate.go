package train

import (
	"cmp"
	"math"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/metric"
)

// Outcome is what calibration saw of a head: rows that were neither learnt from nor are they dev.
type Outcome struct {
	Head             classifier.Head
	True, Harmless   int
	Ordinary, Benign int     // of the harmless
	AUROC            float64 // NaN without both
	Recall           float64 // at the threshold
	OrdinaryFlagged  int
	BenignFlagged    int
	Fresh            int // texts of sources that nothing is learnt from
	FreshFlagged     int
	ECE              float64
	WithoutThreshold bool // silent, or nothing to choose a threshold by: the head never answers
}

// judged is what the model says of a calibration row.
type judged struct {
	scores           classifier.Scores
	target           [classifier.NumHeads]float32
	ordinary, benign bool
}

// calibrate fits what the first score counts, each head's probability and threshold, and the gate, to the rows kept for
// it. The model is the quantised one, the texts go the way that they go in the hot path.
func (r *Recipe) calibrate(rd *reader, m *classifier.Model, res *Result) {
	m.Meta.Unnamed = r.Unnamed
	for _, h := range classifier.Heads() {
		m.Join(h, 0)
	}
	js := r.judge(rd, m, res.Split.Calibrate)
	for _, h := range classifier.Heads() {
		m.Join(h, join(known(js, h), h))
	}
	js = r.judge(rd, m, res.Split.Calibrate)
	m.Meta.Gate, res.Passed = gate(js)
	fresh := r.judge(rd, m, res.Split.Fresh)
	for _, h := range classifier.Heads() {
		t := &m.Meta.Heads[h]
		out := Outcome{Head: h}
		of := known(js, h)
		t.A, t.B, _ = platt(of, h)
		t.Threshold, t.FPR = r.threshold(of, fresh, h, m, &out)
		res.Tuning = append(res.Tuning, out)
	}
}

// judge asks the model about rows.
func (r *Recipe) judge(rd *reader, m *classifier.Model, rows []dataset.Row) (js []judged) {
	d := classifier.New(m)
	for i := range rows {
		row := &rows[i]
		j := judged{scores: d.Scores(rd.read(row.Text), audit.Output), ordinary: r.ordinary(row.Source)}
		if math.IsInf(float64(j.scores.First), 0) {
			continue // no sentences
		}
		var doubt [classifier.NumHeads]float32
		j.target, doubt = Target(row)
		for h := range j.target {
			if doubt[h] > 0 && !j.ordinary {
				j.target[h] = unknown
			}
		}
		j.benign = row.Skeleton != "" && row.Label.Bias != nil && *row.Label.Bias == 0
		js = append(js, j)
	}
	return js
}

// known are the rows whose answer for a head is known.
func known(js []judged, h classifier.Head) (out []judged) {
	for _, j := range js {
		if j.target[h] == j.target[h] {
			out = append(out, j)
		}
	}
	return out
}

// join gives what the first score should count in a head's logit: the weight with which the best probability that
// platt finds has the least loss. The network has learnt without the first score, which knows the texts that both
// have learnt from too well: learnt together, the network would leave nearly all to it.
func join(js []judged, h classifier.Head) float32 {
	sums := slices.Clone(js)
	return float32(weigh(sums, h, 2, 0.125, func(i int, weight float64) float32 {
		return js[i].scores.Logits[h] + float32(float32(weight)*js[i].scores.First)
	}))
}

// weigh gives the weight, of 0, step, … most, with which the logits that sum gives have the best probability, that with the least loss. It writes
// them to js.
func weigh(js []judged, h classifier.Head, most, step float64, sum func(i int, weight float64) float32) (best float64) {
	least := math.Inf(1)
	for weight := 0.0; weight <= most; weight += step {
		for i := range js {
			js[i].scores.Logits[h] = sum(i, weight)
		}
		if _, _, loss := platt(js, h); loss < least {
			best, least = weight, loss
		}
	}
	return best
}

// platt fits probability = σ(a·logit + b) to Platt's smoothed targets, by Newton's method with steps that are
// halved until they help (Lin, Lin and Weng 2007). least is the sum of the rows' cross-entropies.
func platt(js []judged, h classifier.Head) (a, b, least float64) {
	yes, no := 0.0, 0.0
	for _, j := range js {
		if j.target[h] >= 0.5 {
			yes++
		} else {
			no++
		}
	}
	if yes == 0 || no == 0 {
		return 1, 0, 0
	}
	high, low := (yes+1)/(yes+2), 1/(no+2)
	want := func(j *judged) float64 {
		if j.target[h] >= 0.5 {
			return high
		}
		return low
	}
	loss := func(a, b float64) (sum float64) {
		for i := range js {
			z := a*float64(js[i].scores.Logits[h]) + b
			sum += max(z, 0) - z*want(&js[i]) + math.Log1p(math.Exp(-math.Abs(z)))
		}
		return sum
	}
	a, b = 0, math.Log((yes+1)/(no+1))
	const ridge = 1e-9
	now := loss(a, b)
	for range 100 {
		var ga, gb, haa, hab, hbb float64
		for i := range js {
			z := float64(js[i].scores.Logits[h])
			p := 1 / (1 + math.Exp(-(a*z + b)))
			d, w := p-want(&js[i]), p*(1-p)
			ga, gb = ga+d*z, gb+d
			haa, hab, hbb = haa+w*z*z, hab+w*z, hbb+w
		}
		haa, hbb = haa+ridge, hbb+ridge
		det := haa*hbb - hab*hab
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		step := 1.0
		next := loss(a-da, b-db)
		for ; next >= now && step > 1e-10; next = loss(a-step*da, b-step*db) {
			step /= 2
		}
		if next >= now || now-next < 1e-9*now {
			break
		}
		a, b, now = a-step*da, b-step*db, next
	}
	if !(a > 0.01) {
		return 1, 0, loss(1, 0) // the head says nothing; its threshold will be out of reach
	}
	return a, b, now
}

// threshold is the lowest that keeps the flagged share of ordinary text, known and fresh, and of harmless hard cases within
// bounds. Texts below the gate are never flagged.
func (r *Recipe) threshold(js, fresh []judged, h classifier.Head, m *classifier.Model, out *Outcome) (threshold, fpr float64) {
	t := &m.Meta.Heads[h]
	var right []float64 // probabilities of true texts that the gate lets through
	var ordinary, benign []float64
	var all, logits []metric.Scored // logits do not tie where probabilities are all but 1
	passed := func(j *judged, p float64) float64 {
		if float64(j.scores.First) < m.Meta.Gate {
			return 0
		}
		return p
	}
	var news []float64
	for _, j := range fresh {
		if j.target[h] >= 0.5 {
			continue
		}
		news = append(news, passed(&j, t.Probability(j.scores.Logits[h])))
	}
	for _, j := range js {
		p := t.Probability(j.scores.Logits[h])
		all = append(all, metric.Scored{Score: p, True: j.target[h] >= 0.5})
		logits = append(logits, metric.Scored{Score: float64(j.scores.Logits[h]), True: j.target[h] >= 0.5})
		p = passed(&j, p)
		switch {
		case j.target[h] >= 0.5:
			out.True++
			right = append(right, p)
			continue
		case j.ordinary:
			ordinary = append(ordinary, p)
		case j.benign:
			benign = append(benign, p)
		}
		out.Harmless++
	}
	out.Ordinary, out.Benign, out.AUROC, out.ECE = len(ordinary), len(benign), metric.AUROC(logits), metric.ECE(all)
	if slices.Contains(r.Silent, h.String()) || out.True < 5 || len(ordinary) == 0 || !(out.AUROC > 0.6) {
		out.WithoutThreshold = true
		return 1, 0
	}
	threshold = thousandths(max(above(ordinary, r.OrdinaryFPR), above(benign, r.BenignFPR), above(news, r.FreshFPR), 0.5))
	out.OrdinaryFlagged, out.BenignFlagged = exceeding(ordinary, threshold), exceeding(benign, threshold)
	out.Fresh, out.FreshFlagged = len(news), exceeding(news, threshold)
	out.Recall = float64(exceeding(right, threshold)) / float64(out.True)
	return threshold, float64(out.OrdinaryFlagged) / float64(len(ordinary))
}

// thousandths rounds a threshold up, so that thresholds read well and do not hang on one text.
func thousandths(threshold float64) float64 { return min(math.Ceil(1000*threshold)/1000, 0.999) }

// exceeding counts the scores above a threshold.
func exceeding(ps []float64, threshold float64) (n int) {
	for _, p := range ps {
		if p > threshold {
			n++
		}
	}
	return n
}

// above is the lowest value that at most a share of the scores exceed.
func above(ps []float64, share float64) float64 {
	if len(ps) == 0 {
		return 0
	}
	ps = slices.Clone(ps)
	slices.SortFunc(ps, func(a, b float64) int { return cmp.Compare(b, a) })
	return ps[int(share*float64(len(ps)))]
}

// gate is the first score that one ordinary text in a hundred reaches, and the share that does: the others cost no
// look of the network.
func gate(js []judged) (score, passed float64) {
	const share = 0.01
	var firsts []float64
	for _, j := range js {
		if j.ordinary {
			firsts = append(firsts, float64(j.scores.First))
		}
	}
	if len(firsts) == 0 {
		return 0, 0
	}
	score = math.Ceil(100*above(firsts, share)) / 100
	n := 0
	for _, f := range firsts {
		if f >= score {
			n++
		}
	}
	return score, float64(n) / float64(len(firsts))
}
