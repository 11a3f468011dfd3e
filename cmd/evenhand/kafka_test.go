package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/config"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/store"
)

// realKafka starts Apache Kafka on a port of its own; without a JVM and Maven the test is skipped, in
// CI it fails.
func realKafka(t *testing.T) string {
	t.Helper()
	for _, need := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(need); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is not installed", need)
			}
			t.Skipf("a real Kafka needs %s", need)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port%20000 + 20000
	_ = l.Close()
	script, err := filepath.Abs("../../tools/kafka/kafka.sh")
	if err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 4*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, script, args...)
		cmd.Env = append(os.Environ(), fmt.Sprint("KAFKA_PORT=", port), "KAFKA_WAIT=180", "KAFKA_HEAP=384m")
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	addr, err := call("start")
	if err != nil {
		t.Fatalf("kafka.sh start: %v", err)
	}
	t.Cleanup(func() { _, _ = call("wipe") })
	return addr
}

// The cluster's way: a real Kafka, a ClickHouse outside, and processes that only know their addresses.
func TestRunAgainstRealKafka(t *testing.T) {
	brokers := realKafka(t)
	e := enginetest.Start(t)
	ch := e.Endpoint(engine.Writer)
	env := []string{"EVENHAND_KAFKA_BROKERS=" + brokers, "EVENHAND_CLICKHOUSE_ADDR=" + ch.Native, "EVENHAND_CLICKHOUSE_USERNAME=" + string(ch.User),
		"EVENHAND_CLICKHOUSE_PASSWORD=" + ch.Password, "EVENHAND_TENANT_DEFAULT=acme"}
	must := func(stdin string, args ...string) string {
		t.Helper()
		r := evenhandEnv(t, stdin, env, args...)
		if r.code != 0 {
			t.Fatalf("evenhand %v: status %d\n%s%s", args, r.code, r.out, r.err)
		}
		return r.out
	}
	if out := must("", "topics"); !strings.Contains(out, "bias.audit.stream") || !strings.Contains(out, "LogAppendTime") {
		t.Errorf("%s", out)
	}
	if out := must("", "migrate"); !strings.Contains(out, "applied") {
		t.Errorf("%s", out)
	}

	s := defaultSettings()
	s.Kafka.Brokers, s.ClickHouse.Addr, s.ClickHouse.Username, s.ClickHouse.Password = []string{brokers}, []string{ch.Native}, string(ch.User), config.Secret(ch.Password)
	s.Tenant.Default, s.HTTP.Addr = "acme", "127.0.0.1:0"
	begin := func() (stop func(), base string) {
		ctx, cancel := context.WithCancel(t.Context())
		st, err := start(ctx, s, allRoles, false, discard())
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- st.serve(ctx) }()
		return func() {
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
			st.close(context.WithoutCancel(t.Context()))
		}, "http://" + st.listener.Addr().String()
	}
	stop, base := begin()

	var in strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&in, `{"id":"k%d","response":"answer %d"}`+"\n", i, i)
	}
	must(in.String(), "emit", "-", "--quiet")
	res, err := http.Post(base+"/v1/interactions", "application/json", strings.NewReader(`{"id":"http","response":"Women are too emotional to lead."}`))
	if err != nil || res.StatusCode != http.StatusAccepted {
		t.Fatal(err, res)
	}
	_ = res.Body.Close()

	cfg := chconn.DefaultConfig()
	cfg.Addr, cfg.Username, cfg.Password = []string{ch.Native}, string(ch.User), ch.Password
	conn, err := chconn.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	stored := func(want uint64) {
		t.Helper()
		eventually(t, "rows", func() error {
			var n uint64
			if err := conn.QueryRow(t.Context(), "SELECT count() FROM evenhand.audit_current FINAL").Scan(&n); err != nil {
				return err
			}
			if n < want {
				return fmt.Errorf("%d of %d", n, want)
			}
			return nil
		})
	}
	stored(3001)
	stop() // drains and leaves the group
	stop, _ = begin()
	must(`{"id":"later","response":"fine"}`, "emit", "-", "--quiet")
	stored(3002)
	stop()
	rep, err := store.New(conn, "evenhand").Check(t.Context())
	if err != nil || !rep.OK() || rep.Interactions != 3002 || rep.Duplicates != 0 {
		t.Errorf("check: %v %+v", err, rep)
	}
}
