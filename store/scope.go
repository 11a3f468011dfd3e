package store

import (
	"context"
	sqldb "database/sql"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	ch "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

// Limits bound each statement of a tenant's reads; a zero field does not bound. What is exceeded is told
// as audit.KindOverloaded (time, memory) or audit.KindInvalid (rows, bytes), with what the caller can do.
type Limits struct {
	Timeout  time.Duration
	MemoryMB int64
	Rows     int64 // rows to read
	ResultMB int64
}

// DefaultLimits are generous: what a page, a trend of a year or the texts of 200 interactions need, many times.
func DefaultLimits() Limits {
	return Limits{Timeout: 10 * time.Second, MemoryMB: 512, Rows: 1_000_000_000, ResultMB: 256}
}

// Validate reports every fault at once, with the key under "query".
func (l Limits) Validate() error {
	var errs []error
	if l.Timeout < time.Second || l.Timeout > 5*time.Minute {
		errs = append(errs, fmt.Errorf("query.timeout: %v is not in 1s..5m", l.Timeout))
	}
	for _, v := range []struct {
		key   string
		value int64
		least int64
	}{{"memory_mb", l.MemoryMB, 64}, {"rows", l.Rows, 1_000_000}, {"result_mb", l.ResultMB, 1}} {
		if v.value < v.least {
			errs = append(errs, fmt.Errorf("query.%s: %d is below %d", v.key, v.value, v.least))
		}
	}
	return errors.Join(errs...)
}

// resultRows is more than any statement of a tenant's reads gives.
const resultRows = 1_000_000

func (l Limits) settings(into clickhouse.Settings) {
	if l.MemoryMB > 0 {
		into["max_memory_usage"] = l.MemoryMB << 20
	}
	if l.Rows > 0 {
		into["max_rows_to_read"] = l.Rows
		into["read_overflow_mode"] = "throw"
	}
	if l.ResultMB > 0 {
		into["max_result_bytes"] = l.ResultMB << 20
		into["max_result_rows"] = resultRows
		into["result_overflow_mode"] = "throw"
	}
}

// explain turns the server's refusal of what goes beyond a limit into what the caller can do about it.
func (l Limits) explain(op string, err error) error {
	if l == (Limits{}) || err == nil {
		return err
	}
	const narrow = "narrow the range of time or add filters"
	switch ch.Error(chconn.Code(err)) {
	case ch.ErrTimeoutExceeded:
		return audit.E(op, audit.KindOverloaded, fmt.Errorf("the query took longer than query.timeout (%v): %s", l.Timeout, narrow))
	case ch.ErrMemoryLimitExceeded:
		return audit.E(op, audit.KindOverloaded, fmt.Errorf("the query needs more memory than it may have (query.memory_mb is %d): %s, or try again", l.MemoryMB, narrow))
	case ch.ErrTooManyRows, ch.ErrTooManyBytes:
		return audit.E(op, audit.KindInvalid, fmt.Errorf("the query would read more than query.rows (%d): %s", l.Rows, narrow))
	case ch.ErrTooManyRowsOrBytes:
		return audit.E(op, audit.KindInvalid, fmt.Errorf("the answer is larger than query.result_mb (%d): ask for fewer, or %s", l.ResultMB, narrow))
	}
	return err
}

// OfServer tells whether the server refused a statement, in words of its own.
func OfServer(err error) bool {
	var e *clickhouse.Exception
	return errors.As(err, &e)
}

// NewReader makes a store for callers from outside. Reads of tenants, and the vocabulary, stay within the
// limits; nothing else of it is meant for them. bound says that conn is signed in as an account with row
// policies: each statement then names its tenant to the server, which shows the rows of that one and refuses
// to read a table that has tenants without a name (see docs/operations.md).
func NewReader(conn driver.Conn, database string, l Limits, bound bool) *Store {
	return &Store{conn: conn, db: database, limits: l, bound: bound}
}

// WithTenant gives what one tenant may read.
func (s *Store) WithTenant(tenant string) *Tenant {
	return &Tenant{Figures{scope{store: s, tenant: tenant}}}
}

// AllTenants gives the figures over all tenants, for operators of the installation only.
func (s *Store) AllTenants() *Figures { return &Figures{scope{store: s, all: true}} }

// Tenant reads the records and figures of one tenant. Nothing that it is made of leads to another's.
type Tenant struct{ Figures }

// Figures reads rates, findings and coverage of a scope.
type Figures struct{ scope }

// scope is whose rows may be read. Its from is the only way of tenants' reads to a table (a test holds it).
type scope struct {
	store  *Store
	tenant string
	all    bool
}

// from begins a query over a table of the scope.
func (s scope) from(table string) *query {
	q := s.store.from(table)
	if !s.all {
		q.and("tenant_id = ?", s.tenant)
	}
	return q
}

// of is the scope of one tenant among those of s: of itself when s has one.
func (s scope) of(tenant string) scope {
	if !s.all {
		tenant = s.tenant
	}
	return scope{store: s.store, tenant: tenant}
}

// each runs a query within the limits and hands every row to scan. It asks again, twice at most, while the
// server is out of reach and nothing was handed on: an engine that ends is back in a fraction of a second.
func (s scope) each(ctx context.Context, op, sql string, args []any, scan func(driver.Rows) error) error {
	for wait := 100 * time.Millisecond; ; wait *= 4 {
		rows := 0
		err := s.once(ctx, op, sql, args, func(r driver.Rows) error {
			rows++
			return scan(r)
		})
		if rows > 0 || audit.KindOf(err) != audit.KindUnavailable || wait > 400*time.Millisecond {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// once is one attempt of each.
func (s scope) once(ctx context.Context, op, sql string, args []any, scan func(driver.Rows) error) error {
	ctx, end := s.reading(ctx)
	defer end()
	return s.store.limits.explain(op, chconn.Each(ctx, s.store.conn, op, sql, args, scan))
}

// one runs a query within the limits whose single row goes to dest.
func (s scope) one(ctx context.Context, op, sql string, args []any, dest ...any) error {
	// Read to its end, unlike QueryRow: what the server still has to say must not meet the end of the context.
	rows := 0
	err := s.each(ctx, op, sql, args, func(r driver.Rows) error {
		rows++
		return r.Scan(dest...)
	})
	if err == nil && rows == 0 {
		err = chconn.Wrap(op, sqldb.ErrNoRows)
	}
	return err
}

// reading is the context of one statement: the limits, and the tenant where row policies want it. The
// client would set the server's limit of time from the context's deadline, above ours: so the deadline is
// taken out, its end still cancels, and what is left until then counts where it is shorter.
func (s scope) reading(ctx context.Context) (context.Context, func()) {
	counted(ctx)
	settings := maps.Clone(chconn.Finals)
	settings["max_query_size"] = 1 << 20 // hundreds of keys, see among
	s.store.limits.settings(settings)
	if s.store.bound && s.tenant != "" {
		settings[chconn.TenantSetting] = chconn.OfTenant(s.tenant)
	}
	end := func() {}
	if limit := s.store.limits.Timeout; limit > 0 {
		if deadline, ok := ctx.Deadline(); ok {
			limit = max(min(limit, time.Until(deadline)), time.Second) // less is not allowed to readers
		}
		settings["max_execution_time"] = limit.Seconds()
		ctx, end = undated(ctx)
	}
	return clickhouse.Context(ctx, clickhouse.WithSettings(settings)), end
}

// undated is ctx without its deadline, ended when ctx is.
func undated(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return inner, func() { stop(); cancel(nil) }
}

type countKey struct{}

// CountStatements gives a context that counts the statements that are run with it, for tests of how
// many a list of any length costs.
func CountStatements(ctx context.Context) (context.Context, func() int) {
	n := new(atomic.Int64)
	return context.WithValue(ctx, countKey{}, n), func() int { return int(n.Load()) }
}

func counted(ctx context.Context) {
	if n, ok := ctx.Value(countKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
}
