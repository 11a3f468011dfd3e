package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/ingest"
)

// Check says which texts of an interaction are judged.
type Check string

// The checks. Seeds 000 and 001 look at what the model said.
const (
	Response Check = "response"
	Prompt   Check = "prompt"
	Both     Check = "both"
)

// sides lists the texts that a check reads.
func (c Check) sides() []audit.Side {
	switch c {
	case Prompt:
		return promptSide
	case Both:
		return bothSides
	}
	return responseSide
}

var (
	responseSide = []audit.Side{audit.Output}
	promptSide   = []audit.Side{audit.Input}
	bothSides    = []audit.Side{audit.Output, audit.Input}
)

// Options are what a caller may choose for one decision, by the names of seeds 000 and 001. Start from
// DefaultOptions: the zero value is not meant to be used.
type Options struct {
	Domain        audit.Domain // sets threshold and multipliers; "" is the interaction's. "domain"
	BiasThreshold *audit.Score // 0..1, lower is stricter; nil is the domain profile's. "biasThreshold"
	BiasAction    audit.Action // warn or block. Default warn. "biasAction"

	SafetyFilter    bool         // Default false. "safetyFilter"
	SafetyMode      audit.Action // block, warn or log. Default block. "safetyMode"
	SafetyThreshold audit.Score  // 0..1. Default 0.5. "safetyThreshold"

	HITLGate           bool          // Default false. "hitlGate"
	HITLGateRules      []gate.Custom // replace the rules in use. "hitlGateRules"
	HITLGateExtraRules []gate.Custom // are added. "hitlGateExtraRules"
	HITLGateTimeout    time.Duration // nobody answered: denied. Default 5 minutes. "hitlGateTimeoutMs"

	Check Check // Default response. "check"

	// RulesOnly leaves the judge out: of texts that are not whole yet. It is the doors' to say, not the caller's.
	RulesOnly bool
	// CheckedOnly looks at the checked sides alone, and the verdict is of these: a long prompt costs nothing where the response is checked.
	// It is for doors whose calls are judged whole later.
	CheckedOnly bool
}

// DefaultOptions gives the defaults of seeds 000 and 001.
func DefaultOptions() Options {
	return Options{BiasAction: audit.Warn, SafetyMode: audit.Block, SafetyThreshold: 500_000, HITLGateTimeout: 5 * time.Minute, Check: Response}
}

// What a request may ask for; compiled rules are kept for the next request.
const (
	maxRules   = 32
	maxPattern = 512 // bytes
	maxTimeout = 24 * time.Hour
)

// Faults names every option that is not as it should be, by its name in a request. Of patterns it sees the size only.
func (o *Options) Faults() (faults []ingest.Fault) {
	bad := func(name, format string, args ...any) {
		faults = append(faults, ingest.Fault{Field: name, Code: ingest.BadValue, Message: fmt.Sprintf(format, args...)})
	}
	if o.Domain != "" && !o.Domain.Known() {
		bad("domain", "wants one of %s", audit.List(audit.Domains))
	}
	if t := o.BiasThreshold; t != nil && (*t < 0 || *t > audit.One) {
		bad("biasThreshold", "wants 0..1, lower is stricter")
	}
	if o.BiasAction != audit.Warn && o.BiasAction != audit.Block {
		bad("biasAction", "wants warn or block")
	}
	if o.SafetyMode != audit.Block && o.SafetyMode != audit.Warn && o.SafetyMode != audit.Log {
		bad("safetyMode", "wants block, warn or log")
	}
	if o.SafetyThreshold < 0 || o.SafetyThreshold > audit.One {
		bad("safetyThreshold", "wants 0..1, lower is stricter")
	}
	if o.HITLGateTimeout <= 0 || o.HITLGateTimeout > maxTimeout {
		bad("hitlGateTimeoutMs", "wants 1 to %d", maxTimeout.Milliseconds())
	}
	if o.Check != Response && o.Check != Prompt && o.Check != Both {
		bad("check", "wants response, prompt or both")
	}
	if n := len(o.HITLGateRules) + len(o.HITLGateExtraRules); n > maxRules {
		bad("hitlGateRules", "wants at most %d rules, hitlGateExtraRules included", maxRules)
	}
	long := func(name string, list []gate.Custom) {
		for i := range list {
			if len(list[i].Pattern) > maxPattern {
				bad(fmt.Sprintf("%s[%d].pattern", name, i), "has more than %d bytes", maxPattern)
			}
		}
	}
	long("hitlGateRules", o.HITLGateRules)
	long("hitlGateExtraRules", o.HITLGateExtraRules)
	return faults
}

// With reads options from a JSON object over o: what it does not name stays. Every fault is reported at once,
// a name that is no option too; o is unchanged then.
func (o Options) With(raw []byte) (Options, []ingest.Fault) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return o, []ingest.Fault{{Code: ingest.WrongType, Message: "wants an object"}}
	}
	timeout, out := o.HITLGateTimeout.Milliseconds(), o
	// What JSON is read into keeps no memory of o's, or other callers would find it there.
	out.BiasThreshold, out.HITLGateRules, out.HITLGateExtraRules = nil, nil, nil
	into := map[string]struct {
		to   any
		want string
	}{
		"domain": {&out.Domain, "a string"}, "biasThreshold": {&out.BiasThreshold, "a number"}, "biasAction": {&out.BiasAction, "a string"},
		"safetyFilter": {&out.SafetyFilter, "true or false"}, "safetyMode": {&out.SafetyMode, "a string"}, "safetyThreshold": {&out.SafetyThreshold, "a number"},
		"hitlGate": {&out.HITLGate, "true or false"}, "hitlGateRules": {&out.HITLGateRules, rulesWanted}, "hitlGateExtraRules": {&out.HITLGateExtraRules, rulesWanted},
		"hitlGateTimeoutMs": {&timeout, "a whole number"}, "check": {&out.Check, "a string"},
	}
	var faults []ingest.Fault
	for name, value := range fields {
		f, known := into[name]
		switch {
		case !known:
			say := "is not an option"
			if near := ingest.Nearest(name, slices.Sorted(maps.Keys(into))); near != "" {
				say += " (did you mean " + near + "?)"
			}
			faults = append(faults, ingest.Fault{Field: ingest.Shown(name), Code: ingest.UnknownField, Message: say})
		case string(value) == "null": // as if it were not there
		case json.Unmarshal(value, f.to) != nil:
			faults = append(faults, ingest.Fault{Field: name, Code: ingest.WrongType, Message: "wants " + f.want})
		}
	}
	if out.BiasThreshold == nil {
		out.BiasThreshold = o.BiasThreshold
	}
	if out.HITLGateRules == nil {
		out.HITLGateRules = o.HITLGateRules
	}
	if out.HITLGateExtraRules == nil {
		out.HITLGateExtraRules = o.HITLGateExtraRules
	}
	out.Domain = audit.Domain(strings.ToLower(string(out.Domain)))
	out.HITLGateTimeout = time.Duration(min(timeout, maxTimeout.Milliseconds()+1)) * time.Millisecond
	if len(faults) == 0 {
		faults = out.Faults()
	}
	if len(faults) > 0 {
		slices.SortFunc(faults, func(a, b ingest.Fault) int { return strings.Compare(a.Field, b.Field) })
		return o, faults
	}
	return out, nil
}

const rulesWanted = "an array of {id, description, pattern, category}"

// OptionError is a fault of the caller's options.
type OptionError struct{ Faults []ingest.Fault }

func (e *OptionError) Error() string {
	var errs []error
	for _, f := range e.Faults {
		errs = append(errs, errors.New(f.String()))
	}
	return errors.Join(errs...).Error()
}
