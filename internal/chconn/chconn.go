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
	"net"
	"os"
	"strings"
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
	ReadTimeout time.Duration // for one read; a context's deadline goes before it
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

// Open makes a pool of connections. It fails on a faulty configuration only; nothing is dialled yet.
// Whoever opens it closes it.
func Open(c Config) (driver.Conn, error) {
	opts, err := Options(c)
	if err != nil {
		return nil, err
	}
	conn, err := clickhouse.Open(opts)
	return conn, Wrap("chconn: open", err)
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
		DialContext:      c.Dial,
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
	for k, v := range c.Settings {
		o.Settings[k] = v
	}
	var err error
	o.TLS, err = c.tls()
	return o, err
}

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
