package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

const tickAfter = 24 * time.Hour

// tickHeader marks a record that only rolls a segment; package sources/kafka drops such records.
const tickHeader = "evenhand-tick"

// ticked are the topics that hold texts: what is deleted of them must leave the disk on a quiet broker too.
var ticked = []string{kafkaconn.Interactions, kafkaconn.DeadLetters, kafkaconn.Calls}

// texts are the topics with texts that this broker has.
func (b *Broker) texts() []string { return slices.Concat(ticked, b.opt.Topics) }

// tick rolls the active segment of each partition of the topics with texts that was written to since its
// last tick a day ago. kfake rolls by size alone, so the size is lowered for the one record. Once the
// pipeline is past the tick, or the ring's age, Trim deletes the segments before it.
func (b *Broker) tick(ctx context.Context) error {
	const op = "embedded/broker: tick"
	b.trimming.Lock()
	defer b.trimming.Unlock()
	if b.full.Load() { // nothing is consumed: nothing could be deleted
		return nil
	}
	var errs []error
	for _, topic := range b.texts() {
		errs = append(errs, b.tickTopic(ctx, topic))
	}
	return kafkaconn.E(op, errors.Join(errs...))
}

func (b *Broker) tickTopic(ctx context.Context, topic string) error {
	now := b.opt.now()
	var due []int32
	for _, p := range b.cluster.PartitionInfos(topic) {
		if b.diary.due(topic, p, now) {
			due = append(due, p.Partition)
		}
	}
	if len(due) == 0 {
		return nil
	}
	cl, release, err := b.client()
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := setSegmentBytes(ctx, cl, topic, 1); err != nil {
		return err
	}
	var errs []error
	for _, p := range due {
		res, err := cl.Produce(ctx, &kafka.ProduceRequest{
			Topic: topic, Partition: int(p), RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte{}), Headers: []kafka.Header{{Key: tickHeader, Value: []byte("1")}}}),
		})
		if err == nil {
			err = res.Error
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s-%d: %w", topic, p, err))
			continue
		}
		b.diary.ticked(topic, p, res.BaseOffset+1, now)
	}
	// Not under ctx: a closing broker still gets its segment size back (Start sets it again anyway).
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	errs = append(errs, setSegmentBytes(back, cl, topic, segmentBytes), b.diary.save())
	return errors.Join(errs...)
}

func setSegmentBytes(ctx context.Context, cl *kafka.Client, topic string, n int) error {
	res, err := cl.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "segment.bytes", Value: strconv.Itoa(n), ConfigOperation: kafka.ConfigOperationSet}},
		}},
	})
	if err != nil {
		return err
	}
	for _, r := range res.Resources {
		if r.Error != nil {
			return r.Error
		}
	}
	return nil
}
