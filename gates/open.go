package gates

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Open implements [Gates]. The gate is stored when it returns.
func (s *Service) Open(ctx context.Context, r Request) (audit.ID, error) {
	g, all, err := r.gate(s.cfg, s.Now())
	if err != nil {
		return audit.ID{}, err
	}
	if !r.ID.IsZero() {
		switch was, err := s.Store.Gate(ctx, r.ID); {
		case err == nil && was.Tenant == r.Tenant:
			if !all && was.State == audit.GateOpen { // what ended it at once was broken off
				_, err = s.settle(ctx, was, audit.ID{}, said{State: audit.GateDenied, Cause: causeTooMany})
			}
			return was.ID, err
		case err == nil:
			return audit.ID{}, audit.E("gates: open", audit.KindInvalid, errors.New("id: belongs to another gate"))
		case !errors.Is(err, ErrUnknown):
			return audit.ID{}, err
		}
	}
	if err := s.Rows.Gate(ctx, g); err != nil {
		return audit.ID{}, err
	}
	s.Observer.Gate("opened")
	var why string
	switch {
	case !s.asks():
		why = causeNobody
	case !all:
		why = causeTooMany
	}
	if why != "" {
		_, err := s.settle(ctx, g, audit.ID{}, said{State: audit.GateDenied, Cause: why})
		return g.ID, err
	}
	s.news.tell()
	s.announce(g) //nolint:contextcheck // it outlives the caller
	s.callback(g) //nolint:contextcheck // the same
	return g.ID, nil
}

// answerFor bounds how long a callback's answer takes to be decided.
const answerFor = 10 * time.Second

// callback has the process's own code asked.
func (s *Service) callback(g *audit.HumanGate) {
	if s.Callback == nil || s.stop.Err() != nil {
		return
	}
	s.asking.Go(func() {
		ctx, cancel := context.WithDeadline(s.stop, g.Expires)
		defer cancel()
		a, err := s.called(ctx, g)
		if err == nil { // what was answered is not lost by a process that stops
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerFor)
			defer cancel()
			_, err = s.answer(ctx, g, CallbackSubject, a)
		}
		if err != nil && s.stop.Err() == nil {
			s.Logger.Warn("a gate's callback gave no answer", "gate", g.ID.String(), "kind", string(audit.KindOf(err)))
		}
	})
}

// called turns a callback's panic into an error; the panic's value may hold text of people.
func (s *Service) called(ctx context.Context, g *audit.HumanGate) (a Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = audit.E("gates: callback", audit.KindInternal, fmt.Errorf("it panicked with a %T", p))
		}
	}()
	return s.Callback(ctx, Show(g, true))
}
