package gates

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
)

// Answer is what somebody says to a gate.
type Answer struct {
	Approve bool
	Note    string // words of the person, at most 2,000 characters
}

const maxNote = 2000 // characters

// CallbackSubject signs answers of a process's own callback.
const CallbackSubject = "callback"

// Decide answers a gate of the caller's tenant and gives the answer that holds: this one, or that of whoever
// was first, the timeout included; mine tells which. A repeated answer is the same answer.
func (s *Service) Decide(ctx context.Context, id audit.ID, by *auth.Principal, a Answer) (g *audit.HumanGate, mine bool, err error) {
	const op = "gates: decide"
	if by == nil || !by.Can(auth.Approve) {
		return nil, false, audit.E(op, audit.KindInvalid, ErrNoPermission)
	}
	if utf8.RuneCountInString(a.Note) > maxNote || !utf8.ValidString(a.Note) {
		return nil, false, audit.E(op, audit.KindInvalid, fmt.Errorf("note: has more than %d characters, or is not UTF-8", maxNote))
	}
	was, err := s.Reader.WithTenant(by.Tenant).Gate(ctx, id)
	if err != nil {
		return nil, false, err
	}
	if own(was, by) {
		return nil, false, audit.E(op, audit.KindInvalid, ErrOwn)
	}
	g, err = s.answer(ctx, was, by.Subject, a)
	if err != nil {
		return nil, false, err
	}
	return g, g.By == by.Subject && g.State == state(a), nil
}

// own tells whether the caller asked for what is to be approved. Anonymous callers and the static key name
// nobody.
func own(g *audit.HumanGate, by *auth.Principal) bool {
	return by.Named() && (by.Subject == g.Requester || by.Subject == g.User)
}

func state(a Answer) audit.GateState {
	if a.Approve {
		return audit.GateApproved
	}
	return audit.GateDenied
}

// answer has an answer decided. Words are stored before it is proposed, under the proposal's id, so that the
// winner's are never lacking; what was decided before costs no words.
func (s *Service) answer(ctx context.Context, g *audit.HumanGate, by string, a Answer) (*audit.HumanGate, error) {
	now, err := s.look(ctx, g)
	if err != nil {
		return nil, err
	}
	if now.State != audit.GateOpen {
		s.mend(ctx, now)
		return now, nil
	}
	if !s.Now().Before(g.Expires) { // too late, whoever comes first
		return s.settle(ctx, g, audit.ID{}, said{State: audit.GateTimeout})
	}
	id := audit.NewID(s.Now())
	if a.Note != "" {
		if err := s.Rows.GateNote(ctx, g, id, a.Note); err != nil {
			return nil, err
		}
	}
	return s.settle(ctx, g, id, said{Approved: a.Approve, State: state(a), By: by, Note: a.Note != ""})
}

// settle proposes an answer and gives the gate as the one that holds leaves it. Once it is decided that is the
// answer, whether or not its row could be written: the sweep writes it again.
func (s *Service) settle(ctx context.Context, g *audit.HumanGate, id audit.ID, v said) (*audit.HumanGate, error) {
	if id.IsZero() {
		id = audit.NewID(s.Now())
	}
	d, err := s.propose(ctx, g, id, v)
	if err != nil {
		return nil, err
	}
	out, err := s.worded(ctx, g, &d)
	if err != nil {
		return nil, err
	}
	s.mend(ctx, out)
	s.news.tell()
	if d.Proposal == id {
		s.Observer.Gate(string(out.State))
		s.announce(out) //nolint:contextcheck // it outlives the caller
	}
	return out, nil
}

// mend writes the row of a decided gate; where that fails, the sweep will.
func (s *Service) mend(ctx context.Context, g *audit.HumanGate) {
	if err := s.write(ctx, g); err != nil {
		s.Logger.Warn("a gate's answer is not in the store yet", "gate", g.ID.String(), "kind", string(audit.KindOf(err)))
	}
}

// write stores the row of a decided gate, which is the same whoever writes it. It does not end with the caller.
func (s *Service) write(ctx context.Context, g *audit.HumanGate) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return s.Rows.Gate(ctx, g)
}

// Refusal tells a fault of who answers from others.
func Refusal(err error) bool { return errors.Is(err, ErrOwn) || errors.Is(err, ErrNoPermission) }
