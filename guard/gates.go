package guard

import (
	"context"
	"crypto/sha256"
	"fmt"
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
	ID          audit.ID // of the gate, the same whenever the same event is asked about with the same text
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

// MethodLiteLLM is the method of LiteLLM's calls.
const MethodLiteLLM = "litellm"

// gateID names a gate by its event and by what a person gets to see, so that an approval holds for nothing else: by the checked texts. Those
// that LiteLLM asks about may be the beginnings of one stream, of which it does not tell: of these what stands behind the last match is left out,
// and a gate is asked about anew when something more matches.
func (d *Decision) gateID(in *audit.Interaction, method string) audit.ID {
	parts := []string{"gate", in.Tenant, d.ID.String()}
	for i, f := range d.Gate.Findings {
		r := d.Gate.rules[i] // a caller's own may have the id of another
		parts = append(parts, r.ID, r.Description, r.Pattern, r.Category, string(f.Side), fmt.Sprint(f.Span))
	}
	for _, side := range d.Check.sides() {
		text := in.Text(side)
		if method == MethodLiteLLM {
			last := audit.Span{}
			for _, f := range d.Gate.Findings {
				if f.Side == side {
					last.End = max(last.End, f.Span.End)
				}
			}
			text = last.Slice(text)
		}
		digest := sha256.Sum256([]byte(text)) // names are made by SHA-1, of which two texts may be made that share one
		parts = append(parts, string(digest[:]))
	}
	return audit.DeriveID(parts...)
}

// Request makes the request of a decision with Action Gate.
func (d *Decision) Request(in *audit.Interaction, method string, now time.Time) GateRequest {
	first, texts := d.Gate.Findings[0], in.Evidence()
	r := GateRequest{
		Tenant: in.Tenant, Event: d.ID, Rule: d.Gate.Rule, MatchedText: texts.At(first.Side, first.Span),
		Provider: in.Provider, Method: method, Time: now.UTC(), Timeout: d.GateTimeout,
		ID: d.gateID(in, method), TraceID: in.TraceID, Model: in.Model, Application: in.Application, User: in.UserID,
	}
	seen := map[string]bool{}
	for i, f := range d.Gate.Findings {
		r.Matches = append(r.Matches, GateText{d.Gate.rules[i], texts.At(f.Side, f.Span), f.Side, f.Span})
		if !seen[f.Rule] {
			seen[f.Rule], r.Rules = true, append(r.Rules, f.Rule)
		}
	}
	return r
}
