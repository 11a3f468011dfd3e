// Package pii finds personal data: contact and network addresses, cards and accounts, national numbers,
// passports and licences, dates of birth, wallets, and credentials.
//
// Patterns read the text as it is spelled, in the common scanner; what they match passes a validator of package
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
	kinds   []string // by rule
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
		for _, v := range d.longest(in.Hits(ID, side)) {
			r := d.rules[v.Rule]
			findings = append(findings, audit.Finding{
				Kind: d.kinds[v.Rule], Rule: r.ID, RuleVersion: r.Pack.Version, Severity: r.Severity,
				Confidence: audit.ScoreOf(r.Confidence), Side: side, Span: in.Span(side, v.Start, v.End), Entity: r.Entity,
			})
		}
	}
	return findings, ctx.Err()
}

// longest keeps, of hits that overlap, the longest, then that of the surest rule.
func (d *Detector) longest(hits []detectors.Hit) []detectors.Hit {
	byWorth := slices.SortedFunc(slices.Values(hits), func(a, b detectors.Hit) int {
		return cmp.Or(cmp.Compare(b.End-b.Start, a.End-a.Start), cmp.Compare(d.rules[b.Rule].Confidence, d.rules[a.Rule].Confidence),
			cmp.Compare(a.Start, b.Start), cmp.Compare(a.Rule, b.Rule))
	})
	return apart(byWorth, func(h detectors.Hit) (from, to int) { return h.Start, h.End })
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
