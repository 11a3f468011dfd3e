// Package chconn opens ClickHouse connections over the native protocol: one way for the embedded
// engine and for servers outside.
//
// Open connects lazily: a server that is down shows at the first query, as audit.KindUnavailable
// (see [Class]). Inserts are synchronous (async_insert=0): an acknowledged batch is written.
// Compression is off on loopback, where it costs more than it saves, and LZ4 elsewhere.
//
// Passwords are never printed: [Config] hides its own in every fmt verb, in JSON and in slog.
// Messages of the server may quote values; [Wrap] takes them out.
package chconn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
)

// Config says how to reach a server. Start from [DefaultConfig].
type Config struct {
	Addr     []string // host:port of the native protocol; the first that answers is used
	Database string   // "" lets the server choose: tables must then be named with their database
	Username string
	Password string `json:"-"`

	TLS           bool   // native protocol over TLS
	TLSServerName string // name in the server's certificate; "" takes the host of Addr
	TLSCAFile     string // PEM file of trusted authorities; "" takes the system's
	TLSCertFile   string // PEM client certificate, with TLSKeyFile; "" for none
	TLSKeyFile    string

	DialTimeout time.Duration // also bounds the wait for a free connection
	ReadTimeout time.Duration // for one read or write; a context's deadline goes before it
	MaxConns    int           // connections open at once
	IdleConns   int           // connections kept open

	Settings map[string]any // added to every query

	// Dial replaces dialling addr, for a server whose port may change. TLS is then the dialler's affair.
	Dial func(ctx context.Context, addr string) (net.Conn, error) `json:"-"`
}

// DefaultConfig gives the default limits and a server on this machine.
func DefaultConfig() Config {
	return Config{
		Addr:        []string{"127.0.0.1:9000"},
		Database:    "evenhand",
		Username:    "default",
		DialTimeout: 5 * time.Second,
		ReadTimeout: 5 * time.Minute,
		MaxConns:    16,
		IdleConns:   8,
	}
}

// Validate reports every fault at once, each with the key under "clickhouse" and the mend.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("clickhouse."+format, args...)) }
	if len(c.Addr) == 0 && c.Dial == nil {
		fault("addr: is empty; name at least one host:port of the native protocol (9000, or 9440 with TLS)")
	}
	for _, a := range c.Addr {
		if _, _, err := net.SplitHostPort(a); err != nil {
			fault("addr: %q is not host:port", a)
		}
	}
	if c.Username == "" {
		fault("username: is empty")
	}
	if c.DialTimeout <= 0 {
		fault("dial_timeout: %s is not above 0", c.DialTimeout)
	}
	if c.ReadTimeout <= 0 {
		fault("read_timeout: %s is not above 0", c.ReadTimeout)
	}
	if c.MaxConns < 1 || c.IdleConns < 1 || c.IdleConns > c.MaxConns {
		fault("idle_conns: %d is not in 1..max_conns (%d)", c.IdleConns, c.MaxConns)
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		fault("tls_cert_file and tls_key_file: set both or neither")
	}
	if !c.TLS && (c.TLSServerName != "" || c.TLSCAFile != "" || c.TLSCertFile != "") {
		fault("tls: is off, but other tls keys are set; set clickhouse.tls: true or remove them")
	}
	return audit.E("chconn: config", audit.KindInvalid, errors.Join(errs...))
}

// Open makes a pool of connections. It fails on a faulty configuration only; nothing is dialled yet. A read whose
// connection breaks before the answer begins is asked once more. Whoever opens it closes it.
func Open(c Config) (driver.Conn, error) {
	opts, err := Options(c)
	if err != nil {
		return nil, err
	}
	conn, err := clickhouse.Open(opts)
	if err != nil {
		return nil, Wrap("chconn: open", err)
	}
	return newPool(conn, c), nil
}

// Options turns c into clickhouse-go options, for callers that need database/sql (migrations).
func Options(c Config) (*clickhouse.Options, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	o := &clickhouse.Options{
		Addr:             c.Addr,
		Auth:             clickhouse.Auth{Database: c.Database, Username: c.Username, Password: c.Password},
		DialTimeout:      c.DialTimeout,
		ReadTimeout:      c.ReadTimeout,
		MaxOpenConns:     c.MaxConns,
		MaxIdleConns:     c.IdleConns,
		ConnMaxLifetime:  time.Hour,
		ConnOpenStrategy: clickhouse.ConnOpenInOrder,
		Settings:         clickhouse.Settings{"async_insert": 0},
		Compression:      &clickhouse.Compression{Method: clickhouse.CompressionLZ4},
	}
	o.ClientInfo.Products = append(o.ClientInfo.Products, struct{ Name, Version string }{"evenhand", ""})
	if len(o.Addr) == 0 {
		o.Addr = []string{"dial"} // clickhouse-go wants one to hand to DialContext
	}
	if c.loopback() {
		o.Compression = nil
	}
	maps.Copy(o.Settings, c.Settings)
	var err error
	o.TLS, err = c.tls()
	o.DialContext = c.dial(o.TLS)
	return o, err
}

// dial gives a dialler whose connections also limit writes: clickhouse-go limits reads only, and a
// server that hangs takes no bytes for as long as it likes. TLS lies over the limit, so that clickhouse-go
// still finds the socket by which it sees that a pooled connection was closed.
func (c Config) dial(t *tls.Config) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
		defer cancel()
		if c.Dial != nil {
			conn, err := c.Dial(ctx, addr)
			return c.limit(conn), err
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil || t == nil {
			return c.limit(conn), err
		}
		t := t.Clone()
		if t.ServerName == "" {
			t.ServerName, _, _ = net.SplitHostPort(addr)
		}
		secured := tls.Client(c.limit(conn), t)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return secured, nil
	}
}

// limit gives a connection whose every write must end in time; nil stays nil.
func (c Config) limit(conn net.Conn) net.Conn {
	if conn == nil {
		return nil
	}
	l := limited{conn, c.ReadTimeout}
	if raw, ok := conn.(syscall.Conn); ok {
		return &limitedSocket{l, raw}
	}
	return &l
}

// limited is a connection whose every write must end in time.
type limited struct {
	net.Conn
	limit time.Duration
}

func (l *limited) Write(b []byte) (int, error) {
	if err := l.SetWriteDeadline(time.Now().Add(l.limit)); err != nil {
		return 0, err
	}
	return l.Conn.Write(b)
}

// limitedSocket also shows its socket.
type limitedSocket struct {
	limited
	raw syscall.Conn
}

func (l *limitedSocket) SyscallConn() (syscall.RawConn, error) { return l.raw.SyscallConn() }

func (c Config) loopback() bool {
	for _, a := range c.Addr {
		host, _, err := net.SplitHostPort(a)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return len(c.Addr) > 0
}

func (c Config) tls() (*tls.Config, error) {
	if !c.TLS {
		return nil, nil
	}
	invalid := func(key string, err error) error {
		return audit.E("chconn: config", audit.KindInvalid, fmt.Errorf("clickhouse.%s: %w", key, err))
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.TLSServerName}
	if c.TLSCAFile != "" {
		pem, err := os.ReadFile(c.TLSCAFile)
		if err != nil {
			return nil, invalid("tls_ca_file", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, invalid("tls_ca_file", fmt.Errorf("%s holds no PEM certificate", c.TLSCAFile))
		}
	}
	if c.TLSCertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile)
		if err != nil {
			return nil, invalid("tls_cert_file", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// String shows where and as whom, never the password.
func (c Config) String() string {
	return fmt.Sprintf("clickhouse://%s:***@%s/%s", c.Username, strings.Join(c.Addr, ","), c.Database)
}

// GoString hides the password from %#v.
func (c Config) GoString() string { return c.String() }

// LogValue hides the password from slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Finals make FINAL cheap and right: two versions of a row lie in one partition (a test of the
// schema holds it), and skip indexes may prune under FINAL only in the mode that then looks again at
// the granules that could hold a newer version.
var Finals = clickhouse.Settings{
	"do_not_merge_across_partitions_select_final": 1,
	"use_skip_indexes_if_final":                   1,
	"use_skip_indexes_if_final_exact_mode":        1,
}

// A query of the API names its tenant in the setting log_comment, which every server has (libchdb knows
// no settings of one's own), as [OfTenant] writes it.
const (
	TenantSetting = "log_comment"
	tenantPrefix  = "evenhand_tenant="
	// TenantPolicy is the condition of row policies on tables with a column tenant_id: the rows of the
	// tenant that the query names. One that names none asks for a setting that there is not, which the server
	// refuses (code 115) before it reads.
	TenantPolicy = "tenant_id = substring(getSetting(if(startsWith(getSetting('" + TenantSetting + "'), '" + tenantPrefix + "'), '" + TenantSetting + "', 'evenhand_tenant')), 17)"
)

// OfTenant is the value of TenantSetting.
func OfTenant(tenant string) string { return tenantPrefix + tenant }

// Each runs a query and hands every row to scan. Errors, those of scan too, are classed and begin with op.
func Each(ctx context.Context, conn driver.Conn, op, sql string, args []any, scan func(driver.Rows) error) (err error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return Wrap(op, err)
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = Wrap(op, cerr)
		}
	}()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return Wrap(op, err)
		}
	}
	return Wrap(op, rows.Err())
}
