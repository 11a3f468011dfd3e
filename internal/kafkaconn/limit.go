package kafkaconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
)

// maxMessageBytes is a topic's setting: the largest batch that it takes, in bytes after compression. A message that
// is not larger always finds its way, alone in its batch if need be.
const maxMessageBytes = "max.message.bytes"

// batchFraming is what a batch adds to its only message, in bytes, about: header and record, with lengths.
const batchFraming = 100

// TooLargeError is that of a message that its topic does not take even alone.
type TooLargeError struct {
	Topic string
	Size  int // of the message in bytes, before compression
	Limit int // the topic's max.message.bytes; 0 where it could not be read
}

// Error names the topic, the size, the setting and the mend.
func (e *TooLargeError) Error() string {
	limit := ""
	if e.Limit > 0 {
		limit = " " + strconv.Itoa(e.Limit)
	}
	return fmt.Sprintf("topic %s takes no message of %d bytes, its max.message.bytes%s is less: %s",
		e.Topic, e.Size, limit, alter(e.Topic, maxMessageBytes, strconv.Itoa(wholeBatch(e.Topic, e.Size))))
}

// wholeBatch is the limit that a topic needs for a message: what Topics wants, or more where that is too little.
func wholeBatch(topic string, size int) int {
	need := max(maxBatch, size+batchFraming)
	for _, t := range Topics(1) {
		if t.Name == topic {
			need = max(need, int(number(t.Config[maxMessageBytes])))
		}
	}
	return need
}

// tooLarge tells whether the broker found a batch larger than its topic takes.
func tooLarge(err error) bool {
	return errors.Is(err, kafka.MessageSizeTooLarge) || errors.Is(err, kafka.RecordListTooLarge)
}

const (
	limitTTL     = time.Minute
	limitTimeout = 2 * time.Second
)

// limit is a topic's max.message.bytes as it was at a time; 0 is unknown.
type limit struct {
	bytes  int
	at     time.Time
	asking bool
}

// Fits tells whether a topic takes a message, as far as is known: a [TooLargeError] where it does not. It does not
// wait: the limit is asked for in the background, once a minute, and until it is known every message fits.
func (p *Producer) Fits(m *kafka.Message) error {
	p.mu.Lock()
	known := p.limits[m.Topic]
	if !known.asking && !p.closed && time.Since(known.at) > limitTTL {
		p.limits[m.Topic] = limit{known.bytes, known.at, true}
		p.workers.Go(func() { p.learn(m.Topic) }) //nolint:contextcheck // it outlives the call; Close ends it
	}
	p.mu.Unlock()
	size := messageSize(m)
	if known.bytes == 0 || size+batchFraming <= known.bytes || p.compressed(m)+batchFraming <= known.bytes {
		return nil
	}
	return audit.E(opProduce, audit.KindInvalid, &TooLargeError{m.Topic, size, known.bytes})
}

// learn asks for a topic's limit; 0 where it cannot be had.
func (p *Producer) learn(topic string) int {
	ctx, cancel := context.WithTimeout(p.stop, limitTimeout)
	defer cancel()
	n := 0
	if have, err := settings(ctx, p.client, []string{topic}, maxMessageBytes); err == nil {
		n = int(max(0, number(have[topic][maxMessageBytes])))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits[topic] = limit{bytes: n, at: time.Now()}
	return n
}

// compressed is what a message takes in a batch of its own, about.
func (p *Producer) compressed(m *kafka.Message) int {
	codec := p.codec.Codec()
	if codec == nil {
		return messageSize(m)
	}
	var b bytes.Buffer
	w := codec.NewWriter(&b)
	_, err := w.Write(m.Key)
	_, err1 := w.Write(m.Value)
	for _, h := range m.Headers {
		_, err2 := w.Write([]byte(h.Key))
		_, err3 := w.Write(h.Value)
		err = errors.Join(err, err2, err3)
	}
	if errors.Join(err, err1, w.Close()) != nil {
		return messageSize(m)
	}
	return b.Len()
}
