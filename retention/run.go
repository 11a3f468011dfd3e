package retention

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
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
// was done stays done; the next run goes on. progress hears of each step, and while it waits.
func (r *Retention) Run(ctx context.Context, progress func(done, total int)) (out Outcome, err error) {
	p, err := r.Plan(ctx, time.Time{})
	if err != nil {
		return out, err
	}
	for i := range p.Steps {
		if err := r.step(ctx, p, &p.Steps[i], &out); err != nil {
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
	if err := r.record(ctx, s, "begun", p.At); err != nil {
		return err
	}
	if _, err := r.freezeMonth(ctx, t, s.Period, p.At); err != nil {
		return err
	}
	if err := r.hook("frozen"); err != nil {
		return err
	}
	return r.record(ctx, s, "done", p.At)
}

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
	if s.month && s.Object != "job_runs" {
		if err := r.notePurged(ctx, &s, p.At); err != nil {
			return nil, err
		}
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
	if err := r.record(ctx, &s, "begun", p.At); err != nil {
		return nil, err
	}
	if s.Object == "interaction_texts" { // a hold that was placed since then sees the record, or is seen here
		if err := r.keepHeld(ctx, &s); err != nil {
			return nil, err
		}
	}
	keep, err := r.alter(ctx, &s)
	if err != nil {
		return nil, err
	}
	if err := r.hook("dropped " + s.Object); err != nil {
		return nil, err
	}
	if err := r.verify(ctx, &s, keep); err != nil {
		return nil, err
	}
	return &s, r.record(ctx, &s, "done", p.At)
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

// alter takes the rows out; the condition says what of the step's tenants stays.
func (r *Retention) alter(ctx context.Context, s *Step) (keep cond, err error) {
	op := "retention: " + string(s.Action) + " " + s.Object
	keep = cond{sql: "0"}
	if s.month && s.Object != "job_runs" {
		holds, err := r.Holds(ctx) // again: one may have been placed since
		if err != nil {
			return keep, err
		}
		var of []*Hold
		for _, t := range s.tenants() {
			of = append(of, active(holds, t)...)
		}
		if keep = kept(of, r.db); len(of) > 0 {
			s.Action = Delete
		}
	}
	if s.Action == Drop {
		return keep, r.exec(ctx, op, "ALTER TABLE {db}."+s.Object+" DROP PARTITION ID "+quoted(s.partition))
	}
	in, w := "", s.where()
	if s.partition != "" {
		in = " IN PARTITION ID " + quoted(s.partition)
	}
	return keep, r.exec(ctx, op, "ALTER TABLE {db}."+s.Object+" DELETE"+in+" WHERE "+w.sql+" AND "+list(s.tenants())+" AND NOT "+keep.sql, append(w.args, keep.args...)...)
}

// verify makes sure that nothing is left of what should have gone.
func (r *Retention) verify(ctx context.Context, s *Step, keep cond) error {
	w, n := s.where(), uint64(0)
	sql := "SELECT count() FROM {db}." + s.Object + " WHERE " + w.sql
	if s.Object != "job_runs" {
		sql += " AND " + list(s.tenants()) + " AND NOT " + keep.sql
		w.args = append(w.args, keep.args...)
	}
	op := "retention: verify " + s.Object
	if err := r.one(ctx, op, sql, w.args, &n); err != nil {
		return err
	}
	if n > 0 { // late events of that day: the next run takes them
		return audit.E(op, audit.KindUnavailable, fmt.Errorf("%d rows are still there", n))
	}
	return nil
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

// record notes a step, a row for each tenant.
func (r *Retention) record(ctx context.Context, s *Step, state string, at time.Time) error {
	return r.recordAll(ctx, []Step{*s}, state, at)
}

// recordAll is record for several steps in one insert.
func (r *Retention) recordAll(ctx context.Context, steps []Step, state string, at time.Time) error {
	const op = "retention: record"
	b, err := r.conn.PrepareBatch(ctx, "INSERT INTO "+r.db+".retention_runs (object, class, period, tenant_id, drop_id, version, action, state, rows, bytes, held, at)")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = b.Close() }()
	version := uint64(1)
	if state == "done" {
		version = 2
	}
	for _, s := range steps {
		for _, t := range s.Tenants {
			id := audit.DeriveID(s.Object, s.Class, date(s.Period), t.Tenant, fmt.Sprint(t.Rows, t.sum))
			bytes := uint64(0)
			if s.Rows > 0 {
				bytes = uint64(float64(s.Bytes) * float64(t.Rows) / float64(s.Rows))
			}
			if err := b.Append(s.Object, s.Class, s.Period, t.Tenant, uuid.UUID(id), version, string(s.Action), state, t.Rows, bytes, t.Held, at.UnixMilli()); err != nil {
				return chconn.Wrap(op, err)
			}
		}
	}
	return chconn.Wrap(op, b.Send())
}

// dropping are the days of texts that a run of the last hour has begun to drop and not ended, as far as a
// hold may name them.
func (r *Retention) dropping(ctx context.Context, h *Hold) ([]time.Time, error) {
	var days []time.Time
	err := r.each(ctx, "retention: runs under way", `SELECT DISTINCT period FROM {db}.retention_runs FINAL WHERE object = 'interaction_texts' AND tenant_id = ? AND state = 'begun' AND at > `+
		instant+" ORDER BY period", []any{h.Tenant, h.At.Add(-time.Hour).UnixMilli()}, func(scan func(...any) error) error {
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
