package bus

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/propagation"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

const (
	// HeaderUUID is the Kafka header of a message's UUID, as watermill-kafka has it.
	HeaderUUID = "_watermill_message_uuid"
	// MetadataKey is the metadata entry that holds a message's Kafka key. It is no header; a message
	// that is published on, to a poison queue for example, keeps its key by it. Without it a message
	// has no key, and no order.
	MetadataKey = "evenhand-key"
	// MetadataTraceparent is the W3C trace context, a header of the same name.
	MetadataTraceparent = "traceparent"
)

// Delivery says where in the log a message stood and how often it was delivered by this subscriber
// since it was fetched.
type Delivery struct {
	Origin  audit.Origin // Epoch is 0: the bus does not know of replaced logs
	Attempt int          // from 1
}

type deliveryKey struct{}

// DeliveryOf gives the delivery of the context of a message that a Subscriber handed out.
func DeliveryOf(ctx context.Context) (Delivery, bool) {
	d, ok := ctx.Value(deliveryKey{}).(Delivery)
	return d, ok
}

// encode turns a message into a record. The message is not changed.
func encode(topic string, m *message.Message) kafka.Message {
	out := kafka.Message{Topic: topic, Value: m.Payload, Headers: make([]kafka.Header, 0, len(m.Metadata)+2)}
	out.Headers = append(out.Headers, kafka.Header{Key: HeaderUUID, Value: []byte(m.UUID)})
	for k, v := range m.Metadata {
		switch k {
		case MetadataKey:
			out.Key = []byte(v)
		case HeaderUUID:
		default:
			out.Headers = append(out.Headers, kafka.Header{Key: k, Value: []byte(v)})
		}
	}
	if m.Metadata.Get(MetadataTraceparent) == "" {
		trace := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(m.Context(), trace)
		for k, v := range trace {
			out.Headers = append(out.Headers, kafka.Header{Key: k, Value: []byte(v)})
		}
	}
	return out
}

// decode turns a record into a message whose context comes from ctx, with the record's trace and d.
// It never fails: a record that no watermill publisher wrote is a message all the same.
func decode(ctx context.Context, r *sources.Record, d Delivery) (*message.Message, context.CancelFunc) {
	m := message.NewMessage("", r.Value)
	for _, h := range r.Headers {
		if h.Key == HeaderUUID {
			if m.UUID == "" {
				m.UUID = string(h.Value)
			}
		} else if _, ok := m.Metadata[h.Key]; !ok {
			m.Metadata[h.Key] = string(h.Value)
		}
	}
	if m.UUID == "" {
		m.UUID = d.Origin.EventID().String()
	}
	if r.Key != nil {
		m.Metadata[MetadataKey] = string(r.Key)
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(m.Metadata))
	ctx, cancel := context.WithCancel(context.WithValue(ctx, deliveryKey{}, d))
	m.SetContext(ctx)
	return m, cancel
}

// Correlate is a router middleware: messages that a handler makes continue the trace of the message
// that it got, unless they have a trace of their own.
func Correlate(h message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) ([]*message.Message, error) {
		made, err := h(m)
		for _, out := range made {
			for _, k := range (propagation.TraceContext{}).Fields() {
				if v := m.Metadata.Get(k); v != "" && out.Metadata.Get(MetadataTraceparent) == "" {
					out.Metadata.Set(k, v)
				}
			}
		}
		return made, err
	}
}
