package engine_test

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

// TestClientsThatLeave asks for large results and goes away at any time: before the answer, within it, or with
// the connection closed while the engine writes. libchdb ends its process when its own connection breaks then.
// EVENHAND_LEAVE is how often, default 400.
func TestClientsThatLeave(t *testing.T) {
	e := enginetest.Start(t)
	before := e.Endpoint(engine.Reader)
	times := 400
	if n, err := strconv.Atoi(os.Getenv("EVENHAND_LEAVE")); err == nil {
		times = n
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			conn, err := chconn.Open(before.Config())
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			for i := worker; i < times; i += 4 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(8_000))*time.Microsecond)
				if i%8 == 7 {
					get(ctx, before)
				} else if i%2 == 0 {
					if conn, err := net.Dial("tcp", before.Native); err == nil {
						greet(before, conn)
					}
				} else if i%8 == 5 {
					if conn, err := e.Dial(ctx, ""); err == nil {
						greet(before, conn)
					}
				} else if rows, err := conn.Query(ctx, "SELECT number, toString(number), throwIf(number = 3000000) FROM numbers(4000000) SETTINGS max_block_size = 1000"); err == nil {
					for range rand.IntN(3000) {
						if !rows.Next() {
							break
						}
					}
					cancel()
					_ = rows.Close()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if now := e.Endpoint(engine.Reader); now.PID != before.PID || !e.Up() {
		t.Errorf("the engine was restarted: process %d, was %d", now.PID, before.PID)
	}
	writer := enginetest.Conn(t, e.Endpoint(engine.Writer).Config())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := writer.Exec(ctx, "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(number)"); err == nil {
		t.Error("an endless query ended")
	}
	if !eventually(t, 10*time.Second, func() bool {
		var left uint64
		err := writer.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query LIKE '%numbers(%' AND query NOT LIKE '%system.processes%'").Scan(&left)
		return err == nil && left == 0
	}) {
		t.Error("queries go on whose clients have gone")
	}
}

// greet signs in over a connection and is gone before the engine has answered.
func greet(at engine.Endpoint, conn net.Conn) {
	hello := []byte{0}
	text := func(s string) { hello = append(binary.AppendUvarint(hello, uint64(len(s))), s...) }
	text("test")
	hello = append(hello, 26, 7)
	hello = binary.AppendUvarint(hello, 54460)
	text(at.Database)
	text(string(at.User))
	text(at.Password)
	_, _ = conn.Write(hello)
	if tcp, ok := conn.(*net.TCPConn); ok && rand.IntN(2) == 0 {
		_ = tcp.SetLinger(0) // with a reset
	}
	_ = conn.Close()
}

// get asks by HTTP, as Grafana and `curl` do, and leaves when ctx ends.
func get(ctx context.Context, at engine.Endpoint) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.HTTP+"/?query="+url.QueryEscape("SELECT number FROM numbers(4000000)"), nil)
	if err != nil {
		return
	}
	req.SetBasicAuth(string(at.User), at.Password)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}
