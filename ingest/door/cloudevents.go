package door

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/cloudevents"
	"github.com/evenhand/evenhand/internal/reply"
)

// cloudEvents takes CloudEvents around native events (http-protocol-binding.md, 3): one in binary or structured mode, or a
// batch, all of it or none. What is no CloudEvent by its content type is one by its look: clients write application/json.
func (s *server) cloudEvents(w http.ResponseWriter, r *http.Request, body []byte) *fault {
	tenant, f := tenant(r)
	if f != nil {
		return f
	}
	kind := r.Header.Get("Content-Type")
	var lines []line
	event, binary := cloudevents.HTTP(r.Header, body)
	switch trimmed := bytes.TrimSpace(body); {
	case cloudevents.IsBatch(kind) || !binary && !cloudevents.IsStructured(kind) && bytes.HasPrefix(trimmed, []byte("[")):
		items, all, bad := ingest.Elements(trimmed, s.Limits.Events)
		if bad != nil {
			return badRequest(*bad)
		}
		if all > s.Limits.Events {
			return tooMany(all, s.Limits.Events)
		}
		for i, item := range items {
			value, faults := s.Decoder.UnwrapStructured(item)
			lines = append(lines, line{n: i + 1, value: value, faults: faults})
		}
	case binary && !cloudevents.IsStructured(kind):
		value, faults := s.Decoder.Unwrap(event)
		lines = []line{{n: 1, value: value, faults: faults}}
	default:
		value, faults := s.Decoder.UnwrapStructured(trimmed)
		lines = []line{{n: 1, value: value, faults: faults}}
	}
	return s.take(w, r, tenant, lines)
}

func tooMany(all, limit int) *fault {
	return reply.NewFault(http.StatusRequestEntityTooLarge, reply.TooLarge, fmt.Sprintf("%d events; at most %d are taken at once, so send them in parts", all, limit), nil)
}
