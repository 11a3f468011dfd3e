package store

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// RollupStatus is how far the rollups reach.
type RollupStatus struct {
	Watermark  time.Time     `json:"watermark,omitzero"`   // rows written until then are counted; absent before the job's first run
	Behind     float64       `json:"behind_seconds"`       // since the watermark, by the store's clock
	NewestHour time.Time     `json:"newest_hour,omitzero"` // the newest hour that has cells
	DirtyHours int           `json:"dirty_hours"`          // with rows that were written since
	Hourly     uint64        `json:"hourly_rows"`
	Daily      uint64        `json:"daily_rows"`
	Frozen     []FrozenMonth `json:"frozen"`
}

// FrozenMonth is a month of a tenant whose rollups are final.
type FrozenMonth struct {
	Tenant   string    `json:"tenant"`
	Month    string    `json:"month"` // 2026-11
	FrozenAt time.Time `json:"frozen_at"`
	Rows     uint64    `json:"rows"`
}

// RollupStatus looks at the rollups.
func (s *Store) RollupStatus(ctx context.Context) (st RollupStatus, err error) {
	const op = "store: rollup status"
	if st.Watermark, err = s.RollupWatermark(ctx); err != nil {
		return st, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return st, err
	}
	days, err := s.DirtyRollups(ctx, Written{From: st.Watermark, To: now.Add(time.Hour)})
	if err != nil {
		return st, err
	}
	for _, d := range days {
		st.DirtyHours += d.Hours()
	}
	if !st.Watermark.IsZero() {
		st.Behind = max(0, now.Sub(st.Watermark).Seconds())
	}
	if err = s.one(ctx, op, s.from("rollup_hourly").current().sql("count(), max(hour)", ""), nil, &st.Hourly, &st.NewestHour); err != nil {
		return st, err
	}
	if st.NewestHour = st.NewestHour.UTC(); st.Hourly == 0 {
		st.NewestHour = time.Time{}
	}
	if err = s.one(ctx, op, s.from("rollup_daily").current().sql("count()", ""), nil, &st.Daily); err != nil {
		return st, err
	}
	st.Frozen = []FrozenMonth{}
	return st, s.each(ctx, op, s.from("rollup_frozen").current().sql("tenant_id, formatDateTime(month, '%Y-%m'), frozen_at, rows", "ORDER BY tenant_id, month"), nil, func(rows driver.Rows) error {
		var m FrozenMonth
		err := rows.Scan(&m.Tenant, &m.Month, &m.FrozenAt, &m.Rows)
		m.FrozenAt = m.FrozenAt.UTC()
		st.Frozen = append(st.Frozen, m)
		return err
	})
}
