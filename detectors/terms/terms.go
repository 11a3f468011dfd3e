// Package terms is the hybrid evaluator's deterministic half: about thirty known biased phrases in
// five categories, and the caller's own, found as case-insensitive substrings by one automaton.
//
// Evaluate answers for one pair of texts {score, pass, reasoning, terms}; Detector does the same work
// in the hot path, where its findings carry kind terms.<category>. Each distinct term takes 0.15 off
// a score of 1.0, not below 0; of overlapping terms the longest wins; anything below 1.0 fails.
//
// Matching is plain substring search, without word boundaries, by contract: "chairman" is found in
// "chairmanship". Spans count code points of the original text. Cost is linear in the text, well
// under a millisecond for a response; nothing leaves the process.
//
// The modes llm and both need a language model. Without one, llm gives no score (status skipped) and
// both gives the deterministic score marked partial: never a silent pass.
package terms

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
)

// ID is the detector's id.
const ID = "terms"

// perTerm is what each distinct term takes off the score.
const perTerm audit.Score = 150_000

// confidence is how sure a substring alone is.
const confidence audit.Score = 600_000

// Detector finds terms in the hot path. It is safe for concurrent use.
type Detector struct {
	cfg     Config
	set     *set
	version string
}

// New makes the detector. Its findings come from the deterministic half whatever the mode is: the
// hot path asks no model. The sides are those of cfg.Check.
func New(cfg Config) (*Detector, error) {
	e, err := NewEvaluator(cfg)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	_, _ = io.WriteString(h, e.set.version+"\x00"+cfg.Check)
	for _, t := range e.set.terms {
		_, _ = io.WriteString(h, "\x00"+t.rule+"\x00"+t.text)
	}
	return &Detector{cfg, e.set, hex.EncodeToString(h.Sum(nil)[:6])}, nil
}

// Info describes the detector.
func (d *Detector) Info() detectors.Info {
	return detectors.Info{
		ID: ID, Title: "Known biased phrases", Version: d.version, Family: detectors.Terms, Deterministic: true,
	}
}

// Kinds lists the kinds of the terms that are looked for.
func (d *Detector) Kinds() (kinds []string) {
	for _, t := range d.set.terms {
		if kind := "terms." + t.category; !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Detect makes one finding of each place of each term on the checked sides.
func (d *Detector) Detect(ctx context.Context, in *detectors.Input) ([]audit.Finding, error) {
	var findings []audit.Finding
	for _, side := range d.cfg.sides() {
		for _, o := range d.set.automaton.find(in.Interaction.Text(side)) {
			t := d.set.terms[o.term]
			findings = append(findings, audit.Finding{
				Kind: "terms." + t.category, Rule: t.rule, RuleVersion: d.set.version, Score: perTerm,
				Confidence: confidence, Side: side, Span: in.Span(side, o.start, o.end),
			})
		}
	}
	return findings, ctx.Err()
}
