// Package pii finds personal data: contact and network addresses, cards and accounts, national numbers,
// passports and licences, dates of birth, wallets, and credentials.
//
// Patterns read the text as it came, in the common scanner; what they match passes a validator of package
// check (check digits, numbering plans, dates) and, where the shape alone says too little, must stand beside
// a word of its rule. Card, IBAN, social security number and credentials are the rules of the safety pack
// pii_leakage, read here too: there is one truth, and only those four enter the safety sum.
//
// Findings have kind pii.<entity>, no score, and no part in any sum; of overlapping ones the longest stays.
// Mask puts their entities in the place of what they found. A text without personal data costs the scan
// only. Names of persons and postal addresses are not found: rules cannot tell them from other words.
package pii

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/rules/check"
)

//go:embed packs
var packs embed.FS

// ID is the detector's id.
const ID = "pii"

// Packs holds the packs that ship with the program, for [rules.Load].
func Packs() fs.FS { return packs }

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// SanitizePrompt says whether a prompt with personal data is stored masked, too. Default true.
	SanitizePrompt bool
}

// DefaultConfig masks prompts.
func DefaultConfig() Config { return Config{SanitizePrompt: true} }

// Detector is safe for concurrent use.
type Detector struct {
	cfg     Config
	rules   []*rules.Rule
	checks  []check.Func // by rule, nil where the rule has none
	kinds   []string     // by rule
	version string
}

// New makes the detector of loaded packs. Rules without an entity are left out, so that packs of other
// families may be among them; no rule at all is an error.
func New(cfg Config, packs []*rules.Pack) (*Detector, error) {
	d := &Detector{cfg: cfg, version: rules.SetVersion(packs)}
	for _, r := range rules.All(packs) {
		if r.Entity == "" {
			continue
		}
		d.rules = append(d.rules, r)
		d.checks = append(d.checks, check.Named(r.Check))
		d.kinds = append(d.kinds, "pii."+strings.ToLower(r.Entity))
	}
	if len(d.rules) == 0 {
		return nil, audit.E("pii: new", audit.KindInvalid, errors.New("no rules with an entity; load at least one pack"))
	}
	return d, nil
}

// Info describes the detector.
func (d *Detector) Info() detectors.Info {
	return detectors.Info{ID: ID, Title: "Personal data and credentials", Version: d.version, Family: detectors.PII, Deterministic: true}
}

// Rules gives the rules for the common scanner.
func (d *Detector) Rules() []*rules.Rule { return d.rules }

// Kinds lists the kinds that are looked for.
func (d *Detector) Kinds() []string {
	kinds := slices.Clone(d.kinds)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Detect makes one finding of each place that holds personal data, on both sides.
func (d *Detector) Detect(ctx context.Context, in *detectors.Input) ([]audit.Finding, error) {
	var findings []audit.Finding
	for _, side := range [...]audit.Side{audit.Output, audit.Input} {
		for _, v := range d.values(in.Interaction.Text(side), in.Hits(ID, side)) {
			r := d.rules[v.rule]
			findings = append(findings, audit.Finding{
				Kind: d.kinds[v.rule], Rule: r.ID, RuleVersion: r.Pack.Version, Severity: r.Severity,
				Confidence: audit.ScoreOf(r.Confidence), Side: side, Span: in.Span(side, v.from, v.to), Entity: r.Entity,
			})
		}
	}
	return findings, ctx.Err()
}

// value is a place in a text, in bytes, that a rule takes for personal data.
type value struct{ rule, from, to int }

// values keeps the hits that pass their rule's check and context, and of overlapping ones the longest, then
// the surest.
func (d *Detector) values(text string, hits []detectors.Hit) []value {
	var vs []value
	for _, h := range hits {
		r := d.rules[h.Rule]
		if valid := d.checks[h.Rule]; valid != nil && !valid(text, h.Start, h.End) || !rules.InContext(r, text, h.Start, h.End) {
			continue
		}
		if from, to := check.Value(r.Check, text, h.Start, h.End); from < to {
			vs = append(vs, value{h.Rule, from, to})
		}
	}
	slices.SortFunc(vs, func(a, b value) int {
		return cmp.Or(cmp.Compare(b.to-b.from, a.to-a.from), cmp.Compare(d.rules[b.rule].Confidence, d.rules[a.rule].Confidence),
			cmp.Compare(a.from, b.from), cmp.Compare(a.rule, b.rule))
	})
	return apart(vs, func(v value) (from, to int) { return v.from, v.to })
}

// apart keeps, of ranges in the order of what they are worth, those that overlap none before them. They come
// back by place.
func apart[T any](ranges []T, of func(T) (from, to int)) (kept []T) {
	for _, r := range ranges {
		from, to := of(r)
		at, _ := slices.BinarySearchFunc(kept, to, func(k T, to int) int { // the first that begins at to or later
			begin, _ := of(k)
			return cmp.Compare(begin, to)
		})
		if at > 0 {
			if _, end := of(kept[at-1]); end > from {
				continue
			}
		}
		kept = slices.Insert(kept, at, r)
	}
	return kept
}
