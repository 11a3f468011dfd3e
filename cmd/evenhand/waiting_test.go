package main

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

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

// A process that starts before Kafka does waits for it, and says so in its log and at /readyz; then it serves. A stop
// says in the log that it came, and how it ended.
func TestRunWaitsForKafka(t *testing.T) {
	ch := enginetest.Start(t).Config(engine.Writer)
	for _, name := range []string{"away", "hung"} {
		t.Run(name, func(t *testing.T) {
			held := silent(t)
			if name == "away" {
				_ = held.Close()
			}
			kafkaAddr, port := held.Addr().String(), held.Addr().(*net.TCPAddr).Port
			log := &output{}
			http0, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr := http0.Addr().String()
			_ = http0.Close()
			cmd := exec.Command(os.Args[0], "run", "--roles", "api", "--http", addr)
			cmd.Stdout, cmd.Stderr = log, log
			cmd.Env = environment(t, "EVENHAND_KAFKA_BROKERS="+kafkaAddr, "EVENHAND_CLICKHOUSE_ADDR="+ch.Addr[0],
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
			eventually(t, "it waits", status("/readyz", 503, "waiting for kafka.brokers: "+kafkaAddr))
			eventually(t, "it lives", status("/healthz", 200, "ok"))
			eventually(t, "doors say why", status("/graphql", 503, "waits for Kafka"))
			if n := strings.Count(log.String(), "waiting for Kafka: no broker of kafka.brokers can be used"); n != 1 || !strings.Contains(log.String(), kafkaAddr) {
				t.Errorf("said %d times:\n%s", n, log)
			}
			_ = held.Close()
			c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			eventually(t, "it serves", status("/readyz", 200, `"status":"ready"`))
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%s", err, log)
			}
			said := log.String()
			for _, want := range []string{"Kafka answers", "stopping: doors close, what was taken is finished", "terminated signal received", "stopped: all that was taken is finished"} {
				if strings.Count(said, want) != 1 {
					t.Errorf("%q is not told once in\n%s", want, said)
				}
			}
		})
	}
}

// What waiting does not mend ends the start at once.
func TestRunDoesNotWaitForWhatIsWrong(t *testing.T) {
	ch := enginetest.Start(t).Config(engine.Writer)
	store := []string{"EVENHAND_CLICKHOUSE_ADDR=" + ch.Addr[0], "EVENHAND_CLICKHOUSE_USERNAME=" + ch.Username, "EVENHAND_CLICKHOUSE_PASSWORD=" + ch.Password}
	for name, env := range map[string][]string{
		"unknown host": {"EVENHAND_KAFKA_BROKERS=nowhere.invalid:9092"},
		"wrong store":  {"EVENHAND_KAFKA_BROKERS=" + silent(t).Addr().String(), "EVENHAND_CLICKHOUSE_PASSWORD=wrong"}, // no broker is waited for with it
	} {
		t.Run(name, func(t *testing.T) {
			r := evenhandEnv(t, "", append(append([]string{}, store...), env...), "run", "--roles", "api", "--http", "127.0.0.1:0")
			if r.code != 1 || strings.Contains(r.err, "waiting for Kafka") && name == "unknown host" {
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
