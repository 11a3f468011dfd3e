package store

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Unbound is a tenant's reads without the condition on tenant_id: what row policies alone leave of it.
func (s *Store) Unbound(tenant string) *Tenant {
	return &Tenant{Figures{scope{store: s, tenant: tenant, all: true}}}
}

// Run runs any statement as a tenant's reads are run.
func (t *Tenant) Run(ctx context.Context, sql string) error {
	return t.each(ctx, "store: test", sql, nil, func(driver.Rows) error { return nil })
}

// PartsOfIDs are the conditions that part the ids of a large day.
func PartsOfIDs(parts uint64) (conds []string) {
	for part := range parts {
		conds = append(conds, chunk{part: part, parts: parts}.ids())
	}
	return conds
}
