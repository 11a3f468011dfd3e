package alarm

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/breaches"
	"github.com/evenhand/evenhand/internal/chconn"
)

// insert runs f with a batch into a table and sends it.
func (t *Tables) insert(ctx context.Context, op, into string, f func(driver.Batch) error) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithQueryID(uuid.NewString()), clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0, "insert_deduplicate": 0}))
	b, err := t.conn.PrepareBatch(ctx, "INSERT INTO "+t.db+"."+into)
	if err != nil {
		return chconn.Wrap(op, err)
	}
	if err := f(b); err != nil {
		_ = b.Abort()
		return chconn.Wrap(op, err)
	}
	return chconn.Wrap(op, b.Send())
}

// Unprojected gives the transitions that were decided and have no row: those of a process that ended
// between the two.
func (t *Tables) Unprojected(ctx context.Context) (list []audit.Breach, err error) {
	const sql = `SELECT key, seq, value, decided_at FROM {{db}}.decisions FINAL WHERE kind = 'breach' AND (key, seq) NOT IN (SELECT toString(breach_id), seq FROM {{db}}.breaches)
		ORDER BY key, seq, decided_at DESC, n DESC LIMIT 1 BY key, seq`
	err = t.each(ctx, "alarm: decisions without rows", sql, nil, func(r driver.Rows) error {
		var id, value string
		var seq uint32
		var at time.Time
		if err := r.Scan(&id, &seq, &value, &at); err != nil {
			return err
		}
		if b, err := breaches.Parse(id, seq, []byte(value), at); err == nil { // others' records under this kind are not ours to judge
			list = append(list, b)
		}
		return nil
	})
	return list, err
}

// WriteWarnings makes the table alarm_warnings say of an hour what these warnings do: rows that hold
// already stay, those that hold no more are marked.
func (t *Tables) WriteWarnings(ctx context.Context, at time.Time, list []Warning, version uint64) error {
	const op = "alarm: write warnings"
	have := map[Cell][2]uint64{}
	err := t.each(ctx, op, "SELECT tenant_id, domain, kind, n, k FROM {{db}}.alarm_warnings FINAL WHERE hour = toDateTime(?, 'UTC') AND active = 1", []any{at.Unix()}, func(r driver.Rows) error {
		var c Cell
		var domain string
		var n, k uint64
		err := r.Scan(&c.Tenant, &domain, &c.Kind, &n, &k)
		c.Domain = audit.Domain(domain)
		have[c] = [2]uint64{n, k}
		return err
	})
	if err != nil {
		return err
	}
	type row struct {
		Warning
		active uint8
	}
	var rows []row
	for _, w := range list {
		was, ok := have[w.Cell]
		delete(have, w.Cell)
		if !ok || was != [2]uint64{w.N, w.K} {
			rows = append(rows, row{w, 1})
		}
	}
	for c := range have {
		rows = append(rows, row{Warning{Cell: c, From: at, To: at}, 0})
	}
	if len(rows) == 0 {
		return nil
	}
	const columns = "alarm_warnings (tenant_id, domain, kind, hour, version, active, policy, window_from, n, k, lower, upper, baseline, baseline_n, rule_set)"
	return t.insert(ctx, op, columns, func(b driver.Batch) error {
		for _, w := range rows {
			if err := b.Append(w.Tenant, string(w.Domain), w.Kind, at, version, w.active, w.Policy, w.From, w.N, w.K, w.Lower, w.Upper, w.Baseline, w.BaselineN, w.RuleSet); err != nil {
				return err
			}
		}
		return nil
	})
}
