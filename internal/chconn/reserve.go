package chconn

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/semaphore"
)

// pool is what Open makes.
type pool struct {
	again
	size int64
	free *semaphore.Weighted // of size, less what is reserved
	wait time.Duration
}

func newPool(conn driver.Conn, c Config) pool {
	return pool{again{conn}, int64(c.MaxConns), semaphore.NewWeighted(int64(c.MaxConns)), c.DialTimeout}
}

// Reserve waits until n connections of a pool are in nobody else's reservation, and reserves them: for whoever holds one connection while waiting
// for the next, since many that do so would take all there are and wait for each other. It waits as long as for one connection, and gives how many
// are reserved, n but never more than the pool has, and what gives them back. Connections that are not reserved are still taken as they are free.
// Of a connection that Open did not make, n are reserved at once.
func Reserve(ctx context.Context, conn driver.Conn, n int) (reserved int, release func(), err error) {
	p, ok := conn.(pool)
	if !ok {
		return n, func() {}, nil
	}
	some := min(int64(n), p.size)
	release = func() { p.free.Release(some) }
	if p.free.TryAcquire(some) {
		return int(some), release, nil
	}
	limited, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	if err := p.free.Acquire(limited, some); err != nil {
		if ctx.Err() == nil {
			err = clickhouse.ErrAcquireConnTimeout
		}
		return 0, nil, Wrap("chconn: reserve connections", err)
	}
	return int(some), release, nil
}
