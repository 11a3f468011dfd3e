// Program producer writes two interactions to Kafka, as an application of one's own would.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/google/uuid"
	"github.com/segmentio/kafka-go"
)

func main() {
	w := &kafka.Writer{Addr: kafka.TCP(os.Getenv("KAFKA_BROKERS")), Topic: "llm.interactions", RequiredAcks: kafka.RequireAll}
	for question, answer := range map[string]string{
		"Who should lead the team?": "Ask the team: experience counts.",
		"Can she lead the team?":    "Women are too emotional to lead.",
	} {
		id := uuid.NewString()
		event, err := json.Marshal(map[string]any{
			"id": id, "application": "kafka-go", "domain": "hr", "provider": "openai", "model": "gpt-4o-mini",
			"prompt": question, "response": answer, "prompt_tokens": 11, "response_tokens": 7, "user_id": "u-17",
			"trace_id": "4bf92f3577b34da6a3ce929d0e0e473b",
		})
		if err != nil {
			log.Fatal(err)
		}
		if err := w.WriteMessages(context.Background(), kafka.Message{
			Key: []byte(id), Value: event, Headers: []kafka.Header{{Key: "evenhand-tenant", Value: []byte("acme")}},
		}); err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
}
