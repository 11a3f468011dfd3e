package gates

import (
	"context"
	"encoding/json"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
)

// Events that announcements and the stream name.
const (
	EventOpened  = "gate.opened"
	EventDecided = "gate.decided"
)

// Announcement is the body of a webhook's request.
type Announcement struct {
	Type string `json:"type"`
	Gate Gate   `json:"gate"`
	// Path answers the gate: POST {decision: approve | deny, note} there, with a credential of its tenant that
	// has the permission approve.
	Path string `json:"decisionPath,omitempty"`
}

const (
	// maxAnnouncing bounds announcements under way; more are not made, which an operator is told.
	maxAnnouncing = 256
	// tellFor is how long it is tried to tell a decision; an opening until the gate's deadline.
	tellFor = 10 * time.Minute
)

// EventOf names what happened last to a gate.
func EventOf(g *audit.HumanGate) string {
	if g.State == audit.GateOpen {
		return EventOpened
	}
	return EventDecided
}

// announce has the announcer told, until it has taken it, refused it for good, or it is too late. The delivery's
// id is the same for every attempt and process.
func (s *Service) announce(g *audit.HumanGate) {
	if s.Announcer == nil || s.stop.Err() != nil {
		return
	}
	event, until := EventOf(g), g.Expires
	a := Announcement{Type: event, Gate: Show(g, s.cfg.AnnounceTexts)}
	if event == EventOpened {
		a.Path = "/v1/gates/" + g.ID.String() + "/decision"
	} else {
		until = s.Now().Add(tellFor)
	}
	body, err := json.Marshal(a)
	if err != nil {
		s.Logger.Error("a gate cannot be announced", "gate", g.ID.String())
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		s.Observer.Gate("unannounced")
		s.Logger.Warn("a gate is not announced: too many announcements wait for their receiver", "gate", g.ID.String(), "event", event)
		return
	}
	id := g.ID
	s.asking.Go(func() {
		defer func() { <-s.slots }()
		ctx, cancel := context.WithTimeout(s.stop, until.Sub(s.Now()))
		defer cancel()
		s.tell(ctx, audit.DeriveID("gate", id.String(), event), id, event, body)
	})
}

// tell tries until it is taken, refused, or ctx ends.
func (s *Service) tell(ctx context.Context, delivery, gate audit.ID, event string, body []byte) {
	for fails := 1; ; fails++ {
		_, err := s.Announcer.Post(ctx, delivery, event, body)
		if err == nil || s.stop.Err() != nil {
			return
		}
		if audit.KindOf(err) == audit.KindInvalid || !wait.For(ctx, pause(fails)) {
			s.Observer.Gate("unannounced")
			s.Logger.Warn("a gate could not be announced", "gate", gate.String(), "event", event, "attempts", fails, "error", err.Error())
			return
		}
	}
}

// pause is half a second, doubled with each failure up to half a minute, less a random part.
func pause(fails int) time.Duration {
	if fails <= 3 {
		return wait.Backoff(500*time.Millisecond, fails)
	}
	d := min(time.Second<<min(fails-2, 5), 30*time.Second)
	return d - d/4 + wait.Backoff(d/4, 1)
}
