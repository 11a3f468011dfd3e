package chconn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

func TestClass(t *testing.T) {
	server := func(code int32) error { return fmt.Errorf("send: %w", &clickhouse.Exception{Code: code}) }
	for _, tc := range []struct {
		name string
		err  error
		want audit.Kind
	}{
		{"none", nil, ""},
		{"cannot parse number", server(72), audit.KindInvalid},
		{"decimal overflow", server(407), audit.KindInvalid},
		{"memory limit", server(241), audit.KindUnavailable},
		{"timeout", server(159), audit.KindUnavailable},
		{"network", server(210), audit.KindUnavailable},
		{"disk full", server(243), audit.KindUnavailable},
		{"table is read-only", server(242), audit.KindUnavailable},
		{"keeper", server(999), audit.KindUnavailable},
		{"unknown status of insert", server(319), audit.KindUnavailable},
		{"too many parts", server(252), audit.KindOverloaded},
		{"too many queries", server(202), audit.KindOverloaded},
		{"unknown table", server(60), audit.KindInternal},
		{"syntax", server(62), audit.KindInternal},
		{"access denied", server(497), audit.KindInternal},
		{"wrong password", server(516), audit.KindInternal},
		{"end of stream", fmt.Errorf("read: %w", io.EOF), audit.KindUnavailable},
		{"closed", clickhouse.ErrConnectionClosed, audit.KindUnavailable},
		{"pool exhausted", clickhouse.ErrAcquireConnTimeout, audit.KindOverloaded},
		{"network timeout", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, audit.KindUnavailable},
		{"context", context.Canceled, audit.KindUnavailable},
		{"already classed", audit.E("op", audit.KindInvalid, io.EOF), audit.KindInvalid},
		{"anything else", fmt.Errorf("odd"), audit.KindInternal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := chconn.Class(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if err := chconn.Wrap("op", tc.err); tc.err != nil && audit.KindOf(err) != tc.want {
				t.Errorf("Wrap gives %q, want %q", audit.KindOf(err), tc.want)
			}
		})
	}
}

func TestWrapHidesValues(t *testing.T) {
	err := chconn.Wrap("sinks/clickhouse: append", &clickhouse.Exception{Code: 6, Message: "It can't parse 'Jane Doe' as Int32"})
	if want := "sinks/clickhouse: append: ClickHouse code 6: It can't parse …"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if chconn.Code(err) != 6 {
		t.Error("the code is lost")
	}
	if got := chconn.Redact(strings.Repeat("x", 1000)); len(got) > 310 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestConfigHidesThePassword(t *testing.T) {
	cfg := chconn.DefaultConfig()
	cfg.Password = "open sesame"
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "clickhouse", cfg)
	b, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(cfg), fmt.Sprintf("%+v %#v %s", cfg, cfg, cfg), log.String(), string(b)} {
		if strings.Contains(s, "sesame") {
			t.Errorf("printed in %s", s)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := chconn.DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	err := chconn.Config{Addr: []string{"db"}, TLSCAFile: "ca.pem", TLSKeyFile: "key.pem"}.Validate()
	for _, want := range []string{
		`clickhouse.addr: "db" is not host:port`, "clickhouse.username: is empty", "clickhouse.dial_timeout: 0s",
		"clickhouse.read_timeout: 0s", "clickhouse.idle_conns: 0 is not in 1..max_conns (0)",
		"clickhouse.tls_cert_file and tls_key_file: set both or neither", "clickhouse.tls: is off",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("kind is %s", audit.KindOf(err))
	}
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{empty: "holds no PEM certificate", empty + "x": "no such file"} {
		cfg := chconn.DefaultConfig()
		cfg.TLS, cfg.TLSCAFile = true, file
		if _, err := chconn.Open(cfg); err == nil || !strings.Contains(err.Error(), "clickhouse.tls_ca_file: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestCompression(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:9000": false, "[::1]:9000": false, "localhost:9000": false,
		"10.0.0.1:9000": true, "clickhouse:9000": true, "127.0.0.1:9000 clickhouse:9000": true,
	} {
		cfg := chconn.DefaultConfig()
		cfg.Addr = strings.Fields(addr)
		opts, err := chconn.Options(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := opts.Compression != nil; got != want {
			t.Errorf("%s: compressed %t, want %t", addr, got, want)
		}
		if opts.Settings["async_insert"] != 0 {
			t.Errorf("async_insert is %v", opts.Settings["async_insert"])
		}
	}
}

// TestAgainstTheEngine asks a real server for the errors that matter most.
func TestAgainstTheEngine(t *testing.T) {
	cfg := enginetest.Database(t)
	conn := enginetest.Conn(t, cfg)
	if err := conn.Exec(t.Context(), "CREATE TABLE t (n UInt8, e Enum8('a' = 1), d DateTime64(3)) ENGINE = MergeTree ORDER BY n"); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	closed := cfg
	closed.Dial = nil
	closed.Addr = []string{closedPort(t)}
	for _, tc := range []struct {
		name string
		do   func() error
		want audit.Kind
	}{
		{"works", func() error { return conn.Exec(t.Context(), "INSERT INTO t VALUES (1, 'a', now64(3))") }, ""},
		{"memory limit", func() error {
			return conn.Exec(t.Context(), "SELECT groupArray(number) FROM numbers(10000000) SETTINGS max_memory_usage = 1000000")
		}, audit.KindUnavailable},
		{"server's time limit", func() error {
			return conn.Exec(t.Context(), "SELECT count() FROM numbers(1000000000000) SETTINGS max_execution_time = 0.05")
		}, audit.KindUnavailable},
		{"our time limit", func() error { return conn.Exec(short, "SELECT count() FROM numbers(1000000000000)") }, audit.KindUnavailable},
		{"value out of range", func() error { return conn.Exec(t.Context(), "SELECT toUInt8('999x')") }, audit.KindInvalid},
		{"unknown table", func() error { return conn.Exec(t.Context(), "SELECT * FROM nowhere") }, audit.KindInternal},
		{"enum value of a batch", func() error {
			batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO t")
			if err != nil {
				return err
			}
			defer func() { _ = batch.Close() }()
			return batch.Append(uint8(1), "b", time.Now())
		}, audit.KindInvalid},
		{"server down", func() error { return enginetest.Conn(t, closed).Ping(t.Context()) }, audit.KindUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.do(); chconn.Class(err) != tc.want {
				t.Errorf("%v is %q, want %q", err, chconn.Class(err), tc.want)
			}
		})
	}
	reader := enginetest.Shared(t).Config(engine.Reader)
	reader.Settings = map[string]any{"max_result_rows": 1, "result_overflow_mode": "throw"}
	if err := enginetest.Conn(t, reader).Exec(t.Context(), "SELECT number FROM numbers(10)"); chconn.Code(err) != 396 {
		t.Errorf("settings are not sent: %v", err)
	}
}

func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
