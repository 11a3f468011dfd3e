package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

// where is the condition for all of the step's partition.
func (s *Step) where() cond {
	switch {
	case s.Object == "texts_held":
		return cond{"hold_id = toUUID(?)", []any{s.Class}}
	case s.Object == "job_runs":
		return cond{"toStartOfMonth(started_at) = toDate(?)", []any{date(s.Period)}}
	case s.month:
		return cond{inMonth, []any{date(s.Period), date(s.Period)}}
	}
	return cond{"retention_class = ? AND event_day = toDate(?)", []any{s.Class, date(s.Period)}}
}

// remove drops or deletes what a step names and is there now; nil when there is nothing any more.
func (r *Retention) remove(ctx context.Context, p *Plan, planned *Step) (*Step, error) {
	s := *planned
	if err := r.begin(ctx, p, &s); err != nil {
		return nil, err
	}
	if s.Object == "interaction_texts" {
		if err := r.keepHeld(ctx, &s); err != nil {
			return nil, err
		}
	}
	if err := r.hook("kept " + s.Object); err != nil {
		return nil, err
	}
	// What came since the plan was made, and whose: another tenant's rows must not go along.
	if err := r.recount(ctx, &s); err != nil || s.Rows == 0 {
		return nil, err
	}
	if err := r.record(ctx, &s, begun, p.At); err != nil {
		return nil, err
	}
	if err := r.pick(ctx, &s); err != nil {
		return nil, err
	}
	if s.Object == "interaction_texts" { // a hold that was placed since then sees the record, or is seen here
		if err := r.keepHeld(ctx, &s); err != nil {
			return nil, err
		}
	}
	keep := cond{sql: "0"}
	if s.ofMonths() {
		var err error
		if keep, err = r.spare(ctx, &s, p.At); err != nil {
			return nil, err
		}
	}
	if err := r.hook("picked " + s.Object); err != nil {
		return nil, err
	}
	if err := r.alter(ctx, &s, keep); err != nil {
		return nil, err
	}
	if err := r.hook("dropped " + s.Object); err != nil {
		return nil, err
	}
	if err := r.verify(ctx, &s, keep); err != nil {
		return nil, err
	}
	return &s, r.record(ctx, &s, done, p.At)
}

// begin freezes the months of a step over rows once more, which mends a freeze that was broken off.
func (r *Retention) begin(ctx context.Context, p *Plan, s *Step) error {
	if !slices.Contains(monthTables, s.Object) {
		return nil
	}
	for _, t := range s.Tenants {
		if _, err := r.freezeMonth(ctx, t.Tenant, s.Period, p.At); err != nil {
			return err
		}
	}
	return nil
}

// recount brings a step up to date with what is there: tenants that are not due make a drop a deletion.
func (r *Retention) recount(ctx context.Context, s *Step) error {
	tenant, sum := "tenant_id", "groupBitXor(version)"
	if s.Object == "job_runs" {
		tenant, sum = "''", "groupBitXor(sipHash64(run_id))"
	}
	due := s.Tenants
	s.Rows, s.Tenants = 0, nil
	w := s.where()
	return r.each(ctx, "retention: count "+s.Object, "SELECT "+tenant+" AS tenant, count(), "+sum+" FROM {db}."+s.Object+" FINAL WHERE "+w.sql+" GROUP BY tenant ORDER BY tenant", w.args, func(scan func(...any) error) error {
		var t Share
		if err := scan(&t.Tenant, &t.Rows, &t.sum); err != nil {
			return err
		}
		at := slices.IndexFunc(due, func(d Share) bool { return d.Tenant == t.Tenant })
		if at < 0 {
			s.Action = Delete
			return nil
		}
		if t.Held = due[at].Held; s.month {
			t.Rows -= min(t.Held, t.Rows)
		}
		s.Tenants, s.Rows = append(s.Tenants, t), s.Rows+t.Rows
		return nil
	})
}

// ofMonths tells whether the step is over rows without text of tenants' months.
func (s *Step) ofMonths() bool { return s.month && s.Object != "job_runs" }

// ofRows tells it by the table.
func (s *Step) ofRows() bool { return s.Object == "rejected" || slices.Contains(monthTables, s.Object) }

// pick names the parts of a partition that is to be dropped. Parts never change, so what is dropped is what was looked at: a
// tenant that is not due and delivers meanwhile has its rows in a part of its own, and where it has some already the drop
// becomes a deletion.
func (r *Retention) pick(ctx context.Context, s *Step) error {
	if s.Action != Drop || s.alone() {
		return nil
	}
	others := uint64(0)
	err := r.each(ctx, "retention: look at parts of "+s.Object, "SELECT _part, countIf(NOT "+list(s.tenants())+") FROM {db}."+s.Object+" WHERE _partition_id = "+quoted(s.partition)+" GROUP BY _part ORDER BY _part", nil, func(scan func(...any) error) error {
		var part string
		var n uint64
		err := scan(&part, &n)
		s.parts, others = append(s.parts, quoted(part)), others+n
		return err
	})
	if others > 0 {
		s.delete()
	}
	return err
}

// alone tells whether there are no tenants in the partition that could have other limits: it is one hold's, or nobody's.
func (s *Step) alone() bool { return s.Object == "texts_held" || s.Object == "job_runs" }

// delete makes a drop a deletion.
func (s *Step) delete() { s.Action, s.parts = Delete, nil }

// inParts restricts a condition to the parts that are dropped.
func (s *Step) inParts() string {
	switch {
	case s.Action != Drop || s.alone():
		return ""
	case len(s.parts) == 0: // another run was faster
		return " AND 0"
	}
	return " AND _part IN (" + strings.Join(s.parts, ", ") + ")"
}

// spare gives what holds keep of a month as they are now, since one may have been placed or released since the plan was made,
// and records how many rows go by that: they explain to a check what is gone.
func (r *Retention) spare(ctx context.Context, s *Step, at time.Time) (keep cond, err error) {
	holds, err := r.Holds(ctx)
	if err != nil {
		return keep, err
	}
	var of []*Hold
	for _, t := range s.tenants() {
		of = append(of, active(holds, t)...)
	}
	if keep = kept(of, r.db); len(of) > 0 {
		s.delete()
	}
	now := map[string][2]uint64{}
	w := s.where()
	sql := "SELECT tenant_id, countIf(NOT " + keep.sql + "), countIf(" + keep.sql + ") FROM {db}." + s.Object + " FINAL WHERE " + w.sql + " AND " + list(s.tenants()) + s.inParts() + " GROUP BY tenant_id"
	err = r.each(ctx, "retention: count "+s.Object, sql, slices.Concat(keep.args, keep.args, w.args), func(scan func(...any) error) error {
		var tenant string
		var n [2]uint64
		err := scan(&tenant, &n[0], &n[1])
		now[tenant] = n
		return err
	})
	if err != nil {
		return keep, err
	}
	changed := false
	s.Rows, s.Held = 0, 0
	for i := range s.Tenants {
		t := &s.Tenants[i]
		n := now[t.Tenant]
		changed = changed || n != [2]uint64{t.Rows, t.Held}
		t.Rows, t.Held = n[0], n[1]
		s.Rows, s.Held = s.Rows+t.Rows, s.Held+t.Held
	}
	if changed {
		if err := r.record(ctx, s, begun, at); err != nil { // of two of a version the later one holds
			return keep, err
		}
	}
	return keep, r.notePurged(ctx, s, at)
}

// alter takes the rows out; the condition says what of the step's tenants stays.
func (r *Retention) alter(ctx context.Context, s *Step, keep cond) error {
	op := "retention: " + string(s.Action) + " " + s.Object
	if s.Action == Drop && s.alone() {
		return r.exec(ctx, op, "ALTER TABLE {db}."+s.Object+" DROP PARTITION ID "+quoted(s.partition))
	}
	if s.Action == Drop {
		if dropped, err := r.dropParts(ctx, op, s); err != nil || dropped {
			return err
		}
		s.delete()
	}
	in, w := "", s.where()
	if s.partition != "" {
		in = " IN PARTITION ID " + quoted(s.partition)
	}
	return r.exec(ctx, op, "ALTER TABLE {db}."+s.Object+" DELETE"+in+" WHERE "+w.sql+" AND "+list(s.tenants())+" AND NOT "+keep.sql, append(w.args, keep.args...)...)
}

// dropParts drops the parts that were picked, and picks again where some of them have become another one; false says that
// others have rows in it now, or that parts were merged faster than they were looked at.
func (r *Retention) dropParts(ctx context.Context, op string, s *Step) (bool, error) {
	for range 5 {
		err := r.dropEach(ctx, op, s)
		if err == nil || !merged(err) {
			return err == nil, err
		}
		s.parts = nil
		if err := r.pick(ctx, s); err != nil || s.Action != Drop {
			return false, err
		}
		if s.Object == "interaction_texts" {
			if err := r.keepHeld(ctx, s); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

func (r *Retention) dropEach(ctx context.Context, op string, s *Step) error {
	for _, part := range s.parts {
		if err := r.exec(ctx, op, "ALTER TABLE {db}."+s.Object+" DROP PART "+part); err != nil {
			return err
		}
	}
	return nil
}

// merged tells whether a part could not be dropped because it is part of another one by now, or about to be.
func merged(err error) bool {
	const noSuchPart, locked = 232, 384
	code := chconn.Code(err)
	return code == noSuchPart || code == locked
}

// verify makes sure that nothing is left of what should have gone.
func (r *Retention) verify(ctx context.Context, s *Step, keep cond) error {
	w, n := s.where(), uint64(0)
	sql := "SELECT count() FROM {db}." + s.Object + " WHERE " + w.sql + s.inParts()
	if s.Object != "job_runs" {
		sql += " AND " + list(s.tenants()) + " AND NOT " + keep.sql
		w.args = append(w.args, keep.args...)
	}
	op := "retention: verify " + s.Object
	if err := r.one(ctx, op, sql, w.args, &n); err != nil {
		return err
	}
	if n > 0 {
		return audit.E(op, audit.KindUnavailable, fmt.Errorf("%d %w", n, errLate))
	}
	return nil
}

// errLate says that rows of a step came while it was at work, such as late events of that day.
var errLate = errors.New("rows are still there: they came meanwhile, and the next run takes them")
