package chconn

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// again asks once more, on another connection, where the one from the pool broke before the answer began, as
// database/sql does (driver.ErrBadConn). Reads only: what was written may have arrived.
//
// Servers close connections that are idle. And clickhouse-go closes one late: it watches a batch's context, and
// when that ends just as the batch does, the connection is back in the pool already, or at work for somebody else.
type again struct{ driver.Conn }

func (a again) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	rows, err := a.Conn.Query(ctx, query, args...)
	if broke(ctx, err) {
		return a.Conn.Query(ctx, query, args...)
	}
	return rows, err
}

func (a again) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	row := a.Conn.QueryRow(ctx, query, args...)
	if broke(ctx, row.Err()) {
		return a.Conn.QueryRow(ctx, query, args...)
	}
	return row
}

// broke says whether a connection ended that had been made: one that cannot be made is no reason to try again here.
func broke(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
