package store

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// purge is a row of retention_purged: what a deleted month of a tenant had in a partition of the log.
type purge struct {
	object string // interactions or rejected
	logKey
	rows   uint64
	lo, hi int64 // the offsets that its rows had, the first and the last
}

// purges are those of all deleted months. Rows of such a month that still stand in the tables (held, or
// not deleted yet) are counted here and nowhere else.
type purges struct {
	all     []purge
	pending bool // a month is being deleted: its tables do not agree
}

// monthsOf are the tenants and months of purges as a subquery.
func (s *Store) monthsOf(object string, more string) string {
	return "(tenant_id, toStartOfMonth(event_day)) NOT IN (SELECT tenant_id, month FROM " + s.db + ".retention_purged FINAL WHERE object = '" + object + "'" + more + ")"
}

func (s *Store) purges(ctx context.Context) (p purges, err error) {
	sql := s.from("retention_purged").current().sql("object, topic, epoch, partition, rows, lo, hi, done", "")
	err = s.each(ctx, "store: check purges", sql, nil, func(rows driver.Rows) error {
		var x purge
		var done uint8
		if err := rows.Scan(&x.object, &x.topic, &x.epoch, &x.partition, &x.rows, &x.lo, &x.hi, &done); err != nil {
			return err
		}
		p.all, p.pending = append(p.all, x), p.pending || done == 0
		return nil
	})
	return p, err
}

// standing restricts a query over interactions or rejected to the months that were not deleted.
func (p purges) standing(s *Store, object string, q *query) *query {
	if len(p.all) > 0 {
		q.and(s.monthsOf(object, ""))
	}
	return q
}

// settledMonths is the condition that leaves out the months that are being deleted, "" when there are none.
func (p purges) settledMonths(s *Store) string {
	if !p.pending {
		return ""
	}
	return s.monthsOf("interactions", " AND done = 0")
}

// of sums up what was deleted of a partition; some is the part of it that may have stood in one of the
// ranges, of which nothing but the tables could tell the rows.
func (p purges) of(object string, k logKey, ranges []span) (all, some uint64) {
	for _, x := range p.all {
		if x.object != object || x.logKey != k {
			continue
		}
		all += x.rows
		for _, r := range ranges {
			if x.lo <= r.hi && r.lo <= x.hi {
				some += min(x.rows, uint64(r.hi-r.lo+1))
			}
		}
	}
	return all, some
}

// covers tells whether a message of the log may be of a deleted month.
func (p purges) covers(k logKey, offset int64) bool {
	for _, x := range p.all {
		if x.logKey == k && x.lo <= offset && offset <= x.hi {
			return true
		}
	}
	return false
}

// DeletedMonths gives the months (2025-09) that lie in a window, in whole or in part, and of which retention has deleted a tenant's rows,
// or has begun to; "" asks of any tenant. Figures of interactions do not hold them, trends do. An open window is the last seven days.
func (s *Store) DeletedMonths(ctx context.Context, tenant string, w Window) (months []string, err error) {
	w = w.resolved(time.Now())
	q := s.from("retention_purged").current().and("object = 'interactions'").
		and("month >= toStartOfMonth(toDate(?))", day(w.From)).and("toDateTime64(month, 3, 'UTC') < "+instant, w.To.UnixMilli())
	if tenant != "" {
		q.and("tenant_id = ?", tenant)
	}
	err = s.each(ctx, "store: deleted months", q.sql("DISTINCT formatDateTime(month, '%Y-%m') AS m", "ORDER BY m"), q.args, func(r driver.Rows) error {
		var month string
		err := r.Scan(&month)
		months = append(months, month)
		return err
	})
	return months, err
}
