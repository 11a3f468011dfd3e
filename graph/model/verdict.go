package model

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// outside tells whether a verdict came from an outside analyzer ("external:WHO"); its version is who sent it.
func outside(v store.StoredVerdict) bool { return strings.HasPrefix(v.Analyzer, "external") }

// Finding is a finding with the text that it stands in.
type Finding struct {
	Kind           string
	Rule           string
	RuleVersion    string
	Characteristic *string
	Severity       *audit.Severity
	Score          float64
	Confidence     float64
	Side           string
	Start, End     int
	Analyzer       string

	of *Audit
	at audit.Finding
}

// Evidence is cut from the stored text; null when that is dropped or masked, or was cut before the finding.
func (f *Finding) Evidence(ctx context.Context) (*string, error) {
	t, err := f.of.texts(ctx)
	if err != nil {
		return nil, err
	}
	e := f.of.evidence(&t, f.at)
	if e != nil && *e == "" && f.Start < f.End {
		return nil, nil //nolint:nilnil // null: not kept
	}
	return e, nil
}

// evidence cuts a finding out of a record's texts.
func (a *Audit) evidence(t *store.Texts, f audit.Finding) *string {
	if t.State != store.TextPresent {
		return nil
	}
	s := a.page.cuts.at(a.Item.Key(), &t.Interaction, f)
	return &s
}

// cuts are the texts of a page, ready to have evidence cut out of them: a record may have thousands of findings.
type cuts struct {
	mu sync.Mutex
	of map[store.Key]audit.Evidence
}

func (c *cuts) at(key store.Key, in *audit.Interaction, f audit.Finding) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, known := c.of[key]
	if !known {
		if e = in.Evidence(); c.of == nil {
			c.of = map[store.Key]audit.Evidence{}
		}
		c.of[key] = e
	}
	return e.At(f.Side, f.Span)
}

// Verdict is a verdict of any time.
type Verdict struct {
	store.StoredVerdict
	of *Audit
}

func (v *Verdict) ID() string           { return v.ResultID.String() }
func (v *Verdict) Status() string       { return string(v.StoredVerdict.Status) }
func (v *Verdict) Reason() *string      { return ptr(v.StoredVerdict.Reason) }
func (v *Verdict) BiasDetected() bool   { return v.Detected }
func (v *Verdict) BiasType() []string   { return list(v.BiasTypes) }
func (v *Verdict) BiasScore() any       { return scores(v.Scores) }
func (v *Verdict) Confidence() float64  { return v.StoredVerdict.Confidence.Float() }
func (v *Verdict) Action() string       { return string(v.StoredVerdict.Action) }
func (v *Verdict) At() time.Time        { return v.Time }
func (v *Verdict) DurationMs() float64  { return float64(v.Duration.Microseconds()) / 1000 }
func (v *Verdict) Findings() []*Finding { return v.of.findings(v.StoredVerdict) }

// Version is that of the rules, or who sent the verdict.
func (v *Verdict) Version() string {
	if v.StoredVerdict.Version != "" {
		return v.StoredVerdict.Version
	}
	return v.RuleSet
}

// verdicts gives every verdict, newest first.
func (a *Audit) verdicts(ctx context.Context) ([]store.StoredVerdict, error) {
	return about(ctx, a, (*Page).verdicts)
}

// current gives the verdicts that count, by analyzer.
func (a *Audit) current(ctx context.Context) ([]store.StoredVerdict, error) {
	all, err := a.verdicts(ctx)
	now := slices.DeleteFunc(slices.Clone(all), func(v store.StoredVerdict) bool { return !v.Current })
	slices.SortStableFunc(now, func(a, b store.StoredVerdict) int { return strings.Compare(a.Analyzer, b.Analyzer) })
	return now, err
}

// Verdicts is the history of verdicts.
func (a *Audit) Verdicts(ctx context.Context) ([]*Verdict, error) {
	all, err := a.verdicts(ctx)
	out := make([]*Verdict, 0, len(all))
	for _, v := range all {
		out = append(out, &Verdict{v, a})
	}
	return out, err
}

// Findings are those of the current verdicts.
func (a *Audit) Findings(ctx context.Context) ([]*Finding, error) {
	now, err := a.current(ctx)
	out := []*Finding{}
	for _, v := range now {
		out = append(out, a.findings(v)...)
	}
	return out, err
}

func (a *Audit) findings(v store.StoredVerdict) []*Finding {
	out := make([]*Finding, 0, len(v.Verdict.Findings))
	for _, f := range v.Verdict.Findings {
		out = append(out, &Finding{
			Kind: f.Kind, Rule: f.Rule, RuleVersion: f.RuleVersion, Characteristic: ptr(string(f.Ground)), Severity: severity(f.Severity.Level()),
			Score: f.Score.Float(), Confidence: f.Confidence.Float(), Side: string(f.Side),
			Start: int(min(f.Span.Start, math.MaxInt32)), End: int(min(f.Span.End, math.MaxInt32)), Analyzer: v.Analyzer, of: a, at: f,
		})
	}
	return out
}

// scores are decimals by name, at most 1.
func scores(named ...[]audit.NamedScore) map[string]float64 {
	out := map[string]float64{}
	for _, s := range slices.Concat(named...) {
		out[s.Name] = max(out[s.Name], s.Value.Capped().Float())
	}
	return out
}
