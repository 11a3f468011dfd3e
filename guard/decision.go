package guard

import (
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/gate"
)

// Action is what the caller is to do with the text.
type Action string

// The actions, weakest first.
const (
	Allow Action = "allow"
	Warn  Action = "warn"  // let it pass, with the findings beside it
	Gate  Action = "gate"  // hold it until a person has decided
	Block Action = "block" // do not let it pass
)

var strength = []Action{Allow, Warn, Gate, Block}

var actionOf = map[audit.Action]Action{audit.Log: Allow, audit.Warn: Warn, audit.Block: Block}

// Reason is a code of why a decision is as it is.
type Reason string

// The reasons.
const (
	Bias        Reason = "bias"         // the bias sum passed its threshold
	Safety      Reason = "safety"       // the safety sum passed its threshold
	Approval    Reason = "hitl_gate"    // a gate rule matched
	NoText      Reason = "no_text"      // the checked text is empty: nothing was judged
	NotAnalysed Reason = "not_analysed" // the analysis failed and the guard fails open
	Judged      Reason = "judge"        // the judge finds it non_compliant
	JudgeReview Reason = "judge_review" // the judge wants a person to look
	NotJudged   Reason = "not_judged"   // a judge that may block did not answer and the guard fails open
	TextCut     Reason = "text_cut"     // the text was too long to be read whole and the guard fails open
)

// Decision is what was decided about one interaction. It holds no text but the judge's.
type Decision struct {
	ID      audit.ID // of the interaction, and of the event that is made of it
	Action  Action
	Reasons []Reason // empty where all is well

	Domain                         audit.Domain
	Check                          Check
	BiasSum, SafetySum             audit.Score // of the checked texts, as compared: they may pass 1. SafetySum is 0 without the filter
	BiasThreshold, SafetyThreshold audit.Score
	RuleSet                        string
	Gate                           *GateMatch // the first gate rule that matched, nil without one
	GateTimeout                    time.Duration
	Denied                         *HumanGateDeniedError // set by Decided
	Judged                         *Judgement            // nil where no judge was asked
	Verdict                        *audit.Verdict        // all that the detectors found, as on the audit path

	safety                   bool // findings of safety are shown
	biasBlocks, safetyBlocks bool // what asked for the block
	judgeBlocks              bool
	otherwise                Action // without the gate
}

// GateMatch is the gate rule that asks for a person.
type GateMatch struct {
	Rule     gate.Custom     // in the shape of seed 001
	Findings []audit.Finding // of all rules that matched, by their place: the first is Rule's
	rules    []gate.Custom   // of each finding
}

// raise makes the decision at least as strong as a.
func (d *Decision) raise(a Action) {
	if slices.Index(strength, a) > slices.Index(strength, d.Action) {
		d.Action = a
	}
}

// Flagged tells that the bias sum passed its threshold.
func (d *Decision) Flagged() bool { return d.BiasSum > d.BiasThreshold }

// Unsafe tells that the safety filter was on and its sum passed the threshold.
func (d *Decision) Unsafe() bool { return d.SafetySum > d.SafetyThreshold }

// Decided puts a person's decision in the place of the gate. It does nothing to a decision that waits for none.
func (d *Decision) Decided(g GateDecision) {
	if d.Action != Gate {
		return
	}
	if !g.Approved {
		d.Action = Block
		d.Denied = &HumanGateDeniedError{Reason: g.Reason, Detail: g.Detail, Rule: d.Gate.Rule.ID}
		return
	}
	d.Action = d.otherwise
}

// Findings lists what belongs into the caller's answer: of the checked texts, of safety only with its filter on, and
// of gate rules those in force.
func (d *Decision) Findings() (out []audit.Finding) {
	for i := range d.Verdict.Findings {
		f := &d.Verdict.Findings[i]
		hidden := strings.HasPrefix(f.Kind, gateKinds) || strings.HasPrefix(f.Kind, safetyKinds) && !d.safety
		if !hidden && slices.Contains(d.Check.sides(), f.Side) {
			out = append(out, *f)
		}
	}
	if d.Gate != nil {
		out = append(out, d.Gate.Findings...)
		audit.SortFindings(out)
	}
	return out
}
