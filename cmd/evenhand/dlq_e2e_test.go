package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sinks/stream"
	"github.com/evenhand/evenhand/store"
)

// Nobody has said which tenant events without one belong to. The setting is mended and the dead letters
// are replayed, twice: each event stands in the store once. What is still wrong is rejected again.
func TestReplayOfDeadLetters(t *testing.T) {
	dir := t.TempDir()
	u := startUp(t, dir, "--set", "tenant.default=")
	v7 := audit.NewID(u.Started).String()
	produceRaw(t, u.Kafka, map[string]string{
		"good": `{"tenant_id":"acme","response":"fine"}`,
		"1":    `{"response":"secret words, no id and no time"}`,
		"2":    `{"id":"order-7","response":"secret words, an id of its own"}`,
		"3":    fmt.Sprintf(`{"id":%q,"response":"secret words, an id that tells a time"}`, v7),
		"4":    `{"response":"secret words that never end`,
	})
	rejected := func(want int) {
		t.Helper()
		eventually(t, "rejected rows", func() error {
			if n := u.count("SELECT count() AS n FROM rejected FINAL"); n != want {
				return fmt.Errorf("%d rejected rows", n)
			}
			return nil
		})
	}
	rejected(4)
	u.arrived(1)

	var list struct {
		Total    int                   `json:"total"`
		Reasons  []store.RejectedCount `json:"reasons"`
		Messages []store.Rejected      `json:"messages"`
	}
	out := must(t, "", "dlq", "list", "--data-dir", dir, "--json", "--since", "1h")
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err, out)
	}
	if list.Total != 4 || len(list.Reasons) != 2 || list.Reasons[0].Reason != "tenant_missing" || list.Reasons[0].Count != 3 || len(list.Messages) != 4 {
		t.Errorf("%s", out)
	}
	text := must(t, "", "dlq", "list", "--data-dir", dir, "--reason", "bad_json")
	if !strings.Contains(text, "bad_json") || strings.Contains(text, "tenant_missing") || strings.Contains(out+text, "secret words") {
		t.Errorf("%s", text)
	}
	if out := must(t, "", "dlq", "list", "--data-dir", dir, "--tenant", "nobody"); out != "Nothing was rejected.\n" {
		t.Errorf("%s", out)
	}
	for _, cmd := range []string{"list", "replay"} { // an unknown reason is a mistake, not an empty result
		r := evenhand(t, "", "dlq", cmd, "--data-dir", dir, "--reason", "bad_json", "--reason", "bad_jsn")
		if r.code != 2 || !strings.Contains(r.err, `--reason: "bad_jsn" is not one of bad_json, invalid_utf8, `) {
			t.Errorf("%s: %+v", cmd, r)
		}
	}
	if out := must(t, "", "dlq", "list", "--data-dir", dir, "--reason", "too_deep"); out != "Nothing was rejected.\n" {
		t.Errorf("%s", out)
	}
	place := placeOf(&list.Messages[0]).String()
	out = must(t, "", "dlq", "show", place, "--data-dir", dir)
	if !strings.Contains(out, place) || !strings.Contains(out, "present") || strings.Contains(out, "secret words") {
		t.Errorf("show: %s", out)
	}
	for _, args := range [][]string{{"--payload"}, {"--payload", "--json"}} {
		if out := must(t, "", append([]string{"dlq", "show", place, "--data-dir", dir}, args...)...); !strings.Contains(out, "secret words") {
			t.Errorf("show %v: %s", args, out)
		}
	}
	if r := evenhand(t, "", "dlq", "show", "0/999", "--data-dir", dir); r.code != 1 || !strings.Contains(r.err, "no message was rejected at llm.interactions/0/999") {
		t.Errorf("%+v", r)
	}

	u.stop()
	u = startUp(t, dir) // mended: tenant.default is "default"
	replay := func(want string, args ...string) {
		t.Helper()
		out := must(t, "", append([]string{"dlq", "replay", "--data-dir", dir, "--json", "--quiet"}, args...)...)
		if got := strings.Join(strings.Fields(out), ""); got != want {
			t.Fatalf("replay %v: %s\nwant %s", args, got, want)
		}
	}
	replay(`{"selected":3,"sent":3,"repeated":0,"not_sent":{},"dry_run":true}`, "--reason", "tenant_missing", "--dry-run")
	if n := u.count("SELECT sum(rows + rejected) AS n FROM ingest_batches FINAL"); n != 5 {
		t.Errorf("a dry run sent something: %d messages", n)
	}
	for round := 1; round <= 2; round++ {
		replay(`{"selected":3,"sent":3,"repeated":0,"not_sent":{},"dry_run":false}`, "--reason", "tenant_missing", "--rate", "1000")
		eventually(t, "the replayed messages", func() error {
			if n := u.count("SELECT sum(rows) AS n FROM ingest_batches FINAL"); n != 1+3*round {
				return fmt.Errorf("%d rows taken in", n)
			}
			return nil
		})
		for query, want := range map[string]int{
			"SELECT count() AS n FROM interactions FINAL":                                                                     4,
			"SELECT count() AS n FROM audit_current FINAL WHERE tenant_id = 'default'":                                        3,
			"SELECT uniqExact(tenant_id, event_id) AS n FROM interactions":                                                    4,
			"SELECT count() AS n FROM verdicts FINAL":                                                                         4,
			"SELECT count() AS n FROM interaction_texts FINAL WHERE kind = 'response'":                                        4,
			"SELECT count() AS n FROM interactions FINAL WHERE event_id IN (SELECT event_id FROM rejected)":                   1, // the one without an id
			"SELECT count() AS n FROM interactions FINAL WHERE given_id = 'order-7'":                                          1,
			"SELECT count() AS n FROM interactions FINAL WHERE event_id = '" + v7 + "'":                                       1,
			"SELECT count() AS n FROM interactions FINAL WHERE time_assumed AND event_ts IN (SELECT broker_ts FROM rejected)": 2,
		} {
			if got := u.count(query); got != want {
				t.Errorf("round %d: %s: %d, want %d", round, query, got, want)
			}
		}
	}
	if r := evenhand(t, "", "dlq", "replay", "0/999", "--data-dir", dir); r.code != 1 || !strings.Contains(r.err, "no message was rejected at 0/999") {
		t.Errorf("%+v", r)
	}
	// What is still wrong comes back with its attempts counted, and is sent once however often it did.
	for round := 1; round <= 2; round++ {
		replay(fmt.Sprintf(`{"selected":%d,"sent":1,"repeated":%d,"not_sent":{},"dry_run":false}`, round, round-1), "--reason", "bad_json")
		rejected(4 + round)
	}
	eventually(t, "the dead letters", func() error { // they follow the rows
		attempts := map[string]int{}
		for _, m := range readTopic(t, u.Kafka, kafkaconn.DeadLetters) {
			if header(m, stream.HeaderErrorClass) == "bad_json" {
				attempts[header(m, stream.HeaderAttempts)]++
			}
		}
		if attempts["1"] != 1 || attempts["2"]+attempts["3"] != 2 || attempts["2"] == 0 { // which rejection is sent again is the log's order
			return fmt.Errorf("attempts %v", attempts)
		}
		return nil
	})
	u.checked()
}

func header(m kafka.Message, name string) string {
	for _, h := range m.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
