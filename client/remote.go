package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
)

// Remote judges by the guard of a running Evenhand, POST /v1/guard: with its rules, its people, and its record, where
// every call it judges is an interaction.
type Remote struct {
	door    *door
	timeout time.Duration
}

// DefaultRemoteTimeout is how long a decision may take without a person.
const DefaultRemoteTimeout = 5 * time.Second

// NewRemote makes a decider of a server. Its key wants the permission guard.
func NewRemote(s Server) (*Remote, error) {
	d, err := s.door()
	if err != nil {
		return nil, audit.E("client: new remote", audit.KindInvalid, err)
	}
	return &Remote{d, DefaultRemoteTimeout}, nil
}

// Close closes idle connections.
func (r *Remote) Close() { r.door.close() }

func (r *Remote) check(o *Options) error {
	switch {
	case o.OnGateTriggered != nil:
		return errors.New("OnGateTriggered: a server asks its own people; leave it nil, or decide in the process")
	case o.Stream == StreamWindow:
		return errors.New("Stream: windows want rules in the process, for a server records what it is asked about")
	}
	return nil
}

// Of a request that waits for a person.
const (
	maxWait   = 60 * time.Second
	afterGate = 10 * time.Second // behind the gate's timeout its answer must be there
)

// decide asks, and asks again under the same id while a person thinks.
func (r *Remote) decide(ctx context.Context, e *Event, o *Options, _ asker) (a guard.Answer, stop, err error) {
	const op = "client: remote"
	wait := time.Duration(0)
	if o.HITLGate {
		wait = min(maxWait, o.HITLGateTimeout)
	}
	told := *e
	if told.promptSize() > keptPrompt { // it is not judged; the response is, and goes whole
		told.shortenPrompt()
		told.note("text_cut", true)
	}
	body, err := json.Marshal(struct {
		*Event
		Options map[string]any `json:"options"`
		Wait    int            `json:"wait,omitempty"`
	}{&told, o.wire(), int(wait.Seconds())})
	if err != nil {
		return a, nil, audit.E(op, audit.KindInvalid, errors.New("query_context or metadata is no JSON"))
	}
	deadline := time.Now().Add(o.HITLGateTimeout + afterGate)
	for {
		if a, err = r.ask(ctx, body, wait); err != nil {
			return a, nil, err
		}
		if a.Action != guard.Gate {
			return a, errorOf(&a), nil
		}
		if time.Now().After(deadline) {
			denied := &HumanGateDeniedError{Reason: guard.Timeout, Detail: "the server gave no decision in time"}
			if a.Gate != nil {
				denied.Rule = a.Gate.Rule
			}
			a.Action = guard.Block
			return a, denied, nil
		}
	}
}

func (r *Remote) ask(ctx context.Context, body []byte, wait time.Duration) (a guard.Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout+wait)
	defer cancel()
	raw, _, err := r.door.post(ctx, "/v1/guard", "application/json", body, http.StatusOK)
	if err != nil {
		return a, err
	}
	if json.Unmarshal(raw, &a) != nil || a.Action == "" {
		return a, audit.E("client: remote", audit.KindUnavailable, errors.New("the answer is no decision"))
	}
	return a, nil
}

// wire gives the options by their names in a request; the domain is the event's.
func (o *Options) wire() map[string]any {
	m := map[string]any{
		"biasAction": o.BiasAction, "safetyFilter": o.SafetyFilter, "safetyMode": o.SafetyMode, "safetyThreshold": o.SafetyThreshold,
		"hitlGate": o.HITLGate, "hitlGateTimeoutMs": o.HITLGateTimeout.Milliseconds(), "check": guard.Response,
	}
	if o.BiasThreshold != nil {
		m["biasThreshold"] = *o.BiasThreshold
	}
	if len(o.HITLGateRules) > 0 {
		m["hitlGateRules"] = o.HITLGateRules
	}
	if len(o.HITLGateExtraRules) > 0 {
		m["hitlGateExtraRules"] = o.HITLGateExtraRules
	}
	return m
}
