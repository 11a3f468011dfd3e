package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
)

// Stream says how a stream passes.
type Stream string

// The ways of a stream.
const (
	StreamAuto   Stream = "auto"   // as it comes where nothing can be stopped, else held. The default
	StreamHold   Stream = "hold"   // judged as a whole before any of it goes on
	StreamWindow Stream = "window" // whole sentences go on once all so far was judged: what is out cannot be recalled
)

// Options are what seeds 000 and 001 let an application choose, by their names, and how a Transport works. Start from
// DefaultOptions: the zero value is not meant to be used.
type Options struct {
	Domain        audit.Domain // sets threshold and multipliers; "" is general. "domain"
	BiasThreshold *audit.Score // 0..1, lower is stricter; nil is the domain's. "biasThreshold"
	BiasAction    audit.Action // audit.Warn or audit.Block. Default warn. "biasAction"

	SafetyFilter    bool         // Default false. "safetyFilter"
	SafetyMode      audit.Action // audit.Block, Warn or Log. Default block. "safetyMode"
	SafetyThreshold audit.Score  // 0..1. Default 0.5. "safetyThreshold"

	HITLGate           bool          // Default false. "hitlGate"
	HITLGateRules      []GateRule    // replace the built-in rules. "hitlGateRules"
	HITLGateExtraRules []GateRule    // are added. "hitlGateExtraRules"
	HITLGateTimeout    time.Duration // nobody answered: denied. Default 5 minutes. "hitlGateTimeoutMs"
	// OnGateTriggered asks a person; ctx ends with the call or the timeout. An error is a denial; nil denies at once. With
	// [Remote] it must be nil: people are asked by the server. "onGateTriggered"
	OnGateTriggered func(ctx context.Context, r GateRequest) (GateDecision, error)

	Stream      Stream // Default auto
	WindowBytes int    // of text that a window has at least. Default 400
	// BodyBytes is how much of a request and of an answer is looked at. What is larger passes unread where nothing could
	// have been stopped or FailOpen is set, and is counted. Default 16 MiB.
	BodyBytes int64
	// FailOpen lets pass what could not be judged though it might have been stopped. A gate never fails open. Default false.
	FailOpen bool

	// Emitter gets an event of each call; nil makes none. Calls that a [Remote] has judged are on record there already.
	Emitter *Emitter
	// Describe may fill in what the call does not tell (user, conversation, application) before it is judged.
	Describe func(r *http.Request, e *Event)
	Provider string // "" is made of the host
	Logger   *slog.Logger
}

// DefaultOptions gives the defaults of seeds 000 and 001: everything is recorded and nothing is stopped.
func DefaultOptions() Options {
	d := guard.DefaultOptions()
	return Options{
		BiasAction: d.BiasAction, SafetyMode: d.SafetyMode, SafetyThreshold: d.SafetyThreshold, HITLGateTimeout: d.HITLGateTimeout,
		Stream: StreamAuto, WindowBytes: 400, BodyBytes: 16 << 20,
	}
}

// guard gives the options as package guard has them.
func (o *Options) guard() guard.Options {
	return guard.Options{
		Domain: o.Domain, BiasThreshold: o.BiasThreshold, BiasAction: o.BiasAction,
		SafetyFilter: o.SafetyFilter, SafetyMode: o.SafetyMode, SafetyThreshold: o.SafetyThreshold,
		HITLGate: o.HITLGate, HITLGateRules: o.HITLGateRules, HITLGateExtraRules: o.HITLGateExtraRules, HITLGateTimeout: o.HITLGateTimeout,
		Check: guard.Response,
	}
}

// stops tells whether an answer may be stopped.
func (o *Options) stops() bool {
	return o.BiasAction == audit.Block || o.SafetyFilter && o.SafetyMode == audit.Block || o.HITLGate
}

// validate reports every fault at once.
func (o *Options) validate() error {
	var errs []error
	g := o.guard()
	for _, f := range g.Faults() {
		errs = append(errs, errors.New(f.String()))
	}
	if o.Stream != StreamAuto && o.Stream != StreamHold && o.Stream != StreamWindow {
		errs = append(errs, errors.New("Stream: wants auto, hold or window"))
	}
	if o.WindowBytes < 1 || o.BodyBytes < 1 {
		errs = append(errs, fmt.Errorf("WindowBytes, BodyBytes: %d, %d: want at least 1; start from DefaultOptions", o.WindowBytes, o.BodyBytes))
	}
	return errors.Join(errs...)
}
