package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/internal/chconn"
)

// TenantDatabase is what accounts of one tenant read, see [GrafanaOf]: views of the tables' names. A grant on a table
// itself would open more than a row policy closes: mergeTreeIndex() and system.tables tell keys and counts of all rows.
const TenantDatabase = Database + "_tenants"

// ShowTenants makes the views that accounts of one tenant read; call it when the tables are there or have changed
// (a view has the columns of the time it was made at). Tables are read with the writer's rights, their rows
// chosen by the account's policy on the view; views over tables are made again over these views.
func (e *Engine) ShowTenants(ctx context.Context) error {
	const op = "embedded/engine: show tenants"
	if len(e.opts.Tenants) == 0 {
		return nil
	}
	conn, err := chconn.Open(e.Config(Writer))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for _, name := range slices.Concat(e.opts.Filtered, e.opts.Shared) { // views may be over what stands before them
		sql, err := tenantView(ctx, conn, name)
		if err == nil {
			err = conn.Exec(ctx, sql)
		}
		if err != nil {
			return chconn.Wrap(op, fmt.Errorf("%s: %w", name, err))
		}
	}
	return nil
}

// tenantView is the statement that makes the view of a table's or a view's name.
func tenantView(ctx context.Context, conn driver.Conn, name string) (string, error) {
	var made, query string
	err := conn.QueryRow(ctx, "SELECT engine, as_select FROM system.tables WHERE database = '"+Database+"' AND name = '"+name+"'").Scan(&made, &query)
	if err != nil {
		return "", err
	}
	create := "CREATE OR REPLACE VIEW " + TenantDatabase + "." + name
	if made == "View" {
		return create + " SQL SECURITY INVOKER AS " + strings.ReplaceAll(query, Database+".", TenantDatabase+"."), nil
	}
	final := ""
	if strings.Contains(made, "Replacing") {
		final = " FINAL"
	}
	return create + " DEFINER = " + string(Writer) + " SQL SECURITY DEFINER AS SELECT * FROM " + Database + "." + name + final, nil
}
