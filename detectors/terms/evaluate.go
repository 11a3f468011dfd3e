package terms

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// Match is one distinct term that was found, with every place where it stands.
type Match struct {
	Term     string       `json:"term"` // as listed, in lower case
	Category string       `json:"category"`
	Side     audit.Side   `json:"side"`
	Spans    []audit.Span `json:"spans"`
}

// Result is the answer to one evaluation.
type Result struct {
	// Score is 1.0 less 0.15 for each distinct term, the lower of both sides when both are checked;
	// it means nothing when Status is skipped.
	Score audit.Score
	// Pass is true for a score of 1.0 only, and never when there is no score.
	Pass      bool
	Reasoning string // terms by category, and what could not be done; holds no text of the caller
	Terms     []Match
	// Status is done; partial when a language model was asked for beside the terms and did not
	// answer; skipped when only a model was asked for and none answered.
	Status audit.Status
	Reason string // code for partial and skipped: "no_llm"
}

// MarshalJSON writes {score, pass, reasoning, terms, status, reason}; score and pass are null when
// there is no score.
func (r Result) MarshalJSON() ([]byte, error) {
	out := struct {
		Score     *audit.Score `json:"score"`
		Pass      *bool        `json:"pass"`
		Reasoning string       `json:"reasoning"`
		Terms     []Match      `json:"terms"`
		Status    audit.Status `json:"status"`
		Reason    string       `json:"reason,omitempty"`
	}{&r.Score, &r.Pass, r.Reasoning, r.Terms, r.Status, r.Reason}
	if r.Status == audit.Skipped {
		out.Score, out.Pass = nil, nil
	}
	if out.Terms == nil {
		out.Terms = []Match{}
	}
	return json.Marshal(out)
}

// Evaluate evaluates one pair of texts with a configuration of its own. It fails with
// audit.KindInvalid when the configuration is faulty, and when its context has ended.
func Evaluate(ctx context.Context, cfg Config, input, output string) (Result, error) {
	e, err := NewEvaluator(cfg)
	if err != nil {
		return Result{}, err
	}
	return e.Evaluate(ctx, input, output)
}

// Evaluator is a configuration made ready. It is safe for concurrent use.
type Evaluator struct {
	cfg Config
	set *set
}

// NewEvaluator validates the configuration and builds its automaton; the built-in terms alone come
// from a cache.
func NewEvaluator(cfg Config) (*Evaluator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s, err := setOf(cfg)
	if err != nil {
		return nil, err
	}
	return &Evaluator{cfg, s}, nil
}

// Evaluate looks at the sides that the configuration checks. It fails only when its context has
// ended. Empty text passes without a question to anyone.
func (e *Evaluator) Evaluate(ctx context.Context, input, output string) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, audit.E("terms: evaluate", audit.KindUnavailable, err)
	}
	r := Result{Score: audit.One, Status: audit.Done}
	empty := true
	for _, side := range e.cfg.sides() {
		text := output
		if side == audit.Input {
			text = input
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		empty = false
		if e.cfg.Mode == LLM {
			continue
		}
		ms := e.set.matches(text, side)
		r.Terms = append(r.Terms, ms...)
		r.Score = min(r.Score, audit.TermsScore(len(ms)))
	}
	r.Reasoning = reasoning(r.Terms)
	switch {
	case empty:
		r.Reasoning = "Empty text: nothing to look at."
	case e.cfg.Mode == LLM:
		r.Score, r.Status, r.Reason = 0, audit.Skipped, noLLM
		r.Reasoning = "No score: mode llm asks a language model, and none is configured."
	case e.cfg.Mode == Both:
		r.Status, r.Reason = audit.Partial, noLLM
		r.Reasoning += " This is the deterministic score alone: mode both also asks a language model, and none is configured."
	}
	r.Pass = r.Status != audit.Skipped && r.Score == audit.One
	return r, nil
}

// noLLM is the reason code when a model is asked for and there is none.
const noLLM = "no_llm"

// matches gives the distinct terms of a text in the order in which they first stand.
func (s *set) matches(text string, side audit.Side) []Match {
	var ms []Match
	var byTerm map[int]int // term -> index in ms
	points := audit.PointsOf(text)
	for _, o := range s.automaton.find(text) {
		i, known := byTerm[o.term]
		if !known {
			if byTerm == nil {
				byTerm = map[int]int{}
			}
			i = len(ms)
			byTerm[o.term] = i
			t := s.terms[o.term]
			ms = append(ms, Match{Term: t.text, Category: t.category, Side: side})
		}
		ms[i].Spans = append(ms[i].Spans, points.Span(o.start, o.end))
	}
	return ms
}

// reasoning lists the terms by category, in the order of Categories, custom last.
func reasoning(ms []Match) string {
	if len(ms) == 0 {
		return "No biased terms found."
	}
	by := map[string][]string{}
	for _, m := range ms {
		if q := strconv.Quote(m.Term); !slices.Contains(by[m.Category], q) {
			by[m.Category] = append(by[m.Category], q)
		}
	}
	order := append(slices.Clone(Categories), customCategory)
	categories := slices.SortedFunc(maps.Keys(by), func(x, y string) int {
		return cmp.Compare(slices.Index(order, x), slices.Index(order, y))
	})
	n, parts := 0, make([]string, len(categories))
	for i, c := range categories {
		n += len(by[c])
		parts[i] = c + ": " + strings.Join(by[c], ", ")
	}
	plural := "s"
	if n == 1 {
		plural = ""
	}
	return fmt.Sprintf("Found %d biased term%s. %s.", n, plural, strings.Join(parts, "; "))
}
