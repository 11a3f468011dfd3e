package retention

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

// recorded is under which id and version a share is recorded. It is the same from beginning to end, whatever holds make of
// its rows meanwhile.
type recorded struct {
	id      audit.ID
	version uint64 // of begun; done is the next
}

// record notes a step, a row for each tenant.
func (r *Retention) record(ctx context.Context, s *Step, state string, at time.Time) error {
	return r.recordAll(ctx, []Step{*s}, state, at)
}

// recordAll is record for several steps in one insert.
func (r *Retention) recordAll(ctx context.Context, steps []Step, state string, at time.Time) error {
	const op = "retention: record"
	if err := r.number(ctx, op, steps); err != nil {
		return err
	}
	b, err := r.conn.PrepareBatch(ctx, "INSERT INTO "+r.db+".retention_runs (object, class, period, tenant_id, drop_id, version, action, state, rows, bytes, held, at)")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = b.Close() }()
	for _, s := range steps {
		for _, t := range s.Tenants {
			bytes := uint64(0)
			if s.Rows > 0 {
				bytes = uint64(float64(s.Bytes) * float64(t.Rows) / float64(s.Rows))
			}
			version := t.as.version
			if state != begun {
				version++
			}
			if err := b.Append(s.Object, s.Class, s.Period, t.Tenant, uuid.UUID(t.as.id), version, string(s.Action), state, t.Rows, bytes, t.Held, at.UnixMilli()); err != nil {
				return chconn.Wrap(op, err)
			}
		}
	}
	return chconn.Wrap(op, b.Send())
}

// number gives the shares of steps that have none yet an id made of what is there, and the version with which it reads as
// begun: what came again as it was and goes once more was recorded as done before.
func (r *Retention) number(ctx context.Context, op string, steps []Step) error {
	shares := map[audit.ID][]*Share{}
	var ids []string
	for i := range steps {
		s := &steps[i]
		for j := range s.Tenants {
			t := &s.Tenants[j]
			if t.as.version > 0 {
				continue
			}
			t.as = recorded{audit.DeriveID(s.Object, s.Class, date(s.Period), t.Tenant, fmt.Sprint(t.Rows, t.sum)), 1}
			shares[t.as.id], ids = append(shares[t.as.id], t), append(ids, "toUUID('"+t.as.id.String()+"')")
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return r.each(ctx, op, "SELECT drop_id, version + (state != 'begun') FROM {db}.retention_runs FINAL WHERE object = ? AND drop_id IN ("+strings.Join(ids, ", ")+")", []any{steps[0].Object}, func(scan func(...any) error) error {
		var id uuid.UUID
		var version uint64
		err := scan(&id, &version)
		for _, t := range shares[audit.ID(id)] {
			t.as.version = version
		}
		return err
	})
}

// dropping are the days of texts that a run or an erasure has begun to take and not ended, as far as a hold may name them.
// What was begun longer ago than a mutation may take was broken off, and waits for the next run, which reads the holds.
func (r *Retention) dropping(ctx context.Context, h *Hold) ([]time.Time, error) {
	var days []time.Time
	err := r.each(ctx, "retention: runs under way", `SELECT DISTINCT period FROM {db}.retention_runs FINAL WHERE object = 'interaction_texts' AND tenant_id = ? AND state = 'begun' AND at > `+
		instant+" ORDER BY period", []any{h.Tenant, h.At.Add(-longest).UnixMilli()}, func(scan func(...any) error) error {
		var d time.Time
		if err := scan(&d); err != nil {
			return err
		}
		if _, ok := h.texts(r.db, d.UTC()); ok {
			days = append(days, d.UTC())
		}
		return nil
	})
	return days, err
}
