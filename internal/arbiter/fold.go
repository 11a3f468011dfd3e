package arbiter

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// fold turns the log into decisions, record by record in order. What it holds is a function of the
// records and the rules alone. It keeps places, not values: load gives the decision at an offset that won.
//
// judge only reads, commit writes: whoever shares a fold between goroutines judges in the one that
// commits, and locks around commit and the other readers.
type fold struct {
	rules *Rules
	load  func(offset int64) (Decision, error)

	log     audit.ID // zero until the log has its id
	born    int64    // offset of the record that gave it
	heads   map[place]head
	winners []int64 // offset of decision N at N-1: ascending
	sum     uint64  // over all decisions, see mark
	counts  Counts
}

// Counts says what became of the records of a log.
type Counts struct {
	Decisions uint64 `json:"decisions"`
	Late      uint64 `json:"late"`    // somebody was first, or a copy of a proposal that was counted
	Refused   uint64 `json:"refused"` // by the kind's rule
	Unknown   uint64 `json:"unknown"` // of kinds that this program does not know
	Foreign   uint64 `json:"foreign"` // not readable, or written for another log
}

// place stands for a key: 16 bytes of its SHA-256, so that memory does not depend on the keys' length.
type place [16]byte

func placeOf(k Key) place {
	h := sha256.Sum256([]byte(k.String()))
	return place(h[:16])
}

// head is where a key's decisions lie. Most keys have one.
type head struct {
	last  int64
	older *[]int64 // offsets before last, in order; nil when there are none
}

func (h head) seq() uint32 {
	if h.older == nil {
		return 1
	}
	return uint32(len(*h.older)) + 1
}

// at is the offset of decision seq, which must be in 1..h.seq().
func (h head) at(seq uint32) int64 {
	if seq == h.seq() {
		return h.last
	}
	return (*h.older)[seq-1]
}

func newFold(rules *Rules, load func(int64) (Decision, error)) *fold {
	return &fold{rules: rules, load: load, heads: map[place]head{}}
}

// outcome is what a record came to.
type outcome struct {
	parsed
	won bool
	err error // of a proposal for this log that did not win: errLate, or *Refused
}

var (
	errLate    = errors.New("somebody was first")
	errForeign = errors.New("written for another log")
	errUnknown = errors.New("of a kind that is not known here")
)

// judge says what the next record comes to. An error means that it cannot be told: nothing may be
// committed then.
func (f *fold) judge(r *sources.Record) (outcome, error) {
	p, err := parse(r)
	switch {
	case errors.Is(err, errNotOurs):
		return outcome{err: errForeign}, nil
	case err != nil:
		return outcome{}, err
	case p.genesis:
		return outcome{parsed: p, err: errLate, won: f.log.IsZero()}, nil
	case f.log.IsZero() || p.log != f.log:
		return outcome{parsed: p, err: errForeign}, nil
	}
	kind, known := f.rules.kinds[p.decision.Key.Kind]
	if !known {
		return outcome{parsed: p, err: errUnknown}, nil
	}
	h, decided := f.heads[placeOf(p.decision.Key)]
	var have uint32
	var prev *Decision
	if decided {
		have = h.seq()
	}
	switch {
	case p.decision.Seq <= have:
		return outcome{parsed: p, err: errLate}, nil
	case p.decision.Seq > have+1:
		return outcome{parsed: p, err: &Refused{fmt.Sprintf("it is decision %d of a key that has %d", p.decision.Seq, have)}}, nil
	case decided && !p.restored:
		d, err := f.load(h.last)
		if err != nil {
			return outcome{}, err
		}
		prev = &d
	}
	if !p.restored {
		if err := kind.Follows(prev, &p.decision); err != nil {
			return outcome{parsed: p, err: &Refused{err.Error()}}, nil
		}
	}
	p.decision.N = uint64(len(f.winners)) + 1
	return outcome{parsed: p, won: true}, nil
}

// commit takes the judged record in. r is the record that o came of.
func (f *fold) commit(o *outcome, offset int64) {
	switch {
	case o.won && o.genesis:
		f.log, f.born = o.log, offset
	case o.won:
		f.counts.Decisions++
		f.push(placeOf(o.decision.Key), offset)
		f.sum += mark(&o.decision)
	case o.genesis:
	case errors.Is(o.err, errForeign):
		f.counts.Foreign++
	case errors.Is(o.err, errUnknown):
		f.counts.Unknown++
	case errors.Is(o.err, errLate):
		f.counts.Late++
	default:
		f.counts.Refused++
	}
}

// push adds a key's next decision.
func (f *fold) push(k place, offset int64) {
	f.winners = append(f.winners, offset)
	h, decided := f.heads[k]
	if decided {
		if h.older == nil {
			h.older = new([]int64)
		}
		*h.older = append(*h.older, h.last)
	}
	h.last = offset
	f.heads[k] = h
}

// nth is the number of the decision at an offset, 0 when there is none.
func (f *fold) nth(offset int64) uint64 {
	i, ok := slices.BinarySearch(f.winners, offset)
	if !ok {
		return 0
	}
	return uint64(i) + 1
}

// mark is a decision's part of the sum by which a projection shows that it holds all of them: what
// places it, without its value, which is read from the log.
func mark(d *Decision) uint64 {
	b := make([]byte, 0, 64)
	b = append(b, d.Log[:]...)
	b = append(b, d.Proposal[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(d.Offset))
	b = binary.BigEndian.AppendUint32(b, d.Seq)
	b = append(b, d.Key.String()...)
	return xxhash.Sum64(b)
}
