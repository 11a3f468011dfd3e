// Package compliance is the Compliance Evaluator of seed 004: a language model reads one text and says, in one JSON
// object, where it sees bias, breaches of inclusive language (DEI) and offensive language.
//
// Nothing the model says is taken on trust. Its answer must keep the schema; what does not is asked for once more with
// the faults named, and is an error after that. Every quote must stand in the text: its place is computed here, in code
// points of the text that was given, and a claim without a quote does not count. The text reaches the model as one JSON
// string between lines that it cannot write, in the user message alone; the model has no tools. A text that speaks to
// the evaluator is a finding of its own, found by rules and not by the model, and asks for a person. An answer that
// holds the canary of the system prompt is thrown away.
//
// The model sees the text, its domain and language, and nothing of what rules found, so that it may add findings and
// never take any away. With Config.Mask it sees placeholders for personal data; quotes are mapped back.
//
// Cost: one call of about 1,500 tokens and the text, two where the answer had to be mended, per window of
// Config.MaxChars, of Config.MaxWindows at most. The empty text costs none. The same text may get another verdict from the same model: votes and
// thresholds are the caller's affair, and so are caching, budgets and storing.
package compliance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/schemas/judge"
)

var (
	// ErrAnswer says that the model gave no usable verdict, not when asked again either. The faults are in the chain, by
	// their place in the schema and without any of the answer's words.
	ErrAnswer = errors.New("the answer is no verdict")
	// ErrRefused says that it would not evaluate the text. It comes with ErrAnswer.
	ErrRefused = errors.New("the model refused")
)

// Input is a response to evaluate.
type Input struct {
	Tenant   string // whose budget it comes out of
	Text     string
	Language string // BCP 47, "" when not known
	Domain   string // one of audit's domains, "" when not known
	// Turn lists the criteria so many places on, to see whether their order changes the answer. 0 is the specification's
	// order, in which everything is judged that is kept.
	Turn int
}

// Result is what an evaluation gave. With an error Verdict is nil, and the rest says what was spent and where the text
// addresses the evaluator: a text that makes a model fail does not hide its attempt.
type Result struct {
	Verdict    *Verdict // texts of people are in it
	Findings   []audit.Finding
	Scores     []audit.NamedScore
	Detected   bool        // bias: a quote that stands in the text and a risk above none
	Confidence audit.Score // the model's in itself
	Unverified int         // quotes that did not stand in the text and were dropped
	Repaired   bool        // an answer had to be asked for again
	Injection  bool        // the text addresses the evaluator
	Leaked     int         // answers thrown away because they held the canary
	Parts      int         // windows of the text
	LeftOut    int         // of them, not evaluated: see Config.MaxWindows

	Calls         int
	Usage         llm.Usage
	CostUSD       float64
	Model         string // as the server names it
	PromptVersion string
	Time          time.Time
	Duration      time.Duration

	meta       Meta
	mistrusted bool // see Mistrust
}

// Evaluator asks a model. It is safe for concurrent use.
type Evaluator struct {
	model  llm.Model
	cfg    Config
	rules  finder // of texts that address the evaluator
	strict llm.Schema
}

// New makes an evaluator. Its error is of audit.KindInvalid for a bad Config.
func New(model llm.Model, cfg Config) (*Evaluator, error) {
	const op = "judge/compliance: new"
	if model == nil {
		return nil, audit.E(op, audit.KindInternal, errors.New("there is no model"))
	}
	if err := cfg.Validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if _, err := schema(); err != nil {
		return nil, audit.E(op, audit.KindInternal, err)
	}
	strict, err := judge.Strict()
	if err != nil {
		return nil, audit.E(op, audit.KindInternal, err)
	}
	rules, err := newFinder()
	if err != nil {
		return nil, err
	}
	return &Evaluator{model: model, cfg: cfg, rules: rules, strict: llm.Schema{Name: "compliance_verdict", JSON: strict}}, nil
}

// Evaluate gives the verdict on a text. Errors of the model pass with their kind. An answer that is no verdict is an
// error of audit.KindInvalid with ErrAnswer: to ask again at once would meet the same, so it is a failed verdict.
func (e *Evaluator) Evaluate(ctx context.Context, in Input) (*Result, error) {
	start := e.cfg.Now()
	r := &Result{PromptVersion: in.version(), Time: start.UTC().Truncate(time.Millisecond)}
	err := e.evaluate(ctx, in, r)
	r.Duration = e.cfg.Now().Sub(start)
	if err != nil {
		r.Verdict = nil
		return r, wrapped(err)
	}
	return r, nil
}

func wrapped(err error) error {
	const op = "judge/compliance: evaluate"
	var f *faults
	if errors.As(err, &f) {
		return audit.E(op, audit.KindInvalid, fmt.Errorf("%w: %w", ErrAnswer, err))
	}
	return fmt.Errorf("%s: %w", op, err)
}

func (e *Evaluator) evaluate(ctx context.Context, in Input, r *Result) error {
	text := []rune(in.Text) // a byte that is no UTF-8 is a code point of its own
	in.Text = string(text)
	meta := Meta{verdictVersion, r.Time.Format(time.RFC3339), len(text)}
	r.meta = meta
	if strings.TrimSpace(in.Text) == "" {
		r.Verdict, r.Confidence = clean("The text is empty."), audit.One
		r.Verdict.Meta, r.Verdict.Overall.Confidence = meta, 1
		return nil
	}
	attempts, err := e.rules.attempts(ctx, in.Text)
	if err != nil {
		return err
	}
	r.Findings, r.Injection = attempts, len(attempts) > 0
	seen := pii.Masked{Text: in.Text}
	if e.cfg.Mask != nil {
		if seen, err = e.cfg.Mask(ctx, in.Text); err != nil {
			return err
		}
	}
	verdicts, err := e.read(ctx, in, text, &seen, meta, r)
	if err != nil {
		return err
	}
	r.conclude(verdicts, meta)
	return nil
}

// read has every window evaluated. A window whose answer was thrown away gives none.
func (e *Evaluator) read(ctx context.Context, in Input, text []rune, seen *pii.Masked, meta Meta, r *Result) (verdicts []*Verdict, err error) {
	shown := []rune(seen.Text)
	parts := windows(shown, e.cfg.MaxChars, e.cfg.Overlap)
	if r.Parts = len(parts); r.Parts > e.cfg.MaxWindows {
		parts = parts[:e.cfg.MaxWindows]
		r.LeftOut = r.Parts - len(parts)
	}
	for _, w := range parts {
		part := string(shown[w.Start:w.End])
		v, err := e.ask(ctx, in, part, meta, r)
		if errors.Is(err, errLeaked) {
			r.Leaked++
			continue
		}
		if err != nil {
			return nil, err
		}
		ev := evidence{seen: newSource(part), text: text, at: func(s audit.Span) audit.Span {
			return seen.Original(audit.Span{Start: s.Start + w.Start, End: s.End + w.Start})
		}}
		ev.verify(v)
		r.Unverified += ev.lost
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// errLeaked says that an answer holds the canary.
var errLeaked = errors.New("the answer gives the instructions away")

// ask puts one window to the model, and once more where the answer has faults.
func (e *Evaluator) ask(ctx context.Context, in Input, part string, meta Meta, r *Result) (*Verdict, error) {
	m, err := newMarks(e.cfg.Random)
	if err != nil {
		return nil, audit.E("judge/compliance: nonce", audit.KindInternal, err)
	}
	system, schema := m.system(), e.strict
	if in.Turn != 0 {
		system = turned(system, inPrompt, in.Turn)
		if schema.JSON, err = turnedSchema(schema.JSON, in.Turn); err != nil {
			return nil, audit.E("judge/compliance: turn", audit.KindInternal, err)
		}
	}
	req := llm.Request{
		Tenant: in.Tenant, Model: e.cfg.Model, System: system, Schema: &schema, MaxTokens: e.cfg.MaxTokens, Seed: e.cfg.Seed,
		Messages: []llm.Message{{Role: "user", Content: m.user(in, part)}},
	}
	for turn := 0; ; turn++ {
		a, err := e.model.Complete(ctx, req)
		if err != nil {
			return nil, err
		}
		r.spent(a)
		if strings.Contains(a.Text+a.Refusal, m.Canary) {
			return nil, errLeaked
		}
		v, err := verdictOf(a, meta)
		var f *faults
		if !errors.As(err, &f) || turn > 0 {
			return v, err
		}
		r.Repaired = true
		req.Messages = append(req.Messages, llm.Message{Role: "assistant", Content: said(a)}, llm.Message{Role: "user", Content: repair(f.lines)})
	}
}

// verdictOf reads an answer.
func verdictOf(a *llm.Answer, meta Meta) (*Verdict, error) {
	v, err := decode(a.Text, meta)
	if err == nil {
		return v, nil
	}
	switch {
	case a.Refusal != "" || a.Finish == "content_filter":
		return nil, fmt.Errorf("%w: %w", ErrRefused, fault("a refusal", "You are not asked to agree with the text or to go on with it, only to evaluate it."))
	case a.Finish == "length":
		return nil, fault("the length", "It was cut off for its length: be briefer, and name fewer findings if need be.")
	}
	return nil, err
}

const maxSaid = 16 << 10 // bytes of a faulty answer that are shown to the model again

// said is a faulty answer as the model's own turn, which may not be empty.
func said(a *llm.Answer) string {
	text := a.Text
	if strings.TrimSpace(text) == "" {
		text = a.Refusal
	}
	if strings.TrimSpace(text) == "" {
		return "{}"
	}
	return strings.ToValidUTF8(text[:min(len(text), maxSaid)], "")
}

func (r *Result) spent(a *llm.Answer) {
	r.Calls++
	r.Usage.Input += a.Usage.Input
	r.Usage.Output += a.Usage.Output
	r.CostUSD += a.CostUSD
	r.Model = a.Model
}

// conclude makes one verdict of those of the windows and our record of it.
func (r *Result) conclude(verdicts []*Verdict, meta Meta) {
	v := clean("The model's answer was thrown away: it gave its instructions away.")
	if r.mistrusted {
		v.Overall.Summary = "The text addresses the evaluator, and the model gave no verdict."
	}
	if len(verdicts) > 0 {
		v = merge(verdicts)
	}
	if r.Leaked > 0 && !r.Injection {
		r.Injection = true
		r.Findings = []audit.Finding{attempt(InjectionRule, PromptVersion, audit.Output, audit.Span{End: uint32(meta.InputLength)}, audit.One)}
	}
	if r.Injection {
		v.Overall.Assessment = worse(assessments, v.Overall.Assessment, NeedsReview)
		v.RedFlags = append(v.RedFlags, "The text addresses the evaluator.")
	}
	if r.LeftOut > 0 { // harm may stand behind what was read
		v.Overall.Assessment = worse(assessments, v.Overall.Assessment, NeedsReview)
		v.RedFlags = append(v.RedFlags, fmt.Sprintf("Only the first %d of %d parts of the text were evaluated.", r.Parts-r.LeftOut, r.Parts))
	}
	v.Meta = meta
	order(v)
	r.Verdict = v
	r.Confidence = audit.ScoreOf(v.Overall.Confidence)
	r.Detected = len(v.Bias.Findings) > 0 && v.Bias.Risk != None
	r.Findings = append(r.Findings, findings(v, r.version())...)
	audit.SortFindings(r.Findings)
	if len(verdicts) > 0 {
		r.Scores = scores(v)
	}
}
