package join

import (
	"container/list"
	"hash/maphash"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// groupID names a group. Parts of different credentials are never joined.
type groupID struct{ tenant, group string }

// held is a part that waits, as the log has it.
type held struct {
	offset int64
	at     time.Time // the broker's
	value  []byte
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
	bytes int64
	sums  map[uint64]struct{}
	past  *past // nil unless it was told before
	calls bool  // that it tells any, once it is closed
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
	g.last, g.lastAt = r.Time, at
	value := make([]byte, len(r.Value)) // a record holds the memory of its whole fetch
	copy(value, r.Value)
	g.parts = append(g.parts, held{r.Offset, r.Time, value, replayed(r.Headers)})
	g.bytes += int64(len(value)) + partCost
	return true
}

func (g *group) first() int64 { return g.parts[0].offset }
func (g *group) upto() int64  { return g.parts[len(g.parts)-1].offset }
