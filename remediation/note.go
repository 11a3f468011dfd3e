package remediation

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/bus"
)

// note is a message's payload: look at the tickets of a breach, or at an issue. It only points at what
// the tables and the tracker know, so a late or doubled one does no harm.
type note struct {
	Tenant string   `json:"tenant_id,omitempty"`
	Breach audit.ID `json:"breach_id,omitzero"`
	Target string   `json:"target"`
	Issue  audit.ID `json:"issue,omitzero"`   // by our id: somebody changed it
	By     string   `json:"by,omitempty"`     // who moved the issue to another state, where that is known
	Closed bool     `json:"closed,omitempty"` // that state is a closed one
}

func (n *note) group() group { return group{n.Tenant, n.Breach, n.Target} }

// message puts a note under its key: notes of a breach, and those of an issue, keep their order.
func (n *note) message() (*message.Message, error) {
	payload, err := json.Marshal(n)
	if err != nil {
		return nil, audit.E("remediation: note", audit.KindInternal, err)
	}
	m := message.NewMessage(audit.NewID(time.Now()).String(), payload)
	key := n.Breach
	if !n.Issue.IsZero() {
		key = n.Issue
	}
	m.Metadata.Set(bus.MetadataKey, key.String())
	middleware.SetCorrelationID(key.String(), m)
	return m, nil
}

// errForeign is about messages that are not ours.
var errForeign = errors.New("not a note of remediation")

// readNote reads a message's payload; anything that is not a note is KindInvalid.
func readNote(payload []byte) (n note, err error) {
	if err := json.Unmarshal(payload, &n); err != nil {
		return n, audit.E("remediation: read note", audit.KindInvalid, fmt.Errorf("%w: it is no JSON of its form", errForeign))
	}
	if n.Target == "" || n.Issue.IsZero() && (n.Breach.IsZero() || n.Tenant == "") {
		return n, audit.E("remediation: read note", audit.KindInvalid, errForeign)
	}
	return n, nil
}
