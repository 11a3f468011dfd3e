package audit

import "time"

// GateRule is what a gate asks about (seed 001's GateRule; the names of its JSON are that document's).
type GateRule struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Pattern     string `json:"pattern"`
	Category    string `json:"category"`
}

// GateMatch is one place where a rule matched.
type GateMatch struct {
	Rule GateRule
	Text string // that matched; "" once the texts are dropped
	Side Side
	Span Span // in code points of the side's text
}

// GateState is how a gate stands.
type GateState string

// The states. All but open are final.
const (
	GateOpen     GateState = "open"
	GateApproved GateState = "approved"
	GateDenied   GateState = "denied"
	GateTimeout  GateState = "timeout" // nobody answered in time: denied
)

// GateStates lists them all.
var GateStates = []GateState{GateOpen, GateApproved, GateDenied, GateTimeout}

// HumanGate is a question to a person about a critical action (AI Act Art. 14), and its answer.
type HumanGate struct {
	ID     ID
	Tenant string
	Event  ID // of the interaction; zero when it has none
	// Matches are in the order of position; the first one names the gate.
	Matches     []GateMatch
	Provider    string
	Method      string // of the provider's client: "chat.completions.create"
	TraceID     string
	Model       string
	Application string
	Requester   string // who opened it, as package auth names callers; "" when not known
	User        string // whose interaction it is; a text, "" once the texts are dropped

	At      time.Time // of the matched text, as the caller names it
	Opened  time.Time
	Expires time.Time // from then on it is denied
	Written time.Time // by the store's clock; zero for one that was not read from it

	State GateState
	// What follows is set once it is decided.
	Cause    string // "" or why nobody was asked
	By       string // who decided, as package auth names callers; "" for nobody
	Decided  time.Time
	Proposal ID     // that won; it names the note
	Note     string // the decider's words; "" once the texts are dropped
}

// Day is the UTC day by which the gate and its texts are kept.
func (g *HumanGate) Day() time.Time { return g.Opened.UTC().Truncate(24 * time.Hour) }

// Subject is the id under which the gate's texts lie: the interaction's, else its own.
func (g *HumanGate) Subject() ID {
	if g.Event.IsZero() {
		return g.ID
	}
	return g.Event
}
