// Package gates asks people about critical actions and waits for their answer (seed 001, AI Act Art. 14):
// the human gate.
//
// A gate is opened for what the gate's rules matched in a text. A caller with the permission approve, or a
// callback of this process, approves or denies it; when nobody has by its deadline, 5 minutes later unless the
// caller says otherwise, it is denied. Where nobody is set up to be asked it is denied at once. Whoever could
// not learn the answer (an error) must take it for a denial.
//
// How a gate was answered is the first record of kind gate on evenhand.decisions ([arbiter.Once]): approve,
// deny and timeout race, and everybody who asks gets the same answer, in every process and after restarts.
// Rows in the store follow from it: they are written by whoever decides and by [Service.Sweep], which also
// ends gates that nobody waits for. Deadlines are read off the clock of the process that proposes.
//
// Matched texts and people's words lie with the texts of the interaction and go with them; errors, logs and
// the log of decisions hold none. Cost: opening is two inserts, an answer one decision and one or two inserts.
// Errors: KindInvalid for faults of the caller, wrapping [ErrUnknown], [ErrOwn] or [ErrNoPermission] where that
// is what they are; KindUnavailable while store or broker are away, and when the caller's context ends.
package gates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/store"
)

// Kind is the kind of the decisions; its rule is arbiter.Once.
const Kind = "gate"

// Gates is what opens gates and waits for their answers: *Service.
type Gates interface {
	// Open opens a gate and returns its id.
	Open(ctx context.Context, r Request) (audit.ID, error)
	// Wait waits for a gate's answer, which comes by its deadline at the latest. After ctx has ended, or after a
	// restart, it can be asked again.
	Wait(ctx context.Context, id audit.ID) (Decision, error)
}

var _ Gates = (*Service)(nil)

// Log is the part of an arbiter that is wanted. Watch may end at any time and is asked again.
type Log interface {
	Propose(ctx context.Context, p arbiter.Proposal) (arbiter.Decision, error)
	History(ctx context.Context, key arbiter.Key) ([]arbiter.Decision, error)
	Watch(ctx context.Context, after uint64) iter.Seq2[arbiter.Decision, error]
}

// Rows stores gates; writing one again changes nothing.
type Rows interface {
	Gate(ctx context.Context, g *audit.HumanGate) error
	GateNote(ctx context.Context, g *audit.HumanGate, proposal audit.ID, note string) error
}

// Announcer tells somebody about a gate: a webhook. The same delivery may come again.
type Announcer interface {
	Post(ctx context.Context, delivery audit.ID, event string, body []byte) ([]byte, error)
}

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// Approvers says that people with the permission approve look at open gates. Default false: without them,
	// a webhook or a callback gates are denied at once.
	Approvers bool
	// Timeout is after how long a gate is denied whose caller names no time. Default 5m; 1s..24h.
	Timeout time.Duration
	// AnnounceTexts puts matched texts and the approvers' words into announcements. Default false.
	AnnounceTexts bool
}

// DefaultConfig asks nobody.
func DefaultConfig() Config { return Config{Timeout: 5 * time.Minute} }

// maxTimeout keeps a gate's answer near to the day whose texts it belongs to.
const maxTimeout = 24 * time.Hour

// Validate names keys as an operator writes them.
func (c Config) Validate() error {
	if c.Timeout < time.Second || c.Timeout > maxTimeout {
		return fmt.Errorf("gates.timeout: %v is not in 1s..24h", c.Timeout)
	}
	return nil
}

// Parts are what a Service works with.
type Parts struct {
	Store *store.Store // of all tenants
	// Reader is the store as callers from outside read it. nil: Store.
	Reader *store.Store
	Rows   Rows
	Log    Log
	// Announcer is told of gates that are opened and decided; nil: nobody is.
	Announcer Announcer
	// Callback answers gates of this process (seed 001's onGateTriggered); nil: there is none. An error is
	// counted as no answer: others may still give one.
	Callback func(ctx context.Context, g Gate) (Answer, error)

	Observer Observer // nil counts nothing
	Logger   *slog.Logger
	Now      func() time.Time // nil is time.Now
}

// Observer counts gates; its method must be fast and safe for concurrent use.
type Observer interface {
	// Gate tells what this process did: opened, approved, denied, timeout; or unannounced.
	Gate(outcome string)
}

type silent struct{}

func (silent) Gate(string) {}

// Service opens gates, takes answers and tells them. It is safe for concurrent use by many processes. Run
// must run beside it.
type Service struct {
	Parts
	cfg     Config
	news    signal
	asking  sync.WaitGroup // callbacks and announcements
	stop    context.Context
	closing context.CancelFunc
	slots   chan struct{} // of announcements under way
}

// New makes a service. Close it.
func New(c Config, p Parts) (*Service, error) {
	const op = "gates: new"
	if err := c.Validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if p.Store == nil || p.Rows == nil || p.Log == nil {
		return nil, audit.E(op, audit.KindInternal, errors.New("a part is missing"))
	}
	if p.Reader == nil {
		p.Reader = p.Store
	}
	if p.Observer == nil {
		p.Observer = silent{}
	}
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	s := &Service{Parts: p, cfg: c, slots: make(chan struct{}, maxAnnouncing)}
	s.news.init()
	s.stop, s.closing = context.WithCancel(context.Background())
	return s, nil
}

// Close ends callbacks and announcements and waits for them.
func (s *Service) Close() {
	s.closing()
	s.asking.Wait()
}

// asks tells whether anybody is set up to be asked.
func (s *Service) asks() bool {
	return s.cfg.Approvers || s.Announcer != nil || s.Callback != nil
}

var (
	// ErrUnknown says that the tenant has no such gate. Another tenant's looks the same.
	ErrUnknown = store.ErrNoGate
	// ErrOwn says that somebody tried to answer a gate of their own.
	ErrOwn = errors.New("who asked cannot answer: another person has to")
	// ErrNoPermission says that the caller may not answer gates.
	ErrNoPermission = errors.New("this wants the permission approve")
)

// signal wakes all who wait for news.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

func (s *signal) init() { s.ch = make(chan struct{}) }

// wait gives a channel that is closed at the next news.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ch
}

func (s *signal) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ch)
	s.ch = make(chan struct{})
}

// said is the value of a decision: codes and ids, no words.
type said struct {
	Approved bool            `json:"approved"`
	State    audit.GateState `json:"state"`
	Cause    string          `json:"cause,omitempty"`
	By       string          `json:"by,omitempty"`
	Note     bool            `json:"note,omitempty"` // words lie under the proposal's id
}

// propose has an answer decided: this one, or that of whoever was first.
func (s *Service) propose(ctx context.Context, g *audit.HumanGate, id audit.ID, v said) (arbiter.Decision, error) {
	value, err := json.Marshal(v)
	if err != nil {
		return arbiter.Decision{}, audit.E("gates: decide", audit.KindInternal, err)
	}
	return s.Log.Propose(ctx, arbiter.Proposal{Key: key(g.ID), Seq: 1, Value: value, ID: id})
}

func key(id audit.ID) arbiter.Key { return arbiter.Key{Kind: Kind, ID: id.String()} }

// settled gives the gate as a decision leaves it, without the words.
func settled(g *audit.HumanGate, d *arbiter.Decision) (audit.HumanGate, bool, error) {
	var v said
	if err := json.Unmarshal(d.Value, &v); err != nil || v.State == "" {
		return audit.HumanGate{}, false, audit.E("gates: decision", audit.KindInternal, fmt.Errorf("%s is not readable", d.Key))
	}
	out := *g
	out.State, out.Cause, out.By, out.Decided, out.Proposal, out.Note = v.State, v.Cause, v.By, d.Time.UTC(), d.Proposal, ""
	return out, v.Note, nil
}

// look asks the log how a gate stands now; it gives the gate itself while it is open.
func (s *Service) look(ctx context.Context, g *audit.HumanGate) (*audit.HumanGate, error) {
	ds, err := s.Log.History(ctx, key(g.ID))
	if err != nil {
		return nil, err
	}
	if len(ds) == 0 {
		return g, nil
	}
	return s.worded(ctx, g, &ds[0])
}

// worded is settled with the decider's words.
func (s *Service) worded(ctx context.Context, g *audit.HumanGate, d *arbiter.Decision) (*audit.HumanGate, error) {
	out, words, err := settled(g, d)
	if err == nil && words {
		out.Note, err = s.Store.GateNote(ctx, g, d.Proposal)
	}
	return &out, err
}
