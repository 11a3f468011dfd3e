package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Judge is a language model that looks at a response in line. It is safe for concurrent use.
type Judge interface {
	// Judge gives its opinion of the response. It ends with ctx; its errors hold no text.
	Judge(ctx context.Context, in *audit.Interaction) (*Opinion, error)
	// Grey tells whether the rules are in doubt.
	Grey(in *audit.Interaction, v *audit.Verdict) bool
}

// When a judge is asked.
const (
	AskNever = "off"
	AskGrey  = "grey" // where the rules are in doubt
	AskAll   = "all"
)

// Assessments of a judge (seed 004).
const (
	Compliant    = "compliant"
	NeedsReview  = "needs_review"
	NonCompliant = "non_compliant"
)

// Judging says when a judge is asked and what it may do. It can make a decision stricter, never milder, and is not asked about
// what is blocked already. The zero value asks nobody.
type Judging struct {
	Judge   Judge         // nil asks nobody
	Ask     string        // off, grey, all; "" is off
	Action  audit.Action  // of what is non_compliant: warn or block. What needs review is warned of
	Timeout time.Duration // of one question
	// FailOpen leaves it to the rules when a judge that may block does not answer; otherwise that is an error. One that only warns
	// is never waited for in vain: the rules decide.
	FailOpen bool
}

// Validate reports every fault at once; prefix leads the operator's keys.
func (j Judging) Validate(prefix string) error {
	var errs []error
	if !slices.Contains([]string{AskNever, AskGrey, AskAll}, j.Ask) {
		errs = append(errs, fmt.Errorf("%s.judge: %q is not one of off, grey, all", prefix, j.Ask))
	}
	if j.Action != audit.Warn && j.Action != audit.Block {
		errs = append(errs, fmt.Errorf("%s.judge_action: %q is not one of warn, block", prefix, j.Action))
	}
	if j.Timeout < 100*time.Millisecond || j.Timeout > 5*time.Minute {
		errs = append(errs, fmt.Errorf("%s.judge_timeout: %v is not in 100ms..5m", prefix, j.Timeout))
	}
	return errors.Join(errs...)
}

// Blocks tells whether a judge may stop a text.
func (j Judging) Blocks() bool { return j.Ask != "" && j.Ask != AskNever && j.Action == audit.Block }

// Opinion is what a judge says about a response.
type Opinion struct {
	Assessment string // compliant, needs_review, non_compliant
	Confidence audit.Score
	Summary    string // [text]
	Findings   []audit.Finding
	Scores     []audit.NamedScore
	Rewrites   []Rewrite
	Version    string // of model and prompt
}

// Rewrite is a better wording that a judge suggests.
type Rewrite struct {
	Issue   string     `json:"issue"`   // [text]
	Excerpt string     `json:"excerpt"` // [text]
	Span    audit.Span `json:"span"`
	Rewrite string     `json:"suggested_rewrite"` // [text]
}

// Reasons why a judge that was asked said nothing.
const (
	JudgeTimeout = "timeout"
	JudgeAway    = "unavailable"
	JudgeBudget  = "budget"
	JudgeFailed  = "failed" // no model is set up, it refused, or its answer could not be read
)

// Judgement is what became of a question to a judge.
type Judgement struct {
	Status   audit.Status // done, or failed
	Reason   string       // why it failed
	Opinion  *Opinion     // nil when it failed
	Duration time.Duration
}

// ErrNotJudged says that a judge that may block did not answer; Decide wraps it where Judging.FailOpen is off.
var ErrNotJudged = errors.New("the judge did not answer")

// Judges tells whether a judge may be asked at all.
func (g *Guard) Judges() bool {
	return g.cfg.Judging.Judge != nil && g.cfg.Judging.Ask != "" && g.cfg.Judging.Ask != AskNever
}

// judge asks where the settings say so and makes the decision stricter by what it is told.
func (g *Guard) judge(ctx context.Context, d *Decision, in *audit.Interaction, o *Options) error {
	j := &g.cfg.Judging
	if j.Judge == nil || o.RulesOnly || in.Response == "" || d.Action == Block || !slices.Contains(o.Check.sides(), audit.Output) {
		return nil
	}
	if j.Ask != AskAll && (j.Ask != AskGrey || !j.Judge.Grey(in, d.Verdict)) {
		return nil
	}
	began := time.Now()
	asking, cancel := context.WithTimeout(ctx, j.Timeout)
	defer cancel()
	said, err := j.Judge.Judge(asking, in)
	d.Judged = &Judgement{Status: audit.Done, Opinion: said, Duration: time.Since(began)}
	if err != nil || said == nil {
		d.Judged.Status, d.Judged.Opinion, d.Judged.Reason = audit.Failed, nil, reasonOf(asking, err)
		g.cfg.Logger.Warn("the judge did not answer in line", "interaction_id", d.ID.String(), "reason", d.Judged.Reason)
		if !j.Blocks() {
			return nil
		}
		if j.FailOpen {
			d.Reasons = append(d.Reasons, NotJudged)
			return nil
		}
		return audit.E("guard: judge", audit.KindUnavailable, ErrNotJudged)
	}
	switch said.Assessment {
	case NonCompliant:
		d.Reasons = append(d.Reasons, Judged)
		d.judgeBlocks = j.Action == audit.Block
		d.raise(actionOf[j.Action])
	case NeedsReview:
		d.Reasons = append(d.Reasons, JudgeReview)
		d.raise(Warn)
	}
	return nil
}

func reasonOf(asking context.Context, err error) string {
	switch {
	case asking.Err() != nil:
		return JudgeTimeout
	case audit.KindOf(err) == audit.KindOverloaded:
		return JudgeBudget
	case audit.KindOf(err) == audit.KindUnavailable:
		return JudgeAway
	}
	return JudgeFailed
}

// JudgeAnswer is a judgement as callers get it.
type JudgeAnswer struct {
	Status     audit.Status           `json:"status"`
	Reason     string                 `json:"reason,omitempty"`
	Assessment string                 `json:"assessment,omitempty"`
	Confidence *audit.Score           `json:"confidence,omitempty"`
	Summary    string                 `json:"summary,omitempty"`
	Scores     map[string]audit.Score `json:"scores,omitempty"`
	Findings   []Finding              `json:"findings,omitempty"`
	Rewrites   []Rewrite              `json:"rewrites,omitempty"`
	Version    string                 `json:"version,omitempty"`
	Duration   float64                `json:"duration_ms"`
}

// answer tells a judgement about an interaction; nil for none.
func (j *Judgement) answer(in *audit.Interaction) *JudgeAnswer {
	if j == nil {
		return nil
	}
	a := &JudgeAnswer{Status: j.Status, Reason: j.Reason, Duration: float64(j.Duration.Microseconds()) / 1000}
	if o := j.Opinion; o != nil {
		a.Assessment, a.Confidence, a.Summary, a.Rewrites, a.Version = o.Assessment, &o.Confidence, o.Summary, o.Rewrites, o.Version
		texts := in.Evidence()
		for _, f := range o.Findings {
			a.Findings = append(a.Findings, findingOf(f, texts))
		}
		if len(o.Scores) > 0 {
			a.Scores = map[string]audit.Score{}
			for _, s := range o.Scores {
				a.Scores[s.Name] = s.Value
			}
		}
	}
	return a
}

// JudgeNote is what the metadata of a record say of a judgement; it holds no text.
type JudgeNote struct {
	Status     audit.Status           `json:"status"`
	Reason     string                 `json:"reason,omitempty"`
	Assessment string                 `json:"assessment,omitempty"`
	Scores     map[string]audit.Score `json:"scores,omitempty"`
	Findings   []JudgeFound           `json:"findings,omitempty"` // the first few
	Found      int                    `json:"found"`
}

// JudgeFound is a finding with its place.
type JudgeFound struct {
	Kind string     `json:"kind"`
	Rule string     `json:"rule"`
	Span audit.Span `json:"span"`
}

// notedFindings keep the note of a judgement below a kilobyte.
const notedFindings = 6

// Note gives the note of a judgement, nil for none.
func (j *Judgement) Note() *JudgeNote {
	if j == nil {
		return nil
	}
	n := &JudgeNote{Status: j.Status, Reason: j.Reason}
	if o := j.Opinion; o != nil {
		n.Assessment, n.Scores, n.Found = o.Assessment, j.answer(&audit.Interaction{}).Scores, len(o.Findings)
		for _, f := range o.Findings[:min(len(o.Findings), notedFindings)] {
			n.Findings = append(n.Findings, JudgeFound{f.Kind, f.Rule, f.Span})
		}
	}
	return n
}

// NonCompliantError stops a text that the judge finds non_compliant where it may block.
type NonCompliantError struct {
	Confidence audit.Score `json:"confidence"`
	Findings   []Finding   `json:"findings"`
}

func (e *NonCompliantError) Error() string {
	return fmt.Sprintf("not compliant by the judge (%s)", named(e.Findings, func(f Finding) string { return f.Kind }))
}
