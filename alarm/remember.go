package alarm

import (
	"cmp"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// remember finds where each breach stands and which hours of which cells they take out of baselines.
func (e *evaluation) remember() {
	e.newest, e.past = map[place]audit.Breach{}, map[Cell]*past{}
	list := slices.Clone(e.Transitions)
	slices.SortFunc(list, func(a, b audit.Breach) int {
		return cmp.Or(slices.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.Seq, b.Seq))
	})
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].ID == list[0].ID {
			n++
		}
		last := list[n-1]
		at := place{Cell{last.Tenant, last.Domain, last.Kind}, last.Policy, last.Group}
		if have, ok := e.newest[at]; !ok || have.Generation < last.Generation {
			e.newest[at] = last
		}
		if last.Tier == audit.TierRate {
			e.exclude(at.Cell, list[:n])
		}
		list = list[n:]
	}
	open := map[Cell]bool{}
	for at, b := range e.newest {
		if b.Tier == audit.TierRate && b.State == audit.BreachOpen {
			open[at.Cell] = true
		}
	}
	for at, b := range e.newest {
		if b.Tier != audit.TierRate || b.State == audit.BreachOpen {
			continue
		}
		e.cut(at.Cell, e.after(b.Changed))
		for _, c := range e.under(at.Cell) { // what was told of all bias was told of its kinds
			if answers(&b) && !open[c] {
				e.cut(c, e.after(b.Changed))
			}
		}
	}
	for _, p := range e.past {
		p.windows = merged(p.windows)
	}
}

// cut lets the windows of a cell begin at an hour or later.
func (e *evaluation) cut(c Cell, hour int) {
	p := e.pastOf(c)
	p.since = max(p.since, hour)
}

// under are the kinds of bias of the cell's domain when the cell is of any bias.
func (e *evaluation) under(c Cell) (kinds []Cell) {
	d := e.history.domains[[2]string{c.Tenant, string(c.Domain)}]
	if c.Kind != "" || d == nil {
		return nil
	}
	for _, name := range d.names {
		if name != "" && isBias(name) {
			kinds = append(kinds, Cell{c.Tenant, c.Domain, name})
		}
	}
	return kinds
}

// answers tells whether what ended a breach says something of its hours: a person, a closed ticket or the
// rate itself does, new rules and policies do not.
func answers(b *audit.Breach) bool {
	return b.State != audit.BreachOpen && b.Reason != ReasonRulesChanged && b.Reason != ReasonPolicyChanged
}

// answered tells whether the rate's breach of a cell was answered less than so long ago; in this evaluation, too.
func (e *evaluation) answered(c Cell, ago time.Duration) (audit.BreachState, bool) {
	b, known := e.newest[place{c, e.policies.For(c).Name, groupRate}]
	return b.State, known && answers(&b) && (b.Changed.IsZero() || e.since(&b) < ago)
}

func (e *evaluation) pastOf(c Cell) *past {
	p := e.past[c]
	if p == nil {
		p = &past{}
		e.past[c] = p
	}
	return p
}

// exclude takes the windows of one breach, whose transitions are in order, out of the baseline of its
// cell, and of the kinds of bias of its domain when it is of any bias.
func (e *evaluation) exclude(c Cell, transitions []audit.Breach) {
	const never = 1 << 40
	var windows []span
	open := -1
	for i := range transitions {
		b := &transitions[i]
		switch {
		case b.State == audit.BreachOpen && open < 0:
			windows = append(windows, span{e.history.hour(b.From), never})
			open = len(windows) - 1
		case b.State != audit.BreachOpen && open >= 0:
			windows[open].to = e.after(b.Changed)
			open = -1
		}
	}
	last := &transitions[len(transitions)-1]
	p, fresh := e.pastOf(c), 0
	if last.State == audit.BreachResolved && last.Reason == ReasonAccepted {
		fresh = e.history.hour(last.From)
		if len(windows) > 0 { // of long ago only the last transition is read
			fresh = windows[len(windows)-1].from
		}
		p.fresh, windows = max(p.fresh, fresh), nil
	}
	if last.State != audit.BreachResolved {
		p.held = last.Baseline
	}
	p.windows = append(p.windows, windows...)
	for _, kind := range e.under(c) {
		under := e.pastOf(kind)
		under.windows = append(under.windows, windows...)
		under.fresh = max(under.fresh, fresh)
	}
}

// merged gives the same hours as ranges that are in order and apart.
func merged(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	var out []span
	for _, s := range list {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
		} else if s.from < s.to {
			out = append(out, s)
		}
	}
	return out
}

// after is the index of the first hour that begins at t or later.
func (e *evaluation) after(t time.Time) int {
	i := e.history.hour(t)
	if e.history.time(i).Before(t) {
		i++
	}
	return i
}

// since is how long ago a transition was, in hours of evaluations.
func (e *evaluation) since(b *audit.Breach) time.Duration {
	return e.At.Sub(b.Changed.Truncate(time.Hour))
}
