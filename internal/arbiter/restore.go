package arbiter

import (
	"context"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// Restored says what Restore found and did.
type Restored struct {
	Held         int      `json:"held"`              // decisions that the log has
	Written      int      `json:"written"`           // written back
	Contradicted []string `json:"contradicted"`      // keys that the log decided otherwise: what the log says holds
	Unknown      []string `json:"unknown,omitempty"` // keys of kinds that this program does not know: not written
}

const restoreRows = 500 // records of one request

// Restore writes the store's decisions that the log lacks back into it, under their old proposal ids
// and in their order, and projects the log anew. It is for a log that was replaced ([ErrReplaced]):
// processes with a store refuse to decide until then. It may run again at any time. Opt needs Rules
// and Store.
func Restore(ctx context.Context, conn kafkaconn.Config, opt Options) (*Restored, error) {
	const op = "arbiter: restore"
	if opt.Rules == nil || opt.Store == nil {
		return nil, audit.E(op, audit.KindInvalid, errNoStore)
	}
	a, err := build(conn, opt)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	defer func() { _ = a.shut(context.WithoutCancel(ctx)) }()
	if err := a.withID(ctx); err != nil {
		return nil, classed(op, err)
	}
	rep := &Restored{Contradicted: []string{}}
	msgs, err := a.lacking(ctx, rep)
	if err != nil {
		return nil, classed(op, err)
	}
	for len(msgs) > 0 {
		n := min(len(msgs), restoreRows)
		if err := a.opt.produce(ctx, msgs[:n]); err != nil {
			return nil, classed(op, err)
		}
		rep.Written, msgs = rep.Written+n, msgs[n:]
	}
	return rep, classed(op, a.reproject(ctx))
}

// withID folds the log and gives it an id when it has none.
func (a *Kafka) withID(ctx context.Context) error {
	none := func(*Decision) {}
	if err := a.foldAll(ctx, none); err != nil || !a.fold.log.IsZero() {
		return err
	}
	value, err := encode(wire{Log: audit.NewID(time.Now()).String(), By: a.opt.Proposer})
	if err != nil {
		return err
	}
	if err := a.opt.produce(ctx, []kafkago.Message{{Topic: a.opt.Topic, Key: []byte(genesisKey), Value: value}}); err != nil {
		return err
	}
	return a.foldAll(ctx, none)
}

// lacking makes the records that the log needs to hold what the store says: of each key and number
// the newest row. A key that was decided otherwise in the log is left as the log has it.
func (a *Kafka) lacking(ctx context.Context, rep *Restored) ([]kafkago.Message, error) {
	var msgs []kafkago.Message
	lost := map[Key]bool{} // contradicted: what followed there rests on something else
	s := a.opt.Store
	err := s.query(ctx, func(r *row) error {
		if lost[r.Key] {
			return nil
		}
		if _, known := a.opt.Rules.kinds[r.Key.Kind]; !known {
			rep.Unknown = append(rep.Unknown, r.Key.String())
			return nil
		}
		if offsets := a.offsets(r.Key); int(r.Seq) <= len(offsets) {
			d, err := a.at(ctx, offsets[r.Seq-1])
			if err == nil && d.Proposal != r.Proposal {
				lost[r.Key] = true
				rep.Contradicted = append(rep.Contradicted, r.Key.String())
			} else if err == nil {
				rep.Held++
			}
			return err
		}
		value, err := encode(wire{
			Log: a.fold.log.String(), Proposal: r.Proposal.String(), Seq: r.Seq, By: r.Proposer, Value: r.Value,
			Restored: r.Time.Format(time.RFC3339Nano),
		})
		msgs = append(msgs, kafkago.Message{Topic: a.opt.Topic, Key: []byte(r.Key.String()), Value: value})
		return err
	}, "SELECT * FROM (SELECT "+columns("value")+" FROM "+s.table+" FINAL ORDER BY decided_at DESC, n DESC LIMIT 1 BY kind, key, seq) ORDER BY seq, decided_at, n")
	return msgs, chconn.Wrap("arbiter: read the projection", err)
}

// reproject writes the whole log's decisions into the store.
func (a *Kafka) reproject(ctx context.Context) error {
	b := &Kafka{opt: a.opt, log: a.log, cache: a.cache, waiting: a.waiting}
	var rows []row
	var sum uint64
	err := b.foldAll(ctx, func(d *Decision) {
		sum += mark(d)
		rows = append(rows, row{Decision: *d, sum: sum, rules: a.opt.Rules.sum})
	})
	for err == nil && len(rows) > 0 {
		n := min(len(rows), projectRows)
		err = a.opt.Store.write(ctx, rows[:n])
		rows = rows[n:]
	}
	return err
}
