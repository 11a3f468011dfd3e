package kafka_test

import (
	"context"
	"testing"
	"time"
	"fmt"

	kafkago "github.com/segmentio/kafka-go"
	"go.uber.org/goleak"
	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sinks/stream"
	"github.com/evenhand/evenhand/sources"
	"github.com/evenhand/evenhand/sources/kafka"
)

func TestSmoke(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx := t.Context()
	b, err := broker.Start(ctx, broker.DefaultOptions(t.TempDir()))
	if err != nil { t.Fatal(err) }
	defer b.Close(context.Background())
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = []string{b.Addr()}
	e, err := kafkaconn.Ensure(ctx, conn, kafkaconn.Topics(2), 1)
	t.Log(e, err)
	p, err := kafkaconn.NewProducer(conn, kafkaconn.DefaultProducerOptions())
	if err != nil { t.Fatal(err) }
	defer p.Close(context.Background())
	var ms []kafkago.Message
	for i := range 1000 {
		ms = append(ms, kafkago.Message{Topic: kafkaconn.Interactions, Key: fmt.Append(nil, i), Value: fmt.Append(nil, "v", i), Time: time.UnixMilli(int64(i)*1e9)})
	}
	t0 := time.Now()
	if err := p.Produce(ctx, ms); err != nil { t.Fatal(err) }
	t.Log("produced", time.Since(t0))
	s, err := kafka.New(conn, kafka.DefaultConfig(), kafka.Options{OnError: func(op string, err error) { t.Log(op, err) }})
	if err != nil { t.Fatal(err) }
	rctx, stop := context.WithCancel(ctx)
	got := 0
	err = s.Run(rctx, func(ctx context.Context, g sources.Generation) error {
		t.Log("gen", g.ID(), g.Claims())
		next := map[int]int64{}
		for ctx.Err() == nil && got < 1000 {
			for _, c := range g.Claims() {
				ch, err := g.Fetch(ctx, c.Partition, next[c.Partition], 1<<20)
				if err != nil { return err }
				got += len(ch.Records)
				if len(ch.Records) > 0 { t.Log(ch.Records[0].Time, string(ch.Records[0].Value), ch.Next) }
				next[c.Partition] = ch.Next
			}
		}
		if err := g.Commit(ctx, next); err != nil { t.Error(err) }
		stop()
		<-ctx.Done()
		return nil
	})
	t.Log("run", err, got, time.Since(t0))
	t.Log(b.Trim(ctx), b.Size(), b.Cap())
	pub, err := stream.New(conn, stream.DefaultConfig(), stream.Options{})
	if err != nil { t.Fatal(err) }
	if err := pub.Publish(ctx, make([]audit.StreamEvent, 10000)); err != nil { t.Fatal(err) }
	if err := pub.DeadLetter(ctx, make([]audit.Rejected, 10)); err != nil { t.Fatal(err) }
	t.Log(pub.Close(ctx))
}
