package arbiter

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// Report says whether the projection is what the log says.
type Report struct {
	Log       string `json:"log"`     // id of the log; "" when nothing was ever decided
	Records   int64  `json:"records"` // offsets of the log
	Counts           // of its records
	Projected uint64 `json:"projected"` // rows of this log

	Behind      uint64    `json:"behind"`       // decisions after the last projected one: no fault
	BehindSince time.Time `json:"behind_since"` // when the first of them fell

	Missing      uint64 `json:"missing"`      // decisions without a row
	Extra        uint64 `json:"extra"`        // rows without a decision
	Unequal      uint64 `json:"unequal"`      // rows that differ from their decision
	Forgotten    uint64 `json:"forgotten"`    // decisions of a log before this one that this one lacks
	Contradicted uint64 `json:"contradicted"` // decisions of a log before this one that fell otherwise in this one
	Replaced     bool   `json:"replaced"`     // the projection is of another log

	Keys []string `json:"keys,omitempty"` // of the first faults
}

// OK tells that nothing is wrong.
func (r *Report) OK() bool {
	return r.Missing+r.Extra+r.Unequal+r.Forgotten+r.Contradicted == 0 && !r.Replaced
}

const maxShown = 10 // keys of faults

func (r *Report) fault(n *uint64, what string, k Key) {
	*n++
	if len(r.Keys) < maxShown {
		r.Keys = append(r.Keys, what+" "+k.String())
	}
}

// Verify folds the whole log anew and compares the store's projection with it, row by row. It needs
// no running arbiter and writes nothing; processes may decide meanwhile. Opt needs Rules and Store.
func Verify(ctx context.Context, conn kafkaconn.Config, opt Options) (*Report, error) {
	const op = "arbiter: verify"
	if opt.Rules == nil || opt.Store == nil {
		return nil, audit.E(op, audit.KindInvalid, errNoStore)
	}
	logs, err := opt.Store.logs(ctx)
	if err != nil {
		return nil, err
	}
	rep := &Report{}
	var last uint64 // the projection's end: what is written from here on is left out
	if len(logs) > 0 {
		if last, err = opt.Store.last(ctx, logs[0]); err != nil {
			return nil, err
		}
	}
	a, err := build(conn, opt)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	defer func() { _ = a.shut(context.WithoutCancel(ctx)) }()
	var want []uint64 // hash of decision n at n-1
	var sum uint64
	err = a.foldAll(ctx, func(d *Decision) {
		sum += mark(d)
		want = append(want, hash(&row{Decision: *d, sum: sum, rules: opt.Rules.sum}))
		if d.N == last+1 {
			rep.BehindSince = d.Time
		}
	})
	if err != nil {
		return nil, classed(op, err)
	}
	rep.Records, rep.Counts = a.next, a.fold.counts
	if !a.fold.log.IsZero() {
		rep.Log = a.fold.log.String()
	}
	if len(logs) > 0 && logs[0] != a.fold.log {
		rep.Replaced = true
		return rep, nil
	}
	if n := uint64(len(want)); n > last {
		rep.Behind = n - last
	}
	if err := rep.compare(ctx, opt.Store, a.fold.log, want, last); err != nil {
		return nil, chconn.Wrap(op, err)
	}
	return rep, chconn.Wrap(op, rep.history(ctx, opt.Store, a))
}

// compare walks the rows up to n = last in order.
func (r *Report) compare(ctx context.Context, s *Store, log audit.ID, want []uint64, last uint64) error {
	next := uint64(1) // the number of the row that should come
	missing := func(till uint64) {
		for ; next < till && next <= uint64(len(want)); next++ {
			r.Missing++
			if len(r.Keys) < maxShown {
				r.Keys = append(r.Keys, fmt.Sprintf("missing n=%d", next))
			}
		}
	}
	err := s.each(ctx, log, true, func(row *row) error {
		if row.N > last {
			return nil
		}
		r.Projected++
		missing(row.N)
		switch {
		case row.N == 0 || row.N > uint64(len(want)) || row.N < next:
			r.fault(&r.Extra, "extra", row.Key)
			return nil
		case want[row.N-1] != hash(row):
			r.fault(&r.Unequal, "unequal", row.Key)
		}
		next = row.N + 1
		return nil
	})
	missing(last + 1)
	return err
}

// history looks for decisions of logs before this one that this one lacks or contradicts.
func (r *Report) history(ctx context.Context, s *Store, a *Kafka) error {
	return s.query(ctx, func(row *row) error {
		offsets := a.offsets(row.Key)
		if int(row.Seq) > len(offsets) {
			r.fault(&r.Forgotten, "forgotten", row.Key)
			return nil
		}
		d, err := a.at(ctx, offsets[row.Seq-1])
		if err == nil && d.Proposal != row.Proposal {
			r.fault(&r.Contradicted, "contradicted", row.Key)
		}
		return err
	}, "SELECT "+columns("value")+" FROM "+s.table+" FINAL WHERE log_id != ? ORDER BY decided_at DESC, n DESC LIMIT 1 BY kind, key, seq", uuid.UUID(a.fold.log))
}

// last is the greatest n of a log's rows.
func (s *Store) last(ctx context.Context, log audit.ID) (n uint64, err error) {
	err = s.conn.QueryRow(ctx, "SELECT max(n) FROM "+s.table+" WHERE log_id = ?", uuid.UUID(log)).Scan(&n)
	return n, chconn.Wrap("arbiter: read the projection", err)
}

// foldAll folds what is in the log, from where the fold stands on, without following it.
func (a *Kafka) foldAll(ctx context.Context, each func(*Decision)) error {
	if a.fold == nil {
		a.fold = newFold(a.opt.Rules, func(offset int64) (Decision, error) { return a.at(ctx, offset) })
	}
	start, end, err := a.log.Bounds(ctx, 0)
	if err != nil {
		return err
	}
	if start > 0 {
		return ErrTrimmed
	}
	for a.next < end {
		chunk, err := a.log.Fetch(ctx, 0, a.next, fetchBytes)
		if err != nil {
			return err
		}
		for i := range chunk.Records {
			r := &chunk.Records[i]
			if isUndecodable(r) {
				return fmt.Errorf("the batch at offset %d cannot be read", r.Offset)
			}
			o, err := a.fold.judge(r)
			if err != nil {
				return err
			}
			a.settle(&o, r.Offset)
			if o.won && !o.genesis {
				each(&o.decision)
			}
		}
		a.next = chunk.Next
	}
	return nil
}

// shut lets go of what build opened.
func (a *Kafka) shut(ctx context.Context) error {
	err := a.producer.Close(ctx)
	a.log.Close()
	return err
}

// hash is of all that a row says.
func hash(r *row) uint64 {
	h := xxhash.New()
	put := func(b []byte) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(b)))
		_, _ = h.Write(n[:])
		_, _ = h.Write(b)
	}
	var n [56]byte
	binary.BigEndian.PutUint64(n[0:], uint64(r.Seq))
	binary.BigEndian.PutUint64(n[8:], uint64(r.Offset))
	binary.BigEndian.PutUint64(n[16:], uint64(r.Time.UnixMilli()))
	binary.BigEndian.PutUint64(n[24:], r.N)
	binary.BigEndian.PutUint64(n[32:], r.sum)
	binary.BigEndian.PutUint64(n[40:], r.rules)
	put(n[:])
	put([]byte(r.Key.String()))
	put([]byte(r.Proposer))
	put(r.Value)
	put(r.Log[:])
	put(r.Proposal[:])
	return h.Sum64()
}
