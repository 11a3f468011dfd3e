package remediation

import (
	"context"
	"errors"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/breaches"
	"github.com/evenhand/evenhand/sinks"
)

// Follow says what comes next for a breach whose issue stands as is; ok is false when nothing does. A
// breach that is open is mitigated when its issue was closed; one that is mitigated is open again when
// a person opened the issue again. A closing from before the breach returned says nothing: our own
// reopening of the issue is still under way then.
func Follow(history []audit.Breach, is sinks.IssueState) (next audit.Breach, ok bool) {
	last := len(history) - 1
	next = history[last]
	next.Seq++
	next.Changed, next.By, next.Confirmed = time.Time{}, "", time.Time{} // the webhook says who, the issue does not
	switch {
	case next.State == audit.BreachOpen && is.Closed != "":
		opened := last
		for opened > 0 && history[opened-1].State == audit.BreachOpen {
			opened--
		}
		if opened > 0 && !is.ClosedAt.After(history[opened].Changed) {
			return next, false
		}
		next.State, next.Reason = audit.BreachMitigated, is.Closed
		return next, true
	case next.State == audit.BreachMitigated && is.Closed == "":
		next.State, next.Reason = audit.BreachOpen, ReasonReopened
		return next, true
	}
	return next, false
}

// propose puts the transition to the arbiter and writes the row of what was decided; won tells whether
// it was this one.
func (s *Service) propose(ctx context.Context, log Decisions, b *audit.Breach) (won bool, err error) {
	decided, err := breaches.Propose(ctx, log, b)
	var refused *arbiter.Refused
	if errors.As(err, &refused) {
		return false, nil
	}
	if err == nil {
		err = breaches.Write(ctx, s.outbox.conn, s.outbox.db, decided)
	}
	return err == nil && decided.State == b.State && decided.Reason == b.Reason, err
}
