package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
	"github.com/evenhand/evenhand/sources/kafka"
	"github.com/evenhand/evenhand/sources/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContractEmbedded(t *testing.T) {
	sourcetest.Run(t, logOf(startEmbedded(t)))
}

// TestContractKafka runs the contract on a real broker.
func TestContractKafka(t *testing.T) {
	sourcetest.Run(t, logOf(startKafka(t)))
}

func startEmbedded(t *testing.T) kafkaconn.Config {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.DefaultOptions(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return connTo(b.Addr())
}

func connTo(addr string) kafkaconn.Config {
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = []string{addr}
	return conn
}

// startKafka starts a real broker with tools/kafka/kafka.sh on a port of its own, KAFKA_PORT or a free
// one. Without Java and Maven the test is skipped; in continuous integration it fails.
func startKafka(t *testing.T) kafkaconn.Config {
	t.Helper()
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is missing: the contract must run on a real Kafka here", tool)
			}
			t.Skipf("%s is missing: the contract did not run on a real Kafka", tool)
		}
	}
	port := os.Getenv("KAFKA_PORT")
	if port == "" {
		port = freePort(t)
	}
	script, err := filepath.Abs("../../tools/kafka/kafka.sh")
	if err != nil {
		t.Fatal(err)
	}
	call := func(verb string) string {
		cmd := exec.Command(script, verb)
		cmd.Env = append(os.Environ(), "KAFKA_PORT="+port, "KAFKA_HEAP=256m")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("kafka.sh %s: %v: %s", verb, err, errs.String())
		}
		return strings.TrimSpace(out.String())
	}
	t.Cleanup(func() { call("wipe") })
	return connTo(call("start"))
}

// freePort finds a port whose neighbours for the controller are likely free too.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return strconv.Itoa(20000 + ln.Addr().(*net.TCPAddr).Port%10000)
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
