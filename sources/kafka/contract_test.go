package kafka_test

import (
	"fmt"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
	"github.com/evenhand/evenhand/sources/kafka"
	"github.com/evenhand/evenhand/sources/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContractEmbedded(t *testing.T) {
	sourcetest.Run(t, logOf(brokertest.Start(t)))
}

// TestContractKafka runs the contract on a real broker.
func TestContractKafka(t *testing.T) {
	sourcetest.Run(t, logOf(brokertest.StartKafka(t).Conn))
}

// logOf gives the contract its hands on a broker.
func logOf(conn kafkaconn.Config) sourcetest.Log {
	return sourcetest.Log{
		Source: func(t *testing.T, topic, group string) sources.Source {
			cfg := kafka.DefaultConfig()
			cfg.Topic, cfg.Group = topic, group
			s, err := kafka.New(conn, cfg, kafka.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Create: func(t *testing.T, topic string, partitions int) {
			want := kafkaconn.Topic{Name: topic, Partitions: partitions, Config: map[string]string{"message.timestamp.type": "LogAppendTime"}}
			if _, err := kafkaconn.Ensure(t.Context(), conn, []kafkaconn.Topic{want}, 1); err != nil {
				t.Error(err)
			}
		},
		Append: func(t *testing.T, topic string, partition int, values ...string) {
			appendTo(t, conn, topic, partition, values...)
		},
		Trim: func(t *testing.T, topic string, partition int, before int64) { trim(t, conn, topic, partition, before) },
	}
}

func appendTo(t *testing.T, conn kafkaconn.Config, topic string, partition int, values ...string) {
	t.Helper()
	cl, release, err := conn.Client()
	if err != nil {
		t.Error(err)
		return
	}
	defer release()
	records := make([]kafkago.Record, len(values))
	for i, v := range values {
		records[i] = kafkago.Record{Time: time.Unix(1_000_000_000+int64(i)*3600, 0), Key: kafkago.NewBytes([]byte("key")), Value: kafkago.NewBytes([]byte(v))}
	}
	for deadline := time.Now().Add(10 * time.Second); ; { // leaders of a new topic take a moment
		res, err := cl.Produce(t.Context(), &kafkago.ProduceRequest{Topic: topic, Partition: partition, RequiredAcks: kafkago.RequireAll, Compression: kafkago.Lz4, Records: kafkago.NewRecordReader(records...)})
		if err == nil {
			err = res.Error
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("append: %v", err)
			return
		}
		<-time.After(50 * time.Millisecond)
		for i, v := range values {
			records[i].Value, records[i].Key = kafkago.NewBytes([]byte(v)), kafkago.NewBytes([]byte("key"))
		}
	}
}

// trim uses franz-go, for kafka-go cannot delete records.
func trim(t *testing.T, conn kafkaconn.Config, topic string, partition int, before int64) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(conn.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	req := kmsg.NewDeleteRecordsRequest()
	req.TimeoutMillis = 5000
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: int32(partition), Offset: before}}}}
	res, err := req.RequestWith(t.Context(), cl)
	if err == nil {
		err = kerr.ErrorForCode(res.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("delete records: %w", err))
	}
}
