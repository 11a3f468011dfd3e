package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/store"
)

// Calls of other formats that nobody's tenant is known of: a call in pieces, and one of a foreign topic whose record
// tells another call too. The letters name where they stood and are sent back there, twice, once the setting is mended:
// each call is one interaction. What is no payload of its format is rejected again, and sent once however often it was.
func TestReplayOfCalls(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--set", "join.window=1s", "--set", "formats.topics=other.spans=test"}
	u := startUp(t, dir, append(args, "--set", "tenant.default=")...)
	said := []call.Message{call.Text("assistant", "secret words")}
	writeParts(t, u.Kafka,
		call.Part{Format: "otlp", Kind: call.Content, Group: "trace", Key: "span", Answers: said},
		call.Part{Format: "otlp", Kind: call.Model, Group: "trace", Key: "span", Model: "m1", Withheld: true},
	)
	record, err := json.Marshal([]call.Part{
		{Format: "test", Kind: call.Model, Done: true, Group: "a", Key: "1", Model: "x", Answers: said},
		{Format: "test", Kind: call.Model, Done: true, Group: "b", Key: "1", Model: "x", Answers: said, Claimed: "acme"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &kafka.Writer{Addr: kafka.TCP(u.Kafka), Topic: "other.spans", RequiredAcks: kafka.RequireAll}
	err = errors.Join(w.WriteMessages(t.Context(), kafka.Message{Value: record}, kafka.Message{Value: []byte("secret garbage")}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Messages []store.Rejected `json:"messages"`
	}
	listed := func(want int) (topics string) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d letters", want), func() error {
			out := must(t, "", "dlq", "list", "--data-dir", dir, "--json")
			if err := json.Unmarshal([]byte(out), &list); err != nil {
				return err
			}
			if len(list.Messages) != want || strings.Contains(out, "secret") {
				return errors.New(out)
			}
			return nil
		})
		for _, m := range list.Messages {
			topics += m.Topic + " " + m.Reason + "\n"
		}
		return topics
	}
	topics := listed(3)
	for _, want := range []string{kafkaconn.Calls + " tenant_missing\n", "other.spans tenant_missing\n", "other.spans bad_format\n"} {
		if !strings.Contains(topics, want) {
			t.Errorf("no %s in\n%s", want, topics)
		}
	}
	for i := range list.Messages {
		place := placeOf(&list.Messages[i]).String()
		out := must(t, "", "dlq", "show", place, "--data-dir", dir)
		if !strings.Contains(out, place) || strings.Contains(out, "secret") {
			t.Errorf("show: %s", out)
		}
		if out := must(t, "", "dlq", "show", place, "--payload", "--data-dir", dir); !strings.Contains(out, "secret") {
			t.Errorf("show --payload: %s", out)
		}
	}
	u.arrived(1) // the one whose tenant was told
	u.stop()
	u = startUp(t, dir, args...)
	replay := func(want string, args ...string) {
		t.Helper()
		out := must(t, "", append([]string{"dlq", "replay", "--data-dir", dir, "--json", "--quiet"}, args...)...)
		if got := strings.Join(strings.Fields(out), ""); got != want {
			t.Fatalf("replay %v: %s\nwant %s", args, got, want)
		}
	}
	for round := 1; round <= 2; round++ {
		replay(`{"selected":2,"sent":2,"repeated":0,"not_sent":{},"dry_run":false}`, "--reason", "tenant_missing")
		u.arrived(3)
		replay(fmt.Sprintf(`{"selected":%d,"sent":1,"repeated":%d,"not_sent":{},"dry_run":false}`, round, round-1), "--reason", "bad_format")
		listed(3 + round)
	}
	// The joiner's window passes before the second letter of the call is known to have folded.
	eventually(t, "nothing waits", func() error {
		if _, page := get(t, u.HTTP+"/metrics"); !strings.Contains(page, "evenhand_call_groups_open 0") || !strings.Contains(page, `evenhand_call_parts_late_total{outcome="dropped"} 1`) {
			return errors.New("groups are open")
		}
		return nil
	})
	for query, want := range map[string]int{
		"SELECT count() AS n FROM interactions FINAL":                                             3,
		"SELECT uniqExact(tenant_id, event_id, content_digest) AS n FROM interactions":            3,
		"SELECT count() AS n FROM audit_current FINAL WHERE id_conflict":                          0,
		"SELECT count() AS n FROM interaction_texts FINAL WHERE kind = 'response'":                3,
		"SELECT count() AS n FROM audit_current FINAL WHERE tenant_id = 'acme'":                   1,
		"SELECT count() AS n FROM audit_current FINAL WHERE tenant_id = 'default' AND model='m1'": 1,
	} {
		if got := u.count(query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	u.checked()
}
