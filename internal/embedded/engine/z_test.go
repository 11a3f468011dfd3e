package engine_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

func TestZ(t *testing.T) {
	dir := t.TempDir()
	e := enginetest.StartWith(t, engine.Options{Dir: dir})
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	mustExec(t, conn.Exec, "CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s")
	raw := func(b string, read bool) {
		c, err := e.Dial(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte(b))
		if read {
			c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			io.ReadAll(c)
		}
		c.Close()
	}
	try := func(name string, f func()) {
		pid := e.Endpoint(engine.Writer).PID
		f()
		time.Sleep(150 * time.Millisecond)
		for !e.Up() {
			time.Sleep(5 * time.Millisecond)
		}
		t.Logf("%-40s crashed=%t", name, e.Endpoint(engine.Writer).PID != pid)
	}
	try("nothing", func() { conn.Ping(t.Context()) })
	try("connect+close", func() { raw("", false) })
	try("garbage", func() { raw("\x07\x07garbage garbage", true) })
	try("garbage long", func() { raw(string(make([]byte, 100000)), true) })
	try("partial hello", func() { raw("\x00\x05hello\x1a\x07", false) })
	try("hello bad size", func() { raw("\x00\xff\xff\xff\xff\xff\xffhello\x1a\x07", true) })
	try("http on native", func() {
		cl := http.Client{Timeout: time.Second}
		r, err := cl.Get("http://" + e.Endpoint(engine.Writer).Native)
		if err == nil {
			b, _ := io.ReadAll(r.Body)
			t.Log(string(b))
			r.Body.Close()
		} else { t.Log(err) }
		cl.CloseIdleConnections()
	})
	try("unknown database", func() {
		cfg := e.Config(engine.Writer)
		cfg.Database = "nope"
		t.Log(enginetest.Conn(t, cfg).Exec(t.Context(), "SELECT 1"))
	})
	try("cancel mid query", func() {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		t.Log(conn.Exec(ctx, "SELECT count() FROM numbers(100000000000)"))
	})
	try("prepare batch, abort", func() {
		b, err := conn.PrepareBatch(t.Context(), "INSERT INTO t")
		t.Log(err)
		b.Append("x")
		b.Abort()
	})
	try("prepare batch, conn dropped", func() {
		cfg := e.Config(engine.Writer)
		var last net.Conn
		cfg.Dial = func(ctx context.Context, a string) (net.Conn, error) {
			c, err := e.Dial(ctx, a)
			last = c
			return c, err
		}
		b, err := enginetest.Conn(t, cfg).PrepareBatch(t.Context(), "INSERT INTO t")
		t.Log(err)
		b.Append("x")
		last.Close()
		t.Log(b.Send())
	})
	try("drop half a block", func() {
		cfg := e.Config(engine.Writer)
		var last *half
		cfg.Dial = func(ctx context.Context, a string) (net.Conn, error) {
			c, err := e.Dial(ctx, a)
			last = &half{Conn: c}
			return last, err
		}
		b, err := enginetest.Conn(t, cfg).PrepareBatch(t.Context(), "INSERT INTO t")
		t.Log(err)
		for range 100000 {
			b.Append("xjklejlkjflksjdflkjslkfjlskdf")
		}
		last.cut = true
		t.Log(b.Send())
	})
	try("reset mid result", func() {
		cfg := e.Config(engine.Writer)
		var last net.Conn
		cfg.Dial = func(ctx context.Context, a string) (net.Conn, error) {
			c, err := e.Dial(ctx, a)
			last = c
			return c, err
		}
		r, err := enginetest.Conn(t, cfg).Query(t.Context(), "SELECT number FROM numbers(10000000000)")
		t.Log(err)
		r.Next()
		last.(*net.TCPConn).SetLinger(0)
		last.Close()
		r.Close()
	})
	try("http bad auth", func() {
		r, err := http.Get("http://evenhand:no@" + e.Endpoint(engine.Writer).HTTP + "/?query=SELECT+1")
		t.Log(err)
		if err == nil {
			t.Log(r.StatusCode)
			r.Body.Close()
		}
	})
	try("http garbage", func() {
		c, _ := net.Dial("tcp", e.Endpoint(engine.Writer).HTTP)
		c.Write([]byte("GARBAGE \x00\x01\x02\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n"))
		c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		b, _ := io.ReadAll(c)
		t.Log(len(b))
		c.Close()
	})
	try("http half body", func() {
		c, _ := net.Dial("tcp", e.Endpoint(engine.Writer).HTTP)
		c.Write([]byte("POST /?user=evenhand&password="+e.Endpoint(engine.Writer).Password+"&query=INSERT%20INTO%20evenhand.t%20FORMAT%20TSV HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\nabc"))
		time.Sleep(50*time.Millisecond)
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	})
	try("http reset mid result", func() {
		c, _ := net.Dial("tcp", e.Endpoint(engine.Writer).HTTP)
		c.Write([]byte("GET /?user=evenhand&password="+e.Endpoint(engine.Writer).Password+"&query=SELECT%20number%20FROM%20numbers(100000000) HTTP/1.1\r\nHost: a\r\n\r\n"))
		time.Sleep(50*time.Millisecond)
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	})
	try("client killed idle", func() {
		c := enginetest.Conn(t, e.Config(engine.Writer))
		c.Ping(t.Context())
		c.Close()
	})
}

type half struct {
	net.Conn
	cut bool
}

func (h *half) Write(b []byte) (int, error) {
	if h.cut {
		n, _ := h.Conn.Write(b[:len(b)/2])
		h.Conn.Close()
		return n, io.ErrClosedPipe
	}
	return h.Conn.Write(b)
}
