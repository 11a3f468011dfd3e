package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/llm/llmtest"
	"github.com/evenhand/evenhand/sinks/stream"
	"github.com/evenhand/evenhand/store"
)

// A message to the judge that is no request stands among the dead letters with its place, and goes back there when it is
// replayed: it is rejected again, with its attempts counted, and sent once however often it was.
func TestReplayOfRequestsToTheJudge(t *testing.T) {
	dir := t.TempDir()
	server := llmtest.NewFunc(t, llmtest.Config{}, judgeSays)
	u := startUp(t, dir, "--set", "judge.base_url="+server.Listen())
	w := &kafka.Writer{Addr: kafka.TCP(u.Kafka), Topic: kafkaconn.Judge, RequiredAcks: kafka.RequireAll}
	err := errors.Join(w.WriteMessages(t.Context(), kafka.Message{
		Key: []byte("somebody"), Value: []byte(`{"secret":"words"}`), Headers: []kafka.Header{{Key: "traceparent", Value: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")}},
	}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Reasons  []store.RejectedCount `json:"reasons"`
		Messages []store.Rejected      `json:"messages"`
	}
	rejected := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d letters", want), func() error {
			out := must(t, "", "dlq", "list", "--data-dir", dir, "--json", "--reason", "judge_request")
			if err := json.Unmarshal([]byte(out), &list); err != nil {
				return err
			}
			if len(list.Messages) != want || len(list.Reasons) != 1 || list.Reasons[0].Count != uint64(want) || strings.Contains(out, "secret") {
				return errors.New(out)
			}
			return nil
		})
	}
	rejected(1)
	place := placeOf(&list.Messages[0]).String()
	if out := must(t, "", "dlq", "show", place, "--data-dir", dir); !strings.HasPrefix(place, kafkaconn.Judge+"/") || !strings.Contains(out, place) || strings.Contains(out, "secret") {
		t.Errorf("show: %s", out)
	}
	if out := must(t, "", "dlq", "show", place, "--payload", "--data-dir", dir); !strings.Contains(out, `{"secret":"words"}`) || !strings.Contains(out, "somebody") || !strings.Contains(out, "header  traceparent: 00-4bf9") {
		t.Errorf("show --payload: %s", out)
	}
	for round := 1; round <= 2; round++ {
		out := must(t, "", "dlq", "replay", "--data-dir", dir, "--json", "--quiet", "--reason", "judge_request")
		if got, want := strings.Join(strings.Fields(out), ""), fmt.Sprintf(`{"selected":%d,"sent":1,"repeated":%d,"not_sent":{},"dry_run":false}`, round, round-1); got != want {
			t.Fatalf("replay: %s\nwant %s", got, want)
		}
		rejected(1 + round)
	}
	eventually(t, "the dead letters", func() error { // they follow the rows
		attempts := ""
		for _, m := range readTopic(t, u.Kafka, kafkaconn.DeadLetters) {
			if header(m, stream.HeaderTopic) == kafkaconn.Judge && string(m.Value) == `{"secret":"words"}` && string(m.Key) == "somebody" {
				attempts += header(m, stream.HeaderAttempts) + " "
			}
		}
		if attempts != "1 2 2 " && attempts != "1 2 3 " { // which rejection is sent again is the log's order
			return errors.New(attempts)
		}
		return nil
	})
	if n := u.count("SELECT count() AS n FROM rejected FINAL WHERE topic != 'evenhand.judge'"); n != 0 {
		t.Errorf("%d others", n)
	}
	u.checked()
}
