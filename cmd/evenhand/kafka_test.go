package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/secret"
	"github.com/evenhand/evenhand/store"
)

// The cluster's way: a real Kafka, a ClickHouse outside, and processes that only know their addresses.
func TestRunAgainstRealKafka(t *testing.T) {
	brokers := brokertest.StartKafka(t).Conn.Brokers[0]
	e := enginetest.Start(t)
	ch := e.Endpoint(engine.Writer)
	env := []string{"EVENHAND_KAFKA_BROKERS=" + brokers, "EVENHAND_CLICKHOUSE_ADDR=" + ch.Native, "EVENHAND_CLICKHOUSE_USERNAME=" + string(ch.User),
		"EVENHAND_CLICKHOUSE_PASSWORD=" + ch.Password, "EVENHAND_TENANT_DEFAULT=acme", "EVENHAND_KAFKA_TENANT_TOPICS=beta.interactions=beta"}
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
	s.Kafka.Brokers, s.ClickHouse.Addr, s.ClickHouse.Username, s.ClickHouse.Password = []string{brokers}, []string{ch.Native}, string(ch.User), secret.Text(ch.Password)
	s.Kafka.TenantTopics = []string{"beta.interactions=beta"}
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
	eventually(t, "this process leads the jobs", func() error {
		var n uint64
		err := conn.QueryRow(t.Context(), "SELECT countIf(job = '"+jobRetry+"' AND status = 'done') FROM evenhand.job_runs FINAL").Scan(&n)
		if err == nil && n == 0 {
			err = errors.New("no run yet")
		}
		return err
	})
	// The topic is bound to a tenant: what names another is rejected, whether it says so in the header or the payload.
	w := &kafka.Writer{Addr: kafka.TCP(brokers), Topic: "beta.interactions", BatchSize: 4}
	if err := w.WriteMessages(t.Context(),
		kafka.Message{Value: []byte(`{"id":"b1","response":"fine"}`)},
		kafka.Message{Value: []byte(`{"id":"b2","tenant_id":"beta","response":"fine"}`), Headers: []kafka.Header{{Key: "evenhand-tenant", Value: []byte("beta")}}},
		kafka.Message{Value: []byte(`{"id":"b3","tenant_id":"acme","response":"fine"}`)},
		kafka.Message{Value: []byte(`{"id":"b4","response":"fine"}`), Headers: []kafka.Header{{Key: "evenhand-tenant", Value: []byte("acme")}}},
	); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	stored(3003)
	eventually(t, "the two of another tenant are rejected", func() error {
		out := must("", "sql", "SELECT arrayStringConcat(arraySort(groupArray(concat(topic, ' ', tenant_id, ' ', reason))), ', ') FROM rejected FINAL")
		if !strings.Contains(out, "beta.interactions beta tenant_mismatch, beta.interactions beta tenant_mismatch") {
			return errors.New(out)
		}
		return nil
	})
	if out := must("", "sql", "SELECT tenant_id, count() FROM audit_current FINAL GROUP BY tenant_id ORDER BY tenant_id"); !strings.Contains(out, "acme\t3001\nbeta\t2\n") {
		t.Error(out)
	}
	stop() // drains and leaves the group
	stop, _ = begin()
	must(`{"id":"later","response":"fine"}`, "emit", "-", "--quiet")
	stored(3004)
	stop()
	rep, err := store.New(conn, "evenhand").Check(t.Context())
	if err != nil || !rep.OK() || rep.Interactions != 3004 || rep.Duplicates != 0 {
		t.Errorf("check: %v %+v", err, rep)
	}
	if out := must("", "check", "--json"); !strings.Contains(out, `"lost":0,"double":0`) || !strings.Contains(out, "beta.interactions") {
		t.Error(out)
	}
}
