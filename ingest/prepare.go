package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// Message is one message for the topic llm.interactions.
type Message struct {
	Key     []byte // the event's id
	Value   []byte // the event in its canonical form, with an id
	Headers []audit.Header
}

// Producer writes to the log. Produce returns after the broker acknowledged all messages; its errors
// are classed (audit.KindOf): overloaded, unavailable, invalid for messages that the broker refuses.
type Producer interface {
	Produce(ctx context.Context, ms []Message) error
}

// Sender is what a door knows beside the event.
type Sender struct {
	Tenant      string // "" leaves it to the payload
	Traceparent string // of the request
	Now         time.Time
	Truncated   bool // texts of the event were cut, for want of room in a message
	Limit       int  // bytes of a message: key, stamped event and headers; 0 leaves it to the decoder
}

// Prepare stamps one event with an id where it has none and checks it as the pipeline will, so that what a door takes
// is never rejected behind it. When the event came is told by the id that it gets here, else by [HeaderEventTime]: a time
// put into the event would be content, and a second sending of the same event would be another one.
func (d *Decoder) Prepare(value []byte, by Sender) (Message, *audit.Interaction, []Fault) {
	now := by.Now.UTC()
	value, faults := d.stamp(value, by.Tenant, audit.NewID(now))
	if len(faults) > 0 {
		return Message{}, nil, faults
	}
	var headers []audit.Header
	if by.Tenant != "" {
		headers = append(headers, audit.Header{Key: HeaderTenant, Value: []byte(by.Tenant)})
	}
	if by.Truncated {
		headers = append(headers, audit.Header{Key: HeaderTruncated, Value: []byte("true")})
	}
	rec := sources.Record{Time: now, Value: value, Headers: headers}
	if by.Traceparent != "" {
		rec.Headers = append(rec.Headers[:len(headers):len(headers)], audit.Header{Key: HeaderTraceparent, Value: []byte(by.Traceparent)})
	}
	in, faults := d.Check(rec, audit.Origin{BrokerTime: now})
	if len(faults) > 0 {
		return Message{}, nil, faults
	}
	headers = append(headers, audit.Header{Key: HeaderTraceparent, Value: []byte(traceOf(in))})
	if in.TimeAssumed {
		headers = append(headers, audit.Header{Key: HeaderEventTime, Value: []byte(in.Time.Format("2006-01-02T15:04:05.000Z07:00"))})
	}
	m := Message{Key: []byte(in.ID.String()), Value: value, Headers: headers}
	if by.Limit > 0 && m.size() > by.Limit {
		return Message{}, nil, []Fault{{Code: TooLarge, Message: fmt.Sprintf("the event and its headers have %d bytes; at most %d are taken", m.size(), by.Limit)}}
	}
	return m, in, nil
}

// size is what the message takes in the log, framing included.
func (m *Message) size() int {
	n := 32 + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += 10 + len(h.Key) + len(h.Value)
	}
	return n
}

// traceOf gives the traceparent under which the event travels on; without a span of the caller's, a
// span made of the event's id stands for this door.
func traceOf(in *audit.Interaction) string {
	span := in.SpanID
	if span == "" {
		sum := sha256.Sum256(in.ID[:])
		span = hex.EncodeToString(sum[16:24])
	}
	return "00-" + in.TraceID + "-" + span + "-01"
}
