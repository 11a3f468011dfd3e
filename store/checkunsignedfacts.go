package store

import (
	"slices"
	"sort"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/internal/seal"
)

// lookedBack is how far back a writer looks for others when it notes them, which it does with its first row of each day.
const lookedBack = 31 * 24 * time.Hour

// looked is what a writer that signs noted of the others at a time: the highest number of each.
type looked struct {
	at   time.Time
	have map[uint64]uint64
}

// ledgerPlace is a row of a writer.
type ledgerPlace struct {
	writer uuid.UUID
	n      uint64
}

// unsignedRow is one without a signature, and when it says it was made.
type unsignedRow struct {
	ledgerPlace
	at time.Time
}

// ledgerProof tells which rows without a signature can be from before there were any, or from the day of the upgrade. Chains
// of several writers have no order between them; but those that sign note every day who else writes.
type ledgerProof struct {
	proof
	unsigned []unsignedRow
	signs    map[uuid.UUID]bool   // writers
	looks    []looked             // of the time that matters
	refused  map[ledgerPlace]bool // rows that nobody saw when they say they were written
}

// row takes in a row; rows of a writer come in order, and first tells that it is its first one of a day.
func (p *ledgerProof) row(x ledgerPlace, at time.Time, signed, first bool, others, have []uint64) {
	if !signed {
		p.unsigned = append(p.unsigned, unsignedRow{x, at})
		return
	}
	p.signs[x.writer] = true
	if first && !at.After(p.until().Add(lookedBack)) {
		l := looked{at, map[uint64]uint64{}}
		for i := range others {
			l.have[others[i]] = have[i]
		}
		p.looks = append(p.looks, l)
	}
}

// report adds the rows that cannot be from before the end of the upgrade, and counts the rest.
func (p *ledgerProof) report(f *ledgerFaults) (excused uint64) {
	slices.SortFunc(p.looks, func(a, b looked) int { return a.at.Compare(b.at) })
	for _, x := range p.unsigned {
		if p.since.IsZero() {
			continue
		}
		seen := p.seen(x)
		if !seen {
			p.refused[x.ledgerPlace] = true
		}
		// A process has its key from the start, or has none.
		if !seen || p.signs[x.writer] || x.at.After(p.until()) {
			f.add(x.writer.String(), 1, x.n, x.n)
			continue
		}
		excused++
	}
	return excused
}

// seen tells whether the first who looked for others after a row was written, an hour later at the least, found it; or that nobody looked.
func (p *ledgerProof) seen(x unsignedRow) bool {
	i := sort.Search(len(p.looks), func(i int) bool { return p.looks[i].at.After(x.at.Add(time.Hour)) })
	if i == len(p.looks) || p.looks[i].at.After(x.at.Add(lookedBack-time.Hour)) {
		return true
	}
	return p.looks[i].have[seal.WriterHash(x.writer)] >= x.n
}

// counts tells whether what stands may agree with a seal of a row of the ledger that has no signature: not where nobody saw the row when
// it says it was written, nor for an event of a day that was not known then.
func (p *ledgerProof) counts(x unsignedRow, day uint16) bool {
	return p.since.IsZero() || !p.refused[x.ledgerPlace] && !time.Unix(int64(day)*86400, 0).Add(-24*time.Hour).After(x.at)
}

// agrees tells whether a hash is one that may stand: of the highest version of those that are in, or of a higher one that may be. Where a signed seal names
// the row, others count only if all that is from the day of the upgrade, and for a later version: of a gate that one process opened and another decided.
// signed tells that a signed seal is the one.
func agrees(seals []factSeal, hash uint64) (ok, signed bool) {
	var least, newest uint64
	some, early := false, true
	for _, x := range seals {
		if x.signed {
			some, early, newest = true, early && !x.late, max(newest, x.version)
		}
	}
	stands := func(x factSeal) bool {
		return x.signed || x.counts && (!some || early && !x.late && x.version > newest)
	}
	for _, x := range seals {
		if stands(x) && x.confirmed {
			least = max(least, x.version)
		}
	}
	for _, x := range seals {
		if stands(x) && x.row == hash && x.version >= least {
			ok, signed = true, signed || x.signed
		}
	}
	return ok, signed
}
