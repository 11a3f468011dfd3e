package main

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func values(m map[string]string) []string { return slices.Collect(maps.Values(m)) }

// produceRaw sends messages as a foreign Kafka client would, unchecked.
func produceRaw(t *testing.T, brokers string, messages map[string]string) {
	t.Helper()
	w := &kafka.Writer{Addr: kafka.TCP(brokers), Topic: kafkaconn.Interactions, RequiredAcks: kafka.RequireAll}
	defer func() { _ = w.Close() }()
	for _, v := range messages {
		if err := w.WriteMessages(t.Context(), kafka.Message{Value: []byte(v)}); err != nil {
			t.Fatal(err)
		}
	}
}
