// Package arbiter settles what can be contested between processes: who claims a review, how a gate
// was answered, through which states a breach goes. ClickHouse has no compare-and-set, so a proposal
// is a record on the topic evenhand.decisions, which has one partition and is kept whole; of one key
// and sequence number the first valid record by offset is the decision, for every reader and for
// ever. Leadership of any kind only saves work, it is never needed for agreement.
//
// Validity is a function of the log alone: the record's own fields, the broker's time on it and the
// key's decision before it ([Kind]). So every process that folds the log comes to the same decisions,
// whenever it starts. A kind's rule therefore never changes under its name.
//
// A proposal whose acknowledgement was lost is written again under its own id; the fold counts it
// once. A caller that got audit.KindUnavailable does not know the outcome: it asks again, with the
// same or another value, and is told who won. A refused proposal stays refused, unless its kind looks
// at the clock and an unacknowledged copy of it comes later than the refusal.
//
// Values hold ids and codes, never words of people: the log is kept for ever.
//
// Cost on loopback: one synced append and one fetch a decision, in groups under load. Memory: about
// 100 bytes a decided key; values lie in a cache of bounded size and are read from the log when they are
// not in it. The start reads the store's projection and what the log holds beyond it. Errors:
// KindInvalid for proposals that cannot be right, KindUnavailable for brokers and ended contexts,
// KindInternal wrapping [ErrReplaced] when the log is not the one that decided before.
package arbiter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
)

// Arbiter settles contested keys. It is safe for concurrent use.
type Arbiter interface {
	// Decide proposes value as the key's first decision and returns the one that holds: this value or
	// that of whoever was first. All callers get the same answer, always.
	Decide(ctx context.Context, key Key, value json.RawMessage) (Decision, error)
	// Propose is Decide for a key that goes through several decisions: it proposes the one that
	// follows p.Seq-1 and returns the decision number p.Seq that holds. A [*Refused] error says that
	// the kind's rule does not let the value follow; nothing is decided then.
	Propose(ctx context.Context, p Proposal) (Decision, error)
	// Winner gives the key's newest decision at the time of the call; ok is false when it has none.
	Winner(ctx context.Context, key Key) (d Decision, ok bool, err error)
	// History gives all decisions of the key in order, at the time of the call.
	History(ctx context.Context, key Key) ([]Decision, error)
	// Watch gives all decisions whose N is above after, in the order of the log, and waits for more
	// until ctx ends or an error. A slow consumer holds up nobody.
	Watch(ctx context.Context, after uint64) iter.Seq2[Decision, error]
}

// Key names what is decided. Kind says by which rule; ID is unique in it.
type Key struct{ Kind, ID string }

// String is the form on the wire: kind, a slash, the id.
func (k Key) String() string { return k.Kind + "/" + k.ID }

var kindName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

const maxKeyID = 512 // bytes

// ParseKey reads kind/id.
func ParseKey(s string) (Key, error) {
	kind, id, ok := strings.Cut(s, "/")
	switch {
	case !ok || !kindName.MatchString(kind):
		return Key{}, errors.New("a key is KIND/ID, the kind of lower-case letters, digits and underscores")
	case id == "" || len(id) > maxKeyID || !utf8.ValidString(id):
		return Key{}, fmt.Errorf("a key's id has 1 to %d bytes of UTF-8", maxKeyID)
	}
	return Key{Kind: kind, ID: id}, nil
}

// Proposal is what a caller would like to be decided.
type Proposal struct {
	Key Key
	// Seq is the number of the decision for the key, from 1: the number of the decision that the
	// caller has seen, plus one.
	Seq uint32
	// Value is JSON, at most [MaxValue] bytes.
	Value json.RawMessage
	// ID tells copies of one proposal from others; zero makes a new one. A caller that must find out
	// after its own restart whether it won keeps the id before it proposes.
	ID audit.ID
}

// MaxValue bounds a proposal's value, in bytes.
const MaxValue = 16 << 10

// Decision is a record that won.
type Decision struct {
	Key      Key             `json:"-"`
	Seq      uint32          `json:"seq"`      // of the key, from 1
	Value    json.RawMessage `json:"value"`    // compact JSON
	Proposer string          `json:"proposer"` // the process that proposed it
	Proposal audit.ID        `json:"-"`
	Log      audit.ID        `json:"-"`      // of the log that holds it
	Offset   int64           `json:"offset"` // in the log
	Time     time.Time       `json:"time"`   // the broker's, UTC, whole milliseconds
	N        uint64          `json:"n"`      // of all decisions in the log, from 1
}

// Refused says why a proposal may not follow the key's decisions.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return "refused: " + r.Reason }

var (
	// ErrReplaced says that the log is not the one that decided before: the topic was made again, cut
	// or restored from an older copy. Deciding on it could contradict what was decided.
	ErrReplaced = errors.New("the log evenhand.decisions is not the one that decided before; 'evenhand decisions restore' writes the decisions back")
	// ErrTrimmed says that the log's first records were deleted.
	ErrTrimmed = errors.New("the log evenhand.decisions has lost its first records; delete the topic, let 'evenhand topics' make it with retention.ms=-1, then run 'evenhand decisions restore'")
	// ErrNewer says that a newer version of this program writes the log.
	ErrNewer = errors.New("the log evenhand.decisions holds records of a newer version; upgrade this process")
	// ErrClosed is the answer after Close.
	ErrClosed = errors.New("the arbiter is closed")
)
