package retention

import (
	"context"
	"strings"
	"time"
)

// notePurged writes down how many rows of a tenant's month each partition of the log has, before the
// first goes: `evenhand check` proves the commit markers with it. It is written once.
func (r *Retention) notePurged(ctx context.Context, s *Step, at time.Time) error {
	const op = "retention: note what goes"
	object := "interactions" // whichever of their tables goes first
	if s.Object == "rejected" {
		object = s.Object
	}
	for _, t := range s.Tenants {
		var n uint64
		args := []any{object, t.Tenant, date(s.Period)}
		if err := r.one(ctx, op, "SELECT count() FROM {db}.retention_purged WHERE object = ? AND tenant_id = ? AND month = toDate(?)", args, &n); err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		err := r.exec(ctx, op, `INSERT INTO {db}.retention_purged (object, tenant_id, month, topic, epoch, partition, version, rows, lo, hi, done, at)
			SELECT ?, ?, toDate(?), topic, epoch, partition, 1, count(), min(offset), max(offset), 0, `+instant+` FROM {db}.`+object+` FINAL
			WHERE tenant_id = ? AND `+inMonth+` GROUP BY topic, epoch, partition`,
			object, t.Tenant, date(s.Period), at.UnixMilli(), t.Tenant, date(s.Period), date(s.Period))
		if err != nil {
			return err
		}
	}
	return nil
}

// settleMonths marks the months whose rows have gone from all tables but for what holds keep.
func (r *Retention) settleMonths(ctx context.Context) error {
	const op = "retention: settle months"
	type purge struct {
		object string
		tenantMonth
	}
	var pending []purge
	err := r.each(ctx, op, "SELECT object, tenant_id, month FROM {db}.retention_purged FINAL WHERE done = 0 GROUP BY object, tenant_id, month ORDER BY object, tenant_id, month", nil, func(scan func(...any) error) error {
		var p purge
		if err := scan(&p.object, &p.tenant, &p.month); err != nil {
			return err
		}
		p.month = p.month.UTC()
		pending = append(pending, p)
		return nil
	})
	if err != nil || len(pending) == 0 {
		return err
	}
	holds, err := r.Holds(ctx)
	if err != nil {
		return err
	}
	for _, p := range pending {
		tables := []string{"rejected"}
		if p.object == "interactions" {
			tables = monthTables
		}
		keep := kept(active(holds, p.tenant), r.db)
		var counts []string
		var args []any
		for _, table := range tables {
			counts = append(counts, "(SELECT count() FROM {db}."+table+" WHERE tenant_id = ? AND "+inMonth+" AND NOT "+keep.sql+")")
			args = append(append(args, p.tenant, date(p.month), date(p.month)), keep.args...)
		}
		var left uint64
		if err := r.one(ctx, op, "SELECT toUInt64("+strings.Join(counts, " + ")+")", args, &left); err != nil {
			return err
		}
		if left > 0 {
			continue
		}
		err := r.exec(ctx, op, `INSERT INTO {db}.retention_purged (object, tenant_id, month, topic, epoch, partition, version, rows, lo, hi, done, at)
			SELECT object, tenant_id, month, topic, epoch, partition, 2, rows, lo, hi, 1, at FROM {db}.retention_purged FINAL WHERE object = ? AND tenant_id = ? AND month = toDate(?) AND done = 0`,
			p.object, p.tenant, date(p.month))
		if err != nil {
			return err
		}
	}
	return nil
}
