package retention

import (
	"context"
	"slices"
	"strings"
	"time"
)

// notePurged writes down how many rows of a tenant's month each partition of the log has, before they go: `evenhand check`
// proves the commit markers with it. What comes when the month has gone is added before it goes, too. Each row is counted at
// its place in the log and but once, so that nothing is explained that did not go: rows between the places of a note are in it
// already, whether a hold keeps them or they are delivered again. Its range takes in duplicates that are not merged yet.
func (r *Retention) notePurged(ctx context.Context, s *Step, at time.Time) error {
	const op = "retention: note what goes"
	object := "interactions" // whichever of their tables goes first
	if s.Object == "rejected" {
		object = s.Object
	}
	for _, t := range s.Tenants {
		month := []any{object, t.Tenant, date(s.Period)}
		if s.Object != object { // it is on the way to them
			var n uint64
			if err := r.one(ctx, op, "SELECT count() FROM {db}.retention_purged FINAL WHERE "+purgedMonth+" AND done = 0", month, &n); err != nil {
				return err
			}
			if n > 0 {
				continue
			}
		}
		rows := []any{t.Tenant, date(s.Period), date(s.Period)}
		const of = " WHERE tenant_id = ? AND " + inMonth
		err := r.exec(ctx, op, `INSERT INTO {db}.retention_purged (object, tenant_id, month, topic, epoch, partition, version, rows, lo, hi, done, at)
			SELECT ?, ?, toDate(?), topic, epoch, partition, any(noted) + 1, any(had) + countIf(wins AND (noted = 0 OR offset < first OR offset > last)),
				min(if(noted = 0, offset, least(offset, first))), max(if(noted = 0, offset, greatest(offset, last))), 0, `+instant+`
			FROM (SELECT topic, epoch, partition, offset, 1 AS wins FROM {db}.`+object+` FINAL`+of+` UNION ALL SELECT topic, epoch, partition, offset, 0 FROM {db}.`+object+of+`) AS x
			LEFT JOIN (SELECT topic, epoch, partition, version AS noted, rows AS had, lo AS first, hi AS last FROM {db}.retention_purged FINAL WHERE `+purgedMonth+`) AS y USING (topic, epoch, partition)
			GROUP BY topic, epoch, partition HAVING any(noted) = 0 OR min(offset) < any(first) OR max(offset) > any(last)`,
			slices.Concat(month, []any{at.UnixMilli()}, rows, rows, month)...)
		if err != nil {
			return err
		}
	}
	return nil
}

const purgedMonth = "object = ? AND tenant_id = ? AND month = toDate(?)"

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
			SELECT object, tenant_id, month, topic, epoch, partition, version + 1, rows, lo, hi, 1, at FROM {db}.retention_purged FINAL WHERE `+purgedMonth+` AND done = 0`,
			p.object, p.tenant, date(p.month))
		if err != nil {
			return err
		}
	}
	return nil
}
