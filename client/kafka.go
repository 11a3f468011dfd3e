package client

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// KafkaOptions say where events go.
type KafkaOptions struct {
	Brokers []string // host:port
	Topic   string   // "" is llm.interactions
	// Transport holds TLS, SASL and time limits; nil is a plain one of our own. Its connections are closed by Close.
	Transport *kafka.Transport
}

// Kafka sends events to a topic, keyed by their ids and acknowledged by all in-sync replicas.
type Kafka struct {
	writer    *kafka.Writer
	transport *kafka.Transport
}

// NewKafka makes a destination of a topic; it connects with the first event.
func NewKafka(o KafkaOptions) (*Kafka, error) {
	if len(o.Brokers) == 0 {
		return nil, audit.E("client: new Kafka", audit.KindInvalid, errors.New("no Brokers: list host:port of at least one"))
	}
	if o.Topic == "" {
		o.Topic = kafkaconn.Interactions
	}
	if o.Transport == nil {
		o.Transport = &kafka.Transport{ClientID: "evenhand-client", DialTimeout: kafkaconn.DialTimeout}
	}
	w := kafkaconn.NewWriter(kafkaconn.Config{Brokers: o.Brokers}, o.Transport, time.Millisecond, 900_000)
	w.Topic, w.MaxAttempts = o.Topic, 1 // the emitter tries again, and Close need not wait for what cannot be sent
	return &Kafka{w, o.Transport}, nil
}

// Send writes events and waits for the brokers.
func (k *Kafka) Send(ctx context.Context, es []Encoded) error {
	ms := make([]kafka.Message, len(es))
	for i, e := range es {
		ms[i] = kafka.Message{Key: []byte(e.ID), Value: e.JSON}
		if e.Tenant != "" {
			ms[i].Headers = []kafka.Header{{Key: "evenhand-tenant", Value: []byte(e.Tenant)}}
		}
	}
	return kafkaconn.E("client: kafka", k.writer.WriteMessages(ctx, ms...))
}

// Close ends the writer and its connections.
func (k *Kafka) Close() error {
	err := k.writer.Close()
	k.transport.CloseIdleConnections()
	return audit.E("client: close kafka", audit.KindUnavailable, err)
}
