package migrate

import (
	"fmt"

	"github.com/evenhand/evenhand/schemas/clickhouse"
)

const versionTable = "schema_migrations"

// querier gives goose its statements for the version table. goose's own ClickHouse dialect makes a
// plain MergeTree on one server; ours follows the options and keeps one row a version.
//
// It leaves out TableExists on purpose: goose then asks for version 0, so a table that another process
// has made but not yet filled counts as missing and is filled.
type querier struct{ o clickhouse.Options }

func (q querier) CreateTable(table string) string {
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s %s (version_id Int64, is_applied UInt8, tstamp DateTime64(3, 'UTC') DEFAULT now64(3), version UInt64 DEFAULT toUnixTimestamp64Milli(now64(3))) ENGINE = %s ORDER BY version_id`,
		table, q.o.OnCluster(), q.o.Replacing("version"))
}

func (querier) InsertVersion(table string) string {
	return fmt.Sprintf("INSERT INTO %s (version_id, is_applied) VALUES ($1, $2)", table)
}

func (querier) DeleteVersion(table string) string {
	return fmt.Sprintf("DELETE FROM %s WHERE version_id = $1", table)
}

func (querier) GetMigrationByVersion(table string) string {
	return fmt.Sprintf("SELECT tstamp, is_applied FROM %s FINAL WHERE version_id = $1", table)
}

func (querier) ListMigrations(table string) string {
	return fmt.Sprintf("SELECT version_id, is_applied FROM %s FINAL ORDER BY version_id DESC", table)
}

func (querier) GetLatestVersion(table string) string {
	return fmt.Sprintf("SELECT max(version_id) FROM %s", table)
}
