package detectors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/language"
	"github.com/evenhand/evenhand/detectors/normal"
	"github.com/evenhand/evenhand/detectors/refute"
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
	// ClassifierAction is asked for when a learned detector finds something in the response: none or
	// warn. Learned detectors never block. Default warn.
	ClassifierAction audit.Action
	// Grades asks learned detectors how sure they are of each response, found or not: Verdict.Grades. It costs
	// next to nothing but memory. Default false.
	Grades bool
	// DetectTimeout bounds all detectors of one interaction. Default 2s.
	DetectTimeout time.Duration
}

// DefaultPolicy gives the defaults of seeds 000 and 001.
func DefaultPolicy() Policy {
	return Policy{BiasAction: audit.Warn, SafetyThreshold: 500_000, SafetyMode: audit.Block, ClassifierAction: audit.Warn, DetectTimeout: 2 * time.Second}
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
	if p.ClassifierAction != audit.NoAction && p.ClassifierAction != audit.Warn {
		errs = append(errs, fmt.Errorf("classifier.action: %q is not one of none, warn (learned detectors do not block)", p.ClassifierAction))
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
	advice  map[string]audit.Advice // by rule; rules that suggest nothing are not in it
	scans   [3]scanned              // of the normal text, of the original, of the normal text that is not plainly English
	scratch sync.Pool               // *[]scan.Match
	now     func() time.Time
}

// NewAnalyzer compiles the rules of all detectors into one scanner. A repeated detector id or a bad
// pattern is an error of KindInvalid.
func NewAnalyzer(p Policy, ds ...Detector) (*Analyzer, error) {
	const op = "detectors: new analyzer"
	if err := p.Validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	a := &Analyzer{policy: p, ds: ds, now: time.Now, advice: map[string]audit.Advice{}}
	a.scratch.New = func() any { return new([]scan.Match) }
	digest := sha256.New()
	_, _ = io.WriteString(digest, "normal\x00"+normal.Version+"\x00refute\x00"+refute.Version()+"\x00")
	var patterns [len(a.scans)][]string
	owners := map[*rules.Rule]*owner{}
	for i, d := range ds {
		info := d.Info()
		for _, other := range ds[:i] {
			if other.Info().ID == info.ID {
				return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("detector id %q is used twice", info.ID))
			}
		}
		_, _ = io.WriteString(digest, info.ID+"\x00"+info.Version+"\x00")
		if by, ok := d.(Adviser); ok {
			maps.Copy(a.advice, by.Advice())
		}
		rb, ok := d.(RuleBased)
		if !ok {
			continue
		}
		for ri, r := range rb.Rules() {
			if r.Mitigation != "" {
				a.advice[r.ID] = r.Advice()
			}
			if o := owners[r]; o != nil { // its patterns are there
				o.readers = append(o.readers, reader{i, ri})
				continue
			}
			form, o := normalForm, &owner{r, []reader{{i, ri}}}
			switch {
			case r.Pack.Raw:
				form = rawForm
			case r.Pack.NotInEnglish:
				form = furtherForm
			}
			owners[r] = o
			for _, p := range r.Expanded {
				patterns[form] = append(patterns[form], p)
				a.scans[form].owners = append(a.scans[form].owners, o)
			}
		}
	}
	a.ruleSet = hex.EncodeToString(digest.Sum(nil)[:6])
	var compiled errgroup.Group
	for form := range patterns {
		if len(patterns[form]) > 0 {
			compiled.Go(func() (err error) {
				a.scans[form].scanner, err = scan.Compile(patterns[form], scan.Options{MaxStates: maxStates})
				return err
			})
		}
	}
	if err := compiled.Wait(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	return a, nil
}

// Warm does ahead what the first texts would otherwise wait for: states that ordinary text needs, and the
// guards of all packs. It takes some tenths of a second.
func (a *Analyzer) Warm() {
	var guards sync.WaitGroup
	defer guards.Wait()
	guards.Go(refute.Warm)
	guards.Go(func() {
		seen := map[*rules.Pack]bool{}
		for form := range a.scans {
			for _, o := range a.scans[form].owners {
				if p := o.r.Pack; !seen[p] {
					seen[p] = true
					p.Warm()
				}
			}
		}
	})
	for form := range a.scans {
		if s := a.scans[form].scanner; s != nil {
			s.Warm()
		}
	}
}

// RuleSet is the version of all detectors and rules together; it is stored with every verdict.
func (a *Analyzer) RuleSet() string { return a.ruleSet }

// Advice is what a rule suggests against what it finds; the zero value where it leaves that to the policy.
func (a *Analyzer) Advice(rule string) audit.Advice { return a.advice[rule] }

// Detectors lists the detectors in the order they run.
func (a *Analyzer) Detectors() []Detector { return a.ds }

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
	var measured []audit.NamedScore
	for i, d := range a.ds {
		if a.now().Sub(start) > a.policy.DetectTimeout {
			failed(d.Info().ID, "timeout")
			continue
		}
		fs, ms, why := a.detectSafely(ctx, d, x, v)
		if why != "" {
			failed(d.Info().ID, why)
			continue
		}
		families[i], measured = fs, append(measured, ms...)
		if p, ok := d.(Personal); ok {
			v.Personal = personalSafely(p, x, fs)
		}
	}
	switch {
	case len(v.FailedBy) == 0:
	case len(v.FailedBy) == len(a.ds):
		v.Status = audit.Failed
	default:
		v.Status = audit.Partial
	}
	a.conclude(v, x, families, measured)
	if v.Status == audit.Done && strings.IndexFunc(in.Response, visible) < 0 && !slices.ContainsFunc(v.Findings, inOutput) { // a call that failed, or a prompt alone: what was found in the prompt stays
		v.Status, v.Reason = audit.Skipped, "no_response"
	}
	if v.Status == audit.Done && !x.plain[sideIndex(audit.Output)] && !language.Known(x.Normal(audit.Output).String()) {
		v.Reason = audit.OtherLanguage
	}
	v.Duration = a.now().Sub(start)
	return v
}

// visible tells characters that say something: an answer of blanks alone is none.
func visible(r rune) bool { return !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf) }

func inOutput(f audit.Finding) bool { return f.Side == audit.Output }

func (a *Analyzer) prepareSafely(in *audit.Interaction) (x *Input, ok bool) {
	defer func() {
		if recover() != nil {
			x, ok = nil, false
		}
	}()
	return a.Prepare(in), true
}

// detectSafely is the one call site of Detect: a panic is an answer of its own here.
func (a *Analyzer) detectSafely(ctx context.Context, d Detector, x *Input, v *audit.Verdict) (fs []audit.Finding, measured []audit.NamedScore, why string) {
	defer func() {
		if recover() != nil {
			fs, measured, why = nil, nil, "panic"
		}
	}()
	var err error
	if s, ok := d.(Scorer); ok {
		fs, measured, err = s.DetectScored(ctx, x)
	} else if g, ok := d.(Graded); ok && a.policy.Grades {
		fs, v.Grades, err = g.DetectGraded(ctx, x)
	} else {
		fs, err = d.Detect(ctx, x)
	}
	switch {
	case err == nil:
		return fs, measured, ""
	case errors.Is(err, context.DeadlineExceeded):
		return nil, nil, "timeout"
	}
	return nil, nil, "error"
}

// personalSafely gives nil, nobody looked, for a panic.
func personalSafely(d Personal, x *Input, fs []audit.Finding) (p *audit.Personal) {
	defer func() {
		if recover() != nil {
			p = nil
		}
	}()
	return d.Personal(x, fs)
}
