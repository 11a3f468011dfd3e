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
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

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

// Prepare implements sinks.Store. It only lists what goes where: values are made column by column
// while they are sent, because whole columns of a batch would be what the garbage collector scans.
func (s *Sink) Prepare(b *sinks.Batch) (sinks.Prepared, error) {
	return &prepared{sink: s, tables: []*table{
		textsTable(b), usersTable(b.Records), verdictsTable(b.Records), interactionsTable(b.Records), currentTable(b.Records),
		rejectedTable(b.Rejected), markersTable(b.Markers), // the marker comes last
	}}, nil
}

// prepared is a batch as tables, in the order in which they are written.
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

// blockRows is how many rows are encoded at once. Blocks of one insert become one part all the same;
// small ones keep the buffers of the client small.
const blockRows = 2_000

// insertSettings: an insert is one acknowledged write. Rows are collapsed and skip indexes are built
// by the merges that follow, which do both anyway; readers use FINAL.
var insertSettings = clickhouse.Settings{
	"async_insert": 0, "insert_deduplicate": 0, "optimize_on_insert": 0, "materialize_skip_indexes_on_insert": 0,
}

// open starts the insert and encodes the columns; all but the last block are on their way after it.
func (s *Sink) open(ctx context.Context, t *table) (driver.Batch, error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithQueryID(uuid.NewString()), clickhouse.WithSettings(insertSettings))
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = "`" + c.name + "`"
	}
	b, err := s.conn.PrepareBatch(ctx, "INSERT INTO "+s.database+"."+t.name+" ("+strings.Join(names, ", ")+")")
	if err != nil {
		return nil, err
	}
	for from := 0; from < t.rows; from += blockRows {
		if from > 0 {
			if err := b.Flush(); err != nil {
				_ = b.Abort()
				return nil, err
			}
		}
		to := min(from+blockRows, t.rows)
		for i, c := range t.columns {
			if err := c.appendTo(b.Column(i), from, to); err != nil {
				_ = b.Abort()
				return nil, audit.E("encode "+c.name, audit.KindInvalid, err)
			}
		}
	}
	return b, nil
}

// table is what goes into one table.
type table struct {
	name    string
	rows    int
	columns []column
}

// column makes the values of rows [from, to) and appends them.
type column struct {
	name     string
	appendTo func(to driver.BatchColumn, from, till int) error
}

// add makes a column whose values f gives.
func add[R, T any](t *table, name string, rows []R, f func(*R) T) {
	t.rows = len(rows)
	t.columns = append(t.columns, column{name, func(to driver.BatchColumn, from, till int) error {
		values := make([]T, till-from)
		for i := range values {
			values[i] = f(&rows[from+i])
		}
		return to.Append(values)
	}})
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
