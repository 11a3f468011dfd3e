package remediation

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

// dayBack is how far a first sweep looks for breaches that are over already.
const dayBack = 24 * time.Hour

// changed is a query for the breaches whose rows were written after from, by the store's clock. For a
// zero from, which a first sweep has, those that are open and those that changed within a day.
func (o *Outbox) changed(from, now time.Time) (sql string, args []any) {
	if from.IsZero() {
		return "SELECT tenant_id, breach_id FROM " + o.db + ".current_breaches WHERE state = 'open' OR changed_at > fromUnixTimestamp64Milli({from:Int64})",
			[]any{clickhouse.Named("from", now.Add(-dayBack).UnixMilli())}
	}
	return "SELECT tenant_id, breach_id FROM " + o.db + ".breaches WHERE written_at > fromUnixTimestamp64Milli({from:Int64})",
		[]any{clickhouse.Named("from", from.UnixMilli())}
}

// histories gives the transitions of changed breaches, each breach's in order and up to the first that
// is not there yet, and the ids of the tickets that are written about them.
func (o *Outbox) histories(ctx context.Context, from, now time.Time) (list [][]audit.Breach, tickets map[audit.ID]bool, err error) {
	which, args := o.changed(from, now)
	const op = "remediation: read changed breaches"
	err = o.each(ctx, op, "SELECT "+breaches.Columns+" FROM "+o.db+".breaches FINAL WHERE (tenant_id, breach_id) IN ("+which+") ORDER BY tenant_id, breach_id, seq", args, func(rows driver.Rows) error {
		b, err := breaches.Scan(rows)
		if err != nil {
			return err
		}
		last := len(list) - 1
		switch {
		case b.Seq == 1:
			list = append(list, []audit.Breach{b})
		case last >= 0 && list[last][0].ID == b.ID && int(b.Seq) == len(list[last])+1:
			list[last] = append(list[last], b)
		}
		return nil
	})
	if err != nil || len(list) == 0 {
		return nil, nil, err
	}
	tickets = map[audit.ID]bool{}
	err = o.each(ctx, op, "SELECT DISTINCT ticket_id FROM "+o.db+".tickets WHERE (tenant_id, breach_id) IN ("+which+")", args, func(rows driver.Rows) error {
		var id uuid.UUID
		err := rows.Scan(&id)
		tickets[audit.ID(id)] = true
		return err
	})
	return list, tickets, err
}

// storeNow is the store's clock.
func (o *Outbox) storeNow(ctx context.Context) (now time.Time, err error) {
	err = o.conn.QueryRow(ctx, "SELECT now64(3, 'UTC')").Scan(&now)
	return now.UTC(), chconn.Wrap("remediation: ask the time", err)
}
