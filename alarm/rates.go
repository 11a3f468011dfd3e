package alarm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// rates decides on the rate of every cell: any bias of a domain first, for it mutes its kinds.
func (e *evaluation) rates() {
	now := e.judge(e.to)
	if e.memo != nil {
		defer func(last memo) { *e.memo = last }(memo{e.to, len(e.Transitions), now})
	}
	var before [][]judged // the evaluations that must agree, newest first
	row := 1
	for i := range now {
		row = max(row, int(now[i].policy.Ticket.InARow))
	}
	for i := 1; i < row; i++ {
		if m := e.memo; m != nil && m.hour == e.to-i && m.decided == len(e.Transitions) {
			before = append(before, m.list)
		} else {
			before = append(before, e.judge(e.to-i))
		}
	}
	for i := range now { // any bias sorts first in its domain
		j := &now[i]
		e.seen[j.Cell] = true
		if e.renewed(j) {
			continue
		}
		if j.learning {
			e.out.Figures.Learning++
			continue
		}
		e.out.Figures.Cells++
		at := Cell{j.Tenant, j.Domain, ""}
		if j.warns && !e.blind[at] {
			e.out.Warnings = append(e.out.Warnings, e.warning(j))
		}
		e.rate(j, e.persists(j, before))
		b, ok := e.newest[place{j.Cell, j.policy.Name, groupRate}]
		e.loud[j.Cell] = ok && b.State == audit.BreachOpen
	}
}

// renewed resolves a breach of an earlier version of the cell's rules: its baseline says nothing of the
// rates of this one.
func (e *evaluation) renewed(j *judged) bool {
	at := place{j.Cell, j.policy.Name, groupRate}
	b, known := e.newest[at]
	if !known || b.State == audit.BreachResolved || b.RuleSet == "" || e.history.version(b.RuleSet, j.Kind) == e.history.version(j.ruleSet, j.Kind) {
		return false
	}
	next := e.next(&b, true)
	next.State, next.Reason = audit.BreachResolved, ReasonRulesChanged
	e.fill(&next, j)
	e.want(at, next)
	return true
}

// persists tells whether a cell departs from its baseline: by the test in as many evaluations in a row
// as its policy wants, or by the sum.
func (e *evaluation) persists(j *judged, before [][]judged) bool {
	if j.summed {
		return true
	}
	if !j.fires {
		return false
	}
	for i := range int(j.policy.Ticket.InARow) - 1 {
		at, found := slices.BinarySearchFunc(before[i], j.Cell, func(b judged, c Cell) int {
			return cmp.Or(strings.Compare(b.Tenant, c.Tenant), strings.Compare(string(b.Domain), string(c.Domain)), strings.Compare(b.Kind, c.Kind))
		})
		if !found || !before[i][at].fires || before[i][at].learning {
			return false
		}
	}
	return true
}

// calm tells whether a kind of bias belongs to a breach of any bias that was resolved so lately that it may not
// return: its kinds may not in its place.
func (e *evaluation) calm(j *judged) bool {
	if j.Kind == "" || !isBias(j.Kind) {
		return false
	}
	of := Cell{j.Tenant, j.Domain, ""}
	state, lately := e.answered(of, e.policies.For(of).Cooldown)
	return lately && state == audit.BreachResolved
}

// rate decides on one cell.
func (e *evaluation) rate(j *judged, departs bool) {
	at := place{j.Cell, j.policy.Name, groupRate}
	b, known := e.newest[at]
	muted := e.blind[Cell{j.Tenant, j.Domain, ""}] || j.Kind != "" && isBias(j.Kind) && e.loud[Cell{j.Tenant, j.Domain, ""}]
	next := e.next(&b, known)
	switch {
	case known && b.State == audit.BreachOpen:
		if e.blind[Cell{j.Tenant, j.Domain, ""}] {
			return
		}
		if near, quiet := e.near(j); near && e.to-e.after(b.Opened) >= hours(j.policy.Resolve.For) {
			next.State, next.Reason = audit.BreachResolved, ReasonNearBaseline
			if quiet {
				next.Reason = ReasonNoTraffic
			}
		} else if departs && !muted && e.since(&b) >= j.policy.Repeat {
			next.State, next.Reason = audit.BreachOpen, ReasonRepeated
		} else {
			return
		}
	case known && b.State == audit.BreachMitigated && !departs:
		near, _ := e.near(j)
		if !near || e.since(&b) < j.policy.Resolve.For || muted {
			return
		}
		next.State, next.Reason = audit.BreachResolved, ReasonNearBaseline
	case !departs:
		return
	case known && b.State == audit.BreachResolved && e.since(&b) < j.policy.Cooldown:
		return
	case muted || e.calm(j):
		e.out.Figures.Muted++
		return
	case known && (b.State == audit.BreachMitigated || e.since(&b) <= j.policy.Reopen):
		next.State, next.Reason, next.Opened = audit.BreachOpen, ReasonReturned, e.At
	default:
		next = e.first(at, &b)
		next.Tier = audit.TierRate
	}
	e.fill(&next, j)
	e.want(at, next)
}
