package arbiter_test

import (
	"context"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/arbiter/arbitertest"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

func TestContractEmbedded(t *testing.T) { arbitertest.Run(t, logOf(brokertest.Start(t))) }

func TestContractKafka(t *testing.T) {
	arbitertest.Run(t, logOf(brokertest.StartKafka(t).Conn))
}

func logOf(conn kafkaconn.Config) arbitertest.Log {
	return arbitertest.Log{
		Create: func(t *testing.T, name string) { create(t, conn, name) },
		Open: func(t *testing.T, name, proposer string) (arbiter.Arbiter, func()) {
			t.Helper()
			a := open(t, conn, arbiter.Options{Topic: name, Proposer: proposer})
			return a, func() { shut(t, a) }
		},
		Append: func(t *testing.T, name, key, value string) { appendTo(t, conn, name, key, value) },
	}
}

// create makes a topic with the settings of evenhand.decisions.
func create(t testing.TB, conn kafkaconn.Config, name string) {
	t.Helper()
	for _, topic := range kafkaconn.Topics(1) {
		if topic.Name == kafkaconn.Decisions {
			topic.Name = name
			if _, err := kafkaconn.Ensure(t.Context(), conn, []kafkaconn.Topic{topic}, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func open(t testing.TB, conn kafkaconn.Config, opt arbiter.Options) *arbiter.Kafka {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	opt.Rules = arbitertest.Rules()
	a, err := arbiter.Open(ctx, conn, opt)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func shut(t testing.TB, a *arbiter.Kafka) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := a.Close(ctx); err != nil {
		t.Error(err)
	}
}

func appendTo(t testing.TB, conn kafkaconn.Config, topic, key, value string) {
	t.Helper()
	p, err := kafkaconn.NewProducer(conn, kafkaconn.DefaultProducerOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	if err := p.Produce(t.Context(), []kafkago.Message{{Topic: topic, Key: []byte(key), Value: []byte(value)}}); err != nil {
		t.Fatal(err)
	}
}
