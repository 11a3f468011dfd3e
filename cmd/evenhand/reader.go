package main

import (
	"context"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/store"
)

// querySettings bound each query of callers from outside.
type querySettings struct {
	Timeout  time.Duration `koanf:"timeout"`
	MemoryMB int64         `koanf:"memory_mb"`
	Rows     int64         `koanf:"rows"`      // to read
	ResultMB int64         `koanf:"result_mb"` // of the answer
}

func defaultQuery() querySettings { return querySettings(store.DefaultLimits()) }

// openReader opens what callers from outside read over: connections of their own, signed in as an account
// with row policies where there is one.
func (st *stack) openReader() (err error) {
	s, cfg, bound := st.settings, st.chconfig, false
	l := store.Limits(s.Query)
	switch {
	case st.engine != nil:
		cfg, bound = st.engine.Config(engine.API), true
		l.MemoryMB = min(l.MemoryMB, s.Engine.MemoryMB/2) // more is not allowed to readers
	case s.ClickHouse.ReaderUsername != "":
		cfg, bound = s.reader(), true
	}
	if st.readerConn, err = chconn.Open(cfg); err != nil {
		return err
	}
	st.reader = store.NewReader(st.readerConn, cfg.Database, l, bound)
	return nil
}

// reader is how the account with row policies is reached on an outside server.
func (s settings) reader() chconn.Config {
	c := s.clickhouse()
	c.Username, c.Password = s.ClickHouse.ReaderUsername, s.ClickHouse.ReaderPassword.Reveal()
	return c
}

// policies tells whether the server itself keeps tenants apart: whether the account refuses a query that
// names none.
func policies(ctx context.Context, cfg chconn.Config, account string) diagnosis {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := chconn.Open(cfg)
	if err != nil {
		return diagnosis{"bad", "row policies", err.Error()}
	}
	defer func() { _ = conn.Close() }()
	for _, table := range store.TenantTables {
		err := conn.Exec(ctx, "SELECT tenant_id FROM "+cfg.Database+"."+table+" LIMIT 1")
		switch code := chconn.Code(err); {
		case err == nil:
			return diagnosis{"bad", "row policies", fmt.Sprintf("the account %s reads %s without naming a tenant; make its policies as docs/operations.md shows", account, table)}
		case code != 115:
			return diagnosis{"bad", "row policies", chconn.Wrap(table, err).Error()}
		}
	}
	return diagnosis{"ok", "row policies", fmt.Sprintf("the account %s sees the tenant that a query names, and nothing without", account)}
}
