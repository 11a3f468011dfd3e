package client

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/safety"
	"github.com/evenhand/evenhand/guard"
)

// Decider says what to do with an answer: [InProcess] and [Remote] are the two there are.
type Decider interface {
	// check refuses options that cannot work with it.
	check(o *Options) error
	// decide judges the response of an event. stop is the error of a block. A failure is none of the answer's.
	decide(ctx context.Context, e *Event, o *Options, ask asker) (a guard.Answer, stop, err error)
}

// asker asks a person; its error is that of the call's context.
type asker func(ctx context.Context, d *guard.Decision, in *audit.Interaction) (guard.GateDecision, error)

// InProcess judges by rules in the process: nothing leaves it, and no model is asked.
type InProcess struct{ guard *guard.Guard }

// InProcessOptions configure rules in the process. The zero value works.
type InProcessOptions struct {
	// Detectors replace the shipped rules of bias, safety and gate, and may be exchanged while they work.
	Detectors *detectors.Current
	// Logger gets the findings of SafetyMode log, without any text; nil logs nothing.
	Logger *slog.Logger
}

// NewInProcess compiles the shipped rules, once in a process: about 2.5 s of a core, and 180 MB that stay. Do it at the
// start, not with the first call.
func NewInProcess(o InProcessOptions) (*InProcess, error) {
	if o.Detectors == nil {
		a, err := shipped()
		if err != nil {
			return nil, audit.E("client: new in process", audit.KindInternal, err)
		}
		o.Detectors = detectors.NewCurrent(a)
	}
	return &InProcess{guard.New(o.Detectors, guard.Config{Logger: o.Logger})}, nil
}

// shipped are the rules that decide; what only records (terms, wording, the classifier) is the server's.
var shipped = sync.OnceValues(func() (*detectors.Analyzer, error) {
	packs := map[string][]*rules.Pack{}
	for name, fsys := range map[string]fs.FS{"bias": bias.Packs(), "safety": safety.Packs()} {
		ps, err := rules.Load(fsys)
		if err != nil {
			return nil, err
		}
		packs[name] = ps
	}
	b, err := bias.New(packs["bias"])
	if err != nil {
		return nil, err
	}
	s, err := safety.New(packs["safety"])
	if err != nil {
		return nil, err
	}
	g, err := gate.New(nil, nil)
	if err != nil {
		return nil, err
	}
	a, err := detectors.NewAnalyzer(detectors.DefaultPolicy(), b, s, g)
	if err == nil {
		a.Warm()
	}
	return a, err
})

// check compiles the caller's gate rules, so that a bad one is found before the first call.
func (p *InProcess) check(o *Options) error {
	_, err := p.guard.Decide(context.Background(), &audit.Interaction{Domain: audit.General, Response: "-"}, o.guard())
	return err
}

func (p *InProcess) decide(ctx context.Context, e *Event, o *Options, ask asker) (a guard.Answer, stop, err error) {
	began := time.Now()
	in := e.interaction()
	g := o.guard()
	g.Domain = in.Domain // which Describe may have chosen
	d, err := p.guard.Decide(ctx, in, g)
	if err != nil {
		return a, nil, err
	}
	took := time.Since(began)
	if d.Action == guard.Gate {
		decision, err := ask(ctx, d, in)
		if err != nil {
			return a, nil, err
		}
		d.Decided(decision)
	}
	a = d.Answer(in, audit.ID{}, false, took)
	return a, errorOf(&a), nil
}

// interaction gives what is judged of an event: the response, by itself, as the record's detectors read it.
func (e *Event) interaction() *audit.Interaction {
	in := &audit.Interaction{
		Tenant: e.Tenant, Time: e.Timestamp, TraceID: e.TraceID, SpanID: e.SpanID, Domain: audit.Domain(e.Domain), UserID: e.UserID,
		Application: e.Application, Conversation: e.Conversation, Provider: e.Provider, Model: e.Model, Response: e.Response, Status: Success,
	}
	if !in.Domain.Known() {
		in.Domain = audit.General
	}
	var err error
	if in.ID, err = audit.ParseID(e.ID); err != nil {
		in.ID = audit.DeriveID(e.Tenant, e.ID)
	}
	return in
}

// asker makes the call of OnGateTriggered.
func (o *Options) asker(method string) asker {
	return func(ctx context.Context, d *guard.Decision, in *audit.Interaction) (guard.GateDecision, error) {
		if o.OnGateTriggered == nil {
			return guard.NobodyToAsk, nil
		}
		short, cancel := context.WithTimeout(ctx, o.HITLGateTimeout)
		defer cancel()
		request := d.Request(in, method, time.Now())
		answered := make(chan GateDecision, 1) // a callback that does not heed its context is left behind
		go func() { answered <- o.person(short, request) }()
		select {
		case a := <-answered:
			if ctx.Err() == nil {
				return a, nil
			}
		case <-short.Done():
		}
		if err := ctx.Err(); err != nil {
			return GateDecision{}, err
		}
		return GateDecision{Reason: guard.Timeout, Detail: "nobody decided within " + o.HITLGateTimeout.String()}, nil
	}
}

// person gives the callback's decision in our words: a code as the reason, the operator's words beside it.
func (o *Options) person(ctx context.Context, r GateRequest) (d GateDecision) {
	defer func() {
		if p := recover(); p != nil {
			d = GateDecision{Reason: guard.Denied, Detail: fmt.Sprintf("OnGateTriggered panicked (%T)", p)}
		}
	}()
	d, err := o.OnGateTriggered(ctx, r)
	switch {
	case err != nil && ctx.Err() != nil:
		return GateDecision{Reason: guard.Timeout}
	case err != nil:
		return GateDecision{Reason: guard.Denied, Detail: "OnGateTriggered failed"}
	case d.Approved || d.Reason == guard.Timeout || d.Reason == guard.Denied:
		return d
	case d.Detail == "":
		d.Detail = d.Reason
	}
	d.Reason = guard.Denied
	return d
}
