package door

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/sources"
)

// lineFault is one fault of one event of a request.
type lineFault struct {
	Line int `json:"line"`
	ingest.Fault
}

// badEvents is the answer to a request with events at fault.
type badEvents struct {
	Error   *fault      `json:"error"`
	Errors  []lineFault `json:"errors"`
	Omitted int         `json:"omitted,omitempty"` // faults beyond the first thousand
}

const maxLineFaults = 1000 // shown of one request

// interactions takes one event, an array, or NDJSON: all of them or none.
func (s *server) interactions(w http.ResponseWriter, r *http.Request, body []byte) *fault {
	tenant, f := tenantHeader(r)
	if f != nil {
		return f
	}
	lines, all, bad := split(body, r.Header.Get("Content-Type"), s.Limits.Events)
	if bad != nil {
		return badRequest(*bad)
	}
	if all > s.Limits.Events {
		return &fault{http.StatusRequestEntityTooLarge, CodeTooLarge, fmt.Sprintf("%d events; at most %d are taken at once, so send them in parts", all, s.Limits.Events), nil}
	}
	ms := make([]Message, 0, len(lines))
	ids := make([]string, 0, len(lines))
	var faults []lineFault
	var worst, wrong, omitted int
	for _, l := range lines {
		m, id, fs := s.message(l.value, tenant, r.Header.Get("Traceparent"))
		if len(fs) > 0 {
			wrong++
		}
		for _, f := range fs {
			if f.Code == ingest.TooLarge {
				worst = http.StatusRequestEntityTooLarge
			}
			if len(faults) == maxLineFaults {
				omitted++
				continue
			}
			faults = append(faults, lineFault{l.n, f})
		}
		ms, ids = append(ms, m), append(ids, id)
	}
	if wrong > 0 {
		f := &fault{max(worst, http.StatusBadRequest), CodeBadEvents, fmt.Sprintf("%d of %d events are at fault and none was taken: mend them and send all again", wrong, all), nil}
		if worst > 0 {
			f.Code = CodeTooLarge
		}
		reply(w, f.status, badEvents{f, faults, omitted})
		return nil
	}
	if err := s.Producer.Produce(r.Context(), ms); err != nil {
		s.Logger.Warn("interactions not produced", "kind", string(audit.KindOf(err)), "events", len(ms))
		return notServed(err, map[string]any{
			"note": "not all events were acknowledged and some may have been taken: send all again with these ids and nothing is counted twice", "ids": ids,
		})
	}
	reply(w, http.StatusAccepted, struct {
		Accepted int      `json:"accepted"`
		IDs      []string `json:"ids"`
	}{len(ids), ids})
	return nil
}

// message stamps and checks one event.
func (s *server) message(value []byte, tenant, traceparent string) (m Message, id string, faults []ingest.Fault) {
	now := s.Now().UTC()
	value, faults = s.Decoder.Stamp(value, audit.NewID(now), now)
	if len(faults) > 0 {
		return m, "", faults
	}
	var headers []audit.Header
	if tenant != "" {
		headers = append(headers, audit.Header{Key: ingest.HeaderTenant, Value: []byte(tenant)})
	}
	rec := sources.Record{Time: now, Value: value, Headers: headers}
	if traceparent != "" {
		rec.Headers = append(rec.Headers[:len(headers):len(headers)], audit.Header{Key: ingest.HeaderTraceparent, Value: []byte(traceparent)})
	}
	in, faults := s.Decoder.Check(rec, audit.Origin{BrokerTime: now})
	if len(faults) > 0 {
		return m, "", faults
	}
	headers = append(headers, audit.Header{Key: ingest.HeaderTraceparent, Value: []byte(traceOf(in))})
	id = in.ID.String()
	m = Message{Key: []byte(id), Value: value, Headers: headers}
	if limit := s.Limits.Message; limit > 0 && m.size() > limit {
		return m, "", []ingest.Fault{{Code: ingest.TooLarge, Message: fmt.Sprintf("the event and its headers have %d bytes; at most %d are taken", m.size(), limit)}}
	}
	return m, id, nil
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
