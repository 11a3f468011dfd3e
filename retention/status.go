package retention

import (
	"context"
	"time"
)

// Status is what retention has done and what is kept.
type Status struct {
	At          time.Time `json:"at"`
	OldestText  time.Time `json:"oldest_text,omitzero"` // event day
	OldestRow   time.Time `json:"oldest_row,omitzero"`  // event day of the oldest interaction
	Holds       int       `json:"holds"`                // in force
	HeldTexts   uint64    `json:"held_texts"`
	Erasures    uint64    `json:"erasures"`       // of persons
	Frozen      uint64    `json:"frozen_months"`  // of tenants
	Purged      uint64    `json:"deleted_months"` // of tenants
	PurgedRows  uint64    `json:"deleted_interactions"`
	Inactive    uint64    `json:"inactive_parts"`    // of text partitions that hold nothing any more, still on the disk
	Detached    uint64    `json:"detached_parts"`    // set aside by the server
	Interrupted uint64    `json:"interrupted_steps"` // begun and not ended; the next run completes them
	Totals      []Total   `json:"totals"`
}

// Total sums up the steps over one table.
type Total struct {
	Object string    `json:"object"`
	Action Action    `json:"action"`
	Steps  uint64    `json:"steps"` // a partition and a tenant each
	Rows   uint64    `json:"rows"`
	Bytes  uint64    `json:"bytes"`
	Held   uint64    `json:"held"`
	First  time.Time `json:"first"` // oldest and newest day or month that went
	Last   time.Time `json:"last"`
	At     time.Time `json:"at"` // of the newest step
}

// purgedRows is how many interactions of deleted months are gone: what was noted of them, without those that a hold keeps.
const purgedRows = "SELECT toUInt64(greatest(0, (SELECT toInt64(sum(rows)) FROM" + purged + ") - (SELECT toInt64(count()) FROM {db}.interactions AS i FINAL INNER JOIN (SELECT tenant_id, month, topic, epoch, partition, lo, hi FROM" + purged +
	") AS p ON i.tenant_id = p.tenant_id AND toStartOfMonth(i.event_day) = p.month AND i.topic = p.topic AND i.epoch = p.epoch AND i.partition = p.partition WHERE (i.tenant_id, toStartOfMonth(i.event_day)) IN (SELECT tenant_id, month FROM" + purged +
	") AND i.offset BETWEEN p.lo AND p.hi)))"

const purged = " {db}.retention_purged FINAL WHERE object = 'interactions'"

// Status reads what retention has done.
func (r *Retention) Status(ctx context.Context) (*Status, error) {
	const op = "retention: status"
	now, err := r.now(ctx)
	if err != nil {
		return nil, err
	}
	s := &Status{At: now.UTC(), Totals: []Total{}}
	holds, err := r.Holds(ctx)
	if err != nil {
		return nil, err
	}
	for i := range holds {
		s.HeldTexts += holds[i].Texts
		s.Holds += int(flag(holds[i].Active()))
	}
	for sql, dest := range map[string]any{
		"SELECT min(event_day) FROM {db}.interaction_texts":                            &s.OldestText,
		"SELECT min(event_day) FROM {db}.interactions":                                 &s.OldestRow,
		"SELECT count() FROM {db}.erasures FINAL":                                      &s.Erasures,
		"SELECT uniqExact(tenant_id, month) FROM {db}.rollup_frozen":                   &s.Frozen,
		"SELECT uniqExact(tenant_id, month) FROM {db}.retention_purged WHERE done = 1": &s.Purged,
		purgedRows: &s.PurgedRows,
		"SELECT count() FROM {db}.retention_runs FINAL WHERE state = 'begun' AND at < " + instantOf(now.Add(-time.Hour)): &s.Interrupted,
	} {
		if err := r.one(ctx, op, sql, nil, dest); err != nil {
			return nil, err
		}
	}
	for _, t := range []*time.Time{&s.OldestText, &s.OldestRow} {
		if *t = t.UTC(); t.Unix() == 0 {
			*t = time.Time{}
		}
	}
	err = r.each(ctx, op, "SELECT object, action, count(), sum(rows), sum(bytes), sum(held), min(period), max(period), max(at) FROM {db}.retention_runs FINAL WHERE state = 'done' GROUP BY object, action ORDER BY object, action", nil, func(scan func(...any) error) error {
		var t Total
		var action string
		if err := scan(&t.Object, &action, &t.Steps, &t.Rows, &t.Bytes, &t.Held, &t.First, &t.Last, &t.At); err != nil {
			return err
		}
		t.Action, t.First, t.Last, t.At = Action(action), t.First.UTC(), t.Last.UTC(), t.At.UTC()
		s.Totals = append(s.Totals, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.Inactive, _, err = r.oldParts(ctx, nil); err != nil {
		return nil, err
	}
	s.Detached, err = r.detached(ctx)
	return s, err
}
