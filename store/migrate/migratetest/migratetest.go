// Package migratetest gives tests a database with all tables.
package migratetest

import (
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/evenhand/evenhand/internal/chconn"
	schema "github.com/evenhand/evenhand/schemas/clickhouse"
	"github.com/evenhand/evenhand/store/migrate"
)

// Run migrates a database of the embedded engine.
func Run(t testing.TB, cfg chconn.Config) {
	t.Helper()
	opts, err := chconn.Options(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := clickhouse.OpenDB(opts)
	defer func() { _ = db.Close() }()
	if err := migrate.Run(t.Context(), db, schema.Options{Database: cfg.Database, Embedded: true}); err != nil {
		t.Fatal(err)
	}
}
