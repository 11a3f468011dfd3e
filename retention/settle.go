package retention

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// States of a step's record: what was begun is done, or ended where it was broken off and its record never becomes done, since
// another step took what was left or it is not due any more.
const (
	begun = "begun"
	done  = "done"
	ended = "ended"
)

// settleSteps ends the records of steps that were broken off before a run that has come to its end: it has taken what they
// left, and their content is not there any more to find the record by. It keeps their figures, which explain to a check what
// is gone.
func (r *Retention) settleSteps(ctx context.Context, at time.Time) error {
	var steps []Step
	err := r.each(ctx, "retention: look for steps that were broken off", "SELECT object, class, period, tenant_id, drop_id, version, action, rows, bytes, held, at FROM {db}.retention_runs FINAL WHERE state = '"+begun+"' AND at <= "+instant+
		" ORDER BY at, object, class, period, tenant_id, drop_id", []any{at.UnixMilli()}, func(scan func(...any) error) error {
		var s Step
		var t Share
		var id uuid.UUID
		var action string
		if err := scan(&s.Object, &s.Class, &s.Period, &t.Tenant, &id, &t.as.version, &action, &t.Rows, &s.Bytes, &t.Held, &s.begun); err != nil {
			return err
		}
		s.Action, s.Period, t.as.id, s.begun = Action(action), s.Period.UTC(), audit.ID(id), s.begun.UTC()
		s.month = s.Object == "job_runs" || s.ofRows()
		s.Rows, s.Tenants = t.Rows, []Share{t}
		steps = append(steps, s)
		return nil
	})
	if err != nil || len(steps) == 0 {
		return err
	}
	holds, err := r.Holds(ctx)
	if err != nil {
		return err
	}
	frozen, err := r.frozen(ctx)
	if err != nil {
		return err
	}
	for i := range steps {
		s := &steps[i]
		state, err := r.became(ctx, s, holds, frozen)
		if err == nil && state == begun && at.Sub(s.begun) > longest { // nobody is at it any more
			state = ended
		}
		if err == nil && state != begun {
			err = r.record(ctx, s, state, s.begun)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// became says what came of a step that was begun before this run.
func (r *Retention) became(ctx context.Context, s *Step, holds []Hold, frozen map[tenantMonth]time.Time) (state string, err error) {
	const op = "retention: look what became of a step"
	tenant := s.Tenants[0].Tenant
	switch s.Action {
	case Erase: // this run has taken out what is left of every erasure that there was
		return done, nil
	case Freeze:
		if _, ok := frozen[tenantMonth{tenant, s.Period}]; !ok {
			return begun, nil
		}
		_, err := r.freezeMonth(ctx, tenant, s.Period, s.begun)
		return done, err
	}
	w := s.where()
	sql, args := "SELECT count() FROM {db}."+s.Object+" WHERE "+w.sql, w.args
	if s.Object != "job_runs" {
		sql += " AND " + list(s.tenants())
	}
	if s.ofMonths() {
		keep := kept(active(holds, tenant), r.db)
		sql, args = sql+" AND NOT "+keep.sql, append(args, keep.args...)
	}
	var left, others uint64
	if err := r.one(ctx, op, sql, args, &left); err != nil || left > 0 {
		return begun, err
	}
	err = r.one(ctx, op, "SELECT count() FROM {db}.retention_runs FINAL WHERE object = ? AND class = ? AND period = toDate(?) AND tenant_id = ? AND state = '"+done+"' AND action != '"+string(Erase)+"' AND at >= "+instant,
		[]any{s.Object, s.Class, date(s.Period), tenant, s.begun.UnixMilli()}, &others)
	if others > 0 {
		return ended, err
	}
	return done, err
}
