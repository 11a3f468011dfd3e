package alarm

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/alarm/stats"
	"github.com/evenhand/evenhand/audit"
)

// Input is all that an evaluation depends on.
type Input struct {
	History  *History
	Policies *Policies
	// At is the end of the newest complete hour.
	At time.Time
	// Transitions are what was decided so far: of every breach the newest, and of those that were open
	// within the history all. In any order.
	Transitions []audit.Breach
	Critical    []Critical
	Mitigations []Mitigated

	memo *memo // of a replay, else nil
}

// memo keeps what was computed for the hour before, for as long as nothing was decided.
type memo struct {
	hour, decided int
	list          []judged
}

// Result is what an evaluation wants. Transitions are in order of tenant, domain, kind and group; their
// Changed is for the log to give.
type Result struct {
	Transitions []audit.Breach
	Warnings    []Warning
	Figures     Figures
}

// Figures count what an evaluation saw.
type Figures struct {
	Cells    int // that were compared with a baseline
	Learning int // whose baseline is too small yet
	Warnings int
	Muted    int // alarms that an alarm of the domain, missing coverage or an import kept back
	Blind    int // domains with too little coverage
	Opened   int
	Repeated int
	Resolved int
	Open     int // after this evaluation
}

// Warning is a cell of tier FAST: above its usual rate, not yet beyond doubt.
type Warning struct {
	Cell
	Policy       string
	From, To     time.Time
	N, K         uint64
	Lower, Upper float64 // 95 % Wilson interval
	Baseline     float64
	BaselineN    uint64
	RuleSet      string
}

// place is where breaches follow each other: generation by generation.
type place struct {
	Cell
	policy, group string
}

// evaluation is one run of Evaluate.
type evaluation struct {
	Input
	history  *History
	policies *Policies
	to       int // hour index of At
	newest   map[place]audit.Breach
	past     map[Cell]*past
	blind    map[Cell]bool // by tenant and domain
	loud     map[Cell]bool // whose rate has an open breach
	seen     map[Cell]bool // of which there are counts
	size     int
	out      Result
}

// Evaluate says which transitions are wanted at an hour. The order of its input changes nothing.
func Evaluate(in Input) Result {
	e := &evaluation{Input: in, history: in.History, policies: in.Policies, blind: map[Cell]bool{}, loud: map[Cell]bool{}, seen: map[Cell]bool{}}
	e.to = e.history.hour(in.At)
	e.remember()
	e.coverage()
	e.rates()
	e.critical()
	e.mitigations()
	e.orphans()
	slices.SortStableFunc(e.out.Transitions, func(a, b audit.Breach) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(string(a.Domain), string(b.Domain)),
			strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group), strings.Compare(a.Policy, b.Policy))
	})
	for i := range e.out.Transitions {
		e.count(&e.out.Transitions[i])
	}
	for _, b := range e.newest {
		if b.State == audit.BreachOpen {
			e.out.Figures.Open++
		}
	}
	e.out.Figures.Warnings = len(e.out.Warnings)
	return e.out
}

func (e *evaluation) count(b *audit.Breach) {
	switch {
	case b.State == audit.BreachResolved:
		e.out.Figures.Resolved++
	case b.Reason == ReasonRepeated:
		e.out.Figures.Repeated++
	default:
		e.out.Figures.Opened++
	}
}

// next is a breach's next transition: what it was, one number on.
func (e *evaluation) next(b *audit.Breach, known bool) audit.Breach {
	n := *b
	if known {
		n.Seq++
	}
	n.Changed, n.TopRules, n.Events, n.Split, n.By, n.Confirmed = time.Time{}, nil, nil, nil, "", time.Time{}
	return n
}

// first is the first transition of a new generation.
func (e *evaluation) first(at place, before *audit.Breach) audit.Breach {
	gen := before.Generation + 1
	return audit.Breach{
		ID: BreachID(at.policy, at.Cell, at.group, gen), Seq: 1, Tenant: at.Tenant, Policy: at.policy, Domain: at.Domain, Kind: at.Kind,
		Group: at.group, Generation: gen, State: audit.BreachOpen, Reason: ReasonBreached, Opened: e.At,
	}
}

// fill sets what was counted. A resolution shows the last window, and keeps the baseline it was opened
// with company by the newest one.
func (e *evaluation) fill(b *audit.Breach, j *judged) {
	b.From, b.To, b.N, b.K = e.history.time(j.from), e.At, j.n, j.k
	b.Rate, b.Baseline, b.BaselineN, b.RuleSet = j.rate(), j.baseline, j.baseN, j.ruleSet
	b.Lower, b.Upper = stats.Wilson(j.k, j.n, stats.Z95)
	b.P = stats.Tail(j.k, j.n, j.baseline)
}

// want takes a transition in and lets the rest of the evaluation see it.
func (e *evaluation) want(at place, b audit.Breach) {
	e.out.Transitions = append(e.out.Transitions, b)
	e.newest[at] = b
}

func (e *evaluation) warning(j *judged) Warning {
	lower, upper := stats.Wilson(j.k, j.n, stats.Z95)
	return Warning{Cell: j.Cell, Policy: j.policy.Name, From: e.history.time(j.from), To: e.At, N: j.n, K: j.k, Lower: lower, Upper: upper,
		Baseline: j.baseline, BaselineN: j.baseN, RuleSet: j.ruleSet}
}

// near tells whether the rate was near its baseline at every hour of the time that a breach must be
// quiet: the upper 95 % bound below so many times the baseline. In a window so small that the bound
// could not pass at the baseline itself, the rate must. quiet says that nothing was analysed at all.
func (e *evaluation) near(j *judged) (near, quiet bool) {
	p, since := j.policy, 0
	if past := e.past[j.Cell]; past != nil {
		since = past.since
	}
	limit := p.Resolve.Factor * j.baseline
	for to := j.to; to > j.to-hours(p.Resolve.For); to-- {
		n, k := j.sums.in(max(to-hours(p.Ticket.Window), since), to)
		if n < p.Ticket.MinN && k < p.Ticket.MinK {
			continue
		}
		_, upper := stats.Wilson(k, n, stats.Z95)
		_, possible := stats.Wilson(uint64(j.baseline*float64(n)), n, stats.Z95)
		if upper >= limit && (possible < limit || float64(k) >= limit*float64(n)) {
			return false, false
		}
	}
	n, _ := j.sums.in(j.to-hours(p.Resolve.For), j.to)
	return true, n == 0
}

// orphans resolves breaches whose policy holds no more for their cell, and those of cells of which
// nothing is left to be counted.
func (e *evaluation) orphans() {
	for at, b := range e.newest {
		if b.State == audit.BreachResolved {
			continue
		}
		if p := e.policies.For(at.Cell); p.Name != at.policy || p.Off {
			next := e.next(&b, true)
			next.State, next.Reason = audit.BreachResolved, ReasonPolicyChanged
			e.want(at, next)
		} else if (at.group == groupRate || at.group == groupBlind) && !e.seen[at.Cell] && e.since(&b) > p.Reopen {
			next := e.next(&b, true)
			next.State, next.Reason = audit.BreachResolved, ReasonNoTraffic
			e.want(at, next)
		}
	}
}
