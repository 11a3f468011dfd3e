package gates

import (
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
)

// Reason is the code of an answer.
type Reason string

// The reasons.
const (
	Approved Reason = "approved"
	Denied   Reason = "denied"
	TimedOut Reason = "timeout"
)

// Decision is the answer: seed 001's GateDecision, with what its error and metadata say.
type Decision struct {
	Approved bool   `json:"approved"`
	Reason   Reason `json:"reason"`
	// Detail are the words of who decided, or says why nobody was asked.
	Detail            string    `json:"detail,omitempty"`
	HITLGateTriggered bool      `json:"hitlGateTriggered"` // always true
	By                string    `json:"decidedBy,omitempty"`
	At                time.Time `json:"decidedAt"`
}

// Asked is seed 001's GateRequest and, under rules, everything that matched.
type Asked struct {
	Rule        Rule      `json:"rule"`
	MatchedText *string   `json:"matchedText"` // null to who may not read texts, and once they are dropped
	Provider    string    `json:"provider"`
	Method      string    `json:"method"`
	Timestamp   int64     `json:"timestamp"` // milliseconds
	Rules       []Matched `json:"rules"`
}

// Matched is one of the matches, in the order of position.
type Matched struct {
	Rule        Rule    `json:"rule"`
	MatchedText *string `json:"matchedText"`
	Side        string  `json:"side"` // input or output
	Start       uint32  `json:"start"`
	End         uint32  `json:"end"`
}

// Gate is a gate as it is shown.
type Gate struct {
	ID          audit.ID        `json:"id"`
	Tenant      string          `json:"tenantId"`
	State       audit.GateState `json:"state"`
	Request     Asked           `json:"request"`
	Decision    *Decision       `json:"decision"` // null while it is open
	Interaction *audit.ID       `json:"interactionId"`
	TraceID     string          `json:"traceId,omitempty"`
	Model       string          `json:"model,omitempty"`
	Application string          `json:"application,omitempty"`
	Requester   string          `json:"requester,omitempty"`
	Opened      time.Time       `json:"openedAt"`
	Expires     time.Time       `json:"expiresAt"`
}

// Show makes of a gate what is shown; texts says whether matched texts and people's words are.
func Show(g *audit.HumanGate, texts bool) Gate {
	out := Gate{
		ID: g.ID, Tenant: g.Tenant, State: g.State, TraceID: g.TraceID, Model: g.Model, Application: g.Application, Requester: g.Requester, Opened: g.Opened, Expires: g.Expires,
		Request: Asked{Provider: g.Provider, Method: g.Method, Timestamp: g.At.UnixMilli(), Rules: make([]Matched, len(g.Matches))},
	}
	if !g.Event.IsZero() {
		out.Interaction = &g.Event
	}
	for i := range g.Matches {
		m := &g.Matches[i]
		out.Request.Rules[i] = Matched{Rule: m.Rule, Side: string(m.Side), Start: m.Span.Start, End: m.Span.End}
		if texts && m.Text != "" {
			out.Request.Rules[i].MatchedText = &m.Text
		}
	}
	if len(g.Matches) > 0 {
		out.Request.Rule, out.Request.MatchedText = out.Request.Rules[0].Rule, out.Request.Rules[0].MatchedText
	}
	if g.State != audit.GateOpen {
		d := decision(g)
		if !texts && g.Cause == "" {
			d.Detail = ""
		}
		out.Decision = &d
	}
	return out
}

// causes are why nobody was asked.
var causes = map[string]string{
	causeNobody:  "nobody is set up to be asked: no approvers (gates.approvers), no webhook (gates.webhook.url), no callback",
	causeTooMany: fmt.Sprintf("more than %d different texts matched, too many for a person to see", maxMatches),
}

const (
	causeNobody  = "nobody"
	causeTooMany = "too_many"
)

// decision is the answer of a gate that is decided.
func decision(g *audit.HumanGate) Decision {
	d := Decision{Approved: g.State == audit.GateApproved, Reason: Reason(g.State), Detail: g.Note, HITLGateTriggered: true, By: g.By, At: g.Decided}
	if g.Cause != "" {
		d.Detail = causes[g.Cause]
	}
	return d
}

// Reads tells whether a caller is shown matched texts and people's words.
func Reads(p *auth.Principal) bool { return p.Can(auth.ReadTexts) || p.Can(auth.Approve) }
