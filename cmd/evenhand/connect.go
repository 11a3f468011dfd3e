package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	chschema "github.com/evenhand/evenhand/schemas/clickhouse"
	"github.com/evenhand/evenhand/store/migrate"
)

// storeFlags choose the store that a command looks at.
type storeFlags struct {
	DataDir string `help:"Look at the running 'evenhand up' of this data folder." placeholder:"DIR"`
}

// target is where the store is: clickhouse.addr when it was set, else the embedded engine of the 'up'
// that runs on the data folder, else, beside an outside Kafka, the default of clickhouse.addr.
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
	p, err := engine.Running(engineDir(s), user)
	_, up := findRunning(s.DataDir)
	switch {
	case err == nil:
		s.ClickHouse.Database = engine.Database
		return s, p.Config(), nil
	case up:
		return s, chconn.Config{}, fmt.Errorf("the store of the 'evenhand up' on %s is not there: %w", s.DataDir, err)
	case f.DataDir == "" && len(s.Kafka.Brokers) > 0:
		return s, s.clickhouse(), nil
	}
	return s, chconn.Config{}, notUp(s.DataDir, "name its folder with --data-dir, or set clickhouse.addr")
}

// notUp is the fault of a command that looked for a running 'up'; or says what else there is to do.
func notUp(dataDir, or string) error {
	return fmt.Errorf("no 'evenhand up' runs on %s: start one, %s", dataDir, or)
}

// inUse names the data folder when a start failed because another 'up' holds it: that is the cause,
// whatever fell over it first, be it the port, the broker's lock or the store's.
func inUse(dataDir string, err error) error {
	r, ok := findRunning(dataDir)
	if err == nil || !ok || r.PID == os.Getpid() {
		return err
	}
	return fmt.Errorf("data_dir: %s is in use by the 'evenhand up' that runs as process %d at %s; stop it, or choose another folder with --data-dir and another port with --http", dataDir, r.PID, r.HTTP)
}

// open connects to the target; the caller closes.
func (f storeFlags) open(c *cli, user engine.User) (settings, driver.Conn, error) {
	s, cfg, err := f.target(c, user)
	if err != nil {
		return s, nil, err
	}
	conn, err := chconn.Open(cfg)
	return s, conn, err
}

// migrateStore brings the tables up to date.
func migrateStore(ctx context.Context, cfg chconn.Config, o chschema.Options) error {
	db, err := openDB(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	err = migrate.Run(ctx, db, o)
	if lost := (*net.OpError)(nil); errors.As(err, &lost) {
		return fmt.Errorf("clickhouse.addr: %s cannot be reached: %w", strings.Join(cfg.Addr, ", "), err)
	}
	return err
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
