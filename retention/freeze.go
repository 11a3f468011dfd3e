package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/store"
)

// ErrUnequal says that rollups and rows differ.
var ErrUnequal = errors.New("the rollups differ from the rows")

// prove compares the rollups of a tenant's month with what its rows give, cell by cell, by the statements
// that the rollups are made with. It fails with ErrUnequal when they differ: then nothing of the month
// may be deleted.
func (r *Retention) prove(ctx context.Context, tenant string, month time.Time) error {
	n, cells, err := store.New(r.conn, r.db).UnequalMonth(ctx, tenant, month)
	if err != nil || n == 0 {
		return err
	}
	return fmt.Errorf("%w: %d cells of %s, such as %s", ErrUnequal, n, month.Format("2006-01"), cells[0])
}

// freezeMonth makes the rollups of a tenant's month final: it writes the mark first, which stops
// recomputations, and then the rows with the highest bit of the version set, which nothing overrides. It
// says how many there are. Doing it again changes nothing.
func (r *Retention) freezeMonth(ctx context.Context, tenant string, month, at time.Time) (rows uint64, err error) {
	const op = "retention: freeze"
	frozen, err := r.frozen(ctx)
	if err != nil {
		return 0, err
	}
	since, marked := frozen[tenantMonth{tenant, month}]
	if !marked {
		since = at
		if err := r.mark(ctx, tenant, month, since, 1, 0); err != nil {
			return 0, err
		}
	}
	if err := r.hook("marked"); err != nil {
		return 0, err
	}
	var open uint64
	for _, t := range []struct{ name, time, in string }{
		{"rollup_hourly", "hour", "hour >= toDateTime(toDate(?), 'UTC') AND hour < toDateTime(addMonths(toDate(?), 1), 'UTC')"},
		{"rollup_daily", "day", "day >= toDate(?) AND day < addMonths(toDate(?), 1)"},
	} {
		const key = "app, domain, model, rule_set, value, severity"
		from := " FROM {db}." + t.name + " FINAL WHERE tenant_id = ? AND " + t.in
		args := []any{tenant, date(month), date(month)}
		var n, all uint64
		if err := r.one(ctx, op, "SELECT countIf(version < "+store.FrozenVersion+"), count()"+from, args, &n, &all); err != nil {
			return 0, err
		}
		open, rows = open+n, rows+all
		if n == 0 {
			continue
		}
		err := r.exec(ctx, op, "INSERT INTO {db}."+t.name+" (tenant_id, dim, "+t.time+", "+key+", version, n, k, late, cost_micro_usd) SELECT tenant_id, dim, "+t.time+", "+key+
			", bitOr(version, "+store.FrozenVersion+"), n, k, late, cost_micro_usd"+from+" AND version < "+store.FrozenVersion, args...)
		if err != nil {
			return 0, err
		}
	}
	if marked && open == 0 {
		return rows, nil
	}
	return rows, r.mark(ctx, tenant, month, since, 2, rows)
}

func (r *Retention) mark(ctx context.Context, tenant string, month, at time.Time, version, rows uint64) error {
	return r.exec(ctx, "retention: freeze", "INSERT INTO {db}.rollup_frozen (tenant_id, month, version, frozen_at, rows) VALUES (?, toDate(?), ?, "+instant+", ?)",
		tenant, date(month), version, at.UnixMilli(), rows)
}
