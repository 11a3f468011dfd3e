package door

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/reply"
)

// ReplayRequest asks for a call to be made again while its response does not pass: of a stored interaction, or of an event that
// came with the request and is on its way to the log.
type ReplayRequest struct {
	Tenant string
	ID     audit.ID           // zero with Event
	Event  *audit.Interaction // nil with ID
	Rounds int                // 0: as many as the settings say
	Model  string             // "": the one that the call came from
}

// ErrNoInteraction says that the tenant has no such interaction.
var ErrNoInteraction = errors.New("there is no such interaction")

// replay makes a call again while that helps. It makes an event of each round, and of the call where that came along.
func (s *server) replay(w http.ResponseWriter, r *http.Request, body []byte) *fault {
	req, event, faults := readReplay(body)
	if len(faults) > 0 {
		return badRequest(faults...)
	}
	p := auth.From(r.Context())
	switch {
	case event == nil && p.Tenant == "":
		return refused(auth.NoTenant())
	case event == nil && !p.Can(auth.ReadTexts):
		return reply.NewFault(http.StatusForbidden, reply.Forbidden, "to replay a stored interaction wants the permission texts, too, which your roles or your key do not have", map[string]any{"reason": auth.NoPermission})
	case event != nil:
		tenant, f := tenant(r)
		if f != nil {
			return f
		}
		m, in, faults := s.Decoder.Prepare(event, ingest.Sender{Tenant: tenant, Traceparent: r.Header.Get("Traceparent"), Now: s.Now(), Limit: s.Limits.Message})
		if len(faults) > 0 {
			for i := range faults {
				faults[i].Field = strings.TrimSuffix("event."+faults[i].Field, ".")
			}
			return refusal(faults)
		}
		if err := s.Producer.Produce(r.Context(), []Message{m}); err != nil {
			return notServed(err, nil)
		}
		req.Tenant, req.Event = in.Tenant, in
	default:
		req.Tenant = p.Tenant
	}
	leaveSlot(r.Context()) // it waits for models; the replayer has places of its own
	answer, err := s.Replay(r.Context(), req)
	switch {
	case err == nil:
		reply.JSON(w, http.StatusOK, answer)
		return nil
	case errors.Is(err, ErrNoInteraction):
		return reply.NewFault(http.StatusNotFound, reply.NotFound, "there is no such interaction", nil)
	case audit.KindOf(err) == audit.KindInvalid: // says what is wrong with the call or the settings, no texts
		return reply.NewFault(http.StatusBadRequest, reply.BadRequest, err.Error(), nil)
	}
	s.Logger.Warn("a call could not be replayed", "kind", string(audit.KindOf(err)))
	return notServed(err, nil)
}

// readReplay reads the request and reports every fault at once.
func readReplay(body []byte) (r ReplayRequest, event []byte, faults []ingest.Fault) {
	fields, bad := ingest.Members(body, deepest)
	if bad != nil {
		return r, nil, []ingest.Fault{*bad}
	}
	fault := func(field, code, say string) {
		faults = append(faults, ingest.Fault{Field: field, Code: code, Message: say})
	}
	for name, raw := range fields {
		if string(raw) == "null" {
			continue
		}
		switch name {
		case "id":
			if json.Unmarshal(raw, &r.ID) != nil {
				fault(name, ingest.BadValue, "wants the id of an interaction")
			}
		case "event":
			event = raw
		case "rounds":
			n, err := strconv.ParseUint(string(raw), 10, 8)
			if r.Rounds = int(n); err != nil || n == 0 {
				fault(name, ingest.BadValue, "wants a whole number from 1")
			}
		case "model":
			if json.Unmarshal(raw, &r.Model) != nil {
				fault(name, ingest.WrongType, "wants a string")
			}
		default:
			fault(ingest.Shown(name), ingest.UnknownField, "is not a field of this request")
		}
	}
	if len(faults) == 0 && r.ID.IsZero() == (event == nil) {
		fault("id", ingest.MissingField, "wants either id, of a stored interaction, or event, a whole one")
	}
	slices.SortFunc(faults, func(a, b ingest.Fault) int { return strings.Compare(a.Field, b.Field) })
	return r, event, faults
}
