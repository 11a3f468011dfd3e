package engine_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

// ask posts a query by HTTP.
func ask(t *testing.T, at engine.Endpoint, query, password string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at.HTTP+"/?default_format=TSV", strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(string(at.User), password)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestWeb says over HTTP everything that ends libchdb; the engine must not notice. Answers pass as the engine gives them,
// and the port stays when the engine is another process.
func TestWeb(t *testing.T) {
	e := enginetest.Start(t)
	at := e.Endpoint(engine.Grafana)
	random := make([]byte, 5000)
	_, _ = rand.Read(random)
	for name, sent := range map[string]string{
		"nothing":         "",
		"half a line":     "GET /",
		"HTTP 0.9":        "GET /\r\n\r\n",
		"TLS":             "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 200),
		"Kafka":           "\x00\x00\x00\x08\x00\x12\x00\x00\x00\x00\x00\x00",
		"zeros":           strings.Repeat("\x00", 64),
		"garbage":         string(random),
		"HTTP 2":          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"another version": "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
		"method":          "FOO / HTTP/1.1\r\nHost: x\r\n\r\n",
		"long head":       "GET / HTTP/1.1\r\nHost: " + strings.Repeat("x", 200_000) + "\r\n\r\n",
		"many heads":      "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: x\r\n", 2000) + "\r\n",
		"as many heads":   "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: x\r\n", 95) + "\r\n",
		"a long field":    "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("x", 60_000) + "\r\n\r\n",
		"long address":    "GET /?q=" + strings.Repeat("x", 1_000_000) + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"half a body":     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nSELECT",
		"broken chunk":    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nSELECT",
	} {
		t.Run(name, func(t *testing.T) {
			for range 3 { // some end it only now and then
				_ = say(t, at.HTTP, sent)
			}
		})
	}
	if status, body := ask(t, at, "SELECT 'a b'", at.Password); status != http.StatusOK || body != "a b\n" {
		t.Errorf("%d %q", status, body)
	}
	if status, body := ask(t, at, "SELECT 1", "wrong"); status < 400 || !strings.Contains(body, "AUTHENTICATION_FAILED") {
		t.Errorf("%d %q", status, body)
	}
	if _, body := ask(t, at, "SELECT number FROM numbers(50000)", at.Password); strings.Count(body, "\n") != 50_000 {
		t.Errorf("%d lines of 50,000", strings.Count(body, "\n"))
	}
	resp, err := http.Get("http://" + at.HTTP + "/?query=" + url.QueryEscape("SELECT 1;") + "&password=" + url.QueryEscape(at.Password) + "&user=" + string(at.User))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(b) != "1\n" {
		t.Errorf("%d %q", resp.StatusCode, b)
	}
	if now := e.Endpoint(engine.Grafana); now.PID != at.PID || !e.Up() {
		t.Fatalf("the engine was restarted: process %d, was %d", now.PID, at.PID)
	}
	if err := syscall.Kill(at.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !eventually(t, 30*time.Second, func() bool { return e.Up() && e.Endpoint(engine.Grafana).PID != at.PID }) {
		t.Fatal("the engine did not come back")
	}
	if status, body := ask(t, at, "SELECT 2", at.Password); status != http.StatusOK || body != "2\n" {
		t.Errorf("after a restart: %d %q", status, body)
	}
}

// A client that goes away while it is answered, or before, is as good as one that stays: libchdb would end over an answer that nobody hears.
func TestWebClientGoes(t *testing.T) {
	e := enginetest.Start(t)
	at := e.Endpoint(engine.Grafana)
	for _, query := range []string{"SELECT number FROM numbers(2000000)", "SELECT no_such_column", strings.Repeat("x", 100_000)} {
		for heard := range 10 {
			conn, err := net.Dial("tcp", at.HTTP)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = fmt.Fprintf(conn, "GET /?user=%s&password=%s&query=%s HTTP/1.1\r\nHost: x\r\n\r\n", at.User, url.QueryEscape(at.Password), url.QueryEscape(query))
			_, _ = io.CopyN(io.Discard, conn, int64(heard%2*100))
			_ = conn.(*net.TCPConn).SetLinger(0) // it does not say goodbye
			_ = conn.Close()
		}
	}
	if status, body := ask(t, at, "SELECT 1", at.Password); status != http.StatusOK || body != "1\n" {
		t.Errorf("%d %q", status, body)
	}
	if now := e.Endpoint(engine.Grafana); now.PID != at.PID || !e.Up() {
		t.Errorf("the engine was restarted: process %d, was %d", now.PID, at.PID)
	}
}
