package chconn

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// What is reserved together is had together, in turn, for as long as one waits for a connection.
func TestReserve(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxConns, cfg.IdleConns, cfg.DialTimeout = 3, 3, time.Nanosecond
	conn, err := Open(cfg) // dials nothing
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n, release, err := Reserve(t.Context(), conn, 7)
	if err != nil || n != 3 {
		t.Fatalf("%d of 3: %v", n, err)
	}
	if _, _, err := Reserve(t.Context(), conn, 1); audit.KindOf(err) != audit.KindOverloaded {
		t.Errorf("all are reserved: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := Reserve(ended, conn, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("who asks has left: %v", err)
	}
	release()
	for range 2 {
		if n, release, err := Reserve(t.Context(), conn, 2); err != nil || n != 2 {
			t.Errorf("%d of 2: %v", n, err)
		} else {
			release()
		}
	}
}
