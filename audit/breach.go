package audit

import (
	"crypto/sha256"
	"time"
)

// BreachState is where a breach stands.
type BreachState string

// The states of a breach.
const (
	BreachOpen      BreachState = "open"      // the rate is above its baseline; open after open tells news of it
	BreachMitigated BreachState = "mitigated" // its ticket was closed; the rate is watched for its return
	BreachResolved  BreachState = "resolved"  // the rate has stayed near its baseline
)

// BreachStates lists which states may follow a state; those after "" may be the first. It is the rule
// of the decisions of kind breach and never changes.
var BreachStates = map[string][]string{
	"":                      {string(BreachOpen)},
	string(BreachOpen):      {string(BreachOpen), string(BreachMitigated), string(BreachResolved)},
	string(BreachMitigated): {string(BreachOpen), string(BreachResolved)},
	string(BreachResolved):  {string(BreachOpen)},
}

// BreachTier says by which evidence a breach was opened.
type BreachTier string

// The tiers.
const (
	TierRate       BreachTier = "ticket"     // the rate of a kind departed from its baseline
	TierPolicy     BreachTier = "policy"     // one confirmed critical finding
	TierBlind      BreachTier = "blind"      // too little was analysed for any rate to be believed
	TierMitigation BreachTier = "mitigation" // a bias type asked for mitigation too often
)

// Breach is one state of a breach: what a decision on it says. It holds no text of people. Rates are
// shares in [0, 1]; the window is [From, To).
type Breach struct {
	ID         ID          `json:"breach_id"`
	Seq        uint32      `json:"seq"` // of the decision, from 1
	Tenant     string      `json:"tenant_id"`
	Policy     string      `json:"policy"`
	Tier       BreachTier  `json:"tier"`
	Domain     Domain      `json:"domain"`
	Kind       string      `json:"kind"`       // a taxonomy key; "" is any bias
	Group      string      `json:"rule_group"` // of rules that share a ticket; "" is all of the kind
	Generation uint32      `json:"generation"` // from 1; a return long after it was resolved is a new one
	State      BreachState `json:"state"`
	Reason     string      `json:"reason"` // code: breached, returned, repeated, near_baseline, completed, canceled, …
	Opened     time.Time   `json:"opened_at"`
	Changed    time.Time   `json:"changed_at,omitzero"` // the broker's time of this decision; none in the decision itself
	From       time.Time   `json:"window_from"`
	To         time.Time   `json:"window_to"`
	N          uint64      `json:"n"` // analysed
	K          uint64      `json:"k"` // of them with the kind
	Rate       float64     `json:"rate"`
	Lower      float64     `json:"lower"` // 95 % Wilson interval
	Upper      float64     `json:"upper"`
	Baseline   float64     `json:"baseline"`
	BaselineN  uint64      `json:"baseline_n"` // analysed interactions behind it
	P          float64     `json:"p_value"`    // exact binomial tail of K of N under the baseline
	Severity   Severity    `json:"severity,omitempty"`
	RuleSet    string      `json:"rule_set"`
	TopRules   []RuleCount `json:"top_rules"`
	Events     []ID        `json:"event_ids"` // up to ten examples
	Mitigation string      `json:"mitigation"`
	By         string      `json:"by,omitempty"`          // the person who decided this, or whose review opened it; "" when none did
	Confirmed  time.Time   `json:"confirmed_at,omitzero"` // when that review was; zero without one
	Split      []Behind    `json:"split,omitempty"`       // who was behind most of K
}

// Behind is in how many of a breach's interactions something took part: an application, a model, a kind of bias.
type Behind struct {
	Of           string `json:"of"` // application, model or kind
	Value        string `json:"value"`
	Interactions uint64 `json:"interactions"`
}

// RuleCount is in how many interactions a rule fired.
type RuleCount struct {
	Rule         string `json:"rule"`
	Interactions uint64 `json:"interactions"`
}

// DerivedV4 makes an ID for systems that take version 4 only: SHA-256 of the parts, each ended by a
// zero byte, cut to 16 bytes, with version and variant set (RFC 9562, section 5.4).
func DerivedV4(parts ...string) ID {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	var id ID
	copy(id[:], h.Sum(nil))
	id[6] = 0x40 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	return id
}
