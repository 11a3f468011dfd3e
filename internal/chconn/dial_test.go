package chconn

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
)

// Whatever lies over it, the socket of a connection is found: by it clickhouse-go sees that the server
// closed a pooled connection.
func TestDialShowsTheSocket(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c := DefaultConfig()
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": {RootCAs: roots, MinVersion: tls.VersionTLS12}} {
		conn, err := c.dial(config)(t.Context(), server.Listener.Addr().String())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer func() { _ = conn.Close() }()
		under := conn
		secured, is := conn.(*tls.Conn)
		if is {
			under = secured.NetConn()
		}
		if is != (config != nil) {
			t.Errorf("%s: a connection of type %T", name, conn)
		}
		if _, ok := under.(syscall.Conn); !ok {
			t.Errorf("%s: %T shows no socket", name, under)
		}
	}
	stranger := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if conn, err := c.dial(stranger)(t.Context(), server.Listener.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("a certificate of an unknown authority is taken")
	}
}
