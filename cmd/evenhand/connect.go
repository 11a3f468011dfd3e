package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	chschema "github.com/evenhand/evenhand/schemas/clickhouse"
	"github.com/evenhand/evenhand/store/migrate"
)

// storeFlags choose the store that a command looks at.
type storeFlags struct {
	DataDir string `help:"Look at the running 'evenhand up' of this data folder." placeholder:"DIR"`
}

// target is where the store is: the embedded engine of a running 'up' when there is one on the data
// folder and clickhouse.addr was not set, else clickhouse.addr.
func (f storeFlags) target(c *cli, user engine.User) (settings, chconn.Config, error) {
	if f.DataDir != "" {
		c.Set = append(c.Set, "data_dir="+f.DataDir)
	}
	d := defaultSettings()
	given := d.ClickHouse.Addr
	d.ClickHouse.Addr = nil
	s, err := c.load(d)
	if err != nil {
		return s, chconn.Config{}, err
	}
	if len(s.ClickHouse.Addr) > 0 {
		return s, s.clickhouse(), nil
	}
	s.ClickHouse.Addr = given
	if f.DataDir == "" && c.Config != "" {
		return s, s.clickhouse(), nil
	}
	p, err := engine.Running(engineDir(s), user)
	if err != nil {
		return s, chconn.Config{}, fmt.Errorf("no 'evenhand up' runs on %s (%w); start one, name another with --data-dir, or set clickhouse.addr", s.DataDir, err)
	}
	cfg := p.Config()
	s.ClickHouse.Database = engine.Database
	return s, cfg, nil
}

// migrateStore brings the tables up to date.
func migrateStore(ctx context.Context, cfg chconn.Config, o chschema.Options) error {
	db, err := openDB(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return migrate.Run(ctx, db, o)
}

// openDB gives a database/sql handle, which goose wants. It does not choose the database: that may
// not exist yet.
func openDB(cfg chconn.Config) (*sql.DB, error) {
	cfg.Database = ""
	o, err := chconn.Options(cfg)
	if err != nil {
		return nil, err
	}
	return clickhouse.OpenDB(o), nil
}

func (s settings) schema(embedded bool) chschema.Options {
	return chschema.Options{Database: s.ClickHouse.Database, Cluster: s.ClickHouse.Cluster, Replicated: s.ClickHouse.Replicated, Embedded: embedded}
}
