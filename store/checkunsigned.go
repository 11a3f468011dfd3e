package store

import (
	"slices"
	"sort"
	"time"
)

// upgrade is how long after the first marker with seals, or with a signature, others may come without: programs of two
// versions run side by side while a cluster is upgraded.
const upgrade = 24 * time.Hour

// proof tells which markers can be from before there were signatures, or seals. When they were made they say themselves, and
// who can write to the store can make them say anything; the order of the log says more. Within a partition, what stands
// after a marker that has a signature was written after it.
type proof struct {
	since time.Time // when the first one with a signature, or seals, was made
	at    map[logKey][]proved
}

// proved is a marker that has what others lack.
type proved struct {
	lo   int64
	at   time.Time
	late time.Time // the earliest of those after the upgrade up to here; zero: none
	next time.Time // the earliest from here on
}

// unproved is a marker that lacks it, and when it says it was made.
type unproved struct {
	sealedMarker
	at time.Time
}

func (p *proof) add(m sealedMarker, at time.Time) {
	if p.at == nil {
		p.at = map[logKey][]proved{}
	}
	if p.since.IsZero() || at.Before(p.since) {
		p.since = at
	}
	p.at[m.logKey] = append(p.at[m.logKey], proved{lo: m.lo, at: at})
}

// until is the end of the upgrade.
func (p *proof) until() time.Time { return p.since.Add(upgrade) }

// order is called when all are there, which came in the order of their offsets.
func (p *proof) order() {
	for _, all := range p.at {
		for i := range all {
			if i > 0 {
				all[i].late = all[i-1].late
			}
			if at := all[i].at; at.After(p.until()) && (all[i].late.IsZero() || at.Before(all[i].late)) {
				all[i].late = at
			}
		}
		for i := range slices.Backward(all) {
			if all[i].next = all[i].at; i+1 < len(all) && all[i+1].next.Before(all[i].next) {
				all[i].next = all[i+1].next
			}
		}
	}
}

// excuses tells whether a marker may be from before the end of the upgrade: it says so, and no marker before it in the log
// is from after it. Where older ones stand after it that one was read later, as when a group goes back to what lies
// before its first marker, and proves nothing.
func (p *proof) excuses(m unproved) bool {
	if p.since.IsZero() {
		return true
	}
	if m.at.After(p.until()) {
		return false
	}
	all := p.at[m.logKey]
	i := sort.Search(len(all), func(i int) bool { return all[i].lo > m.hi })
	if i == 0 || all[i-1].late.IsZero() {
		return true
	}
	return i < len(all) && all[i].next.Before(all[i-1].late)
}

// tooNew tells whether an interaction of an event day cannot be from before the end of the upgrade: an event is known a day
// ahead at the most. A marker's date is easily altered; to alter all days of what it holds is to take it out of its days.
func (p *proof) tooNew(day time.Time) bool {
	return !p.since.IsZero() && day.Add(-24*time.Hour).After(p.until())
}
