// Package linguistic looks at wording (seed 003, section 4.3): needlessly gendered words, slights, adverts that deter,
// idioms, labels for people, insults; and it measures how the groups that one response mentions are treated.
//
// Nothing here enters the bias sum or sets bias_detected: a finding names a word and, mostly, a better one. Kinds are keys
// of the taxonomy: gendered_language, microaggression, job_advert_wording, idiom, language, toxicity (packs) and sentiment
// (measured). Findings of the pack toxicity are abusive and feed the toxicity score.
//
// Of responses it measures three scores of bias_score, each 0..1 and absent where there is nothing to compare:
//   - representation_score, see [representation];
//   - sentiment_divergence, see [divergence];
//   - gendered_language of job adverts, see [codedBalance].
//
// These are word lists, rules of grammar for sentiment, and arithmetic; no model is asked. What is said without such words
// is not seen here.
//
// All packs and the mentions of groups run in the common scanner. Further passes are made only over responses that mention
// two groups of one dimension, or that read as a job advert. New fails on a pack of another family; Detect fails only when
// its context has ended.
package linguistic

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/rules"
)

//go:embed packs
var packs embed.FS

// ID is the detector's id.
const ID = "linguistic"

// Rules of findings that are measured and stand in no pack.
const (
	RuleDivergence = "sentiment.divergence"
	RuleMasculine  = "gendered_language.job_text.masculine"
	RuleFeminine   = "gendered_language.job_text.feminine"
)

// advertOnly begins the ids of rules that mean something in adverts alone: "thick skin", "women only".
const advertOnly = "job_advert_wording.phrase."

// Packs holds the packs that ship with the program, for [rules.Load].
func Packs() fs.FS { return packs }

// Detector is safe for concurrent use.
type Detector struct {
	rules   []*rules.Rule // of the packs, then of the groups, then of the cues
	inPacks int           // number of rules of packs
	groups  *groups
	words   *lexicon
	coded   *codedWords
	version string
}

// New makes the detector of loaded packs; packs that are not of wording are an error.
func New(loaded []*rules.Pack) (*Detector, error) {
	const op = "linguistic: new"
	d := &Detector{rules: rules.All(loaded), words: parseWords(wordsFile), coded: parseCoded(codedFile)}
	if len(d.rules) == 0 {
		return nil, audit.E(op, audit.KindInvalid, errors.New("no rules; load at least one pack"))
	}
	for _, p := range loaded {
		if p.Wording == "" {
			return nil, audit.E(op, audit.KindInvalid, errors.New("pack "+p.ID+" is not of wording"))
		}
	}
	d.inPacks = len(d.rules)
	var err error
	if d.groups, err = loadGroups(groupsFile); err != nil {
		return nil, audit.E(op, audit.KindInternal, err)
	}
	d.rules = append(d.rules, d.groups.rules...)
	d.version = rules.SetVersion(append(loaded[:len(loaded):len(loaded)], d.groups.packs...)) + "." + digest(wordsFile, codedFile)
	return d, nil
}

// Info describes the detector.
func (d *Detector) Info() detectors.Info {
	return detectors.Info{ID: ID, Title: "Wording, and how groups are treated in one text", Version: d.version, Family: detectors.Linguistic, Deterministic: true}
}

// Rules gives the rules for the common scanner.
func (d *Detector) Rules() []*rules.Rule { return d.rules }

// Kinds are those of findings that are measured.
func (d *Detector) Kinds() []string { return []string{"gendered_language", "sentiment"} }

// Advice is that of findings that are measured.
func (d *Detector) Advice() map[string]audit.Advice {
	return map[string]audit.Advice{
		RuleDivergence: {Type: audit.MitigationRephrasePrompt, Replace: "ask for each group to be described by the same facts"},
		RuleMasculine:  {Type: audit.MitigationRephrasePrompt, Replace: "ask for an advert that balances words of competing with words of working together"},
		RuleFeminine:   {Type: audit.MitigationRephrasePrompt, Replace: "ask for an advert that balances words of working together with words of deciding"},
	}
}

// Detect gives the findings of both sides; what is measured is measured of the response.
func (d *Detector) Detect(ctx context.Context, in *detectors.Input) ([]audit.Finding, error) {
	fs, _, err := d.DetectScored(ctx, in)
	return fs, err
}

// DetectScored gives the findings and what was measured.
func (d *Detector) DetectScored(ctx context.Context, in *detectors.Input) ([]audit.Finding, []audit.NamedScore, error) {
	var findings []audit.Finding
	var scores []audit.NamedScore
	for _, side := range [...]audit.Side{audit.Output, audit.Input} {
		hits := in.Hits(ID, side)
		if len(hits) == 0 {
			continue
		}
		seen := d.groups.seen(hits, d.inPacks)
		advert := seen.cues >= 2 || in.Profile.Domain == audit.HR
		for _, hit := range hits {
			if hit.Rule >= d.inPacks {
				break // hits come in order of rules
			}
			r := d.rules[hit.Rule]
			if !advert && strings.HasPrefix(r.ID, advertOnly) {
				continue
			}
			findings = append(findings, audit.Finding{
				Kind: r.Kind, Rule: r.ID, RuleVersion: r.Pack.Version, Severity: r.Severity, Score: r.Severity.Weight(),
				Confidence: audit.ScoreOf(r.Confidence), Side: side, Span: in.Span(side, hit.Start, hit.End), Abusive: r.Abusive,
			})
		}
		if side == audit.Output {
			fs, ss := d.measure(in, seen)
			findings, scores = append(findings, fs...), ss
		}
	}
	return findings, scores, ctx.Err()
}

// measure compares the groups of a response, and weighs the words of an advert.
func (d *Detector) measure(in *detectors.Input, seen seen) (fs []audit.Finding, scores []audit.NamedScore) {
	if seen.compares() {
		t := d.read(in, seen)
		if s, ok := representation(t); ok {
			scores = append(scores, audit.NamedScore{Name: "representation_score", Value: audit.ScoreOf(s)})
		}
		if div, ok := divergence(t); ok {
			scores = append(scores, audit.NamedScore{Name: "sentiment_divergence", Value: audit.ScoreOf(div.value)})
			if div.strong() {
				f := d.measured(RuleDivergence, "sentiment", divergenceConfidence)
				f.Span = in.Span(audit.Output, div.start, div.end)
				fs = append(fs, f)
			}
		}
	}
	// Two different cues may be a talk about work; three, or one in the domain of hiring, are an advert.
	if seen.cues >= 3 || seen.cues >= 1 && in.Profile.Domain == audit.HR {
		b := d.coded.balance(in.Interaction.Text(audit.Output))
		if b.words() > 0 {
			scores = append(scores, audit.NamedScore{Name: "gendered_language", Value: audit.ScoreOf(b.score())})
		}
		for _, at := range b.strong() {
			f := d.measured(b.rule(), "gendered_language", codedConfidence)
			f.Span = in.Span(audit.Output, at[0], at[1])
			fs = append(fs, f)
		}
	}
	return fs, scores
}

func (d *Detector) measured(rule, kind string, confidence audit.Score) audit.Finding {
	return audit.Finding{
		Kind: kind, Rule: rule, RuleVersion: d.version, Severity: audit.Low, Score: audit.Low.Weight(), Confidence: confidence, Side: audit.Output,
	}
}
