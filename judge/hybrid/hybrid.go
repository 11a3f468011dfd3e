// Package hybrid is seed 002's evaluator whole: the known phrases of package terms, a language model that looks for
// subtler bias, or both, on a prompt, a response, or both.
//
// The model rates 1 to 5, where 5 is no bias: (x−1)/4. The score is the lowest of everything that was asked; 1.0 passes. The
// model sees the first 4,000 code points of each text, and only what Options.Mask leaves of it. Phrases that it names
// must stand in the text word for word, else they are dropped and counted. The reasoning joins both halves and
// quotes the text: it is for the caller, not for logs.
//
// Cost: one question a side, and one more where an answer cannot be read. Without an answer of the model, llm gives no
// score (status skipped where none is configured, else failed) and both gives what there is, marked partial. A text
// that speaks to the evaluator never passes, and its rating is not believed: only what the known phrases took off counts.
package hybrid

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/terms"
	"github.com/evenhand/evenhand/internal/llm"
)

// MaxText is how much of a text the model sees, in code points.
const MaxText = 4000

// Options is what the program sets.
type Options struct {
	// Model answers in the modes llm and both; nil: there is none. It gets Config.Model with every question.
	Model llm.Model
	// Mask hides personal data from the model; nil hides nothing. Its error counts as no answer.
	Mask func(ctx context.Context, text string) (string, error)
	// Hostile tells whether a text speaks to its evaluator; nil leaves that to the model and its canary.
	Hostile func(ctx context.Context, text string) bool
	// Random gives nonces; nil is crypto/rand.
	Random io.Reader
}

// Evaluator is a configuration made ready. It is safe for concurrent use.
type Evaluator struct {
	cfg   terms.Config
	terms *terms.Evaluator
	o     Options
	mu    sync.Mutex // of o.Random
}

// Input is what is evaluated.
type Input struct {
	Tenant        string // whose budget the questions come out of
	Input, Output string
}

// New validates the configuration; its error is of audit.KindInvalid. Config.APIKey goes with each question.
func New(cfg terms.Config, o Options) (*Evaluator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	known := cfg
	known.Mode = terms.Deterministic
	t, err := terms.NewEvaluator(known)
	if err != nil {
		return nil, err
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return &Evaluator{cfg: cfg, terms: t, o: o}, nil
}

// Evaluate looks at the sides that the configuration checks. It fails only when its context has ended: a model that
// does not answer is told in the result. Empty text passes without a question to anyone.
func (e *Evaluator) Evaluate(ctx context.Context, in Input) (*Result, error) {
	r := &Result{Score: audit.One, Status: audit.Done}
	var said []string
	if e.cfg.Mode != terms.LLM {
		t, err := e.terms.Evaluate(ctx, in.Input, in.Output)
		if err != nil {
			return nil, err
		}
		r.Score, r.Terms = t.Score, t.Terms
		said = append(said, t.Reasoning)
	}
	sides := e.sides(in)
	if len(sides) == 0 {
		r.Pass, r.Reasoning = true, "Empty text: nothing to look at."
		return r, nil
	}
	if e.cfg.Mode != terms.Deterministic {
		r.Ratings = e.rate(ctx, in.Tenant, sides)
		said = append(said, r.join(e.cfg.Mode, len(sides) > 1)...)
	}
	if err := ctx.Err(); err != nil {
		return nil, audit.E("judge: evaluate", audit.KindUnavailable, err)
	}
	r.Reasoning = strings.Join(said, " ")
	r.Pass = r.scored() && r.Score == audit.One && !r.Injection
	return r, nil
}

type side struct {
	side audit.Side
	text string
}

// sides gives the texts to look at that are not empty, in order.
func (e *Evaluator) sides(in Input) (sides []side) {
	for _, s := range []side{{audit.Input, in.Input}, {audit.Output, in.Output}} {
		if (e.cfg.Check == terms.Both || e.cfg.Check == string(s.side)) && strings.TrimSpace(s.text) != "" {
			sides = append(sides, s)
		}
	}
	return sides
}

// rate asks for each side at once; the ratings are in the order of the sides.
func (e *Evaluator) rate(ctx context.Context, tenant string, sides []side) []Rating {
	out := make([]Rating, len(sides))
	var wg sync.WaitGroup
	for i, s := range sides {
		wg.Go(func() { out[i] = e.ask(ctx, tenant, s) })
	}
	wg.Wait()
	return out
}

// join takes the ratings into the result and gives what there is to say about them. It is called once.
func (r *Result) join(mode string, several bool) (said []string) {
	for i := range r.Ratings {
		a := &r.Ratings[i]
		r.Usage.Input, r.Usage.Output, r.CostUSD = r.Usage.Input+a.usage.Input, r.Usage.Output+a.usage.Output, r.CostUSD+a.cost
		r.Calls, r.Unverified, r.Model = r.Calls+a.calls, r.Unverified+a.Unverified, cmp.Or(r.Model, a.model)
		r.Injection = r.Injection || a.Reason == Injection
		if a.Reason == "" {
			r.Score = min(r.Score, a.Score)
		} else if r.Reason == "" || a.Reason == Injection {
			r.Reason = a.Reason
		}
		said = append(said, a.say(several))
	}
	switch {
	case r.Reason == "":
	case mode == terms.Both:
		r.Status = audit.Partial
		said = append(said, "The score is that of what did answer.")
	case r.Reason == NoLLM:
		r.Status, r.Score = audit.Skipped, 0
	default:
		r.Status, r.Score = audit.Failed, 0
	}
	return said
}

// reasonOf tells as a code why there is no answer.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, llm.ErrOff):
		return NoLLM
	case errors.Is(err, llm.ErrBudget):
		return Budget
	case audit.KindOf(err) == audit.KindInvalid:
		return Settings
	}
	return Unavailable
}

// categories gives those that are looked for.
func (e *Evaluator) categories() []string {
	if len(e.cfg.Categories) == 0 {
		return terms.Categories
	}
	return slices.DeleteFunc(slices.Clone(terms.Categories), func(c string) bool { return !slices.Contains(e.cfg.Categories, c) })
}
