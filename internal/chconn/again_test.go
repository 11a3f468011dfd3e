package chconn_test

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

// broken is a connection that a server resets when it is read next, where armed says so.
type broken struct {
	net.Conn
	armed *atomic.Int32
}

func (b *broken) Read(p []byte) (int, error) {
	if b.armed.Load() > 0 && b.armed.Add(-1) >= 0 {
		_ = b.Close()
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return b.Conn.Read(p)
}

func TestReadsAreAskedAgain(t *testing.T) {
	cfg := enginetest.Shared(t).Config(engine.Writer)
	dial, dials, armed := cfg.Dial, 0, new(atomic.Int32)
	cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
		dials++
		conn, err := dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return &broken{conn, armed}, nil
	}
	conn := enginetest.Conn(t, cfg)
	row := func() (n uint64, err error) {
		err = conn.QueryRow(t.Context(), "SELECT toUInt64(7)").Scan(&n)
		return n, err
	}
	rows := func() (n uint64, err error) {
		rows, err := conn.Query(t.Context(), "SELECT toUInt64(7)")
		if err != nil {
			return 0, err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			err = rows.Scan(&n)
		}
		return n, err
	}
	// The client gives a connection back behind its answer: a read too soon after would dial, and break in its greeting.
	pooled := func() {
		for conn.Stats().Idle == 0 {
			runtime.Gosched()
		}
	}
	if _, err := row(); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() (uint64, error){"QueryRow": row, "Query": rows} {
		pooled()
		before := dials
		armed.Store(1)
		if n, err := read(); n != 7 || err != nil || dials != before+1 {
			t.Errorf("%s: %d, %v, %d new connections", name, n, err, dials-before)
		}
	}
	pooled()
	armed.Store(1)
	if err := conn.Exec(t.Context(), "SELECT 1"); chconn.Class(err) != audit.KindUnavailable {
		t.Errorf("a write was asked again, or not refused: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := conn.Query(ctx, "SELECT 1"); err == nil {
		t.Error("a read without time was asked again")
	}
}
