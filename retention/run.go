package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Outcome is what a run did.
type Outcome struct {
	Partitions  int    // dropped whole
	Mutations   int    // partitions of which some rows were deleted
	Texts       uint64 // rows of texts and users that went
	Rows        uint64 // rows without text that went
	Bytes       uint64 // on the disk, about
	Held        uint64 // rows of texts that holds kept of them
	Frozen      int    // months of tenants
	Waiting     int    // months of tenants that are due and do not go yet
	Blocked     int    // of them those that wait for a mend
	Inactive    uint64 // parts that are not in use and still on the disk
	Detached    uint64 // parts that were set aside by the server: look at them by hand
	OldestDays  int64  // age of the oldest text in days
	HoldsActive int
}

// Run does what the plan of now says and waits until what it dropped is off the disk. On an error what
// was done stays done; the next run goes on. Of a step to which rows come while it deletes, and again while it is done
// once more, it tells at its end: it keeps nothing else from going. progress hears of each step, and while it waits.
func (r *Retention) Run(ctx context.Context, progress func(done, total int)) (out Outcome, err error) {
	p, err := r.Plan(ctx, time.Time{})
	if err != nil {
		return out, err
	}
	var late error
	for i := range p.Steps {
		err := r.step(ctx, p, &p.Steps[i], &out)
		if errors.Is(err, errLate) {
			err = r.step(ctx, p, &p.Steps[i], &out)
		}
		switch {
		case errors.Is(err, errLate):
			late = err
		case err != nil:
			return out, err
		}
		progress(i+1, len(p.Steps))
	}
	erasures, erased, err := r.eraseAgain(ctx, &out, progress)
	if err != nil {
		return out, err
	}
	if err := r.settleMonths(ctx); err != nil {
		return out, err
	}
	if err := r.settleSteps(ctx, p.At); err != nil {
		return out, err
	}
	for _, w := range p.Waiting {
		if out.Waiting++; w.Until.IsZero() {
			out.Blocked++
		}
	}
	for i := range p.holds {
		out.HoldsActive += int(flag(p.holds[i].Active()))
	}
	gone := *p
	gone.Steps = append(slices.Clip(p.Steps), erased...)
	if out.Inactive, err = r.offDisk(ctx, &gone, func() { progress(len(p.Steps), len(p.Steps)) }); err != nil {
		return out, err
	}
	if out.Inactive == 0 {
		if err := r.noteErased(ctx, erasures); err != nil {
			return out, err
		}
	}
	if out.Detached, err = r.detached(ctx); err != nil {
		return out, err
	}
	var oldest time.Time
	err = r.one(ctx, "retention: oldest text", "SELECT min(event_day) FROM {db}.interaction_texts", nil, &oldest)
	if oldest.Unix() > 0 {
		out.OldestDays = int64(dayOf(p.At).Sub(oldest.UTC()) / (24 * time.Hour))
	}
	if err == nil {
		err = late
	}
	return out, err
}

func (r *Retention) step(ctx context.Context, p *Plan, s *Step, out *Outcome) error {
	if err := ctx.Err(); err != nil {
		return audit.E("retention: run", audit.KindUnavailable, err)
	}
	if s.Action == Freeze {
		out.Frozen++
		return r.freeze(ctx, p, s)
	}
	done, err := r.remove(ctx, p, s)
	if err != nil || done == nil {
		return err
	}
	if done.Action == Drop {
		out.Partitions++
	} else {
		out.Mutations++
	}
	if slices.Contains(textTables, s.Object) || s.Object == "texts_held" {
		out.Texts += done.Rows
	} else {
		out.Rows += done.Rows
	}
	out.Bytes, out.Held = out.Bytes+done.Bytes, out.Held+done.Held
	return nil
}

func (r *Retention) freeze(ctx context.Context, p *Plan, s *Step) error {
	t := s.Tenants[0].Tenant
	if err := r.record(ctx, s, begun, p.At); err != nil {
		return err
	}
	if _, err := r.freezeMonth(ctx, t, s.Period, p.At); err != nil {
		return err
	}
	if err := r.hook("frozen"); err != nil {
		return err
	}
	return r.record(ctx, s, done, p.At)
}

// keepHeld copies what holds name of a text partition into texts_held and proves that it is there.
func (r *Retention) keepHeld(ctx context.Context, s *Step) error {
	holds, err := r.Holds(ctx)
	if err != nil {
		return err
	}
	s.Held = 0
	for i := range s.Tenants {
		t := &s.Tenants[i]
		t.Held = 0
		for _, h := range active(holds, t.Tenant) {
			c, ok := h.texts(r.db, s.Period)
			if !ok {
				continue
			}
			if err := r.keep(ctx, s, h, c); err != nil {
				return err
			}
		}
		if t.Held, err = r.named(ctx, s, active(holds, t.Tenant)); err != nil {
			return err
		}
		s.Held += t.Held
	}
	return nil
}

// keep copies what one hold names, unless all of it is there already.
func (r *Retention) keep(ctx context.Context, s *Step, h *Hold, c cond) error {
	const op, key = "retention: keep held texts", "event_id, kind, source_id, sipHash128(text)"
	from := " FROM {db}.interaction_texts FINAL WHERE retention_class = ? AND event_day = toDate(?) AND " + c.sql
	args := append([]any{s.Class, date(s.Period)}, c.args...)
	id := "toUUID('" + h.ID.String() + "')"
	missing := func() (missing, all uint64, err error) {
		sql := "SELECT countIf((" + key + ") NOT IN (SELECT " + key + " FROM {db}.texts_held FINAL WHERE hold_id = " + id + " AND event_day = toDate(?))), count()" + from
		err = r.one(ctx, op, sql, append([]any{date(s.Period)}, args...), &missing, &all)
		return missing, all, err
	}
	n, _, err := missing()
	if err != nil || n == 0 {
		return err
	}
	err = r.execQuietly(ctx, op, "INSERT INTO {db}.texts_held (hold_id, tenant_id, event_day, event_id, kind, source_id, version, retention_class, text, held_at) SELECT "+id+
		", tenant_id, event_day, event_id, kind, source_id, version, retention_class, text, now64(3)"+from, args...)
	if err != nil {
		return err
	}
	n, all, err := missing()
	if err == nil && n > 0 {
		err = audit.E(op, audit.KindInternal, fmt.Errorf("%d of %d texts of %s did not arrive in texts_held", n, all, date(s.Period)))
	}
	return err
}

// offDisk waits until no part that a run took out of use is on the disk. It gives how many are left.
func (r *Retention) offDisk(ctx context.Context, p *Plan, waiting func()) (left uint64, err error) {
	for until := time.Now().Add(r.opt.DiskWait); ; {
		var tables []string
		if left, tables, err = r.oldParts(ctx, p.Steps); err != nil || left == 0 || time.Now().After(until) {
			return left, err
		}
		r.wake(ctx, tables)
		waiting()
		t := time.NewTimer(r.opt.Poll)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return left, audit.E("retention: old parts", audit.KindUnavailable, ctx.Err())
		}
	}
}

// oldParts counts the parts that are not in use and still on the disk: of the partitions of some steps,
// and of any text partition that holds nothing any more, whenever it was dropped.
func (r *Retention) oldParts(ctx context.Context, steps []Step) (left uint64, tables []string, err error) {
	touched := []string{"('', '')"}
	for _, s := range steps {
		id := s.partition
		if s.Object == "rejected" {
			id = "all" // a table without partitions has this one
		}
		if id != "" {
			touched = append(touched, "("+quoted(s.Object)+", "+quoted(id)+")")
		}
	}
	const private = "('interaction_texts', 'interaction_users', 'texts_held')"
	parts := r.parts()
	sql := "SELECT count(), groupUniqArray(toString(table)) FROM " + parts + " WHERE database = ? AND NOT active AND ((table, partition_id) IN (" + strings.Join(touched, ", ") + ") OR table IN " + private +
		" AND (table, partition_id) NOT IN (SELECT table, partition_id FROM " + parts + " WHERE database = ? AND active AND rows > 0))"
	err = r.one(ctx, "retention: old parts", sql, []any{r.db, r.db}, &left, &tables)
	return left, tables, err
}

// wake makes the server look for old parts now: in a quiet table it waits up to five minutes. That the
// statement may be refused (a right of its own, an older server) costs only time.
func (r *Retention) wake(ctx context.Context, tables []string) {
	for _, table := range tables {
		_ = r.conn.Exec(ctx, "SYSTEM START CLEANUP "+r.db+"."+table)
	}
}

// parts is the list of parts of all servers.
func (r *Retention) parts() string {
	if r.opt.Cluster == "" {
		return "system.parts"
	}
	return "clusterAllReplicas(" + r.opt.Cluster + ", system.parts)"
}

// detached counts parts that the server set aside and never deletes: they may hold text.
func (r *Retention) detached(ctx context.Context) (n uint64, err error) {
	err = r.one(ctx, "retention: detached parts", "SELECT count() FROM system.detached_parts WHERE database = ?", []any{r.db}, &n)
	return n, err
}
