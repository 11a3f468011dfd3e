package join

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// Log writes to topics of the log, as [kafkaconn.Producer] does: it returns after the brokers acknowledged all messages.
type Log interface {
	Produce(ctx context.Context, ms []kafka.Message) error
}

// Writer takes parts from doors and foreign topics. It is safe for concurrent use.
type Writer struct {
	*events
	log Log
}

// NewWriter makes a writer whose unfinished parts go to the topic evenhand.calls of log.
func NewWriter(o Options, log Log) (*Writer, error) {
	e, err := newEvents(o)
	if err != nil {
		return nil, err
	}
	return &Writer{e, log}, nil
}

// RefusedError says which parts of a call were not taken; the others were.
type RefusedError struct {
	Of      int // parts there were
	Refused []Refused
}

// Refused is one of them: its place and what is wrong with it.
type Refused struct {
	Index  int
	Faults []ingest.Fault
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%d of %d parts cannot become events: %s", len(e.Refused), e.Of, e.Refused[0].Faults[0])
}

// Unwrap gives a [call.Partial], by which doors know that the rest was taken.
func (e *RefusedError) Unwrap() error {
	return &call.Partial{Refused: int64(len(e.Refused)), Why: e.Refused[0].Faults[0].String()}
}

func (e *RefusedError) refuse(i int, faults ...ingest.Fault) {
	e.Refused = append(e.Refused, Refused{i, faults})
}

// Parts takes parts and returns once the brokers have them: as events where a part tells a whole call, else on their
// way to a [Joiner]. Errors are classed: overloaded and unavailable ask for all of them again, which does no harm;
// invalid holds a [RefusedError].
func (w *Writer) Parts(ctx context.Context, parts []call.Part) error {
	const op = "join: write parts"
	refused := &RefusedError{Of: len(parts)}
	var whole []made
	var rest []kafka.Message
	var index []int // of rest
	for i := range parts {
		p := parts[i]
		switch {
		case p.Group == "" || p.Key == "":
			refused.refuse(i, ingest.Fault{Code: ingest.MissingField, Message: "a part wants a group and a key"})
		case !utf8.ValidString(p.Group) || !utf8.ValidString(p.Key):
			refused.refuse(i, ingest.Fault{Code: ingest.InvalidUTF8, Message: "the names of a part's group and key are not UTF-8"})
		case p.Done && p.Kind == call.Model:
			if m, faults := w.make(&p); len(faults) > 0 {
				refused.refuse(i, faults...)
			} else {
				whole = append(whole, m)
			}
		default:
			if m, err := partMessage(&p); err != nil {
				refused.refuse(i, ingest.Fault{Code: ingest.BadJSON, Message: "the part holds something that is not JSON"})
			} else {
				rest, index = append(rest, m), append(index, i)
			}
		}
	}
	if err := w.produce(ctx, whole); err != nil {
		return audit.E(op, audit.KindOf(err), err)
	}
	if len(rest) > 0 {
		if err := w.log.Produce(ctx, rest); err != nil && !tooLarge(err, refused, index) {
			return audit.E(op, audit.KindOf(err), err)
		}
	}
	for i := range parts {
		kind := string(parts[i].Kind)
		if parts[i].Passed {
			kind = "passed"
		}
		w.Observer.Part(parts[i].Format, kind)
	}
	if len(refused.Refused) > 0 {
		return audit.E(op, audit.KindInvalid, refused)
	}
	return nil
}

// partMessage is a part for the topic evenhand.calls. What lies in different tenants by credential is never joined, so
// the tenant goes in a header that the joiner reads first.
func partMessage(p *call.Part) (kafka.Message, error) {
	value, err := encode(p)
	m := kafka.Message{Topic: kafkaconn.Calls, Key: []byte(p.Group), Value: value}
	if p.Tenant != "" {
		m.Headers = []kafka.Header{{Key: ingest.HeaderTenant, Value: []byte(p.Tenant)}}
	}
	return m, err
}

// tooLarge takes the messages that the log refused for good into refused; false when others failed too.
func tooLarge(err error, refused *RefusedError, index []int) bool {
	var each kafkaconn.MessageErrors
	if audit.KindOf(err) != audit.KindInvalid || !errors.As(err, &each) || len(each) != len(index) {
		return false
	}
	for j, err := range each {
		if err != nil {
			refused.refuse(index[j], ingest.Fault{Code: ingest.TooLarge, Message: "the part is larger than a message may be"})
		}
	}
	return true
}
