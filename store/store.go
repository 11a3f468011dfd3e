// Package store is the read side of the store of record and the only builder of its queries.
//
// A [Tenant] reads one tenant's records: every statement it sends binds tenant_id (see scope). [Figures] are
// rates, top findings and coverage, of one tenant or, for operators, of all. [Store.Check] proves that
// what the log gave is in the tables once and that the read model equals the facts.
//
// Times are UTC; windows start inclusive and end exclusive. Lists cost what their page costs, not what
// the table holds; figures read their window once. Nothing here writes. Errors carry the class of
// package chconn and never text of an interaction.
package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/internal/chconn"
)

// Store reads one database over connections that the caller owns.
type Store struct {
	conn   driver.Conn
	db     string
	limits Limits // of the reads of tenants
	bound  bool   // every such read tells the server its tenant
}

// New makes a store over conn; database is the name that the migrations were run with.
func New(conn driver.Conn, database string) *Store { return &Store{conn: conn, db: database} }

func (s *Store) from(table string) *query { return &query{table: s.db + "." + table} }

// query is a FROM with its conditions and their arguments in order.
type query struct {
	table    string
	final    bool
	prewhere string // literal condition on the sorting key, tested before other columns are read
	where    []string
	args     []any
}

func (q *query) and(cond string, args ...any) *query {
	q.where = append(q.where, cond)
	q.args = append(q.args, args...)
	return q
}

// current reads the row that wins among the versions of a key.
func (q *query) current() *query {
	q.final = true
	return q
}

// sql writes "SELECT columns FROM … WHERE … rest".
func (q *query) sql(columns, rest string) string {
	var b strings.Builder
	b.WriteString("SELECT " + columns + " FROM " + q.table)
	if q.final {
		b.WriteString(" FINAL")
	}
	if q.prewhere != "" {
		b.WriteString(" PREWHERE " + q.prewhere)
	}
	if len(q.where) > 0 {
		b.WriteString(" WHERE " + strings.Join(q.where, " AND "))
	}
	if rest != "" {
		b.WriteString(" " + rest)
	}
	return b.String()
}

// each runs a query and hands every row to scan.
func (s *Store) each(ctx context.Context, op, sql string, args []any, scan func(driver.Rows) error) error {
	counted(ctx)
	return chconn.Each(clickhouse.Context(ctx, clickhouse.WithSettings(chconn.Finals)), s.conn, op, sql, args, scan)
}

// one runs a query whose single row goes to dest.
func (s *Store) one(ctx context.Context, op, sql string, args []any, dest ...any) error {
	counted(ctx)
	return chconn.Wrap(op, s.conn.QueryRow(clickhouse.Context(ctx, clickhouse.WithSettings(chconn.Finals)), sql, args...).Scan(dest...))
}

// inside is a query over the rows of another.
func inside(q *query, columns, rest string) *query {
	return &query{table: "(" + q.sql(columns, rest) + ")", args: q.args}
}

// instant is the SQL of a bound time in milliseconds; the client would cut a time.Time to seconds.
const instant = "fromUnixTimestamp64Milli(toInt64(?))"

// day is the argument for toDate(?).
func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Window is a range of event time, [From, To).
type Window struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// defaultWindow is what lists and figures start with.
const defaultWindow = 7 * 24 * time.Hour

// resolved fills an open window: it ends a day ahead, since events may be dated up to a day after
// their arrival, and starts seven days ago.
func (w Window) resolved(now time.Time) Window {
	if w.To.IsZero() {
		w.To = now.UTC().Truncate(24 * time.Hour).Add(48 * time.Hour)
	}
	if w.From.IsZero() {
		w.From = now.UTC().Add(-defaultWindow).Truncate(time.Millisecond)
		if w.From.After(w.To) {
			w.From = w.To.Add(-defaultWindow)
		}
	}
	return w
}

// within binds a window of event time, in tables that have event_ts.
func (q *query) within(w Window) *query {
	return q.near(w).and("event_ts >= "+instant, w.From.UnixMilli()).and("event_ts < "+instant, w.To.UnixMilli())
}

// near binds by the key what a window may hold: an event that told no time lies at its day's start, which is
// before its time. On days after the first the start of the day is in the window as such.
func (q *query) near(w Window) *query {
	q.and("event_day >= toDate(?)", day(w.From)).and("event_day <= toDate(?)", day(w.To))
	q.and("(sort_ts >= "+instant+" OR sort_ts = "+instant+")", w.From.UnixMilli(), w.From.UTC().Truncate(24*time.Hour).UnixMilli())
	return q.and("sort_ts < "+instant, w.To.UnixMilli())
}

func (w Window) String() string {
	return fmt.Sprintf("[%s, %s)", w.From.Format(time.RFC3339Nano), w.To.Format(time.RFC3339Nano))
}
