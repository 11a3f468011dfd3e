package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// silent is a broker that hangs: it accepts and says nothing.
func silent(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// forward carries connections to a port on to a server elsewhere.
func forward(t *testing.T, from, to string) {
	t.Helper()
	l, err := net.Listen("tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
}

// A process that starts before Kafka or ClickHouse does waits for it, and says so in its log and at /readyz; then it
// serves. A stop says in the log that it came, and how it ended.
func TestRunWaits(t *testing.T) {
	ch := enginetest.Start(t).Config(engine.Writer)
	kafkaOn := func(t *testing.T, ports ...int) string {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(ports...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c.ListenAddrs()[0]
	}
	for _, server := range []struct {
		name, key, waits, env, other string
		come                         func(t *testing.T, addr string, port int)
	}{
		{"Kafka", "kafka.brokers", "waiting for Kafka: no broker of kafka.brokers can be used", "EVENHAND_KAFKA_BROKERS=", "EVENHAND_CLICKHOUSE_ADDR=" + ch.Addr[0],
			func(t *testing.T, _ string, port int) { kafkaOn(t, port) }},
		{"ClickHouse", "clickhouse.addr", "waiting for ClickHouse: no server of clickhouse.addr can be used", "EVENHAND_CLICKHOUSE_ADDR=", "EVENHAND_KAFKA_BROKERS=" + kafkaOn(t),
			func(t *testing.T, addr string, _ int) { forward(t, addr, ch.Addr[0]) }},
	} {
		for _, name := range []string{"away", "hung"} {
			t.Run(server.name+" "+name, func(t *testing.T) {
				held := silent(t)
				if name == "away" {
					_ = held.Close()
				}
				heldAddr, port := held.Addr().String(), held.Addr().(*net.TCPAddr).Port
				log := &output{}
				http0, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				addr := http0.Addr().String()
				_ = http0.Close()
				cmd := exec.Command(os.Args[0], "run", "--roles", "api", "--http", addr)
				cmd.Stdout, cmd.Stderr = log, log
				cmd.Env = environment(t, server.env+heldAddr, server.other,
					"EVENHAND_CLICKHOUSE_USERNAME="+ch.Username, "EVENHAND_CLICKHOUSE_PASSWORD="+ch.Password)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
				status := func(path string, want int, says string) func() error {
					return func() error {
						res, err := http.Get("http://" + addr + path)
						if err != nil {
							return err
						}
						defer func() { _ = res.Body.Close() }()
						body, _ := io.ReadAll(res.Body)
						if res.StatusCode != want || !strings.Contains(string(body), says) {
							return errors.New(res.Status + " " + string(body))
						}
						return nil
					}
				}
				eventually(t, "it waits", status("/readyz", 503, "waiting for "+server.key+": "+heldAddr))
				eventually(t, "it lives", status("/healthz", 200, "ok"))
				eventually(t, "doors say why", status("/graphql", 503, "waits for "+server.name))
				if n := strings.Count(log.String(), server.waits); n != 1 || !strings.Contains(log.String(), heldAddr) {
					t.Errorf("said %d times:\n%s", n, log)
				}
				_ = held.Close()
				server.come(t, heldAddr, port)
				eventually(t, "it serves", status("/readyz", 200, `"status":"ready"`))
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Wait(); err != nil {
					t.Errorf("%v\n%s", err, log)
				}
				said := log.String()
				for _, want := range []string{server.name + " answers", "stopping: doors close, what was taken is finished", "terminated signal received", "stopped: all that was taken is finished"} {
					if strings.Count(said, want) != 1 {
						t.Errorf("%q is not told once in\n%s", want, said)
					}
				}
			})
		}
	}
}

// What waiting does not mend ends the start at once, before rules are compiled.
func TestRunDoesNotWaitForWhatIsWrong(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler()) // speaks no TLS
	defer plain.Close()
	ch := enginetest.Start(t).Config(engine.Writer)
	store := []string{"EVENHAND_CLICKHOUSE_ADDR=" + ch.Addr[0], "EVENHAND_CLICKHOUSE_USERNAME=" + ch.Username, "EVENHAND_CLICKHOUSE_PASSWORD=" + ch.Password}
	for name, env := range map[string][]string{
		"unknown store":  {"EVENHAND_KAFKA_BROKERS=" + silent(t).Addr().String(), "EVENHAND_CLICKHOUSE_ADDR=nowhere.invalid:9000"},
		"store over TLS": {"EVENHAND_KAFKA_BROKERS=" + silent(t).Addr().String(), "EVENHAND_CLICKHOUSE_ADDR=" + plain.Listener.Addr().String(), "EVENHAND_CLICKHOUSE_TLS=true"},
		"nobody gets in": {"EVENHAND_KAFKA_BROKERS=" + silent(t).Addr().String(), "EVENHAND_AUTH_MODE=required"},
		"unknown host":   {"EVENHAND_KAFKA_BROKERS=nowhere.invalid:9092"},
		"wrong store":    {"EVENHAND_KAFKA_BROKERS=" + silent(t).Addr().String(), "EVENHAND_CLICKHOUSE_PASSWORD=wrong"}, // no broker is waited for with it
	} {
		t.Run(name, func(t *testing.T) {
			r := evenhandEnv(t, "", append(append([]string{}, store...), env...), "run", "--roles", "api", "--http", "127.0.0.1:0")
			want := 1
			if name == "nobody gets in" {
				want = 2
			}
			if r.code != want || strings.Contains(r.err, "waiting for Kafka") && name == "unknown host" ||
				strings.Contains(r.err, "waiting for ClickHouse") || strings.Contains(r.err, "rules are ready") {
				t.Errorf("status %d\n%s", r.code, r.err)
			}
		})
	}
}

func TestMayCome(t *testing.T) {
	st := &stack{}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{io.ErrUnexpectedEOF, true},
		{context.DeadlineExceeded, true},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{kafka.LeaderNotAvailable, true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "nowhere", IsTemporary: true}}, true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "nowhere", IsNotFound: true}}, false},
		{kafka.SASLAuthenticationFailed, false},
		{kafka.UnsupportedSASLMechanism, false},
		{kafka.ClusterAuthorizationFailed, false},
		{x509.UnknownAuthorityError{}, false},
		{audit.E("ensure", audit.KindInvalid, errors.New("a topic is wrong")), false},
	} {
		if got := st.mayCome(kafkaconn.E("test", test.err)); got != test.want {
			t.Errorf("%v: %v", test.err, got)
		}
	}
}

func TestStoreMayCome(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{io.EOF, true},
		{context.DeadlineExceeded, true},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "nowhere", IsTemporary: true}}, true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "nowhere", IsNotFound: true}}, false},
		{&clickhouse.Exception{Code: 999}, true}, // its keeper is away
		{&clickhouse.Exception{Code: 516}, false},
		{&clickhouse.Exception{Code: 497}, false},
		{&clickhouse.Exception{Code: 81}, false},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, false},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, false},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, false},
		{errors.New("a migration is wrong"), false},
	} {
		err := fmt.Errorf("clickhouse.addr: %w", audit.E("store/migrate", audit.KindUnavailable, test.err))
		if got := new(stack).storeMayCome(err); got != test.want {
			t.Errorf("%v: %v", test.err, got)
		}
	}
}
