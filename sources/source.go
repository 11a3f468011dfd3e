// Package sources holds the seam through which interactions come in: a partitioned log that is
// consumed by a group. Subpackages implement it (kafka).
package sources

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Record is one message of the log. Time is the broker's (LogAppendTime), UTC, whole milliseconds.
type Record struct {
	Offset  int64
	Time    time.Time
	Key     []byte
	Value   []byte
	Headers []audit.Header
}

// Chunk is what one fetch brought: the records of [From, Next) of one partition in order. Offsets in
// the range without a record are holes (control records, compaction, aborted transactions).
type Chunk struct {
	Partition  int
	From, Next int64
	End        int64 // the offset after the log's last record when this was read; lag is what lies before it
	Records    []Record
}

// Claim is a partition that a generation owns. Committed is the group's position, -1 when none.
type Claim struct {
	Partition int
	Committed int64
}

// OutOfRangeError says that the asked offset is not in the log, which holds [Start, End).
type OutOfRangeError struct{ Asked, Start, End int64 }

func (e *OutOfRangeError) Error() string {
	return fmt.Sprintf("offset %d is outside the log [%d, %d)", e.Asked, e.Start, e.End)
}

// ErrGenerationEnded says that the partitions may belong to somebody else now: write nothing, commit
// nothing, return.
var ErrGenerationEnded = errors.New("generation ended")

// Generation is one membership in the consumer group, from assignment to revocation.
type Generation interface {
	// ID is the group's generation number; it grows.
	ID() int32
	// Topic is the topic that all claims belong to.
	Topic() string
	Claims() []Claim
	// Fetch returns the records from offset on, at most about maxBytes of them, waiting for the
	// first up to about 250 ms; an empty chunk is no error. A *OutOfRangeError tells the log's bounds.
	// Other errors have been retried inside until ctx ended.
	Fetch(ctx context.Context, partition int, offset int64, maxBytes int) (Chunk, error)
	// Bounds gives the log's first offset and the offset after its last record.
	Bounds(ctx context.Context, partition int) (start, end int64, err error)
	// Commit moves the group's positions (partition → next offset to read); it fails with
	// ErrGenerationEnded once the partitions were given away.
	Commit(ctx context.Context, next map[int]int64) error
}

// Source is a log consumed by a group.
//
// Run joins the group and calls serve for each generation, one at a time, with a context that ends
// with the generation; serve must return soon after that. Run returns nil when ctx ends and the
// first error of serve that is not about an ended generation.
type Source interface {
	Run(ctx context.Context, serve func(ctx context.Context, g Generation) error) error
}
