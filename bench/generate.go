package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	sqltemplate "text/template"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
)

//go:embed generate.sql
var generateSQL string

// generatedTables in the order in which the hot path writes them.
var generatedTables = []string{"interaction_texts", "interaction_users", "verdicts", "interactions", "audit_current", "ingest_batches"}

// span is what generate.sql is filled with.
type span struct{ From, To, Rows, Days, End int }

// fill runs a statement of some templates, filled with what is given.
func fill(ctx context.Context, conn driver.Conn, templates, name string, with any) error {
	t, err := sqltemplate.New("").Parse(templates)
	if err != nil {
		return err
	}
	var sql strings.Builder
	if err := t.ExecuteTemplate(&sql, name, with); err != nil {
		return err
	}
	if err := conn.Exec(ctx, sql.String()); err != nil {
		return fmt.Errorf("fill %s: %w", name, err)
	}
	return nil
}

// generate writes o.rows interactions of 28 days inside the engine, a day at a time.
func generate(ctx context.Context, o options, conn driver.Conn) error {
	const days = 28
	began := time.Now()
	end := int(began.UnixMilli())
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1, "max_insert_threads": 1}))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for day := range days {
		s := span{From: o.rows * day / days, To: o.rows * (day + 1) / days, Rows: o.rows, Days: days, End: end}
		g.Go(func() error {
			for _, table := range generatedTables {
				if err := fill(gctx, conn, generateSQL, table, s); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	written := time.Since(began)
	if err := mergesRest(ctx, conn); err != nil {
		return err
	}
	bytes, err := scalar[uint64](ctx, conn, "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'evenhand'")
	if err != nil {
		return err
	}
	parts, err := scalar[uint64](ctx, conn, "SELECT count() FROM system.parts WHERE active AND database = 'evenhand'")
	fmt.Printf("generated %d interactions in %.0f s, merged after %.0f s: %.1f GB in %d parts\n", o.rows, written.Seconds(), time.Since(began).Seconds(), float64(bytes)/1e9, parts)
	return err
}
