package join

import (
	"bytes"
	"container/list"
	"hash/maphash"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/sources"
)

// groupID names a group. Parts of different credentials are never joined.
type groupID struct{ tenant, group string }

// held is a part that waits, as the log has it.
type held struct {
	offset int64     // of a folded one the first
	at     time.Time // the broker's
	value  []byte
	soFar  bool           // an answer on its way
	past   []audit.Header // of a dead letter that is sent again; nil for others
}

// partCost and groupCost are about what one takes beside its bytes.
const (
	partCost  = 120
	groupCost = 500
)

// group is what waits for company.
type group struct {
	id    groupID
	p     *partition
	parts []held
	upto  int64 // the offset of its last part
	bytes int64
	sums  map[uint64]struct{}
	past  *past // nil unless it was told before
	calls bool  // that it tells any, once it is closed
	grows bool  // has parts of an answer on its way
	asked bool  // has parts of a call whose end is to be told
	ended bool  // has others, too
	// When its first and its last part came, by the broker's clock and by ours. Each is compared with its own
	// clock only: they may differ.
	begun, last   time.Time
	began, lastAt time.Time
	place         *list.Element // in p.order
}

var seed = maphash.MakeSeed()

// add takes a part; false when the group holds the same one already, as after a repeated request.
func (g *group) add(r *sources.Record, at time.Time) bool {
	sum := maphash.Bytes(seed, r.Value)
	if _, has := g.sums[sum]; has {
		return false
	}
	if g.sums == nil {
		g.sums = map[uint64]struct{}{}
		g.begun, g.began = r.Time, at
	}
	g.sums[sum] = struct{}{}
	g.last, g.lastAt, g.upto = r.Time, at, r.Offset
	value := make([]byte, len(r.Value)) // a record holds the memory of its whole fetch
	copy(value, r.Value)
	h := held{r.Offset, r.Time, value, bytes.Contains(value, soFarMark), replayed(r.Headers)}
	g.grows = g.grows || h.soFar
	asked := bytes.Contains(value, askedMark)
	g.asked, g.ended = g.asked || asked, g.ended || !asked
	g.bytes += partCost
	if n := len(g.parts); n > 0 {
		was := len(g.parts[n-1].value)
		if g.parts[n-1].fold(&h) {
			g.bytes += int64(len(g.parts[n-1].value) - was)
			return true
		}
	}
	g.parts = append(g.parts, h)
	g.bytes += int64(len(value))
	return true
}

// soFarMark stands in each part of an answer on its way, askedMark in each of a call whose end is to be told. What else has one waits
// longer and no more.
var soFarMark, askedMark = []byte(`"so_far":true`), []byte(`"asked":true`)

// fold puts next into h where both tell of the same answer on its way: each tells all of it up to there, so that a stream of an hour
// would else take the square of its length.
func (h *held) fold(next *held) bool {
	if !h.soFar || !next.soFar || h.past != nil || next.past != nil {
		return false
	}
	a, err := decode(h.value)
	b, err2 := decode(next.value)
	if err != nil || err2 != nil || !a.SoFar || !b.SoFar || a.Key != b.Key || a.Kind != b.Kind {
		return false
	}
	merged := call.Merge(a, b)
	value, err := encode(&merged)
	if err != nil { // it was read from JSON
		return false
	}
	h.value = value
	return true
}

func (g *group) first() int64 { return g.parts[0].offset }
