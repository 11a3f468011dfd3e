package clickhouse_test

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// hooked is a connection that lets a test do something just before a statement, or fail it.
type hooked struct {
	driver.Conn
	query  func(sql string)
	insert func(sql string) error
	sent   func(sql string)
}

func (h *hooked) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	if h.query != nil {
		h.query(sql)
	}
	return h.Conn.Query(ctx, sql, args...)
}

func (h *hooked) PrepareBatch(ctx context.Context, sql string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	if h.insert != nil {
		if err := h.insert(sql); err != nil {
			return nil, err
		}
	}
	b, err := h.Conn.PrepareBatch(ctx, sql, opts...)
	if err != nil || h.sent == nil {
		return b, err
	}
	return &sentBatch{b, func() { h.sent(sql) }}, nil
}

// sentBatch says when it was acknowledged.
type sentBatch struct {
	driver.Batch
	sent func()
}

func (b *sentBatch) Send() error {
	err := b.Batch.Send()
	b.sent()
	return err
}
