package door

import (
	"fmt"
	"net/http"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/reply"
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
	tenant, f := tenant(r)
	if f != nil {
		return f
	}
	lines, all, bad := split(body, r.Header.Get("Content-Type"), s.Limits.Events)
	if bad != nil {
		return badRequest(*bad)
	}
	if all > s.Limits.Events {
		return tooMany(all, s.Limits.Events)
	}
	return s.take(w, r, tenant, lines)
}

// take checks events and hands them to the log: all of them or none.
func (s *server) take(w http.ResponseWriter, r *http.Request, tenant string, lines []line) *fault {
	all := len(lines)
	ms := make([]Message, 0, len(lines))
	ids := make([]string, 0, len(lines))
	var faults []lineFault
	var worst, wrong, omitted int
	for _, l := range lines {
		m, fs := Message{}, l.faults
		if len(fs) == 0 {
			m, _, fs = s.Decoder.Prepare(l.value, ingest.Sender{Tenant: tenant, Traceparent: r.Header.Get("Traceparent"), Now: s.Now(), Limit: s.Limits.Message})
		}
		if len(fs) > 0 {
			wrong++
		}
		for _, f := range fs {
			switch {
			case f.Code == ingest.TenantMismatch:
				worst = http.StatusForbidden
			case f.Code == ingest.TooLarge && worst != http.StatusForbidden:
				worst = http.StatusRequestEntityTooLarge
			}
			if len(faults) == maxLineFaults {
				omitted++
				continue
			}
			faults = append(faults, lineFault{l.n, f})
		}
		ms, ids = append(ms, m), append(ids, string(m.Key))
	}
	if wrong > 0 {
		f := reply.NewFault(max(worst, http.StatusBadRequest), CodeBadEvents, fmt.Sprintf("%d of %d events are at fault and none was taken: mend them and send all again", wrong, all), nil)
		switch worst {
		case http.StatusForbidden:
			f.Code = reply.Forbidden
		case http.StatusRequestEntityTooLarge:
			f.Code = reply.TooLarge
		}
		reply.JSON(w, f.Status, badEvents{f, faults, omitted})
		return nil
	}
	if len(ms) == 0 { // a batch may be empty
		reply.JSON(w, http.StatusAccepted, acknowledged{0, ids})
		return nil
	}
	if err := s.Producer.Produce(r.Context(), ms); err != nil {
		s.Logger.Warn("interactions not produced", "kind", string(audit.KindOf(err)), "events", len(ms))
		return notServed(err, map[string]any{
			"note": "not all events were acknowledged and some may have been taken: send all again with these ids and nothing is counted twice", "ids": ids,
		})
	}
	reply.JSON(w, http.StatusAccepted, acknowledged{len(ids), ids})
	return nil
}

// acknowledged is the answer to events that are in the log.
type acknowledged struct {
	Accepted int      `json:"accepted"`
	IDs      []string `json:"ids"`
}
