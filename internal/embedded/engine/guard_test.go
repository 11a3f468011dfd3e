package engine_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

// say sends what a stranger may, says no more, and reads until the other side hangs up.
func say(t *testing.T, addr, sent string) error {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, sent)
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err = io.Copy(io.Discard, conn)
	return err
}

// TestGuard connects wrongly in every way that ends libchdb; the engine must not notice.
func TestGuard(t *testing.T) {
	e := enginetest.Start(t)
	at := e.Endpoint(engine.Reader)
	for name, sent := range map[string]string{
		"nothing":            "",
		"garbage":            "\x07\x07garbage",
		"zeros":              strings.Repeat("\x00", 100_000),
		"half a hello":       "\x00\x05hello\x1a\x07",
		"hello without end":  "\x00\xff\xff\xff\xff\xff\xffhello",
		"hello without user": "\x00\x05hello\x1a\x07\xd6\xa8\x03\x08evenhand\x00\x00",
		"http":               "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := say(t, at.Native, sent); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the guard kept the connection: %v", err)
			}
		})
	}
	for _, tc := range []struct {
		name   string
		change func(*chconn.Config)
		code   int
	}{
		{"wrong password", func(c *chconn.Config) { c.Password += "x" }, authFailed},
		{"no password", func(c *chconn.Config) { c.Password = "" }, authFailed},
		{"unknown user", func(c *chconn.Config) { c.Username = "nobody" }, authFailed},
		{"default", func(c *chconn.Config) { c.Username, c.Password = "default", "" }, authFailed},
		{"unknown database", func(c *chconn.Config) { c.Database = "nowhere" }, 81},
		{"as it should be", func(*chconn.Config) {}, noCode},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := at.Config()
			tc.change(&cfg)
			err := enginetest.Conn(t, cfg).Exec(t.Context(), "SELECT 1")
			if code := chconn.Code(err); code != tc.code || (code == noCode) != (err == nil) {
				t.Errorf("code %d (%v), want %d", code, err, tc.code)
			}
		})
	}
	t.Run("a large result passes", func(t *testing.T) {
		var n uint64
		rows, err := enginetest.Conn(t, at.Config()).Query(t.Context(), "SELECT number FROM numbers(300000)")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			n++
		}
		if err := rows.Err(); err != nil || n != 300_000 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
	if now := e.Endpoint(engine.Reader); now.PID != at.PID || !e.Up() {
		t.Errorf("the engine was restarted: process %d, was %d", now.PID, at.PID)
	}
}
