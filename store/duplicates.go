package store

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// Duplicates are the figures about events that came more than once. Delivered again is what the commit
// markers count beyond the distinct keys; nothing is looked up when events come in.
type Duplicates struct {
	Rows         uint64   // of all tiles: deliveries that became interactions
	Interactions uint64   // distinct keys
	Again        uint64   // deliveries beyond the first of a key
	Conflicts    uint64   // ids that came with other content
	OtherDays    uint64   // ids that stand under two event days, as a re-send after midnight does
	InFlight     uint64   // interactions that no marker covers yet
	Lost         uint64   // offsets that the log no longer held
	Events       []string // up to ten ids with other content
	// Unseen are rows of ids with other content whose read model does not show it, at most 100,000.
	Unseen []Key
}

// Duplicates counts over the whole store. It reads the key of every interaction.
func (s *Store) Duplicates(ctx context.Context) (d Duplicates, err error) {
	const op = "store: duplicates"
	r := &Report{At: time.Now().UTC()}
	for _, step := range []func(context.Context, *Report) error{s.checkPurged, s.checkLog, s.checkTotals} {
		if err := step(ctx, r); err != nil {
			return d, err
		}
	}
	d.Rows, d.Interactions, d.Again, d.Conflicts, d.OtherDays, d.InFlight = r.Rows, r.Interactions, r.Duplicates, r.IDConflicts, r.OtherDays, r.InFlight
	for _, p := range r.Partitions {
		d.Lost += p.Lost
	}
	if d.Conflicts == 0 {
		return d, nil
	}
	const repeated = "GROUP BY tenant_id, event_id HAVING count() > 1 AND min(content_digest) != max(content_digest)"
	ids := s.from("interactions").current()
	err = s.each(ctx, op, ids.sql("event_id", repeated+" ORDER BY max(written_at) DESC, event_id LIMIT 10 SETTINGS "+spill), nil, func(rows driver.Rows) error {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		d.Events = append(d.Events, id.String())
		return nil
	})
	if err != nil {
		return d, err
	}
	q := s.from("audit_current").current().and("id_conflict = 0").and("(tenant_id, event_id) IN (" + ids.sql("tenant_id, event_id", repeated) + ")")
	d.Unseen, err = s.keysOf(ctx, op, q.sql(keyColumns, "LIMIT 100000 SETTINGS "+spill), nil)
	return d, err
}
