package door

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/litellm"
	"github.com/evenhand/evenhand/internal/reply"
)

// logged takes what LiteLLM's logger generic_api sends: all of a request or nothing. The logger forgets what it sent, answered or not,
// so everything that can be taken is, and the answer does not wait for the analysis.
func (s *server) logged(w http.ResponseWriter, r *http.Request, body []byte) *fault {
	tenant, f := tenant(r)
	if f != nil {
		return f
	}
	parts, ignored, err := litellm.Read(call.Payload{
		Body: body, ContentType: r.Header.Get("Content-Type"), Header: r.Header.Get, Tenant: tenant, Received: s.Now().UTC(),
	})
	if err != nil {
		message := "the body cannot be read"
		if e, ok := errors.AsType[*audit.Error](err); ok { // names places and quotes nothing
			message = e.Err.Error()
		}
		return reply.NewFault(http.StatusBadRequest, reply.BadRequest, message, nil)
	}
	if len(parts) > s.Limits.Events {
		return reply.NewFault(http.StatusRequestEntityTooLarge, reply.TooLarge, fmt.Sprintf("%d calls; at most %d are taken at once, so send them in parts", len(parts), s.Limits.Events), nil)
	}
	if c, ok := s.Metrics.(ignores); ok {
		for kind, n := range ignored {
			c.Ignored(litellm.Name, kind, n)
		}
	}
	var refused *call.Partial
	if len(parts) > 0 {
		if err := s.Join.Parts(r.Context(), parts); err != nil && !errors.As(err, &refused) {
			s.Logger.Warn("calls not kept", "format", litellm.Name, "kind", string(audit.KindOf(err)), "calls", len(parts))
			if audit.KindOf(err) == audit.KindOverloaded { // the logger tries again after 5xx (max_retries), never after 429
				err = audit.E("door", audit.KindUnavailable, err)
			}
			return notServed(err, nil)
		}
	}
	answer := struct {
		Accepted int             `json:"accepted"`
		Ignored  litellm.Ignored `json:"ignored,omitempty"`
		Refused  int64           `json:"refused,omitempty"`
		Why      string          `json:"why,omitempty"`
	}{Accepted: len(parts), Ignored: ignored}
	if refused != nil {
		answer.Accepted, answer.Refused, answer.Why = answer.Accepted-int(refused.Refused), refused.Refused, refused.Why
	}
	reply.JSON(w, http.StatusAccepted, answer)
	return nil
}

// ignores is what Metrics may have too: payloads that tell of no call of a model, by a kind of few words.
type ignores interface {
	Ignored(format, kind string, n int)
}
