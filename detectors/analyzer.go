package detectors

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/scan"
)

// Policy is what an operator may set about verdicts. Start from DefaultPolicy.
type Policy struct {
	// BiasThreshold overrides the domain profiles' thresholds, 0..1; nil keeps them.
	BiasThreshold *audit.Score
	// BiasAction is asked for when the bias sum passes the threshold: warn or block. Default warn.
	BiasAction audit.Action
	// SafetyThreshold, 0..1, lower is stricter. Default 0.5.
	SafetyThreshold audit.Score
	// SafetyMode is asked for when the safety sum passes its threshold: block, warn or log.
	// Default block.
	SafetyMode audit.Action
	// DetectTimeout bounds all detectors of one interaction. Default 2s.
	DetectTimeout time.Duration
}

// DefaultPolicy gives the defaults of seeds 000 and 001.
func DefaultPolicy() Policy {
	return Policy{BiasAction: audit.Warn, SafetyThreshold: 500_000, SafetyMode: audit.Block, DetectTimeout: 2 * time.Second}
}

// Validate reports every fault at once, keys as an operator writes them.
func (p Policy) Validate() error {
	var errs []error
	if p.BiasThreshold != nil && (*p.BiasThreshold < 0 || *p.BiasThreshold > audit.One) {
		errs = append(errs, fmt.Errorf("detect.bias_threshold: %v is not in 0..1 (lower is stricter)", *p.BiasThreshold))
	}
	if p.BiasAction != audit.Warn && p.BiasAction != audit.Block {
		errs = append(errs, fmt.Errorf("detect.bias_action: %q is not one of warn, block", p.BiasAction))
	}
	if p.SafetyThreshold < 0 || p.SafetyThreshold > audit.One {
		errs = append(errs, fmt.Errorf("detect.safety_threshold: %v is not in 0..1 (lower is stricter)", p.SafetyThreshold))
	}
	if p.SafetyMode != audit.Block && p.SafetyMode != audit.Warn && p.SafetyMode != audit.Log {
		errs = append(errs, fmt.Errorf("detect.safety_mode: %q is not one of block, warn, log", p.SafetyMode))
	}
	if p.DetectTimeout <= 0 {
		errs = append(errs, fmt.Errorf("detect.timeout: %v is not a positive duration", p.DetectTimeout))
	}
	return errors.Join(errs...)
}

// Analyzer runs all detectors on an interaction and makes a verdict of what they found. It is safe
// for concurrent use.
type Analyzer struct {
	policy  Policy
	ds      []Detector
	ruleSet string
	scanner *scan.Scanner // nil when no detector has rules
	owners  []owner       // by pattern
	scratch sync.Pool     // *[]scan.Match
	now     func() time.Time
}

// maxStates lets the scanner hold what the shipped packs need on ordinary text, about 40,000 states in
// 15 MiB; with fewer it would build the same states again and again.
const maxStates = 65_536

// owner says whose pattern it is.
type owner struct {
	detector int
	rule     int
	r        *rules.Rule
}

// NewAnalyzer compiles the rules of all detectors into one scanner. A repeated detector id or a bad
// pattern is an error of KindInvalid.
func NewAnalyzer(p Policy, ds ...Detector) (*Analyzer, error) {
	const op = "detectors: new analyzer"
	if err := p.Validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	a := &Analyzer{policy: p, ds: ds, now: time.Now}
	a.scratch.New = func() any { return new([]scan.Match) }
	digest := sha256.New()
	var patterns []string
	for i, d := range ds {
		info := d.Info()
		for _, other := range ds[:i] {
			if other.Info().ID == info.ID {
				return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("detector id %q is used twice", info.ID))
			}
		}
		_, _ = io.WriteString(digest, info.ID+"\x00"+info.Version+"\x00")
		rb, ok := d.(RuleBased)
		if !ok {
			continue
		}
		for ri, r := range rb.Rules() {
			for _, p := range r.Expanded {
				patterns = append(patterns, p)
				a.owners = append(a.owners, owner{i, ri, r})
			}
		}
	}
	a.ruleSet = hex.EncodeToString(digest.Sum(nil)[:6])
	if len(patterns) > 0 {
		s, err := scan.Compile(patterns, scan.Options{MaxStates: maxStates})
		if err != nil {
			return nil, audit.E(op, audit.KindInvalid, err)
		}
		a.scanner = s
	}
	return a, nil
}

// RuleSet is the version of all detectors and rules together; it is stored with every verdict.
func (a *Analyzer) RuleSet() string { return a.ruleSet }

// Detectors lists the detectors in the order they run.
func (a *Analyzer) Detectors() []Detector { return a.ds }

// Prepare computes the input of all detectors: one scan of each side.
func (a *Analyzer) Prepare(in *audit.Interaction) *Input {
	p, _ := audit.ProfileOf(in.Domain)
	if a.policy.BiasThreshold != nil {
		p.Threshold = *a.policy.BiasThreshold
	}
	x := &Input{Interaction: in, Profile: p}
	x.sides[0].text, x.sides[1].text = in.Response, in.Prompt
	if a.scanner == nil {
		return x
	}
	buf := a.scratch.Get().(*[]scan.Match)
	for _, side := range []audit.Side{audit.Output, audit.Input} {
		text := in.Text(side)
		if text == "" {
			continue
		}
		*buf = a.scanner.Scan(text, (*buf)[:0])
		if len(*buf) > 0 {
			x.hits = append(x.hits, a.distribute(text, side, *buf)...)
		}
	}
	a.scratch.Put(buf)
	return x
}

// distribute gives each match to its detector, without those that guards exclude and without
// repeats of one rule at one place by several of its patterns.
func (a *Analyzer) distribute(text string, side audit.Side, ms []scan.Match) []sideHits {
	slices.SortFunc(ms, func(x, y scan.Match) int {
		return cmp.Or(cmp.Compare(x.Pattern, y.Pattern), cmp.Compare(x.Start, y.Start))
	})
	var out []sideHits
	last := -1
	for _, m := range ms {
		o := a.owners[m.Pattern]
		if rules.Suppressed(o.r, text, int(m.Start), int(m.End)) {
			continue
		}
		if last != o.detector {
			out = append(out, sideHits{detector: a.ds[o.detector].Info().ID, side: side})
			last = o.detector
		}
		t := &out[len(out)-1]
		t.hits = append(t.hits, Hit{Rule: o.rule, Start: int(m.Start), End: int(m.End)})
	}
	for i := range out {
		slices.SortFunc(out[i].hits, func(x, y Hit) int {
			return cmp.Or(cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End))
		})
		out[i].hits = slices.Compact(out[i].hits)
	}
	return out
}

// Analyze gives the verdict on one interaction. It does not fail: what could not be looked at is in
// the verdict's status. The verdict's ResultID is that of the hot path.
func (a *Analyzer) Analyze(ctx context.Context, in *audit.Interaction) *audit.Verdict {
	start := a.now()
	v := &audit.Verdict{
		ResultID: audit.HotResultID(in.Tenant, in.ID, in.Digest), Analyzer: audit.HotAnalyzer, RuleSet: a.ruleSet,
		Status: audit.Done, Action: audit.NoAction, Time: start.UTC().Truncate(time.Millisecond),
	}
	if in.WithoutContent {
		p, _ := audit.ProfileOf(in.Domain)
		v.Status, v.Reason, v.Threshold = audit.Skipped, "no_content", p.Threshold
		return v
	}
	failed := func(id, why string) {
		v.FailedBy = append(v.FailedBy, id)
		v.Reason = why
	}
	x, ok := a.prepareSafely(in)
	if !ok {
		failed("scan", "panic")
		v.Status = audit.Failed
		return v
	}
	families := make([][]audit.Finding, len(a.ds))
	for i, d := range a.ds {
		if a.now().Sub(start) > a.policy.DetectTimeout {
			failed(d.Info().ID, "timeout")
			continue
		}
		fs, why := detectSafely(ctx, d, x)
		if why != "" {
			failed(d.Info().ID, why)
			continue
		}
		families[i] = fs
	}
	switch {
	case len(v.FailedBy) == 0:
	case len(v.FailedBy) == len(a.ds):
		v.Status = audit.Failed
	default:
		v.Status = audit.Partial
	}
	a.conclude(v, x, families)
	v.Duration = a.now().Sub(start)
	return v
}

func (a *Analyzer) prepareSafely(in *audit.Interaction) (x *Input, ok bool) {
	defer func() {
		if recover() != nil {
			x, ok = nil, false
		}
	}()
	return a.Prepare(in), true
}

// detectSafely is the one call site of Detect: a panic is an answer of its own here.
func detectSafely(ctx context.Context, d Detector, x *Input) (fs []audit.Finding, why string) {
	defer func() {
		if recover() != nil {
			fs, why = nil, "panic"
		}
	}()
	fs, err := d.Detect(ctx, x)
	switch {
	case err == nil:
		return fs, ""
	case errors.Is(err, context.DeadlineExceeded):
		return nil, "timeout"
	}
	return nil, "error"
}

// conclude applies the policy to the findings of each family.
func (a *Analyzer) conclude(v *audit.Verdict, x *Input, families [][]audit.Finding) {
	var bias, safety, scored []audit.Finding // of the response
	var terms []string                       // rules of the terms family
	for i, fs := range families {
		v.Findings = append(v.Findings, fs...)
		for _, f := range fs {
			if f.Side != audit.Output {
				continue
			}
			scored = append(scored, f)
			switch a.ds[i].Info().Family {
			case Bias:
				bias = append(bias, f)
				v.BiasTypes = append(v.BiasTypes, f.Kind)
			case Terms:
				terms = append(terms, f.Rule)
				v.BiasTypes = append(v.BiasTypes, f.Kind)
			case Safety:
				safety = append(safety, f)
			case Gates:
				v.Gated = true
			}
		}
	}
	audit.SortFindings(v.Findings)
	slices.Sort(v.BiasTypes)
	v.BiasTypes = slices.Compact(v.BiasTypes)
	v.Detected = len(v.BiasTypes) > 0
	v.Threshold = x.Profile.Threshold
	v.BiasSum, v.SafetySum = audit.Sum(bias), audit.Sum(safety)
	v.Flagged = v.BiasSum > v.Threshold
	v.Unsafe = v.SafetySum > a.policy.SafetyThreshold
	strongest := audit.Score(-1)
	for _, f := range scored {
		v.MaxSeverity = max(v.MaxSeverity, f.Severity.Level())
	}
	for _, f := range bias {
		if f.Score > strongest || f.Score == strongest && f.Confidence > v.Confidence {
			strongest, v.Confidence = f.Score, f.Confidence
		}
	}
	if len(terms) > 0 && len(bias) == 0 {
		v.Confidence = termsConfidence
	}
	v.Action = a.action(v)
	v.Scores = scores(v, bias, safety, scored, distinct(terms))
	v.Mitigation = mitigation(v, bias, safety)
}

// termsConfidence is the confidence of a substring of seed 002's list alone.
const termsConfidence audit.Score = 600_000

func (a *Analyzer) action(v *audit.Verdict) audit.Action {
	order := []audit.Action{audit.NoAction, audit.Log, audit.Warn, audit.Gate, audit.Block}
	act := audit.NoAction
	raise := func(to audit.Action) {
		if slices.Index(order, to) > slices.Index(order, act) {
			act = to
		}
	}
	if v.Flagged {
		raise(a.policy.BiasAction)
	}
	if v.Unsafe {
		raise(a.policy.SafetyMode)
	}
	if v.Gated {
		raise(audit.Gate)
	}
	return act
}

func distinct(s []string) int {
	slices.Sort(s)
	return len(slices.Compact(s))
}

// scores lists the scores that are not zero, capped at 1, aggregates first and then by kind.
func scores(v *audit.Verdict, bias, safety, all []audit.Finding, terms int) []audit.NamedScore {
	if len(all) == 0 {
		return nil
	}
	var out []audit.NamedScore
	add := func(name string, s audit.Score) {
		if s > 0 {
			out = append(out, audit.NamedScore{Name: name, Value: s.Capped()})
		}
	}
	kindOf := func(fs []audit.Finding, kind string) (of []audit.Finding) {
		for _, f := range fs {
			if f.Kind == kind {
				of = append(of, f)
			}
		}
		return of
	}
	var abusive []audit.Finding
	for _, f := range all {
		if f.Abusive {
			abusive = append(abusive, f)
		}
	}
	add(audit.ScoreBias, v.BiasSum)
	add(audit.ScoreSafety, v.SafetySum)
	add(audit.ScoreToxicity, audit.Sum(abusive))
	add(audit.ScorePII, audit.Sum(kindOf(safety, "safety.pii_leakage")))
	add(audit.ScoreHallucination, audit.Sum(kindOf(safety, "safety.hallucination_indicator")))
	if terms > 0 {
		out = append(out, audit.NamedScore{Name: audit.ScoreTerms, Value: audit.TermsScore(terms)})
	}
	for _, fs := range [][]audit.Finding{bias, safety} {
		var kinds []string
		for _, f := range fs {
			kinds = append(kinds, f.Kind)
		}
		slices.Sort(kinds)
		for _, k := range slices.Compact(kinds) {
			add(k, audit.Sum(kindOf(fs, k)))
		}
	}
	return out
}

// mitigation suggests what to do about the worst that was found.
func mitigation(v *audit.Verdict, bias, safety []audit.Finding) string {
	worst := uint8(0)
	for _, f := range bias {
		worst = max(worst, f.Severity.Level())
	}
	pii := slices.ContainsFunc(safety, func(f audit.Finding) bool { return strings.HasSuffix(f.Kind, ".pii_leakage") })
	switch {
	case worst >= audit.High.Level():
		return audit.MitigationBlock
	case v.Unsafe && !pii:
		return audit.MitigationBlock
	case pii:
		return audit.MitigationRedact
	case v.Detected && worst != audit.Low.Level():
		return audit.MitigationRephrase
	case v.Detected:
		return audit.MitigationReview
	case v.Gated:
		return audit.MitigationApprove
	}
	return ""
}
