package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
)

const codeBlocked = "evenhand_blocked"

// settle judges one side as far as it is known, and waits for a person where one must approve. It gives
// what refuses the call, nil when it may go on. ctx is the caller's: the provider's time does not run while a
// person thinks. alive is called while a person is waited for; it may be nil.
func (x *exchange) settle(ctx context.Context, side audit.Side, alive func()) *fault {
	check := guard.Prompt
	if side == audit.Output {
		check = guard.Response
	}
	if !x.opts.looks(check) {
		return nil
	}
	if side == audit.Output && x.answer.opaque {
		return x.blind(x.unreadable())
	}
	j, err := x.decide(ctx, side, check)
	if err != nil {
		if ctx.Err() != nil {
			return gone
		}
		return x.blind("the guard failed: " + string(audit.KindOf(err)))
	}
	if x.judged[sideIndex(side)] = j; slices.ContainsFunc(j.decision.Reasons, func(r guard.Reason) bool { return r == guard.NotAnalysed || r == guard.TextCut }) {
		return x.blind("the guard could not look")
	}
	switch j.decision.Action {
	case guard.Block:
		x.action, x.status, x.failure = string(guard.Block), "blocked", ""
		say := "the response was blocked"
		if side == audit.Input {
			say = "the prompt was blocked"
		}
		if why := j.decision.Err(j.in); why != nil {
			say += ": " + why.Error()
		}
		return &fault{status: http.StatusBadRequest, kind: kindPolicy, code: codeBlocked, say: say, report: x.report()}
	case guard.Gate:
		return x.approve(ctx, j, alive)
	case guard.Warn:
		if x.action == "" || x.action == string(guard.Allow) {
			x.action = string(guard.Warn)
		}
	default:
		if x.action == "" {
			x.action = string(guard.Allow)
		}
	}
	return nil
}

// blind is what holds when nobody could look.
func (x *exchange) blind(why string) *fault {
	if x.g.cfg.Fail == FailClosed && x.opts.stops() {
		x.status, x.failure = "blocked", why
		x.action = unchecked
		x.g.Logger.Warn("a call is refused: nobody could look, and gateway.fail is closed", "interaction_id", x.id.String(), "tenant", x.caller.tenant, "reason", why)
		return &fault{status: http.StatusServiceUnavailable, kind: kindServer, code: "evenhand_unchecked", say: why + ", and gateway.fail is closed", after: time.Second, final: x.lasting(), report: x.report()}
	}
	x.action = unchecked
	x.g.Logger.Warn("a call passes unchecked", "interaction_id", x.id.String(), "tenant", x.caller.tenant, "reason", why)
	return nil
}

// decide asks the guard; a panic of it is an error.
func (x *exchange) decide(ctx context.Context, side audit.Side, check guard.Check) (j *judged, err error) {
	defer func() {
		if p := recover(); p != nil {
			x.g.Logger.Error("the guard panicked", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			err = audit.E("gateway: guard", audit.KindInternal, errors.New("panic"))
		}
	}()
	part := x.part()
	if side == audit.Input {
		part.Answers = nil
	}
	in, err := x.interaction(part)
	if err != nil { // of a shape that events do not have: its plain texts then
		plain := call.Flatten(*part, math.MaxInt)
		if in, err = x.interaction(&plain); err != nil {
			return nil, err
		}
	}
	o := x.opts.Options
	o.Check, o.RulesOnly, o.CheckedOnly = check, x.partly, true
	d, err := x.g.Guard.Decide(ctx, in, o)
	if err != nil {
		return nil, err
	}
	return &judged{d, in}, nil
}

// interaction gives the call as the record will have it, its texts whole.
func (x *exchange) interaction(p *call.Part) (*audit.Interaction, error) {
	value, err := p.Event(x.caller.tenant)
	if err != nil {
		return nil, audit.E("gateway: judge", audit.KindInvalid, errors.New("no JSON"))
	}
	_, in, faults := x.g.judge.Prepare(value, ingest.Sender{Tenant: x.caller.tenant, Traceparent: x.parent, Now: x.g.Now()})
	if len(faults) > 0 {
		return nil, audit.E("gateway: judge", audit.KindInvalid, errors.New(faults[0].Code))
	}
	return in, nil
}

// approval is what a person said yes to: this match of this rule, and nothing else. Where it stands does not matter: while a stream grows,
// what is said comes to stand before what the model thought and asks its tools.
type approval struct {
	rule string
	side audit.Side
	text string // [text]
}

// matches are what a decision asks a person about, with how often each is there.
func (j *judged) matches() map[approval]int {
	all := map[approval]int{}
	for _, m := range j.decision.Request(j.in, "", time.Time{}).Matches {
		all[approval{m.Rule.ID, m.Side, m.Text}]++
	}
	return all
}

// approve opens a gate for what no person has approved yet, and waits. The windows of a stream are judged with all that came before them:
// what a person has seen is not asked about again.
func (x *exchange) approve(ctx context.Context, j *judged, alive func()) *fault {
	x.action = string(guard.Gate)
	matches := j.matches()
	fresh := false
	for m, n := range matches {
		fresh = fresh || n > x.approved[m]
	}
	if !fresh {
		return nil
	}
	began := x.g.Now()
	d, err := guard.NobodyToAsk, error(nil)
	if x.g.Gates != nil {
		d, err = x.ask(ctx, j, alive)
	}
	x.paused += x.g.Now().Sub(began)
	switch {
	case err != nil && ctx.Err() != nil:
		return gone
	case err != nil && x.g.stopping.Err() != nil:
		x.status, x.failure = "blocked", "the gateway was stopped while a person was asked"
		return stopped
	case errors.Is(err, context.DeadlineExceeded):
		d = guard.GateDecision{Reason: guard.Timeout, Detail: "nobody decided within gateway.gate_wait"}
	case err != nil: // a gate never fails open
		x.status, x.failure = "blocked", "the gate failed: "+string(audit.KindOf(err))
		return &fault{status: http.StatusServiceUnavailable, kind: kindServer, code: "evenhand_gate_failed", say: "this wants a person's approval, and nobody can be asked at the moment", after: 5 * time.Second, report: x.report()}
	}
	j.decision.Decided(d)
	if d.Approved {
		for m, n := range matches {
			x.approved[m] = max(n, x.approved[m])
		}
		return nil
	}
	x.status, x.failure, x.refusal = "blocked", "", d.Reason
	f := &fault{status: http.StatusForbidden, kind: kindPermission, code: "evenhand_gate_denied", say: j.decision.Err(j.in).Error(), report: x.report()}
	if d.Reason == guard.Timeout {
		f.code = "evenhand_gate_timeout"
	}
	return f
}

// ask opens a gate and waits for its decision, at most as long as the settings say.
func (x *exchange) ask(ctx context.Context, j *judged, alive func()) (guard.GateDecision, error) {
	ctx, release := x.g.bound(ctx)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, x.g.cfg.GateWait)
	defer cancel()
	request := j.decision.Request(j.in, x.kind.method(), x.g.Now())
	request.Requester = x.caller.subject
	id, err := x.g.Gates.Open(ctx, request)
	if err != nil {
		return guard.GateDecision{}, err
	}
	x.gate = id
	x.stepOut()
	return x.await(ctx, id, alive)
}

// await waits for a decision and keeps the connection alive.
func (x *exchange) await(ctx context.Context, id audit.ID, alive func()) (guard.GateDecision, error) {
	defer x.keep(alive)()
	return x.g.Gates.Wait(ctx, id)
}

// keep calls alive from time to time until stop, which may be called twice; alive may be nil.
func (x *exchange) keep(alive func()) (stop func()) {
	if alive == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(x.g.cfg.KeepAlive)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				alive()
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}

func sideIndex(s audit.Side) int {
	if s == audit.Input {
		return 0
	}
	return 1
}
