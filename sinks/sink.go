// Package sinks holds the seams through which results go out: the store of record (Store), which
// blocks the commit and keeps the commit markers, the publisher of messages (Publisher), and the
// tracker where people get work (Tracker).
// Subpackages implement them: clickhouse, stream; linear, webhook.
package sinks

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Edge identifies one record of the log by its content, to see whether the log was replaced.
type Edge struct {
	Offset int64
	Time   time.Time // broker time
	Hash   uint64    // of key and value
}

// Marker says that every offset of [Lo, Hi] of a partition is in the store: the commit marker.
type Marker struct {
	Topic      string
	Partition  int
	Epoch      int32 // grows each time the log was replaced
	Lo, Hi     int64 // inclusive; holes counted in
	Rows       uint32
	Rejected   uint32
	Skipped    uint32 // offsets without a message: control records, compaction holes
	Generation int32
	Reason     string // "" for a written range, "gap" for offsets that the log no longer held
	First      Edge   // first and last record of the range; zero when the range holds none
	Last       Edge
	End        int64 // the offset after the log's last record as heard last before the batch was cut; 0 is unknown
}

// Batch is a list of contiguous offset ranges, one per partition, with all that came of them.
type Batch struct {
	Records  []audit.Record
	Rejected []audit.Rejected
	Markers  []Marker
}

// Store keeps batches. Writing a batch again, whole or in other cuts, changes nothing that a reader
// sees. A Marker is visible only after everything its range gave is durable.
type Store interface {
	// Prepare turns the batch into what will be sent; it touches no connection. The batch must not
	// change until the Prepared is done with.
	Prepare(b *Batch) (Prepared, error)
	// Markers gives the markers of the newest epoch of a partition with Hi >= from, ordered by Lo,
	// and that epoch (0 when there are none). Overlaps of different generations are already
	// resolved: the highest generation wins.
	Markers(ctx context.Context, topic string, partition int, from int64) (ms []Marker, epoch int32, err error)
	// Events gives the stream events of all interactions stored from the marker's range.
	Events(ctx context.Context, m Marker) ([]audit.StreamEvent, error)
}

// Prepared is a batch ready to be sent. Send may be called again after an error: a kind of
// KindInvalid means the data is at fault, everything else may be retried.
type Prepared interface {
	Send(ctx context.Context) error
}

// Publisher sends results to the log. Both methods return after the broker's acknowledgement and may
// deliver twice.
type Publisher interface {
	Publish(ctx context.Context, events []audit.StreamEvent) error
	DeadLetter(ctx context.Context, rejected []audit.Rejected) error
}

// Resolve drops markers that overlap one of a higher generation, and orders the rest by Lo.
func Resolve(ms []Marker) []Marker {
	byGen := slices.Clone(ms)
	slices.SortStableFunc(byGen, func(a, b Marker) int { return cmp.Compare(b.Generation, a.Generation) })
	var kept []Marker
	for _, m := range byGen {
		if !slices.ContainsFunc(kept, func(k Marker) bool {
			return k.Generation > m.Generation && k.Lo <= m.Hi && m.Lo <= k.Hi
		}) {
			kept = append(kept, m)
		}
	}
	slices.SortFunc(kept, func(a, b Marker) int { return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi)) })
	return kept
}
