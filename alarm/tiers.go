package alarm

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/alarm/stats"
	"github.com/evenhand/evenhand/audit"
)

// Critical is a CRITICAL finding in a response.
type Critical struct {
	Cell
	Event     audit.ID
	Rule      string
	Confirmed bool
	By        string    // who confirmed it
	At        time.Time // of the review that confirmed it, else of the analysis
	When      time.Time // of the event
}

// Mitigated counts how often a bias type came with a suggested mitigation in a domain, over the window
// of the cell's policy.
type Mitigated struct {
	Cell              // the kind is the bias type
	N          uint64 // analysed interactions of the domain that came within 48 hours
	K          uint64
	Late       uint64 // analysed ones that came later
	Mitigation string // the most frequent one
	Window     time.Duration
}

// coverage finds domains of which too little was analysed: their rates say nothing.
func (e *evaluation) coverage() {
	for _, d := range e.history.all() {
		c := Cell{d.tenant, d.name, ""}
		e.seen[c] = true
		p := e.policies.For(c)
		if p.Off {
			continue
		}
		from := max(0, e.to-hours(p.Ticket.Window))
		var received, analysed uint64
		for i := from; i < min(e.to, e.history.Hours); i++ {
			received, analysed = received+uint64(d.received[i]), analysed+uint64(d.analysed[i])
		}
		share := 1.0
		if received > 0 {
			share = float64(analysed) / float64(received)
		}
		blind := received >= p.Blind.MinN && share < p.Blind.Coverage
		if blind {
			e.blind[c] = true
			e.out.Figures.Blind++
		}
		at := place{c, p.Name, groupBlind}
		b, known := e.newest[at]
		next := e.next(&b, known)
		switch {
		case blind && known && b.State == audit.BreachOpen && e.since(&b) >= p.Repeat:
			next.State, next.Reason = audit.BreachOpen, ReasonRepeated
		case blind && known && e.rests(&b, p.Ticket.Window):
			continue
		case blind && known && (b.State == audit.BreachMitigated || b.State == audit.BreachResolved && e.since(&b) <= p.Reopen):
			next.State, next.Reason, next.Opened = audit.BreachOpen, ReasonReturned, e.At
		case blind && (!known || b.State == audit.BreachResolved):
			next = e.first(at, &b)
			next.Tier = audit.TierBlind
		case !blind && known && b.State != audit.BreachResolved && (received < p.Blind.MinN || share >= p.Blind.Resolve):
			next.State, next.Reason = audit.BreachResolved, ReasonNearBaseline
			if received == 0 {
				next.Reason = ReasonNoTraffic
			}
		default:
			continue
		}
		next.From, next.To, next.N, next.K, next.Rate, next.Baseline = e.history.time(from), e.At, received, received-min(analysed, received), 1-share, 1-p.Blind.Coverage
		next.Lower, next.Upper = stats.Wilson(next.K, next.N, stats.Z95)
		e.want(at, next)
	}
}

// rests tells whether a person ended a breach, or closed its ticket, so lately that its window still holds hours from before.
func (e *evaluation) rests(b *audit.Breach, window time.Duration) bool {
	ended := b.State == audit.BreachMitigated || b.State == audit.BreachResolved && slices.Contains(byPeople, b.Reason)
	return ended && e.since(b) < window
}

// sameNews is how long before the last news a finding may have been found and still be news: what is
// read and what is decided lie apart.
const sameNews = 15 * time.Minute

// critical opens breaches for findings that need no statistics. Only people end them: a ticket that
// was closed is watched for a week.
func (e *evaluation) critical() {
	found := map[place][]Critical{}
	for _, c := range e.Critical {
		if p := e.policies.For(c.Cell); !p.Off && (c.Confirmed && p.Critical.Confirmed || p.Critical.Unconfirmed) {
			at := place{c.Cell, p.Name, groupCritical}
			found[at] = append(found[at], c)
		}
	}
	for at, list := range found {
		e.criticalAt(at, list)
	}
	for at, b := range e.newest {
		if at.group == groupCritical && b.State == audit.BreachMitigated && e.since(&b) > e.policies.For(at.Cell).Reopen {
			next := e.next(&b, true)
			next.State, next.Reason = audit.BreachResolved, ReasonQuiet
			e.want(at, next)
		}
	}
}

func (e *evaluation) criticalAt(at place, list []Critical) {
	p := e.policies.For(at.Cell)
	b, known := e.newest[at]
	var news []Critical
	for _, c := range list {
		if !known || c.At.After(b.Changed.Add(-sameNews)) && !slices.Contains(b.Events, c.Event) {
			news = append(news, c)
		}
	}
	if len(news) == 0 {
		return
	}
	slices.SortFunc(news, func(a, b Critical) int {
		return cmp.Or(b.At.Compare(a.At), slices.Compare(a.Event[:], b.Event[:]), strings.Compare(a.Rule, b.Rule))
	})
	next := e.next(&b, known)
	switch {
	case known && b.State == audit.BreachOpen && e.since(&b) < p.Repeat:
		return
	case known && b.State == audit.BreachOpen:
		next.State, next.Reason = audit.BreachOpen, ReasonRepeated
	case known && (b.State == audit.BreachMitigated || e.since(&b) <= p.Reopen):
		next.State, next.Reason, next.Opened = audit.BreachOpen, ReasonReturned, e.At
	default:
		next = e.first(at, &b)
		next.Tier = audit.TierPolicy
	}
	next.Severity, next.From, next.To = audit.Critical, news[0].When, news[0].When
	for _, c := range news { // links lead to the interactions, whenever they were reviewed; the end is outside
		if c.When.Before(next.From) {
			next.From = c.When
		}
		if c.When.After(next.To) {
			next.To = c.When
		}
	}
	if news[0].Confirmed { // the newest
		next.By, next.Confirmed = news[0].By, news[0].At
	}
	next.From, next.To = next.From.Truncate(time.Second), next.To.Truncate(time.Second).Add(time.Second)
	next.N, next.K, next.Rate, next.TopRules = 0, 0, 0, nil
	rules := map[string]uint64{}
	for _, c := range news {
		if !slices.Contains(next.Events, c.Event) {
			next.K++
			if len(next.Events) < maxEvents {
				next.Events = append(next.Events, c.Event)
			}
		}
		rules[c.Rule]++
	}
	for _, r := range sortedKeys(rules) {
		next.TopRules = append(next.TopRules, audit.RuleCount{Rule: r, Interactions: rules[r]})
	}
	slices.SortStableFunc(next.TopRules, func(a, b audit.RuleCount) int { return cmp.Compare(b.Interactions, a.Interactions) })
	next.TopRules = next.TopRules[:min(len(next.TopRules), maxRules)]
	e.want(at, next)
}

// mitigations opens breaches for bias types that ask for mitigation often in a domain: tasks on their
// cause (seed 003, FR-BIAS-4.6.4).
func (e *evaluation) mitigations() {
	seen := map[place]bool{}
	for _, m := range e.Mitigations {
		p := e.policies.For(m.Cell)
		if p.Off {
			continue
		}
		at := place{m.Cell, p.Name, groupMitigation}
		seen[at] = true
		frequent := m.K >= p.Mitigation.Count && float64(m.K) >= p.Mitigation.Share*float64(m.N)
		e.mitigation(at, m, frequent)
	}
	for at, b := range e.newest { // nothing of it in the window any more
		if at.group == groupMitigation && !seen[at] && b.State != audit.BreachResolved && e.Mitigations != nil {
			e.mitigation(at, Mitigated{Cell: at.Cell, Window: e.policies.For(at.Cell).Mitigation.Window}, false)
		}
	}
}

// told tells whether a rate's breach of the kind or of its domain was answered less than so long ago.
func (e *evaluation) told(c Cell, ago time.Duration) bool {
	_, kind := e.answered(c, ago)
	_, domain := e.answered(Cell{c.Tenant, c.Domain, ""}, ago)
	return kind || domain
}

func (e *evaluation) mitigation(at place, m Mitigated, frequent bool) {
	p := e.policies.For(at.Cell)
	b, known := e.newest[at]
	next := e.next(&b, known)
	switch {
	case !frequent && (!known || b.State == audit.BreachResolved):
		return
	case !frequent:
		next.State, next.Reason = audit.BreachResolved, ReasonNearBaseline
	case known && b.State == audit.BreachOpen && e.since(&b) < p.Repeat:
		return
	case known && b.State == audit.BreachOpen:
		next.State, next.Reason = audit.BreachOpen, ReasonRepeated
	case known && e.rests(&b, p.Mitigation.Window):
		return
	case known && b.State == audit.BreachResolved && e.since(&b) < p.Cooldown:
		return
	case e.loud[Cell{at.Tenant, at.Domain, ""}] || e.loud[at.Cell]:
		e.out.Figures.Muted++ // the rate's ticket asks for the same
		return
	case e.told(at.Cell, p.Mitigation.Window):
		e.out.Figures.Muted++ // the window still holds what the rate's breach told
		return
	case m.Late > m.N:
		e.out.Figures.Muted++ // the window is an import's: what of it came in time is its newest edge
		return
	case known && (b.State == audit.BreachMitigated || e.since(&b) <= p.Reopen):
		next.State, next.Reason, next.Opened = audit.BreachOpen, ReasonReturned, e.At
	default:
		next = e.first(at, &b)
		next.Tier = audit.TierMitigation
	}
	next.From, next.To, next.N, next.K, next.Mitigation = e.At.Add(-m.Window), e.At, m.N, m.K, cmp.Or(m.Mitigation, next.Mitigation)
	next.Rate, next.Baseline = 0, p.Mitigation.Share
	if m.N > 0 {
		next.Rate = float64(m.K) / float64(m.N)
	}
	next.Lower, next.Upper = stats.Wilson(m.K, m.N, stats.Z95)
	e.want(at, next)
}

// Limits of what a breach shows.
const (
	maxEvents = 10
	maxRules  = 5
)
