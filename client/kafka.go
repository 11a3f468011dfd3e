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

// closeTimeout is how long Close waits for what is under way: longer than a request takes.
const closeTimeout = 6 * time.Second

// Kafka sends events to a topic, keyed by their ids and acknowledged by all in-sync replicas.
type Kafka struct {
	topic    string
	producer *kafkaconn.Producer
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
	po := kafkaconn.DefaultProducerOptions()
	po.Transport = o.Transport
	po.MaxMessage += 4096 // beside an event of EventBytes stand key and header
	po.Patience = 0       // the emitter tries again, and Close need not wait for what cannot be sent
	p, err := kafkaconn.NewProducer(kafkaconn.Config{Brokers: o.Brokers}, po)
	if err != nil {
		return nil, audit.E("client: new Kafka", audit.KindInvalid, err)
	}
	return &Kafka{o.Topic, p}, nil
}

// Send writes events and waits for the brokers.
func (k *Kafka) Send(ctx context.Context, es []Encoded) error {
	ms := make([]kafka.Message, len(es))
	for i, e := range es {
		ms[i] = kafka.Message{Topic: k.topic, Key: []byte(e.ID), Value: e.JSON}
		if e.Tenant != "" {
			ms[i].Headers = []kafka.Header{{Key: "evenhand-tenant", Value: []byte(e.Tenant)}}
		}
	}
	return kafkaconn.E("client: kafka", k.producer.Produce(ctx, ms))
}

// Close ends the writer and its connections.
func (k *Kafka) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return audit.E("client: close kafka", audit.KindUnavailable, k.producer.Close(ctx))
}
