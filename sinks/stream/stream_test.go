package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func embedded(t *testing.T) kafkaconn.Config {
	t.Helper()
	opt := broker.DefaultOptions(t.TempDir())
	opt.Partitions = 1
	b, err := broker.Start(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = []string{b.Addr()}
	return conn
}

func publisher(t *testing.T, conn kafkaconn.Config) *Publisher {
	t.Helper()
	p, err := New(conn, DefaultConfig(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// read gives n messages of a topic's partition 0.
func read(t *testing.T, conn kafkaconn.Config, topic string, n int) (out []kafka.Message) {
	t.Helper()
	cl, release, err := conn.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for len(out) < n {
		res, err := cl.Fetch(t.Context(), &kafka.FetchRequest{Topic: topic, Offset: int64(len(out)), MinBytes: 1, MaxBytes: 8 << 20, MaxWait: time.Second})
		if err == nil {
			err = res.Error
		}
		if err != nil {
			t.Fatal(err)
		}
		for {
			r, err := res.Records.ReadRecord()
			if err != nil {
				break
			}
			key, err1 := kafka.ReadAll(r.Key)
			value, err2 := kafka.ReadAll(r.Value)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			out = append(out, kafka.Message{Key: key, Value: value, Headers: r.Headers})
		}
	}
	return out
}

func headers(m kafka.Message) string {
	var out []string
	for _, h := range m.Headers {
		out = append(out, h.Key+"="+string(h.Value))
	}
	return strings.Join(out, "\n")
}

func TestPublish(t *testing.T) {
	conn := embedded(t)
	p := publisher(t, conn)
	events := make([]audit.StreamEvent, 3000)
	for i := range events {
		events[i] = event
		events[i].AuditID = audit.ID{byte(i >> 8), byte(i)}
	}
	events[1].TraceID = "not a trace id"
	if err := p.Publish(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	got := read(t, conn, kafkaconn.AuditStream, len(events))
	for i, m := range got {
		if string(m.Key) != events[i].AuditID.String() || !bytes.Equal(m.Value, appendEvent(nil, &events[i])) {
			t.Fatalf("message %d: key %s, value %s", i, m.Key, m.Value)
		}
	}
	want := regexp.MustCompile(`^result_id=09000000-0000-0000-0000-000000000000\ncontent-type=application/json\ntraceparent=00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$`)
	if h := headers(got[0]); !want.MatchString(h) {
		t.Errorf("headers:\n%s", h)
	}
	if headers(got[0]) == headers(got[2]) {
		t.Error("two messages share a span id")
	}
	if h := headers(got[1]); strings.Contains(h, "traceparent") {
		t.Errorf("a traceparent was made of something else: %s", h)
	}
}

var rejected = audit.Rejected{
	Origin: audit.Origin{Topic: "llm.interactions", Partition: 3, Offset: 42, BrokerTime: time.UnixMilli(1_700_000_000_123)},
	Reason: "not_json", Detail: "not JSON at byte 7", Key: []byte("key"), Value: []byte("value"),
	Header: []audit.Header{{Key: "mine", Value: []byte("kept")}},
}

func TestDeadLetter(t *testing.T) {
	conn := embedded(t)
	p := publisher(t, conn)
	p.opt.now = func() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) }
	if err := p.DeadLetter(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := p.DeadLetter(t.Context(), []audit.Rejected{rejected}); err != nil {
		t.Fatal(err)
	}
	m := read(t, conn, kafkaconn.DeadLetters, 1)[0]
	id := audit.DeriveID("llm.interactions", "3", "42", "1700000000123").String()
	want := "mine=kept\nreason_poisoned=not JSON at byte 7\ntopic_poisoned=llm.interactions\nhandler_poisoned=pipeline.decode\n" +
		"subscriber_poisoned=evenhand.pipeline\ndlq_partition=3\ndlq_offset=42\ndlq_error_class=not_json\ndlq_attempts=1\n" +
		"dlq_first_seen=2026-11-21T10:00:00.000Z\nevenhand-event-id=" + id + "\nevenhand-event-time=2023-11-14T22:13:20.123Z"
	if string(m.Key) != "key" || string(m.Value) != "value" || headers(m) != want {
		t.Fatalf("key %s, value %s, headers\n%s\nwant\n%s", m.Key, m.Value, headers(m), want)
	}
	// Replayed and failed again: one set of headers, attempts go on, first seen and event id stay.
	again := rejected
	again.Origin.Offset, again.Origin.BrokerTime = 50, time.UnixMilli(1_800_000_000_000)
	again.Header = nil
	for _, h := range m.Headers {
		again.Header = append(again.Header, audit.Header{Key: h.Key, Value: h.Value})
	}
	got := headers(deadLetter(&again, "g", time.Now()))
	for _, line := range []string{"mine=kept", "dlq_offset=50", "dlq_attempts=2", "dlq_first_seen=2026-11-21T10:00:00.000Z", "evenhand-event-id=" + id, "evenhand-event-time=2023-11-14T22:13:20.123Z"} {
		if strings.Count("\n"+got+"\n", "\n"+line+"\n") != 1 {
			t.Errorf("%s is not there once:\n%s", line, got)
		}
	}
	if strings.Count(got, "dlq_attempts=") != 1 {
		t.Errorf("two sets of headers:\n%s", got)
	}
}

// TestDeadLetterAlwaysFits: whatever a source could hold, the dead-letter topic takes.
func TestDeadLetterAlwaysFits(t *testing.T) {
	conn := embedded(t)
	p := publisher(t, conn)
	noise := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
	big := rejected
	big.Value = noise
	worst := rejected
	worst.Key, worst.Value, worst.Detail = noise, noise, string(noise)
	worst.Header = []audit.Header{{Key: "large", Value: noise}}
	whole := rejected
	whole.Value = noise[:1<<20]
	if err := p.DeadLetter(t.Context(), []audit.Rejected{big, worst, whole}); err != nil {
		t.Fatal(err)
	}
	got := read(t, conn, kafkaconn.DeadLetters, 3)
	for i, cut := range []bool{true, true, false} {
		h := headers(got[i])
		if strings.Contains(h, HeaderValueSize+"=10485760") != cut || strings.Contains(h, HeaderValueHash) != cut {
			t.Errorf("message %d: cut is %t, headers of %d bytes", i, !cut, len(h))
		}
		if !strings.Contains(h, "dlq_offset=42") || !strings.Contains(h, HeaderEventID) {
			t.Errorf("message %d lost its own headers", i)
		}
	}
	if !bytes.Equal(got[2].Value, whole.Value) {
		t.Error("a message that fits was changed")
	}
}

func TestFailedKeepsOnlyTheFailed(t *testing.T) {
	msgs := []kafka.Message{{Value: []byte("a")}, {Value: []byte("b")}, {Value: []byte("c")}}
	again := failed(msgs, fmt.Errorf("wrapped: %w", kafkaconn.MessageErrors{nil, kafka.LeaderNotAvailable, nil}))
	if len(again) != 1 || string(again[0].Value) != "b" {
		t.Fatalf("%v", again)
	}
	if again := failed(msgs, errors.New("unknown")); len(again) != 3 {
		t.Fatalf("%v", again)
	}
}

// TestPublishToATopicOfSmallBatches: Kafka's limit is on a batch, and each event fits.
func TestPublishToATopicOfSmallBatches(t *testing.T) {
	conn := embedded(t)
	cl, release, err := conn.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	res, err := cl.IncrementalAlterConfigs(t.Context(), &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: kafkaconn.AuditStream,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "max.message.bytes", Value: "1500", ConfigOperation: kafka.ConfigOperationSet}},
	}}})
	if err != nil || res.Resources[0].Error != nil {
		t.Fatal(err, res)
	}
	p := publisher(t, conn)
	events := make([]audit.StreamEvent, 500)
	for i := range events {
		events[i] = event
		events[i].AuditID = audit.ID{byte(i >> 8), byte(i)}
	}
	if err := p.Publish(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range read(t, conn, kafkaconn.AuditStream, len(events)) {
		seen[string(m.Key)] = true
	}
	if len(seen) != len(events) {
		t.Errorf("%d of %d events arrived", len(seen), len(events))
	}

	large := event
	for i := range 200 { // random enough not to shrink below the limit
		sum := sha256.Sum256([]byte{byte(i)})
		large.BiasTypes = append(large.BiasTypes, hex.EncodeToString(sum[:]))
	}
	err = p.Publish(t.Context(), []audit.StreamEvent{large, event})
	if audit.KindOf(err) != audit.KindInvalid || !regexp.MustCompile(`1 of 2 messages failed: .*topic bias\.audit\.stream takes no message of 1\d{4} bytes, its max\.message\.bytes 1500 is less: kafka-configs --alter`).MatchString(err.Error()) {
		t.Errorf("%v", err)
	}
}

func TestPublishWithoutBrokerIsUnavailable(t *testing.T) {
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = []string{"127.0.0.1:1"}
	p := publisher(t, conn)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := p.Publish(ctx, []audit.StreamEvent{event}); audit.KindOf(err) != audit.KindUnavailable {
		t.Fatalf("%v is %s", err, audit.KindOf(err))
	}
}

// A replay carries the past of its message, whatever it went through before, and is the same message
// each time.
func TestReplay(t *testing.T) {
	id := rejected.Origin.EventID().String()
	want := "mine=kept\ndlq_attempts=1\ndlq_first_seen=2023-11-14T22:13:20.123Z\nevenhand-event-id=" + id + "\nevenhand-event-time=2023-11-14T22:13:20.123Z"
	first := Replay(&rejected)
	if first.Topic != "llm.interactions" || string(first.Key) != "key" || string(first.Value) != "value" || headers(first) != want || headers(Replay(&rejected)) != want {
		t.Fatalf("%s/%s/%s\n%s\nwant\n%s", first.Topic, first.Key, first.Value, headers(first), want)
	}
	again := rejected // the replay stands elsewhere, later, and is rejected too
	again.Origin.Offset, again.Origin.BrokerTime, again.Header = 50, time.UnixMilli(1_800_000_000_000), nil
	for _, h := range first.Headers {
		again.Header = append(again.Header, audit.Header{Key: h.Key, Value: h.Value})
	}
	letter := deadLetter(&again, "g", time.Now())
	if h := headers(letter); !strings.HasSuffix(h, strings.Replace(strings.TrimPrefix(want, "mine=kept\n"), "dlq_attempts=1", "dlq_attempts=2", 1)) {
		t.Errorf("the dead letter of a replay:\n%s", h)
	}
	if h := headers(Replay(&again)); h != strings.Replace(want, "dlq_attempts=1", "dlq_attempts=2", 1) {
		t.Errorf("the replay of a replay:\n%s", h)
	}
	if EventID(&again).String() != id {
		t.Errorf("another id")
	}
	again.Header = []audit.Header{{Key: HeaderEventID, Value: make([]byte, 36)}, {Key: HeaderAttempts, Value: []byte("-1")}, {Key: HeaderEventTime, Value: []byte("now")}}
	if p, _ := history(&again, time.Time{}); p.eventID != again.Origin.EventID() || p.attempts != 0 || !p.eventTime.Equal(again.Origin.BrokerTime) {
		t.Errorf("bad headers were believed: %+v", p)
	}
}
