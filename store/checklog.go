package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// Log is the brokers' side of a check: what was acknowledged to producers, and what was published.
type Log interface {
	// Deliveries hands over the messages that the interactions' topic still holds below the consumer
	// group's positions, in order within a partition. Calls of f come one at a time.
	Deliveries(ctx context.Context, f func(Delivery)) error
	// Positions hands over where the consumer group goes on, the offset after what it has taken in (-1: it has no position
	// yet), and how many messages lie beyond.
	Positions(ctx context.Context, f func(topic string, partition int32, next, waiting int64)) error
	// Results hands over the ids of the results that bias.audit.stream holds. What was published
	// before the given time may be gone; a zero time says that nothing is.
	Results(ctx context.Context, f func(audit.ID)) (since time.Time, err error)
}

// Delivery is one message of the log. Result is the id that its verdict has, zero for a message that
// cannot become an interaction.
type Delivery struct {
	Topic     string
	Partition int32
	Offset    int64
	Result    audit.ID
}

// LogReport says what of the log was compared.
type LogReport struct {
	Messages  uint64     `json:"messages"`        // below the group's positions, still held
	Waiting   uint64     `json:"waiting"`         // beyond the group's positions: not taken in yet, not looked up
	Redeliver uint64     `json:"duplicates"`      // of them, beyond the first of an event and content
	Results   uint64     `json:"results"`         // messages of the stream
	Judged    uint64     `json:"judged"`          // stored results that the stream must hold
	Since     *time.Time `json:"since,omitempty"` // the stream may lack what is older
	Repeated  uint64     `json:"published_again"` // messages of the stream beyond the first of a result
	Purged    uint64     `json:"purged,omitzero"` // messages that may be of months that retention deleted: not judged
}

// held is a message of the log: a hash of its key and its place.
type held struct {
	key    uint64 // of the result's id; 0 when it cannot become an interaction
	part   int32  // index into places
	offset int64
	found  bool
}

// keyOf is the first half of a result's id, which is a hash already.
func keyOf(id audit.ID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

// slack is how far the clocks of brokers and store may be apart.
const slack = time.Minute

type place struct {
	topic     string
	partition int32
}

// brokers is what was read of the log, ordered by key; and by place through an index.
type brokers struct {
	places   []place
	epochs   []int32
	reached  []int64 // offset after the last message, by place
	messages []held
	byPlace  []int32 // indexes of messages, ordered by place
	results  []uint64
	since    time.Time
}

// checkBrokers compares the log with the store: every message that the group has taken in is stored
// or rejected, and every stored result of such a message is in the stream. The log is read first, so
// the store must hold all of it.
func (s *Store) checkBrokers(ctx context.Context, r *Report) error {
	if r.opt.Log == nil {
		return nil
	}
	b, err := readLog(ctx, r)
	if err != nil {
		return err
	}
	if err := s.epochs(ctx, b); err != nil {
		return err
	}
	if err := s.checkPublished(ctx, r, b); err != nil {
		return err
	}
	if err := s.markRejected(ctx, b); err != nil {
		return err
	}
	r.tell("brokers", 3, 3)
	b.report(r)
	return nil
}

func readLog(ctx context.Context, r *Report) (*brokers, error) {
	b := &brokers{}
	r.positions = map[place]int64{}
	waiting := uint64(0)
	err := r.opt.Log.Positions(ctx, func(topic string, partition int32, next, beyond int64) {
		if next >= 0 {
			r.positions[place{topic, partition}] = next
		}
		waiting += uint64(max(beyond, 0))
	})
	if err != nil {
		return nil, err
	}
	err = r.opt.Log.Deliveries(ctx, func(d Delivery) {
		at := place{d.Topic, d.Partition}
		i := slices.Index(b.places, at)
		if i < 0 {
			i = len(b.places)
			b.places, b.reached = append(b.places, at), append(b.reached, 0)
		}
		b.reached[i] = d.Offset + 1
		m := held{part: int32(i), offset: d.Offset}
		if !d.Result.IsZero() {
			m.key = keyOf(d.Result)
		}
		b.messages = append(b.messages, m)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(b.messages, func(x, y held) int { return cmp.Or(cmp.Compare(x.key, y.key), b.comparePlace(x, y)) })
	b.byPlace = make([]int32, len(b.messages))
	for i := range b.byPlace {
		b.byPlace[i] = int32(i)
	}
	slices.SortFunc(b.byPlace, func(i, j int32) int { return b.comparePlace(b.messages[i], b.messages[j]) })
	r.tell("brokers", 1, 3)
	if b.since, err = r.opt.Log.Results(ctx, func(id audit.ID) { b.results = append(b.results, keyOf(id)) }); err != nil {
		return nil, err
	}
	r.Log = &LogReport{Messages: uint64(len(b.messages)), Waiting: waiting, Results: uint64(len(b.results))}
	slices.Sort(b.results)
	b.results = slices.Compact(b.results)
	r.Log.Repeated = r.Log.Results - uint64(len(b.results))
	if !b.since.IsZero() {
		r.Log.Since = &b.since
	}
	for i := 1; i < len(b.messages); i++ {
		if k := b.messages[i].key; k != 0 && k == b.messages[i-1].key {
			r.Log.Redeliver++
		}
	}
	r.tell("brokers", 2, 3)
	return b, nil
}

func (b *brokers) comparePlace(x, y held) int {
	return cmp.Or(cmp.Compare(x.part, y.part), cmp.Compare(x.offset, y.offset))
}

// epochs notes under which epoch each partition is written now: the log's records are of that one.
func (s *Store) epochs(ctx context.Context, b *brokers) error {
	b.epochs = make([]int32, len(b.places))
	return s.each(ctx, "store: check epochs", s.from("ingest_batches").sql("topic, partition, max(epoch)", "GROUP BY topic, partition"), nil, func(rows driver.Rows) error {
		var at place
		var epoch int32
		if err := rows.Scan(&at.topic, &at.partition, &epoch); err != nil {
			return err
		}
		if i := slices.Index(b.places, at); i >= 0 {
			b.epochs[i] = epoch
		}
		return nil
	})
}

// stands marks what the store holds under a key.
func (b *brokers) stands(key uint64) {
	i, ok := slices.BinarySearchFunc(b.messages, key, func(m held, key uint64) int { return cmp.Compare(m.key, key) })
	for ; ok && i < len(b.messages) && b.messages[i].key == key; i++ {
		b.messages[i].found = true
	}
}

// at marks what the store holds at a place; a message that is decoded otherwise today (another default
// tenant, another limit) is found by that.
func (b *brokers) at(part int, offset int64) {
	i, ok := slices.BinarySearchFunc(b.byPlace, held{part: int32(part), offset: offset}, func(i int32, m held) int { return b.comparePlace(b.messages[i], m) })
	if ok {
		b.messages[b.byPlace[i]].found = true
	}
}

// checkPublished reads every stored interaction once: it marks its messages as found, and asks for its
// result in the stream when its range was committed and is not older than what the stream holds.
func (s *Store) checkPublished(ctx context.Context, r *Report, b *brokers) error {
	var missing uint64
	var examples []string
	sql := s.from("interactions").current().sql("tenant_id, event_id, content_digest, topic, partition, epoch, offset, written_at", "SETTINGS "+spill)
	err := s.each(ctx, "store: check published", sql, nil, func(rows driver.Rows) error {
		var tenant string
		var event uuid.UUID
		var digest string
		var at place
		var epoch int32
		var offset int64
		var written time.Time
		if err := rows.Scan(&tenant, &event, &digest, &at.topic, &at.partition, &epoch, &offset, &written); err != nil {
			return err
		}
		key := keyOf(audit.HotResultID(tenant, audit.ID(event), [32]byte([]byte(digest))))
		b.stands(key)
		i := slices.Index(b.places, at)
		if i < 0 || b.epochs[i] != epoch {
			return nil
		}
		b.at(i, offset)
		if offset >= b.reached[i] || !b.since.IsZero() && written.Before(b.since.Add(slack)) {
			return nil
		}
		r.Log.Judged++
		if _, ok := slices.BinarySearch(b.results, key); !ok {
			if missing++; len(examples) < 10 {
				examples = append(examples, event.String())
			}
		}
		return nil
	})
	if err == nil && missing > 0 {
		r.fault(Fault{Code: FaultUnpublished, Count: missing, Events: examples})
	}
	return err
}

// markRejected marks the messages that are dead letters.
func (s *Store) markRejected(ctx context.Context, b *brokers) error {
	for i, p := range b.places {
		q := s.from("rejected").current().and("topic = ?", p.topic).and("epoch = ?", b.epochs[i]).and("partition = ?", p.partition)
		err := s.each(ctx, "store: check rejected", q.sql("offset", ""), q.args, func(rows driver.Rows) error {
			var offset int64
			if err := rows.Scan(&offset); err != nil {
				return err
			}
			b.at(i, offset)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// report names the messages that were found nowhere, a fault a partition.
func (b *brokers) report(r *Report) {
	for _, i := range b.byPlace {
		m := b.messages[i]
		if m.found {
			continue
		}
		p := b.places[m.part]
		if r.purged.covers(logKey{p.topic, b.epochs[m.part], p.partition}, m.offset) {
			r.Log.Purged++
			continue
		}
		last := len(r.Faults) - 1
		if last < 0 || r.Faults[last].Code != FaultDeliveryMissing || r.Faults[last].Topic != p.topic || r.Faults[last].Partition != p.partition {
			r.fault(Fault{Code: FaultDeliveryMissing, Topic: p.topic, Partition: p.partition, Epoch: b.epochs[m.part], Lo: m.offset})
			last++
		}
		f := &r.Faults[last]
		f.Count, f.Hi = f.Count+1, m.offset
	}
}
