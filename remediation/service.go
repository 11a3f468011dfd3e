package remediation

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/breaches"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sinks"
)

// Decisions is the part of an arbiter that settles what people did to a breach.
type Decisions interface {
	breaches.Proposer
	History(ctx context.Context, key arbiter.Key) ([]arbiter.Decision, error)
}

// Service derives and sends tickets. It is safe for concurrent use.
type Service struct {
	opt     Options
	outbox  *Outbox
	pub     Publisher
	targets map[string]Target

	mu     sync.Mutex
	rest   map[string]resting   // by target
	polled map[string]time.Time // by target: when it was asked last how issues stand
}

// resting is how a tracker is left alone after it failed.
type resting struct {
	until time.Time
	fails int
}

// New builds a service; a fault of a policy is of KindInvalid.
func New(outbox *Outbox, pub Publisher, opt Options, targets ...Target) (*Service, error) {
	if opt.Observer == nil {
		opt.Observer = silent{}
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	s := &Service{opt: opt, outbox: outbox, pub: pub, targets: map[string]Target{}, rest: map[string]resting{}, polled: map[string]time.Time{}}
	for _, t := range targets {
		if err := t.Policy.Validate(); err != nil {
			return nil, audit.E("remediation: new", audit.KindInvalid, err)
		}
		s.targets[t.Tracker.Name()] = t
	}
	return s, nil
}

// undelivered is the error of a ticket that was not sent.
type undelivered struct {
	entry Entry
	err   error
}

func (u *undelivered) Error() string { return u.err.Error() }
func (u *undelivered) Unwrap() error { return u.err }

// deliver sends what a group has to send, in order, up to the first that is not due or fails. It may
// be called again at any time, and by two processes at once.
func (s *Service) deliver(ctx context.Context, g group) error {
	target, known := s.targets[g.Target]
	if !known || s.rests(g.Target) {
		return nil // the sweep comes again, here or where the tracker is set up
	}
	list, err := s.outbox.of(ctx, g)
	if err != nil {
		return err
	}
	if len(list) == 0 || list[0].Action != sinks.OpenIssue {
		return nil
	}
	for i := range list {
		e := &list[i]
		switch {
		case e.State == Sent:
			continue
		case e.State == Dead && e.Action == sinks.OpenIssue:
			return nil // nothing can be said about an issue that is not there
		case e.State == Dead:
			continue
		case e.Next.After(s.opt.Now()):
			return nil
		}
		r, err := target.Tracker.Send(ctx, &e.Ticket)
		if err != nil {
			s.opt.Observer.Ticket(g.Target, string(e.Action), string(audit.KindOf(err)))
			return &undelivered{*e, err}
		}
		s.opt.Observer.Ticket(g.Target, string(e.Action), string(Sent))
		s.restored(g.Target)
		e.State, e.RemoteID, e.Key, e.Link, e.SentAt = Sent, r.RemoteID, r.Key, r.URL, s.opt.Now()
		e.Class, e.Detail = "", ""
		e.Attempts++
		e.version = sentVersion + e.version
		if err := s.outbox.write(ctx, *e); err != nil {
			return err
		}
	}
	return nil
}

// postpone notes a failed attempt that may succeed later, and leaves the tracker alone for a while.
func (s *Service) postpone(ctx context.Context, u *undelivered) error {
	e, now := u.entry, s.opt.Now()
	after := sinks.RetryAfter(u.err)
	s.failed(e.Target, after)
	e.Attempts++
	e.version++
	back := min(s.opt.RetryMin<<min(e.Attempts-1, 16), s.opt.RetryMax)
	back -= time.Duration(rand.Int64N(int64(back)/4 + 1))
	e.Next = now.Add(max(after, back))
	e.Class, e.Detail = string(audit.KindOf(u.err)), cut(u.err)
	s.opt.Logger.Warn("a ticket was not sent and is tried again", "target", e.Target, "ticket", e.ID.String(), "action", string(e.Action),
		"attempts", e.Attempts, "next", e.Next, "error", e.Detail)
	return s.outbox.write(ctx, e)
}

// bury marks the group's next ticket dead: it is the one that failed, for tickets are sent in order.
// What comes after it is published again.
func (s *Service) bury(ctx context.Context, g group, why string) error {
	list, err := s.outbox.of(ctx, g)
	if err != nil {
		return err
	}
	for i := range list {
		e := &list[i]
		if e.State != Pending {
			continue
		}
		e.State, e.Class, e.Detail = Dead, string(audit.KindInvalid), why
		e.Attempts++
		e.version++
		s.opt.Logger.Error("a tracker will not take a ticket; 'evenhand tickets retry' sends it again", "target", e.Target, "ticket", e.ID.String(),
			"action", string(e.Action), "error", why)
		if err := s.outbox.write(ctx, *e); err != nil {
			return err
		}
		return s.publish(note{Tenant: g.Tenant, Breach: g.Breach, Target: g.Target})
	}
	return nil
}

// cut is an error's text, bounded. Trackers are never sent texts of people, so they have none to quote.
func cut(err error) string {
	s := err.Error()
	if r := []rune(s); len(r) > 300 {
		s = string(r[:299]) + "…"
	}
	return s
}

func (s *Service) publish(notes ...note) error {
	messages := make([]*message.Message, len(notes))
	for i := range notes {
		var err error
		if messages[i], err = notes[i].message(); err != nil {
			return err
		}
	}
	return s.pub.Publish(kafkaconn.Remediation, messages...)
}

// firstRest is how long a tracker is left alone after it failed once.
const firstRest = time.Second

// rests tells whether a tracker is to be left alone now.
func (s *Service) rests(target string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rest[target].until.After(s.opt.Now())
}

func (s *Service) failed(target string, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rest[target]
	r.fails++
	r.until = s.opt.Now().Add(max(after, min(firstRest<<min(r.fails-1, 10), s.opt.RestMax)))
	s.rest[target] = r
}

func (s *Service) restored(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rest, target)
}

// Outcome counts what a sweep did.
type Outcome struct {
	Derived   int       // tickets written
	Published int       // groups with something to send
	Moved     int       // issues that people closed or opened again, as the trackers tell when asked
	Figures   Figures   // of the trackers that are set up
	Through   time.Time // up to where breaches were looked at, by the store's clock
}

const (
	overlap  = 15 * time.Minute // rows that became visible late are looked at again
	mostDue  = 500              // groups that one sweep publishes
	oneWrite = 500              // tickets of one insert
)

// Sweep writes the tickets that breaches lack, publishes what is due, and looks from time to time at the issues of
// breaches that are not over. from is the Through of the last sweep, zero for the first.
func (s *Service) Sweep(ctx context.Context, from time.Time) (out Outcome, err error) {
	now, err := s.outbox.storeNow(ctx)
	if err != nil {
		return out, err
	}
	if !from.IsZero() {
		from = from.Add(-overlap)
	}
	histories, known, err := s.outbox.histories(ctx, from, now)
	if err != nil {
		return out, err
	}
	var fresh []Entry
	for _, h := range histories {
		if fresh = append(fresh, s.lacking(h, known)...); len(fresh) >= oneWrite {
			if err := s.outbox.write(ctx, fresh...); err != nil {
				return out, err
			}
			out.Derived, fresh = out.Derived+len(fresh), nil
		}
	}
	if err := s.outbox.write(ctx, fresh...); err != nil {
		return out, err
	}
	out.Derived += len(fresh)
	out.Through = now
	targets := slices.Sorted(maps.Keys(s.targets))
	due, err := s.outbox.due(ctx, s.opt.Now(), targets, mostDue)
	if err != nil {
		return out, err
	}
	notes := make([]note, len(due))
	for i, g := range due {
		notes[i] = note{Tenant: g.Tenant, Breach: g.Breach, Target: g.Target}
	}
	if err := s.publish(notes...); err != nil {
		return out, err
	}
	out.Published = len(notes)
	if out.Moved, err = s.poll(ctx); err != nil {
		return out, err
	}
	out.Figures, err = s.outbox.Figures(ctx, targets...)
	return out, err
}

// lacking derives the tickets of a breach that are not in the outbox.
func (s *Service) lacking(history []audit.Breach, known map[audit.ID]bool) (out []Entry) {
	now := s.opt.Now()
	for name, t := range s.targets {
		prev := audit.BreachState("")
		for i := range history {
			for _, ticket := range Derive(name, t.Policy, &history[i], prev) {
				if !known[ticket.ID] {
					out = append(out, Entry{Ticket: ticket, Target: name, State: Pending, Created: now, Next: now, version: 1})
				}
			}
			prev = history[i].State
		}
	}
	return out
}

// errNoReader is about trackers that do not tell how issues stand.
var errNoReader = errors.New("the tracker does not tell how an issue stands")

// settle proposes for a breach what people did with its issue. Who did it is known if the issue stands as the note says.
func (s *Service) settle(ctx context.Context, a Decisions, n *note) error {
	target, issue := n.Target, n.Issue
	t, known := s.targets[target]
	if !known {
		return nil
	}
	reader, ok := t.Tracker.(sinks.IssueReader)
	if !ok {
		return audit.E("remediation: settle", audit.KindInvalid, errNoReader)
	}
	list, err := s.outbox.List(ctx, Filter{Ticket: issue, Target: target, Limit: 1})
	if err != nil || len(list) == 0 || list[0].Action != sinks.OpenIssue {
		return err // not an issue of ours
	}
	key := arbiter.Key{Kind: breaches.Kind, ID: list[0].Breach.String()}
	for range 5 { // another process may decide in between: then it is looked at again
		decided, err := a.History(ctx, key)
		if err != nil || len(decided) == 0 {
			return err
		}
		history := make([]audit.Breach, len(decided))
		for i := range decided {
			if history[i], err = breaches.Of(&decided[i]); err != nil {
				return err
			}
		}
		is, err := reader.Issue(ctx, issue)
		if err != nil {
			return err
		}
		next, ok := Follow(history, is)
		if !ok {
			return nil
		}
		if n.Closed == (is.Closed != "") {
			next.By = n.By
		}
		won, err := s.propose(ctx, a, &next)
		if err != nil || won {
			return err
		}
	}
	return audit.E("remediation: settle", audit.KindUnavailable, errors.New("others decide faster"))
}
