package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
)

const tenant = "crash"

// spot is a place in the log.
type spot struct {
	partition int32
	offset    int64
}

// ledger keeps what producers were told: the truth that the store is compared with.
type ledger struct {
	mu        sync.Mutex
	acked     map[audit.ID]struct{} // result ids: one a (tenant, id, content)
	tried     map[audit.ID]struct{} // sent, whatever came back
	rejects   map[spot]struct{}     // acknowledged messages that must be dead letters
	nameless  map[spot]struct{}     // acknowledged events without id: known by their place only
	last      map[int32]int64       // newest acknowledged offset by partition
	sent      int
	conflicts int
}

func newLedger() *ledger {
	return &ledger{acked: map[audit.ID]struct{}{}, tried: map[audit.ID]struct{}{}, rejects: map[spot]struct{}{}, nameless: map[spot]struct{}{}, last: map[int32]int64{}}
}

// reached copies how far producers were acknowledged.
func (l *ledger) reached() map[int32]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.last)
}

// message is one that is sent, and what the store must make of it.
type message struct {
	value  []byte
	result audit.ID // zero for one that must be rejected, or has no id
	reject bool
}

// traffic makes messages of all sorts.
type traffic struct {
	rand    *rand.Rand
	decoder *ingest.Decoder
	n       int
	recent  []message
	ids     []string
}

func newTraffic(seed uint64, producer int) *traffic {
	return &traffic{rand: rand.New(rand.NewPCG(seed, uint64(producer))), decoder: ingest.NewDecoder(ingest.Options{DefaultTenant: tenant}), n: producer << 40}
}

var answers = []string{"She passed the coding test.", "Women are too emotional to lead.", "He is too old to learn Go.", "My card is 4111 1111 1111 1111.", "The report is attached."}

// next makes a message. The clock of its sender may be off by days, the id may have been used for
// other content, and some are no events at all.
func (t *traffic) next() (m message, conflict bool) {
	t.n++
	pick := t.rand.IntN(100)
	if pick < 6 && len(t.recent) > 0 { // a second producer sends the same
		return t.recent[t.rand.IntN(len(t.recent))], false
	}
	if pick < 8 {
		return message{value: fmt.Appendf(nil, `{"id":"broken-%d","response":`, t.n), reject: true}, false
	}
	if pick < 9 { // a clock that is days ahead
		at := time.Now().Add(5 * 24 * time.Hour).UTC().Format(time.RFC3339Nano)
		return message{value: fmt.Appendf(nil, `{"id":"future-%d","timestamp":%q,"response":"x"}`, t.n, at), reject: true}, false
	}
	answer := answers[t.rand.IntN(len(answers))]
	if pick < 10 {
		return message{value: fmt.Appendf(nil, `{"response":"%s %d"}`, answer, t.n)}, false
	}
	id := fmt.Sprintf("event-%d", t.n)
	if pick < 12 && len(t.ids) > 0 { // other content under a known id
		id, conflict = t.ids[t.rand.IntN(len(t.ids))], true
	}
	skew := time.Duration(t.rand.Int64N(int64(50*time.Hour))) - 40*time.Hour
	at := time.Now().Add(min(skew, 10*time.Hour)).UTC().Format("2006-01-02T15:04:05.000Z")
	m.value = fmt.Appendf(nil, `{"id":%q,"tenant_id":%q,"timestamp":%q,"user_id":"u%d","domain":"hr","prompt":"Who fits, number %d?","response":%q,"provider":"p","model":"m"}`,
		id, tenant, at, t.n%7, t.n, answer)
	in, bad := t.decoder.Decode(sources.Record{Value: m.value}, audit.Origin{BrokerTime: time.Now()})
	if bad != nil {
		return message{value: m.value, reject: true}, false
	}
	m.result = audit.HotResultID(in.Tenant, in.ID, in.Digest)
	if len(t.recent) < 500 {
		t.recent, t.ids = append(t.recent, m), append(t.ids, id)
	} else {
		i := t.rand.IntN(len(t.recent))
		t.recent[i], t.ids[i] = m, id
	}
	return m, conflict
}

// produce sends rate messages a second until ctx ends. What is not acknowledged in time may be in the
// log all the same: it counts as tried only.
func (w *world) produce(ctx context.Context, producer, rate int) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.cluster.addrs()...), kgo.DefaultProduceTopic(kafkaconn.Interactions), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.DisableIdempotentWrite(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(8*time.Second),
		kgo.ProduceRequestTimeout(4*time.Second), kgo.RequestTimeoutOverhead(3*time.Second), kgo.RetryTimeout(8*time.Second), kgo.MetadataMinAge(200*time.Millisecond), kgo.MetadataMaxAge(2*time.Second))
	if err != nil {
		return err
	}
	defer cl.Close()
	const every = 50 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		n := max(1, rate*int(every/time.Millisecond)/1000)
		records, sent := make([]*kgo.Record, n), make([]message, n)
		for i := range n {
			m, conflict := w.traffic[producer].next()
			sent[i] = m
			records[i] = &kgo.Record{Value: m.value, Partition: int32(w.traffic[producer].rand.IntN(w.opt.partitions))}
			w.ledger.try(m, conflict)
		}
		for i, res := range cl.ProduceSync(context.WithoutCancel(ctx), records...) {
			if res.Err == nil {
				w.ledger.ack(find(records, sent, res.Record, i), spot{res.Record.Partition, res.Record.Offset})
			} else if errors.Is(res.Err, kgo.ErrClientClosed) {
				return nil
			}
		}
	}
}

// find gives the message of a record; results come in the order in which they were answered.
func find(records []*kgo.Record, sent []message, r *kgo.Record, guess int) message {
	if records[guess] == r {
		return sent[guess]
	}
	for i := range records {
		if records[i] == r {
			return sent[i]
		}
	}
	return message{}
}

func (l *ledger) try(m message, conflict bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if conflict {
		l.conflicts++
	}
	if !m.result.IsZero() {
		l.tried[m.result] = struct{}{}
	}
}

func (l *ledger) ack(m message, at spot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	l.last[at.partition] = max(l.last[at.partition], at.offset)
	switch {
	case m.reject:
		l.rejects[at] = struct{}{}
	case m.result.IsZero():
		l.nameless[at] = struct{}{}
	default:
		l.acked[m.result] = struct{}{}
	}
}
