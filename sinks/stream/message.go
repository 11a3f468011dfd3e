package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
)

// Headers of a dead letter. The first four are watermill's poison headers; a dead letter that was
// replayed and failed again carries one set, with the attempts counted on.
const (
	HeaderReason     = "reason_poisoned"
	HeaderTopic      = "topic_poisoned"
	HeaderHandler    = "handler_poisoned"
	HeaderSubscriber = "subscriber_poisoned"
	HeaderPartition  = "dlq_partition"
	HeaderOffset     = "dlq_offset"
	HeaderErrorClass = "dlq_error_class"
	HeaderAttempts   = "dlq_attempts"
	HeaderFirstSeen  = "dlq_first_seen"
	HeaderValueSize  = "dlq_value_size"   // only when the value was cut: its whole size in bytes
	HeaderValueHash  = "dlq_value_sha256" // only when the value was cut: the hash of the whole
	// HeaderEventID is the id that an event without one gets; it survives a replay, so that a replayed
	// event finds its row.
	HeaderEventID = "evenhand-event-id"
	// HeaderEventTime is the broker time of the first delivery, the time of an event that tells none; it
	// survives a replay too, so that a replay on another day finds its row.
	HeaderEventTime = "evenhand-event-time"
)

const (
	handler    = "pipeline.decode"
	ownHeaders = 11 // the last ones of a dead letter before fit adds two
)

// messages encodes events into shared buffers.
func messages(events []audit.StreamEvent) []kafka.Message {
	msgs := make([]kafka.Message, len(events))
	headers := make([]kafka.Header, 0, 3*len(events))
	buf := make([]byte, 0, 512*min(len(events), 1024))
	for i := range events {
		e := &events[i]
		if cap(buf)-len(buf) < 512 {
			buf = make([]byte, 0, 512*1024)
		}
		start := len(buf)
		buf = appendID(buf, &e.AuditID)
		key := buf[start:len(buf):len(buf)]
		start = len(buf)
		buf = appendEvent(buf, e)
		value := buf[start:len(buf):len(buf)]
		from := len(headers)
		start = len(buf)
		buf = appendID(buf, &e.ResultID)
		headers = append(headers, kafka.Header{Key: "result_id", Value: buf[start:len(buf):len(buf)]}, kafka.Header{Key: "content-type", Value: contentType})
		start = len(buf)
		if buf = appendTraceparent(buf, e.TraceID); len(buf) > start {
			headers = append(headers, kafka.Header{Key: "traceparent", Value: buf[start:len(buf):len(buf)]})
		}
		msgs[i] = kafka.Message{Key: key, Value: value, Headers: headers[from:len(headers):len(headers)]}
	}
	return msgs
}

// opinion encodes what a person said.
func opinion(o *audit.Opinion) (kafka.Message, error) {
	value, err := json.Marshal(o)
	m := kafka.Message{Key: []byte(o.Interaction.String()), Value: value, Headers: []kafka.Header{
		{Key: "opinion_id", Value: []byte(o.ID.String())}, {Key: "content-type", Value: contentType},
	}}
	if trace := appendTraceparent(nil, o.TraceID); len(trace) > 0 {
		m.Headers = append(m.Headers, kafka.Header{Key: "traceparent", Value: trace})
	}
	return m, err
}

var contentType = []byte("application/json")

// appendTraceparent appends a W3C traceparent of the trace with a span id of its own, or nothing when
// the trace id is not one.
func appendTraceparent(b []byte, trace string) []byte {
	if !isTraceID(trace) {
		return b
	}
	b = append(b, "00-"...)
	b = append(b, trace...)
	b = append(b, '-')
	span := rand.Uint64()
	for span == 0 { // all zeros is no span id
		span = rand.Uint64()
	}
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[span>>shift&15])
	}
	return append(b, "-01"...)
}

func isTraceID(s string) bool {
	if len(s) != 32 {
		return false
	}
	zero := true
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		zero = zero && c == '0'
	}
	return !zero
}

// deadLetter makes the message of a rejected one. The topic must be able to take whatever a source
// could hold, so a value that is too large is cut, and its size and hash stand in headers.
func deadLetter(r *audit.Rejected, group string, now time.Time) kafka.Message {
	m := kafka.Message{Key: r.Key, Value: r.Value}
	past, foreign := history(r, now)
	m.Headers = foreign
	partition, offset := strconv.Itoa(r.Origin.Partition), strconv.FormatInt(r.Origin.Offset, 10)
	add := func(key, value string) { m.Headers = append(m.Headers, kafka.Header{Key: key, Value: []byte(value)}) }
	add(HeaderReason, r.Detail)
	add(HeaderTopic, r.Origin.Topic)
	add(HeaderHandler, handler)
	add(HeaderSubscriber, group)
	add(HeaderPartition, partition)
	add(HeaderOffset, offset)
	add(HeaderErrorClass, r.Reason)
	past.attempts++
	m.Headers = append(m.Headers, past.headers()...)
	fit(&m)
	return m
}

// Replay makes the message that gives a rejected one another chance: key, value and foreign headers as
// they came, to the topic where it stood, with the id and the time that it had and the attempts so
// far. Sent twice it is one event.
func Replay(r *audit.Rejected) kafka.Message {
	past, foreign := history(r, r.Origin.BrokerTime)
	past.attempts++ // the rejection itself
	return kafka.Message{Topic: r.Origin.Topic, Key: r.Key, Value: r.Value, Headers: append(foreign, past.headers()...)}
}

// EventID is the id that a rejected message has, or will get, if it has none of its own: the same
// after each replay.
func EventID(r *audit.Rejected) audit.ID {
	p, _ := history(r, time.Time{})
	return p.eventID
}

// past is what a message carries through replays and dead letters.
type past struct {
	attempts  int // that failed so far; 0 for a message that comes for the first time
	firstSeen time.Time
	eventID   audit.ID
	eventTime time.Time
}

// history tells a message's past from its headers, and its other headers. What is not there is made of
// its place; now is when it was first seen.
func history(r *audit.Rejected, now time.Time) (p past, foreign []kafka.Header) {
	p = past{firstSeen: now, eventID: r.Origin.EventID(), eventTime: r.Origin.BrokerTime}
	for _, h := range r.Header {
		switch h.Key {
		case HeaderAttempts:
			if n, err := strconv.Atoi(string(h.Value)); err == nil && n > 0 && n < 1_000_000 {
				p.attempts = n
			}
		case HeaderFirstSeen:
			if t, err := time.Parse(time.RFC3339, string(h.Value)); err == nil {
				p.firstSeen = t
			}
		case HeaderEventID:
			if id, err := audit.ParseID(string(h.Value)); err == nil && !id.IsZero() {
				p.eventID = id
			}
		case HeaderEventTime:
			if t, err := time.Parse(time.RFC3339, string(h.Value)); err == nil {
				p.eventTime = t
			}
		case HeaderReason, HeaderTopic, HeaderHandler, HeaderSubscriber, HeaderPartition, HeaderOffset, HeaderErrorClass, HeaderValueSize, HeaderValueHash:
		default:
			foreign = append(foreign, kafka.Header{Key: h.Key, Value: h.Value})
		}
	}
	return p, foreign
}

// headers are the last ones of a dead letter and of a replay.
func (p past) headers() []kafka.Header {
	return []kafka.Header{
		{Key: HeaderAttempts, Value: []byte(strconv.Itoa(p.attempts))},
		{Key: HeaderFirstSeen, Value: []byte(p.firstSeen.UTC().Format(timestampFormat))},
		{Key: HeaderEventID, Value: []byte(p.eventID.String())},
		{Key: HeaderEventTime, Value: []byte(p.eventTime.UTC().Format(timestampFormat))},
	}
}

// fit cuts a message to maxDeadMessage: its value, and when key and headers alone are too large, the
// foreign headers and the end of the key too.
func fit(m *kafka.Message) {
	size := len(m.Key)
	for _, h := range m.Headers {
		size += len(h.Key) + len(h.Value)
	}
	if size+len(m.Value) <= maxDeadMessage {
		return
	}
	sum := sha256.Sum256(m.Value)
	whole := len(m.Value)
	if size > maxDeadMessage/2 {
		m.Key = m.Key[:min(len(m.Key), maxDeadMessage/8)]
		m.Headers = m.Headers[len(m.Headers)-ownHeaders:]
		for i := range m.Headers {
			m.Headers[i].Value = m.Headers[i].Value[:min(len(m.Headers[i].Value), 1<<10)]
		}
		size = len(m.Key) + ownHeaders*(1<<10+64)
	}
	m.Value = m.Value[:min(whole, maxDeadMessage-size)]
	m.Headers = append(m.Headers,
		kafka.Header{Key: HeaderValueSize, Value: []byte(strconv.Itoa(whole))},
		kafka.Header{Key: HeaderValueHash, Value: []byte(hex.EncodeToString(sum[:]))})
}
