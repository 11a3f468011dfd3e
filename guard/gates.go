package guard

import (
	"context"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/gate"
)

// Gates asks people to approve or deny. It is safe for concurrent use.
type Gates interface {
	// Open asks for a decision. A gate that is there already stays as it is.
	Open(ctx context.Context, r GateRequest) (audit.ID, error)
	// Wait gives the decision of a gate as soon as there is one; no answer in time is one too. It fails when ctx ends first.
	Wait(ctx context.Context, gate audit.ID) (GateDecision, error)
}

// GateRequest is what a person gets to see (seed 001), and whose it is.
type GateRequest struct {
	ID          audit.ID // of the gate, the same whenever the same event is asked about
	Tenant      string
	Event       audit.ID
	Rule        gate.Custom
	Rules       []string // ids of all rules that matched
	MatchedText string   // [text]
	Provider    string
	Method      string // "guard", "litellm", "chat.completions"
	Time        time.Time
	Timeout     time.Duration

	Matches                     []GateText // all places, by their order in the texts; the first is Rule's
	TraceID, Model, Application string
	Requester                   string // who asks, as package auth names callers; "" where that is not known
	User                        string // [text] whose interaction it is. Neither may answer
}

// GateText is one place where a gate rule matched.
type GateText struct {
	Rule gate.Custom
	Text string // [text]
	Side audit.Side
	Span audit.Span
}

// GateDecision is a person's answer (seed 001).
type GateDecision struct {
	Approved bool
	Reason   string // when not approved: timeout or denied
	Detail   string // the operator's words
}

// NobodyToAsk is the decision where no gates are configured: denied at once, AI Act Art. 14.
var NobodyToAsk = GateDecision{Reason: Denied, Detail: "no approver is configured"}

// Request makes the request of a decision with Action Gate.
func (d *Decision) Request(in *audit.Interaction, method string, now time.Time) GateRequest {
	first := d.Gate.Findings[0]
	r := GateRequest{
		Tenant: in.Tenant, Event: d.ID, Rule: d.Gate.Rule, MatchedText: first.Span.Slice(in.Text(first.Side)),
		Provider: in.Provider, Method: method, Time: now.UTC(), Timeout: d.GateTimeout,
		ID: audit.DeriveID("gate", in.Tenant, d.ID.String()), TraceID: in.TraceID, Model: in.Model, Application: in.Application, User: in.UserID,
	}
	seen := map[string]bool{}
	for i, f := range d.Gate.Findings {
		r.Matches = append(r.Matches, GateText{d.Gate.rules[i], f.Span.Slice(in.Text(f.Side)), f.Side, f.Span})
		if !seen[f.Rule] {
			seen[f.Rule], r.Rules = true, append(r.Rules, f.Rule)
		}
	}
	return r
}
