package store

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// TaxonomyEntry is one key of the controlled vocabulary.
type TaxonomyEntry struct {
	ID          uint32
	Key         string
	Description string
	Severity    uint8 // 1..5
}

// Taxonomy reads the vocabulary, by key. It is the installation's: every tenant sees the same.
func (s *Store) Taxonomy(ctx context.Context) (entries []TaxonomyEntry, err error) {
	q := s.from("bias_taxonomy").current()
	err = s.each(ctx, "store: taxonomy", q.sql("id, bias_key, description, severity_level", "ORDER BY bias_key"), q.args, func(r driver.Rows) error {
		var e TaxonomyEntry
		err := r.Scan(&e.ID, &e.Key, &e.Description, &e.Severity)
		entries = append(entries, e)
		return err
	})
	return entries, err
}
