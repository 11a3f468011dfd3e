package alarm

import (
	"slices"
	"time"

	"github.com/evenhand/evenhand/alarm/stats"
	"github.com/evenhand/evenhand/audit"
)

// Episode is a breach in a replay, from one opening to its end.
type Episode struct {
	Cell
	Policy     string           `json:"policy"`
	Tier       audit.BreachTier `json:"tier"`
	Generation uint32           `json:"generation"`
	Reason     string           `json:"reason"` // breached or returned
	Opened     time.Time        `json:"opened_at"`
	From       time.Time        `json:"window_from"`
	Resolved   *time.Time       `json:"resolved_at"` // nil: open at the end
	N          uint64           `json:"n"`
	K          uint64           `json:"k"`
	Rate       float64          `json:"rate"`
	Lower      float64          `json:"lower"`
	Upper      float64          `json:"upper"`
	Baseline   float64          `json:"baseline"`
	P          float64          `json:"p_value"`
	// DelayHours is from the first hour of the window, when the rate may have begun to rise, to the opening.
	DelayHours int `json:"delay_hours"`
}

// Naive is a rule of thumb beside which the policies are shown.
type Naive struct {
	Name  string
	fires func(n, k uint64, baseline float64) bool
}

// NaiveRules are rules that people write first; they look at the last day.
var NaiveRules = []Naive{
	{"rate > 2 x baseline", func(n, k uint64, p float64) bool { return float64(k) > 2*p*float64(n) }},
	{"the same, n >= 100 and k >= 3", func(n, k uint64, p float64) bool { return n >= 100 && k >= 3 && float64(k) > 2*p*float64(n) }},
	{"Wilson lower bound, one-sided 95 %, > baseline", func(n, k uint64, p float64) bool {
		lower, _ := stats.Wilson(k, n, 1.6448536269514722)
		return lower > p
	}},
	{"Wilson lower bound z = 3.09 > 1.25 x baseline, k >= 3", func(n, k uint64, p float64) bool {
		lower, _ := stats.Wilson(k, n, 3.09)
		return k >= 3 && lower > 1.25*p
	}},
}

// Alarm is one time that a naive rule began to fire.
type Alarm struct {
	Cell
	At time.Time
}

// Replayed is what the policies, and naive rules beside them, would have done.
type Replayed struct {
	Episodes []Episode
	Naive    [][]Alarm // by NaiveRules; an alarm begins where a cell fires and did not an hour before
	Warnings int       // hours of cells of tier FAST
	Muted    int
	Hours    int
	Cells    int // compared with a baseline, the most in an hour
	Learning int // whose past was too small for one, the most in an hour
}

// Replay evaluates every hour whose end lies in [from, to], as if each had been decided at once. It
// knows no critical findings and no mitigations. stop is asked between hours and ends it.
func Replay(h *History, p *Policies, from, to time.Time, naive bool, stop func() bool) Replayed {
	out := Replayed{Naive: make([][]Alarm, len(NaiveRules))}
	var done []audit.Breach
	var m memo
	last := map[audit.ID]int{} // of open episodes
	firing := make([]map[Cell]bool, len(NaiveRules))
	for at := from.UTC().Truncate(time.Hour); !at.After(to) && !stop(); at = at.Add(time.Hour) {
		r := Evaluate(Input{History: h, Policies: p, At: at, Transitions: done, memo: &m})
		out.Hours++
		out.Warnings += len(r.Warnings)
		out.Muted += r.Figures.Muted
		out.Cells, out.Learning = max(out.Cells, r.Figures.Cells), max(out.Learning, r.Figures.Learning)
		for _, b := range r.Transitions {
			b.Changed = at
			done = append(done, b)
			i, open := last[b.ID]
			switch {
			case b.State == audit.BreachResolved && open:
				out.Episodes[i].Resolved = &b.To
				delete(last, b.ID)
			case b.State == audit.BreachOpen && !open:
				last[b.ID] = len(out.Episodes)
				out.Episodes = append(out.Episodes, Episode{Cell: Cell{b.Tenant, b.Domain, b.Kind}, Policy: b.Policy, Tier: b.Tier, Generation: b.Generation, Reason: b.Reason,
					Opened: at, From: b.From, N: b.N, K: b.K, Rate: b.Rate, Lower: b.Lower, Upper: b.Upper, Baseline: b.Baseline, P: b.P, DelayHours: hours(at.Sub(b.From))})
			}
		}
		if naive {
			out.naive(h, p, at, done, firing)
		}
	}
	return out
}

// naive asks the naive rules, with the baselines of the policies.
func (out *Replayed) naive(h *History, p *Policies, at time.Time, done []audit.Breach, firing []map[Cell]bool) {
	e := &evaluation{Input: Input{Transitions: done}, history: h, policies: p}
	e.remember()
	now := make([]map[Cell]bool, len(NaiveRules))
	for i := range now {
		now[i] = map[Cell]bool{}
	}
	to := h.hour(at)
	for _, j := range e.judge(to) {
		if j.learning {
			continue
		}
		n, k := j.sums.in(to-hours(j.policy.Ticket.Window), to)
		for i, rule := range NaiveRules {
			if rule.fires(n, k, j.baseline) {
				if now[i][j.Cell] = true; !firing[i][j.Cell] {
					out.Naive[i] = append(out.Naive[i], Alarm{j.Cell, at})
				}
			}
		}
	}
	copy(firing, now)
}

// Median gives the middle of values, of an even number the lower; ok is false without any.
func Median(values []int) (m int, ok bool) {
	if len(values) == 0 {
		return 0, false
	}
	s := slices.Sorted(slices.Values(values))
	return s[(len(s)-1)/2], true
}
