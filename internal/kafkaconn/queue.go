package kafkaconn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
)

const (
	maxRequest     = 1_000_000 // bytes of messages in a request, before compression; below the topics' limit
	requestTimeout = 5 * time.Second
)

// queue holds what waits for one partition. It is guarded by the producer's mutex.
type queue struct {
	waiting []*share
	running bool
}

// share is the part of a call that goes to one partition.
type share struct {
	msgs  []kafka.Message
	index []int // of the messages in the call
	bytes int
	errs  []error // one a message, valid once done is closed
	done  chan struct{}
	late  atomic.Bool // its caller was told that it was not taken: what is not under way yet need not be sent
}

// work sends what waits for a partition, request by request, until nothing does.
func (p *Producer) work(where place, q *queue) {
	for {
		p.mu.Lock()
		n, bytes := 0, 0
		for n < len(q.waiting) && (n == 0 || bytes+q.waiting[n].bytes <= maxRequest) {
			bytes += q.waiting[n].bytes
			n++
		}
		if n == 0 {
			q.running = false
			q.waiting = nil
			p.mu.Unlock()
			return
		}
		shares := slices.DeleteFunc(slices.Clone(q.waiting[:n]), func(s *share) bool { return s.late.Load() })
		q.waiting = q.waiting[n:]
		p.mu.Unlock()

		var msgs []kafka.Message
		for _, s := range shares {
			msgs = append(msgs, s.msgs...)
		}
		var errs []error
		if len(msgs) > 0 {
			errs = p.send(where, msgs)
		}
		p.bytes.Release(int64(bytes)) // before the callers hear: what they send next has its room
		for _, s := range shares {
			s.errs, errs = errs[:len(s.msgs)], errs[len(s.msgs):]
			close(s.done)
		}
	}
}

// send writes messages as one batch and gives an error for each. A batch that the broker finds too
// large is halved until the large message stands alone.
func (p *Producer) send(where place, msgs []kafka.Message) []error {
	err := p.try(where, msgs)
	if tooLarge(err) {
		if len(msgs) > 1 {
			half := len(msgs) / 2
			return append(p.send(where, msgs[:half]), p.send(where, msgs[half:])...)
		}
		err = audit.E(opProduce, audit.KindInvalid, &TooLargeError{where.topic, messageSize(&msgs[0]), p.learn(where.topic)})
		return []error{err}
	}
	errs := make([]error, len(msgs))
	if err != nil {
		for i := range errs {
			errs[i] = E(opProduce, err)
		}
	}
	return errs
}

// try sends one batch, again and again while that may help and patience lasts.
func (p *Producer) try(where place, msgs []kafka.Message) error {
	deadline := time.Now().Add(p.opt.Patience)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := p.request(where, msgs)
		if err == nil || Class(err) != audit.KindUnavailable || time.Now().Add(pause).After(deadline) ||
			!wait.For(p.stop, pause-time.Duration(rand.Int64N(int64(pause)/2))) {
			return err
		}
	}
}

func (p *Producer) request(where place, msgs []kafka.Message) error {
	ctx, cancel := context.WithTimeout(p.stop, requestTimeout)
	defer cancel()
	records := make([]kafka.Record, len(msgs))
	for i, m := range msgs {
		records[i] = kafka.Record{Time: m.Time, Headers: m.Headers}
		if m.Key != nil {
			records[i].Key = kafka.NewBytes(m.Key)
		}
		if m.Value != nil {
			records[i].Value = kafka.NewBytes(m.Value)
		}
	}
	res, err := p.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: where.topic, Partition: where.partition, RequiredAcks: kafka.RequireAll, Compression: p.codec,
		Records: kafka.NewRecordReader(records...),
	})
	if err == nil {
		err = res.Error
	}
	return err
}

// MessageErrors holds the error of each message of a call, nil for those that were acknowledged.
type MessageErrors []error

// maxShown is how many errors that differ are shown.
const maxShown = 4

// Error counts the failures and shows each error once, with its number: one cause fails thousands of messages.
func (e MessageErrors) Error() string {
	n, of, seen := 0, map[string]int{}, []string(nil)
	for _, err := range e {
		if err == nil {
			continue
		}
		n++
		s := err.Error()
		if of[s]++; of[s] == 1 {
			seen = append(seen, s)
		}
	}
	if len(seen) == 1 {
		return fmt.Sprintf("%d of %d messages failed: %s", n, len(e), seen[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d messages failed: ", n, len(e))
	for i, s := range seen {
		if i == maxShown {
			fmt.Fprintf(&b, "; and %d more that differ", len(seen)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%d times %s", of[s], s)
	}
	return b.String()
}

// Unwrap gives the failures.
func (e MessageErrors) Unwrap() []error {
	var errs []error
	for _, err := range e {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// reduce gives nil when all went well, else the errors under the kind that needs the most care.
func (e MessageErrors) reduce() error {
	for _, err := range e {
		if err != nil {
			return audit.E(opProduce, classMany(kafka.WriteErrors(e)), e)
		}
	}
	return nil
}
