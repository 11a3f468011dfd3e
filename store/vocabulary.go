package store

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// VersionedEntry is a key of the vocabulary with the version of its row.
type VersionedEntry struct {
	TaxonomyEntry
	Version uint64
}

// Vocabulary reads the vocabulary with the versions of its rows, by key, as who changes it wants it.
func (s *Store) Vocabulary(ctx context.Context) (out []VersionedEntry, err error) {
	q := s.from("bias_taxonomy").current()
	err = s.each(ctx, "store: vocabulary", q.sql("id, bias_key, description, severity_level, version", "ORDER BY bias_key"), nil, func(rows driver.Rows) error {
		var e VersionedEntry
		if err := rows.Scan(&e.ID, &e.Key, &e.Description, &e.Severity, &e.Version); err != nil {
			return err
		}
		out = append(out, e)
		return nil
	})
	return out, err
}
