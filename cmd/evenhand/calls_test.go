package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/join"
)

// testFormat is a JSON array of parts.
type testFormat struct{}

func (testFormat) Name() string { return "test" }
func (testFormat) Parts(p call.Payload) (ps []call.Part, err error) {
	if json.Unmarshal(p.Body, &ps) != nil {
		return nil, audit.E("test", audit.KindInvalid, errors.New("not an array of parts"))
	}
	return ps, nil
}

var _ = func() bool { formats["test"] = func(settings) call.Format { return testFormat{} }; return true }() // in the processes that tests start, too

type noEvents struct{}

func (noEvents) Produce(context.Context, []ingest.Message) error { return errors.New("a whole call") }

// writeParts hands pieces of calls to the log as doors do.
func writeParts(t *testing.T, brokers string, ps ...call.Part) {
	t.Helper()
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = []string{brokers}
	p, err := kafkaconn.NewProducer(conn, kafkaconn.DefaultProducerOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.WithoutCancel(t.Context())) }()
	w, err := join.NewWriter(join.Options{Decoder: ingest.NewDecoder(ingest.Options{}), Producer: noEvents{}}, p)
	if err == nil {
		err = w.Parts(t.Context(), ps)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Calls that are told in pieces, and by topics of another format, arrive once, also over a kill; what is not of the
// format is a dead letter.
func TestCallsOfOtherFormats(t *testing.T) {
	dir := t.TempDir()
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	write(t, prices, "m*: {prompt: 1, response: 2}\n")
	args := []string{"--set", "join.window=20s", "--set", "formats.topics=other.spans=test", "--set", "pricing.file=" + prices}
	u := startUp(t, dir, args...)
	n := int32(1000)
	user, answer := []call.Message{call.Text("user", "Who should lead?")}, []call.Message{call.Text("assistant", "Women are too emotional to lead.")}
	writeParts(t, u.Kafka,
		call.Part{Format: "otlp", Kind: call.Content, Group: "trace", Key: "span", Messages: user},
		call.Part{Format: "otlp", Kind: call.Model, Group: "trace", Key: "span", Parent: "app", Provider: "p", Model: "m1", Tokens: [2]*int32{&n, &n}, Withheld: true},
		call.Part{Format: "otlp", Kind: call.Model, Group: "silent", Key: "span", Service: "desk", Withheld: true},
	)
	// Killed before the window is over; the rest comes while nobody looks, or later.
	u.kill()
	u = startUp(t, dir, args...)
	writeParts(t, u.Kafka,
		call.Part{Format: "otlp", Kind: call.Content, Group: "trace", Key: "span", Answers: answer},
		call.Part{Format: "otlp", Kind: call.Context, Group: "trace", Key: "app", Claimed: "acme", Domain: "hr"},
	)
	whole, err := json.Marshal([]call.Part{
		{Format: "test", Kind: call.Model, Done: true, Group: "a", Key: "1", Model: "x", Messages: user, Answers: answer},
		{Format: "test", Kind: call.Content, Group: "b", Key: "1", Messages: user},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &kafka.Writer{Addr: kafka.TCP(u.Kafka), Topic: "other.spans", RequiredAcks: kafka.RequireAll}
	defer func() { _ = w.Close() }()
	if err := w.WriteMessages(t.Context(), kafka.Message{Value: whole}, kafka.Message{Value: []byte("secret words")}); err != nil {
		t.Fatal(err)
	}
	u.arrived(4)
	for query, want := range map[string]int{
		"SELECT count() AS n FROM interactions FINAL":                                                               4,
		"SELECT count() AS n FROM audit_current FINAL WHERE tenant_id = 'acme' AND domain = 'hr' AND bias_detected": 1,
		"SELECT toUInt64(sum(cost_micro_usd)) AS n FROM audit_current FINAL WHERE tenant_id = 'acme'":               3000,
		"SELECT count() AS n FROM audit_current FINAL WHERE tenant_id = 'default' AND bias_detected":                1,
	} {
		if got := u.count(query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	eventually(t, "the dead letter", func() error {
		out := must(t, "", "dlq", "list", "--data-dir", dir)
		if !strings.Contains(out, "other.spans/") || !strings.Contains(out, "bad_format  1") || strings.Contains(out, "secret") {
			return errors.New(out)
		}
		return nil
	})
	_, metrics := get(t, u.HTTP+"/metrics")
	for _, want := range []string{`evenhand_calls_withheld_total 1`, `evenhand_call_parts_total{format="test",kind="content"} 1`, `evenhand_calls_total{format="test"}`, "evenhand_call_groups_open 0", `evenhand_rejected_total{reason="bad_format"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if code, body := get(t, u.HTTP+"/readyz"); code != 200 {
		t.Error(body)
	}
	u.checked()
	if !strings.Contains(u.log.String(), "content capture is off in service desk: set OTEL_") {
		t.Errorf("nobody is told that content capture is off:\n%s", u.log)
	}
}

// Faults of the settings are named together.
func TestCallSettings(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(bad, []byte("m: {prompt: x, response: 1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := evenhand(t, "", "config", "--set", "join.window=2m", "--set", "join.groups=0", "--set", "join.memory_mb=0", "--set", "pricing.file="+bad,
		"--set", "formats.topics=llm.interactions=test,a,b=none,c=test,c=test")
	for _, want := range []string{"join.window: 2m0s is not in 1s..60s", "join.groups: 0", "join.memory_mb: 0", "line 1: m.prompt: wants US dollars",
		"llm.interactions is a topic of Evenhand's own", `"a" is not TOPIC=FORMAT`, `"none" is no format; there are: `, "c stands there twice"} {
		if r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("status %d, %q is not in\n%s", r.code, want, r.err)
		}
	}
	if f := fmt.Sprint(defaultSettings().Join.config()); f != fmt.Sprint(join.DefaultConfig()) {
		t.Error(f)
	}
}
