package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/internal/seal"
)

// FaultCode names what is wrong.
type FaultCode string

// The faults that check finds.
const (
	FaultGap                FaultCode = "gap"                   // offsets that no marker covers
	FaultOverlap            FaultCode = "overlap"               // two markers of one generation cover the same offsets
	FaultMarkerSum          FaultCode = "marker_sum"            // rows, rejected and skipped are not the range's length
	FaultRowsMissing        FaultCode = "rows_missing"          // more distinct keys or fewer rows than the markers say
	FaultRejectedMissing    FaultCode = "rejected_missing"      // rejected rows and markers differ
	FaultOffsetTwice        FaultCode = "offset_twice"          // an offset is both stored and rejected, or stored twice
	FaultVerdictMissing     FaultCode = "verdict_missing"       // an interaction without a hot verdict
	FaultVerdictOrphan      FaultCode = "verdict_orphan"        // a hot verdict whose interaction never followed
	FaultCurrentMissing     FaultCode = "audit_current_missing" // an interaction without its flat row
	FaultCurrentOrphan      FaultCode = "audit_current_orphan"  // a flat row without its interaction
	FaultCurrentUnequal     FaultCode = "audit_current_unequal" // the flat row says other than the facts
	FaultKeyWrong           FaultCode = "key_wrong"             // event_day, sort_ts or time do not agree
	FaultVerdictTwice       FaultCode = "verdict_twice"         // two hot verdicts of one event and content
	FaultDoubled            FaultCode = "doubled"               // one event and content under two days, though its time was not assumed
	FaultTextOrphan         FaultCode = "text_orphan"           // text whose interaction or rejection never followed
	FaultUserOrphan         FaultCode = "user_orphan"           // the same of interaction_users
	FaultDeliveryMissing    FaultCode = "delivery_missing"      // a message of the log, taken in by the group, that is neither stored nor rejected
	FaultUnpublished        FaultCode = "result_unpublished"    // a stored result that its topic lacks
	FaultSealBroken         FaultCode = "seal_broken"           // a marker, a row of fact_seals, or what an erasure says it took, that is not what its signature is of
	FaultSealUnknown        FaultCode = "seal_unknown"          // one that was signed with a key that the check does not know
	FaultSealMissing        FaultCode = "seal_missing"          // a marker without seals after others had some; rows of fact_seals that are gone
	FaultSealUnsigned       FaultCode = "seal_unsigned"         // a marker, or a row of fact_seals, without signature after others had one
	FaultInteractionAltered FaultCode = "interaction_altered"   // a row that is not what was sealed
	FaultInteractionDeleted FaultCode = "interaction_deleted"   // a seal whose interaction is gone
	FaultInteractionAdded   FaultCode = "interaction_added"     // a row where no marker knows of one
	FaultVerdictAltered     FaultCode = "verdict_altered"
	FaultTextAltered        FaultCode = "text_altered"         // a text is other than sealed, or some are gone
	FaultTextDeleted        FaultCode = "text_deleted"         // all are gone, and neither retention nor an erasure says it took them
	FaultErasureMissing     FaultCode = "erasure_missing"      // what an erasure took is written down, and the erasure is gone
	FaultFactAltered        FaultCode = "fact_altered"         // a row that came later (see seal.Facts) is not what was sealed
	FaultFactDeleted        FaultCode = "fact_deleted"         // a seal whose row is gone, and neither retention nor an erasure took it
	FaultFactAdded          FaultCode = "fact_added"           // such a row without a seal
	FaultRollupUnequal      FaultCode = "rollup_unequal"       // cells of an hour that are not what the read model gives
	FaultRollupDayUnequal   FaultCode = "rollup_daily_unequal" // cells of a day that are not the sums of its hours
)

// Fault is one thing that is wrong. It names places and ids, never text.
type Fault struct {
	Code      FaultCode `json:"code"`
	Count     uint64    `json:"count"`
	Topic     string    `json:"topic,omitempty"`
	Partition int32     `json:"partition,omitempty"`
	Epoch     int32     `json:"epoch,omitempty"`
	Lo        int64     `json:"lo,omitempty"`
	Hi        int64     `json:"hi,omitempty"`
	Day       string    `json:"day,omitempty"`
	Table     string    `json:"table,omitempty"`   // of fact_* and of seals that stand elsewhere than in markers
	Writer    string    `json:"writer,omitempty"`  // of fact_seals: its rows are [Lo, Hi]
	Columns   []string  `json:"columns,omitempty"` // of audit_current_unequal
	Events    []string  `json:"events,omitempty"`  // up to ten examples
	Cells     []string  `json:"cells,omitempty"`   // of rollups: up to ten, each its hour or day, dim and value
}

// PartitionReport is the tiling of one partition and epoch.
type PartitionReport struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Epoch     int32  `json:"epoch"`
	Lo        int64  `json:"lo"`
	Hi        int64  `json:"hi"`
	Markers   int    `json:"markers"`
	Rows      uint64 `json:"rows"`
	Rejected  uint64 `json:"rejected"`
	Skipped   uint64 `json:"skipped"`
	Stored    uint64 `json:"stored"`             // interactions whose first delivery lies here
	Purged    uint64 `json:"purged,omitzero"`    // the same of months that retention deleted
	Lost      uint64 `json:"lost"`               // offsets that the log no longer held: markers of reason gap
	Recounted bool   `json:"recounted,omitzero"` // a marker is covered in part: its rows were taken from the tables
}

// Report is the outcome of a check. Without faults the store is what the log gave, once.
type Report struct {
	At           time.Time         `json:"at"`
	Partitions   []PartitionReport `json:"partitions"`
	Rows         uint64            `json:"rows"`         // of all tiles
	Interactions uint64            `json:"interactions"` // distinct keys
	Current      uint64            `json:"audit_current"`
	Verdicts     uint64            `json:"verdicts"` // current ones of the hot path
	Rejected     uint64            `json:"rejected"`
	Duplicates   uint64            `json:"duplicates"`          // deliveries beyond the first of a key
	IDConflicts  uint64            `json:"id_conflicts"`        // ids that came with other content
	Conflicts    []string          `json:"conflicts,omitempty"` // up to ten of them
	OtherDays    uint64            `json:"other_days"`          // ids that stand under two event days, as a re-send after midnight does
	InFlight     uint64            `json:"in_flight"`           // interactions that no marker covers yet
	Purged       uint64            `json:"purged"`              // interactions of months that retention deleted; what holds kept of them included
	Log          *LogReport        `json:"log,omitempty"`       // absent when the brokers were not asked
	Seals        *SealReport       `json:"seals"`
	FactSeals    *FactSealReport   `json:"fact_seals"`
	Rollups      *RollupReport     `json:"rollups,omitempty"` // absent before the job's first run
	Faults       []Fault           `json:"faults"`
	Summary

	opt       CheckOptions
	purged    purges
	positions map[place]int64 // of the group, before the markers were read
}

// Summary is what one looks at first; the crash tests end with the same fields.
type Summary struct {
	Kills  uint64 `json:"kills"`  // processes that were killed: a check kills none
	Events uint64 `json:"events"` // distinct interactions
	Lost   uint64 `json:"lost"`   // offsets without a marker or gone from the log unread, and messages that are nowhere
	Double uint64 `json:"double"` // rows beyond the first of an event and content, and offsets in two places
}

// CheckOptions say how far a check goes. The zero value looks at the store alone.
type CheckOptions struct {
	// Log is the brokers' side; nil leaves out what only it can show.
	Log Log
	// Keys are those that signatures are checked with; without any they are not.
	Keys seal.Public
	// AtRest says that nothing is being written: what the newest batches left is judged too.
	AtRest bool
	// AllRollups compares the rollups of all event days, as AtRest does, not of the last week only.
	AllRollups bool
	// Progress, when not nil, hears of each part that is done: the step's name and part i of n.
	Progress func(step string, i, n int)
}

// grace is how long after a row others may still be written that belong to it, as long as the
// pipeline goes on; a batch that a crash cut short is written again before that.
const grace = 10 * time.Minute

// spill bounds the memory of a query over many keys: what is larger goes to disk.
const spill = "max_bytes_before_external_group_by = 400000000, max_bytes_before_external_sort = 400000000, max_bytes_ratio_before_external_group_by = 0, max_bytes_ratio_before_external_sort = 0"

// OK tells that nothing is wrong.
func (r *Report) OK() bool { return len(r.Faults) == 0 }

func (r *Report) fault(f Fault) { r.Faults = append(r.Faults, f) }

// tell reports that part i of n of a step is done.
func (r *Report) tell(step string, i, n int) {
	if r.opt.Progress != nil {
		r.opt.Progress(step, i, n)
	}
}

// summarize fills the summary from the faults.
func (r *Report) summarize() {
	r.Summary = Summary{Events: r.Interactions}
	for _, p := range r.Partitions {
		r.Lost += p.Lost
	}
	var missing, deleted uint64 // two views of the same
	for _, f := range r.Faults {
		switch f.Code {
		case FaultGap:
			r.Lost += f.Count
		case FaultDeliveryMissing:
			missing += f.Count
		case FaultInteractionDeleted:
			deleted += f.Count
		case FaultDoubled, FaultOffsetTwice:
			r.Double += f.Count
		}
	}
	r.Lost += max(missing, deleted)
	r.Duplicates -= min(deleted, r.Duplicates) // counted by their number, they looked like that
}

// Check is CheckWith of the store alone.
func (s *Store) Check(ctx context.Context) (*Report, error) {
	return s.CheckWith(ctx, CheckOptions{})
}

// CheckWith compares markers, facts and the read model of the whole store, and with a Log the store
// with what the brokers still hold. It may run while events come in: what no marker covers yet is
// counted, not judged. It reads every key once, in chunks of days: memory does not grow with the
// store, since what is large spills to disk (with a Log it takes 28 bytes a message and 8 a result
// held there); ten million interactions take some minutes on two busy cores.
func (s *Store) CheckWith(ctx context.Context, opt CheckOptions) (*Report, error) {
	r := &Report{At: time.Now().UTC().Truncate(time.Millisecond), Partitions: []PartitionReport{}, Faults: []Fault{}, opt: opt}
	for _, step := range []func(context.Context, *Report) error{s.checkPurged, s.checkBrokers, s.checkLog, s.checkTotals, s.checkOffsets, s.checkPurged, s.checkDays, s.checkRejectedTexts, s.checkSeals, s.checkFacts, s.checkRollups} {
		if err := step(ctx, r); err != nil {
			return r, err
		}
	}
	r.summarize()
	return r, nil
}

// checkPurged reads what retention deleted; the other steps count it as it was.
func (s *Store) checkPurged(ctx context.Context, r *Report) (err error) {
	r.purged, err = s.purges(ctx)
	return err
}

type logKey struct {
	topic     string
	epoch     int32
	partition int32
}

// checkLog lays the tiles of every partition and compares what they say with what is stored.
func (s *Store) checkLog(ctx context.Context, r *Report) error {
	const op = "store: check log"
	var keys []logKey
	markers := map[logKey][]marker{}
	q := s.from("ingest_batches").current()
	sql := q.sql("topic, epoch, partition, lo, hi, generation, toUInt64(rows), toUInt64(rejected), toUInt64(skipped), reason", "ORDER BY topic, epoch, partition, lo, hi")
	err := s.each(ctx, op, sql, nil, func(rows driver.Rows) error {
		var k logKey
		var m marker
		if err := rows.Scan(&k.topic, &k.epoch, &k.partition, &m.lo, &m.hi, &m.generation, &m.rows, &m.rejected, &m.skipped, &m.reason); err != nil {
			return err
		}
		if markers[k] == nil {
			keys = append(keys, k)
		}
		markers[k] = append(markers[k], m)
		return nil
	})
	if err != nil {
		return err
	}
	for i, k := range keys {
		if err := s.checkPartition(ctx, r, k, markers[k]); err != nil {
			return err
		}
		r.tell("log", i+1, len(keys))
	}
	r.checkEnds()
	return nil
}

// checkEnds looks for markers that are gone from the end: the group goes on after them only.
func (r *Report) checkEnds() {
	for _, p := range r.Partitions {
		next, ok := r.positions[place{p.Topic, p.Partition}]
		newest := !slices.ContainsFunc(r.Partitions, func(x PartitionReport) bool {
			return x.Topic == p.Topic && x.Partition == p.Partition && x.Epoch > p.Epoch
		})
		if ok && newest && next > p.Hi+1 {
			r.fault(Fault{Code: FaultGap, Count: uint64(next - p.Hi - 1), Topic: p.Topic, Partition: p.Partition, Epoch: p.Epoch, Lo: p.Hi + 1, Hi: next - 1})
		}
	}
}

func (s *Store) checkPartition(ctx context.Context, r *Report, k logKey, ms []marker) error {
	fault := func(code FaultCode, n uint64, lo, hi int64) {
		r.fault(Fault{Code: code, Count: n, Topic: k.topic, Partition: k.partition, Epoch: k.epoch, Lo: lo, Hi: hi})
	}
	tiles, overlaps, gaps := lay(ms)
	if len(tiles) == 0 {
		return nil
	}
	p := PartitionReport{Topic: k.topic, Partition: k.partition, Epoch: k.epoch, Markers: len(ms), Lo: tiles[0].from, Hi: tiles[len(tiles)-1].to}
	for _, g := range gaps {
		fault(FaultGap, uint64(g.hi-g.lo+1), g.lo, g.hi)
	}
	for _, o := range overlaps {
		fault(FaultOverlap, uint64(o.hi-o.lo+1), o.lo, o.hi)
	}
	ranges := []span{{p.Lo, p.Hi}} // and those of which a higher generation covers a part: the tables know what the rest held
	for _, t := range tiles {
		if t.reason != "gap" && !t.whole() {
			ranges = append(ranges, span{t.from, t.to})
		}
	}
	stored, err := s.held(ctx, r, "interactions", k, ranges)
	if err != nil {
		return err
	}
	refused, err := s.held(ctx, r, "rejected", k, ranges)
	if err != nil {
		return err
	}
	p.Stored = stored[0]
	rejected, rest := refused[0], 1
	// Of ranges that were recounted, the rows of deleted months are not in the tables any more.
	purged, unknown := r.purged.of("interactions", k, ranges[1:])
	purgedRejected, unknownRejected := r.purged.of("rejected", k, ranges[1:])
	p.Purged, rejected = purged, rejected+purgedRejected
	for _, t := range tiles {
		length := uint64(t.to - t.from + 1)
		switch {
		case t.reason == "gap":
			p.Lost += length
		case t.whole():
			p.Rows, p.Rejected, p.Skipped = p.Rows+t.rows, p.Rejected+t.rejected, p.Skipped+t.skipped
			if t.rows+t.rejected+t.skipped != length {
				fault(FaultMarkerSum, t.rows+t.rejected+t.skipped, t.lo, t.hi)
			}
		default:
			n, m := stored[rest], refused[rest]
			rest++
			p.Rows, p.Rejected, p.Skipped, p.Recounted = p.Rows+n, p.Rejected+m, p.Skipped+length-n-m, true
		}
	}
	if had := p.Stored + p.Purged; had > p.Rows+unknown {
		fault(FaultRowsMissing, had-p.Rows, p.Lo, p.Hi)
	}
	if rejected < p.Rejected || rejected > p.Rejected+unknownRejected {
		fault(FaultRejectedMissing, max(rejected, p.Rejected)-min(rejected, p.Rejected), p.Lo, p.Hi)
	}
	r.Partitions = append(r.Partitions, p)
	r.Rows += p.Rows
	r.Purged += p.Purged
	r.Rejected += rejected
	return nil
}

// rangesAtOnce bounds the width of a query of held.
const rangesAtOnce = 200

// held counts the rows of a partition in each of some ranges of offsets, without those of deleted months.
func (s *Store) held(ctx context.Context, r *Report, table string, k logKey, ranges []span) (counts []uint64, err error) {
	for some := range slices.Chunk(ranges, rangesAtOnce) {
		lo, hi := some[0].lo, some[0].hi
		var columns []string
		for _, x := range some {
			lo, hi = min(lo, x.lo), max(hi, x.hi)
			columns = append(columns, fmt.Sprintf("countIf(offset BETWEEN %d AND %d)", x.lo, x.hi))
		}
		q := s.from(table).current().and("topic = ?", k.topic).and("epoch = ?", k.epoch).and("partition = ?", k.partition).
			and("offset >= ?", lo).and("offset <= ?", hi)
		r.purged.standing(s, table, q)
		var ns []uint64
		if err := s.one(ctx, "store: check partition", q.sql("["+strings.Join(columns, ", ")+"]", ""), q.args, &ns); err != nil {
			return nil, err
		}
		counts = append(counts, ns...)
	}
	return counts, nil
}

// checkTotals counts keys, duplicates, conflicts and what is in flight.
func (s *Store) checkTotals(ctx context.Context, r *Report) error {
	const op = "store: check totals"
	if err := s.one(ctx, op, s.from("interactions").current().sql("count()", ""), nil, &r.Interactions); err != nil {
		return err
	}
	if err := s.one(ctx, op, s.from("audit_current").current().sql("count()", ""), nil, &r.Current); err != nil {
		return err
	}
	standing, stored, had := r.Interactions, uint64(0), uint64(0)
	if r.Purged > 0 {
		if err := s.one(ctx, op, r.purged.standing(s, "interactions", s.from("interactions").current()).sql("count()", ""), nil, &standing); err != nil {
			return err
		}
	}
	for _, p := range r.Partitions {
		stored, had = stored+p.Stored, had+p.Stored+p.Purged
	}
	r.InFlight = standing - min(stored, standing)
	r.Duplicates = r.Rows - min(had, r.Rows)
	return s.checkIDs(ctx, r)
}

// checkIDs looks at ids that have more than one row. They are rare: groups of one row are dropped as
// they are made, and large states spill.
func (s *Store) checkIDs(ctx context.Context, r *Report) error {
	const op = "store: check ids"
	groups := s.from("interactions").current().sql(`event_id, min(content_digest) != max(content_digest) AS conflict, min(event_day) != max(event_day) AS days`,
		"GROUP BY tenant_id, event_id HAVING count() > 1")
	var conflicts []uuid.UUID
	err := s.one(ctx, op, "SELECT countIf(conflict), groupArrayIf(10)(event_id, conflict), countIf(days) FROM ("+groups+") SETTINGS "+spill, nil, &r.IDConflicts, &conflicts, &r.OtherDays)
	if err != nil {
		return err
	}
	r.Conflicts = texts(conflicts)
	// A day is a function of the event's own time or id, so only an assumed time may give two.
	twice := s.from("interactions").current().sql("event_id, count() - 1 AS more", "GROUP BY tenant_id, event_id, content_digest HAVING count() > 1 AND max(time_assumed) = 0")
	var n uint64
	var events []uuid.UUID
	if err := s.one(ctx, op, "SELECT toUInt64(sum(more)), groupArray(10)(event_id) FROM ("+twice+") SETTINGS "+spill, nil, &n, &events); err != nil {
		return err
	}
	if n > 0 {
		r.fault(Fault{Code: FaultDoubled, Count: n, Events: texts(events)})
	}
	return nil
}

func texts(ids []uuid.UUID) (out []string) {
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}

// checkOffsets looks for offsets that stand in two places.
func (s *Store) checkOffsets(ctx context.Context, r *Report) error {
	const op = "store: check offsets"
	for i, p := range r.Partitions {
		const place = "topic = ? AND epoch = ? AND partition = ?"
		args := []any{p.Topic, p.Epoch, p.Partition}
		inter := s.from("interactions").current().and(place, args...)
		reject := s.from("rejected").current().and(place, args...)
		var twice, both uint64
		if err := s.one(ctx, op, inter.sql("toUInt64(count() - groupBitmap(toUInt64(offset)))", ""), inter.args, &twice); err != nil {
			return err
		}
		inter.and("offset IN ("+reject.sql("offset", "")+")", reject.args...)
		if err := s.one(ctx, op, inter.sql("count()", ""), inter.args, &both); err != nil {
			return err
		}
		if twice+both > 0 {
			r.fault(Fault{Code: FaultOffsetTwice, Count: twice + both, Topic: p.Topic, Partition: p.Partition, Epoch: p.Epoch, Lo: p.Lo, Hi: p.Hi})
		}
		r.tell("offsets", i+1, len(r.Partitions))
	}
	return nil
}
