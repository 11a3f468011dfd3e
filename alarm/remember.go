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
	for at, b := range e.newest {
		if b.Tier == audit.TierRate && b.State != audit.BreachOpen {
			p := e.pastOf(at.Cell)
			p.since = max(p.since, e.after(b.Changed))
		}
	}
	for _, p := range e.past {
		p.windows = merged(p.windows)
	}
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
	p := e.pastOf(c)
	if last.State == audit.BreachResolved && last.Reason == ReasonAccepted {
		from := e.history.hour(last.From)
		if len(windows) > 0 { // of long ago only the last transition is read
			from = windows[len(windows)-1].from
		}
		p.fresh, windows = max(p.fresh, from), nil
	}
	if last.State != audit.BreachResolved {
		p.held = last.Baseline
	}
	p.windows = append(p.windows, windows...)
	if c.Kind != "" {
		return
	}
	if d := e.history.domains[[2]string{c.Tenant, string(c.Domain)}]; d != nil {
		for _, name := range d.names {
			if name != "" && isBias(name) {
				under := e.pastOf(Cell{c.Tenant, c.Domain, name})
				under.windows = append(under.windows, windows...)
			}
		}
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
