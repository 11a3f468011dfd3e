// Package brokertest gives tests brokers: the embedded one, and a real Apache Kafka.
package brokertest

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// Start starts an embedded broker of the test's own in a temporary folder and stops it when the test ends.
func Start(t testing.TB) kafkaconn.Config {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.DefaultOptions(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return ConnTo(b.Addr())
}

// ConnTo is the configuration for one broker.
func ConnTo(addr string) kafkaconn.Config {
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = []string{addr}
	return conn
}

// ShortSessions has an embedded broker take session timeouts from least on, less than it does by default.
func ShortSessions(ctx context.Context, addr string, least time.Duration) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	value := strconv.FormatInt(least.Milliseconds(), 10)
	req, res := kmsg.NewPtrIncrementalAlterConfigsRequest(), kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType = kmsg.ConfigResourceTypeBroker
	res.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "group.min.session.timeout.ms", Value: &value}}
	req.Resources = append(req.Resources, res)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = req.RequestWith(ctx, cl)
	return err
}

// Kafka is a real broker, run by tools/kafka/kafka.sh.
type Kafka struct {
	Conn   kafkaconn.Config
	Script string
	Env    []string // NAME=value, for the script

	t testing.TB
}

// StartKafka starts a real broker on a port of its own, KAFKA_PORT or a free one, and wipes it when the test
// ends. Without Java and Maven the test is skipped; in continuous integration it fails.
func StartKafka(t testing.TB) *Kafka {
	t.Helper()
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is missing: the test must run on a real Kafka here", tool)
			}
			t.Skipf("%s is missing: the test did not run on a real Kafka", tool)
		}
	}
	port := os.Getenv("KAFKA_PORT")
	if port == "" {
		port = freePort(t)
	}
	script := findScript(t)
	k := &Kafka{Script: script, Env: []string{"KAFKA_PORT=" + port, "KAFKA_HEAP=384m", "KAFKA_WAIT=180"}, t: t}
	t.Cleanup(func() { k.Call("wipe") })
	addr := k.Call("start")
	if addr == "" {
		t.FailNow()
	}
	k.Conn = ConnTo(addr)
	return k
}

// Call runs the script: start, stop, kill, pause. It gives what the script printed, "" when it failed.
func (k *Kafka) Call(verb string) string {
	k.t.Helper()
	cmd := exec.Command(k.Script, verb)
	cmd.Env = append(os.Environ(), k.Env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		k.t.Errorf("kafka.sh %s: %v: %s", verb, err, errs.String())
		return ""
	}
	return strings.TrimSpace(out.String())
}

// findScript looks above the folder of the package under test.
func findScript(t testing.TB) string {
	t.Helper()
	for _, up := range []string{"..", "../..", "../../.."} {
		script, err := filepath.Abs(filepath.Join(up, "tools", "kafka", "kafka.sh"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(script); err == nil {
			return script
		}
	}
	t.Fatal("tools/kafka/kafka.sh is not above the package under test")
	return ""
}

// freePort finds a port whose neighbours for the controller are likely free too.
func freePort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return strconv.Itoa(20000 + ln.Addr().(*net.TCPAddr).Port%10000)
}
