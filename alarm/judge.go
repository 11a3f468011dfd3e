package alarm

import (
	"github.com/evenhand/evenhand/alarm/stats"
)

// judged is a cell at an hour. Indexes are of hours in the history.
type judged struct {
	Cell
	policy  *Policy
	ruleSet string
	sums    *sums

	from, to int // of the window that says more; a breach that ended may cut it
	n, k     uint64
	baseN    uint64 // of its own past
	baseK    uint64
	baseline float64
	p        float64 // of the better of two windows, doubled
	adjusted float64
	fires    bool // binomial
	summed   bool // cumulative sum
	warns    bool
	learning bool
	tested   bool // a window held enough for the binomial test: one of those that the correction is over
}

// rate is the share of the window.
func (j *judged) rate() float64 {
	if j.n == 0 {
		return 0
	}
	return float64(j.k) / float64(j.n)
}

// neighbours are the baselines of one kind in one domain over all tenants.
type neighbours struct {
	cells   uint64
	n, k    uint64
	squares float64 // of n
	spread  float64 // of k*k/n
}

func (s *neighbours) add(n, k uint64) {
	if n > 0 {
		s.cells, s.n, s.k = s.cells+1, s.n+n, s.k+k
		s.squares += float64(n) * float64(n)
		s.spread += float64(k) * float64(k) / float64(n)
	}
}

func (s *neighbours) rate() float64 {
	if s.n == 0 {
		return 0
	}
	return float64(s.k) / float64(s.n)
}

// enough is how many cells it takes to tell how much they differ.
const enough = 5

// weight is how many interactions at the neighbours' rate a cell's own are joined with: the fewer, the
// more the cells differ, by the moments of the beta-binomial distribution (Kleinman 1973). Where too few
// cells tell, the least.
func (s *neighbours) weight(b *BaselinePolicy) float64 {
	r := s.rate()
	if s.cells < enough || r == 0 || r == 1 {
		return b.Weight
	}
	n, free := float64(s.n), float64(s.cells-1)
	chi := (s.spread - n*r*r) / (r * (1 - r)) // free + what the cells' own rates add
	rho := (chi - free) / (n - s.squares/n - free)
	if !(rho > 0) {
		return max(b.Weight, b.MaxWeight)
	}
	return min(max(b.Weight, 1/rho-1), max(b.Weight, b.MaxWeight))
}

// span is a range of hours of a cell that its baseline must not take in.
type span struct{ from, to int }

// past is what earlier breaches of a cell say about its hours.
type past struct {
	windows []span  // of breaches: not part of the baseline
	since   int     // windows begin here or later: what was before is told and done
	fresh   int     // the baseline begins here or later: a person accepted the rate since
	held    float64 // baseline when the breach that is open began, 0 without one
}

// judge looks at all cells at the end of hour to-1, in order of tenant, domain and kind.
func (e *evaluation) judge(to int) []judged {
	list := make([]judged, 0, e.size)
	near := map[[2]string]*neighbours{}
	for _, d := range e.history.all() {
		set, ok := d.current(to)
		if !ok {
			continue
		}
		for _, name := range d.names {
			c := Cell{d.tenant, d.name, name}
			p := e.policies.For(c)
			if p.Off {
				continue
			}
			j := judged{Cell: c, policy: p, ruleSet: set, to: to, p: 1, adjusted: 1}
			j.sums = e.history.sums(d, name, set)
			j.baseN, j.baseK = e.baseline(&j)
			key := [2]string{string(d.name), name}
			if near[key] == nil {
				near[key] = &neighbours{}
			}
			near[key].add(j.baseN, j.baseK)
			list = append(list, j)
		}
	}
	e.size = len(list)
	for i := range list {
		j := &list[i]
		e.test(j, near[[2]string{string(j.Domain), j.Kind}])
	}
	correct(list)
	return list
}

// correct adjusts the chances of error for their number: of the cells that were tested. One that is learning, or
// that has too little traffic for a test whatever is found, cannot be false, and must not keep another's breach back.
func correct(list []judged) {
	var tested []*judged
	var ps []float64
	for i := range list {
		if j := &list[i]; j.tested {
			tested, ps = append(tested, j), append(ps, j.p)
		}
	}
	for i, a := range stats.Adjust(ps) {
		j := tested[i]
		j.adjusted = a
		j.fires = a <= j.policy.Ticket.Q
	}
}

// baseline counts the cell's own past: with a long gap, so that a slow rise does not become its own
// baseline before it is seen, where that leaves at least half of what a short gap does.
func (e *evaluation) baseline(j *judged) (n, k uint64) {
	b := &j.policy.Baseline
	n, k = e.before(j, hours(b.Gap))
	if b.LongGap > b.Gap {
		if ln, lk := e.before(j, hours(b.LongGap)); ln >= b.MinN && 2*ln >= n {
			return ln, lk
		}
	}
	return n, k
}

// before counts the days that end so many hours ago, without windows of breaches.
func (e *evaluation) before(j *judged, gap int) (n, k uint64) {
	past := e.past[j.Cell]
	to := j.to - gap
	from := to - int(j.policy.Baseline.Days)*24
	if past == nil {
		return j.sums.all(from, to)
	}
	from = max(from, past.fresh)
	n, k = j.sums.all(from, to)
	for _, w := range past.windows { // sorted and apart
		x, y := j.sums.all(max(from, w.from), min(to, w.to))
		n, k = n-x, k-min(k, y)
	}
	return n, min(n, k)
}

// test computes what one cell says by itself.
func (e *evaluation) test(j *judged, near *neighbours) {
	p, past := j.policy, e.past[j.Cell]
	var since int
	var held float64
	if past != nil {
		since, held = past.since, past.held
	}
	j.baseline = stats.Shrunk(j.baseK, j.baseN, near.rate(), near.weight(&p.Baseline), p.Baseline.Floor)
	if j.baseN < p.Baseline.MinN {
		if held == 0 {
			j.learning = true
		} else {
			j.baseline = held // of a breach that lasts longer than the baseline reaches
		}
	}
	j.from = max(j.to-hours(p.Ticket.Window), since)
	j.n, j.k = j.sums.in(j.from, j.to)
	if j.learning || j.baseline >= 1 {
		return
	}
	lower, _ := stats.Wilson(j.k, j.n, p.Fast.Z)
	j.warns = j.k >= p.Fast.MinK && lower > p.Fast.Factor*j.baseline
	share := p.Ticket.LongShare
	if p.Ticket.LongWindow == 0 {
		share = 0
	}
	j.p, j.tested = min(1, p.tail(j.n, j.k, j.baseline)/(1-share)), j.n >= p.Ticket.MinN
	if share > 0 {
		from := max(j.to-hours(p.Ticket.LongWindow), since)
		n, k := j.sums.in(from, j.to)
		j.tested = j.tested || n >= p.Ticket.MinN
		if long := min(1, p.tail(n, k, j.baseline)/share); long < j.p {
			j.p, j.from, j.n, j.k = long, from, n, k
		}
	}
	if p.Cusum.H > 0 {
		j.summed = p.cusum(j, since)
	}
}

// tail is the p-value of k in n, 1 where that is too few or not above the usual.
func (p *Policy) tail(n, k uint64, baseline float64) float64 {
	if t := &p.Ticket; k < t.MinK || n < t.MinN || float64(k) < t.MinRatio*baseline*float64(n) {
		return 1
	}
	return stats.Tail(k, n, baseline)
}

// cusum tells whether the cumulative sum over the newest hours stands above its limit.
func (p *Policy) cusum(j *judged, since int) bool {
	p1 := min(p.Cusum.Ratio*j.baseline, (1+j.baseline)/2)
	c, s, k := stats.NewCusum(j.baseline, p1), 0.0, uint64(0)
	for i := max(j.to-hours(p.Cusum.LookBack), since, 0); i < j.to; i++ {
		hn, hk := j.sums.in(i, i+1)
		if s = c.Step(s, hk, hn); s == 0 {
			k = 0
		} else {
			k += hk
		}
	}
	return s > p.Cusum.H && k >= p.Ticket.MinK
}
