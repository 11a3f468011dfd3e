// Package clickhouse is the store of record: it writes batches into ClickHouse, in an order that
// makes the commit marker the last thing to appear, and reads the markers back.
//
// Every row's key and version come from the log record alone, so writing a range again changes
// nothing under FINAL. No insert tokens and no deduplication window are used: on a kill -9 they lose
// rows. Text lies in interaction_texts only. Errors carry their class: KindInvalid when the data is
// at fault, KindUnavailable when the server is.
package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/sinks"
)

// Sink writes to one database. It is safe for concurrent use.
type Sink struct {
	conn     driver.Conn
	database string
}

// New makes a sink on an open connection, which stays the caller's.
func New(conn driver.Conn, database string) *Sink { return &Sink{conn: conn, database: database} }

var _ sinks.Store = (*Sink)(nil)

// Prepare implements sinks.Store: the columns of all tables are built in parallel.
func (s *Sink) Prepare(b *sinks.Batch) (sinks.Prepared, error) {
	build := []func() *table{
		func() *table { return textsTable(b) },
		func() *table { return usersTable(b.Records) },
		func() *table { return verdictsTable(b.Records) },
		func() *table { return interactionsTable(b.Records) },
		func() *table { return currentTable(b.Records) },
		func() *table { return rejectedTable(b.Rejected) },
		func() *table { return markersTable(b.Markers) }, // the marker comes last
	}
	p := &prepared{sink: s, tables: make([]*table, len(build))}
	var g errgroup.Group
	for i, f := range build {
		g.Go(func() error { p.tables[i] = f(); return nil })
	}
	return p, g.Wait()
}

// prepared is a batch as columns, in the order in which the tables are written.
type prepared struct {
	sink   *Sink
	tables []*table
}

// Send writes the tables one after the other; while one is sent, the next ones are encoded.
func (p *prepared) Send(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type opened struct {
		batch driver.Batch
		err   error
	}
	ready := make([]chan opened, len(p.tables))
	for i, t := range p.tables {
		if t.rows == 0 {
			continue
		}
		ready[i] = make(chan opened, 1)
		go func() {
			b, err := p.sink.open(ctx, t)
			ready[i] <- opened{b, err}
		}()
	}
	var failed error
	for i, ch := range ready {
		if ch == nil {
			continue
		}
		o := <-ch
		if o.err == nil && failed == nil {
			o.err = o.batch.Send()
		} else if o.batch != nil {
			_ = o.batch.Abort()
		}
		if o.err != nil && failed == nil {
			failed = audit.E("sinks/clickhouse: insert into "+p.tables[i].name, chconn.Class(o.err), o.err)
			cancel()
		}
	}
	return failed
}

// open starts the insert and encodes the columns.
func (s *Sink) open(ctx context.Context, t *table) (driver.Batch, error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithQueryID(uuid.NewString()), clickhouse.WithSettings(clickhouse.Settings{
		"async_insert": 0, "insert_deduplicate": 0,
	}))
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = "`" + c.name + "`"
	}
	b, err := s.conn.PrepareBatch(ctx, "INSERT INTO "+s.database+"."+t.name+" ("+strings.Join(names, ", ")+")")
	if err != nil {
		return nil, err
	}
	for i, c := range t.columns {
		if err := b.Column(i).Append(c.values); err != nil {
			_ = b.Abort()
			return nil, audit.E("encode "+c.name, audit.KindInvalid, fmt.Errorf("%T: %w", c.values, err))
		}
	}
	return b, nil
}

// table is what goes into one table: columns of equal length.
type table struct {
	name    string
	rows    int
	columns []column
}

type column struct {
	name   string
	values any // a slice of the column's type
}

// add builds one column by asking f for each row.
func add[R, T any](t *table, name string, rows []R, f func(*R) T) {
	values := make([]T, len(rows))
	for i := range rows {
		values[i] = f(&rows[i])
	}
	t.columns = append(t.columns, column{name, values})
	t.rows = len(rows)
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
