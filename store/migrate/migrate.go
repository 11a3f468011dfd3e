// Package migrate brings the schema of the store of record up to date: numbered files of
// schemas/clickhouse, applied in order by goose, and the vocabulary of schemas/taxonomy.
//
// Run is idempotent and may run in several processes at once without a lock: every statement of a
// migration is idempotent by itself, the version table keeps one row a version however often it is
// written, and the vocabulary replaces itself by key. The loser of a race does the work twice and ends
// with the same schema. Migrations go forward only. A start with nothing to do costs a handful of
// small queries. Errors name the migration; they are unavailable when the server cannot be reached.
package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/schemas/clickhouse"
	"github.com/evenhand/evenhand/schemas/taxonomy"
)

// Status is the state of one migration.
type Status struct {
	Version   int64     `json:"version"`
	Name      string    `json:"name"`
	Applied   bool      `json:"applied"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

// Run creates the database when it is missing and applies what is pending. db must be allowed to
// create databases, tables and views; it may be connected to any database.
func Run(ctx context.Context, db *sql.DB, o clickhouse.Options) error {
	const op = "store/migrate"
	fsys, err := clickhouse.Render(o)
	if err != nil {
		return audit.E(op, audit.KindInvalid, err)
	}
	if _, err := db.ExecContext(ctx, fmt.Sprintf("CREATE DATABASE IF NOT EXISTS %s %s ENGINE = Atomic", o.Database, o.OnCluster())); err != nil {
		return audit.E(op, audit.KindUnavailable, fmt.Errorf("create database %s: %w", o.Database, err))
	}
	p, err := provider(db, o, fsys)
	if err != nil {
		return audit.E(op, audit.KindInternal, err)
	}
	applied, err := appliedVersions(ctx, db, o.Database)
	if err != nil {
		return audit.E(op, audit.KindUnavailable, err)
	}
	if err := known(applied, p.ListSources()); err != nil {
		return audit.E(op, audit.KindInvalid, err)
	}
	if _, err := p.Up(ctx); err != nil {
		return audit.E(op, kindOf(err), named(err))
	}
	return audit.E(op, audit.KindUnavailable, fillTaxonomy(ctx, db, o.Database))
}

// List tells of every migration whether it was applied, in order. Before the first Run none is.
func List(ctx context.Context, db *sql.DB, o clickhouse.Options) ([]Status, error) {
	const op = "store/migrate: list"
	fsys, err := clickhouse.Render(o)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	applied, err := appliedVersions(ctx, db, o.Database)
	if err != nil {
		return nil, audit.E(op, audit.KindUnavailable, err)
	}
	p, err := provider(db, o, fsys)
	if err != nil {
		return nil, audit.E(op, audit.KindInternal, err)
	}
	var list []Status
	for _, s := range p.ListSources() {
		at, ok := applied[s.Version]
		list = append(list, Status{Version: s.Version, Name: path.Base(s.Path), Applied: ok, AppliedAt: at})
	}
	return list, nil
}

// appliedVersions reads the version table, which List must not create.
func appliedVersions(ctx context.Context, db *sql.DB, database string) (map[int64]time.Time, error) {
	var exists uint8
	if err := db.QueryRowContext(ctx, fmt.Sprintf("EXISTS TABLE %s.%s", database, versionTable)).Scan(&exists); err != nil {
		return nil, err
	}
	applied := map[int64]time.Time{}
	if exists == 0 {
		return applied, nil
	}
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT version_id, tstamp FROM %s.%s FINAL WHERE is_applied", database, versionTable))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var v int64
		var at time.Time
		if err := rows.Scan(&v, &at); err != nil {
			return nil, err
		}
		applied[v] = at
	}
	return applied, rows.Err()
}

func provider(db *sql.DB, o clickhouse.Options, fsys fs.FS) (*goose.Provider, error) {
	store, err := database.NewStoreFromQuerier(o.Database+"."+versionTable, querier{o})
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectCustom, db, fsys, goose.WithStore(store),
		goose.WithDisableGlobalRegistry(true), goose.WithIsolateDDL(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
}

// known refuses a store that a later program has migrated: this one would write rows that lack what that one added.
func known(applied map[int64]time.Time, sources []*goose.Source) error {
	last := sources[len(sources)-1].Version
	newest := last
	for v := range applied {
		newest = max(newest, v)
	}
	if newest > last {
		return fmt.Errorf("the store was migrated to %d by a later version of evenhand, this one knows %d; run that version, or restore the backup from before", newest, last)
	}
	return nil
}

// named puts the file's name into a migration's error.
func named(err error) error {
	var p *goose.PartialError
	if errors.As(err, &p) && p.Failed != nil && p.Failed.Source != nil {
		return fmt.Errorf("migration %s: %w", path.Base(p.Failed.Source.Path), p.Err)
	}
	return err
}

// kindOf tells a refused statement (a bug in a file, or rights) from a server that does not answer.
func kindOf(err error) audit.Kind {
	var p *goose.PartialError
	if errors.As(err, &p) && audit.KindOf(err) != audit.KindUnavailable {
		return audit.KindInternal
	}
	return audit.KindUnavailable
}

// fillTaxonomy inserts the rows of the shipped vocabulary that the table lacks at its version. A row
// of a higher version, as an administrator writes, stays.
func fillTaxonomy(ctx context.Context, db *sql.DB, database string) error {
	tax, err := taxonomy.Load()
	if err != nil {
		return err
	}
	held, err := taxonomyVersions(ctx, db, database)
	if err != nil {
		return fmt.Errorf("bias_taxonomy: %w", err)
	}
	missing := slices.DeleteFunc(tax.Entries, func(e taxonomy.Entry) bool {
		v, ok := held[e.Key]
		return ok && v >= tax.Version
	})
	if len(missing) == 0 {
		return nil
	}
	if err := insertTaxonomy(ctx, db, database, tax.Version, missing); err != nil {
		return fmt.Errorf("bias_taxonomy: %w", err)
	}
	return nil
}

func insertTaxonomy(ctx context.Context, db *sql.DB, database string, version uint64, entries []taxonomy.Entry) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it means nothing
	insert, err := tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s.bias_taxonomy (id, bias_key, description, severity_level, version)", database))
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }()
	for _, e := range entries {
		if _, err := insert.ExecContext(ctx, e.ID, e.Key, e.Description, e.SeverityLevel, version); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func taxonomyVersions(ctx context.Context, db *sql.DB, database string) (map[string]uint64, error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT bias_key, version FROM %s.bias_taxonomy FINAL", database))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	held := map[string]uint64{}
	for rows.Next() {
		var key string
		var v uint64
		if err := rows.Scan(&key, &v); err != nil {
			return nil, err
		}
		held[key] = v
	}
	return held, rows.Err()
}
