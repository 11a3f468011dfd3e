package compliance

import (
	"encoding/json"
	"math"
)

// Verdict is seed 004's JSON object, exactly: schemas/judge/verdict.json. Spans count code points of the text that was
// given, [start, end). It holds text of people: excerpts, and what the model wrote about them.
type Verdict struct {
	Overall      Overall       `json:"overall"`
	Bias         Bias          `json:"bias"`
	DEI          DEI           `json:"dei"`
	Offensive    Offensive     `json:"offensive_language"`
	Mentioned    []Mention     `json:"protected_classes_mentioned"`
	RedFlags     []string      `json:"red_flags"`
	Remediations []Remediation `json:"suggested_remediations"`
	Meta         Meta          `json:"meta"`
}

// Values of Overall.Assessment, the strictest last.
const (
	Compliant    = "compliant"
	NeedsReview  = "needs_review"
	NonCompliant = "non_compliant"
)

// None is the risk and severity of a section without issues.
const None = "none"

// Overall is the whole in one sentence.
type Overall struct {
	Assessment string  `json:"assessment"`
	Confidence float64 `json:"confidence"` // 0..1
	Summary    string  `json:"summary"`
}

// Bias is section A.
type Bias struct {
	Score    float64       `json:"score"` // 0..100, 100 is extreme
	Risk     string        `json:"risk"`  // none, low, moderate, high
	Findings []BiasFinding `json:"findings"`
}

// BiasFinding is one place of section A.
type BiasFinding struct {
	Type           string  `json:"type"`
	Target         string  `json:"target"`
	ProtectedClass *string `json:"protected_class"`
	Excerpt        string  `json:"excerpt"`
	Span           Span    `json:"span"`
	Rationale      string  `json:"rationale"`
}

// DEI is section B.
type DEI struct {
	Score      float64     `json:"score"` // 0..100, higher is more compliant
	Risk       string      `json:"risk"`
	Violations []Violation `json:"violations"`
}

// Violation is one place of section B.
type Violation struct {
	Guideline      string `json:"guideline"`
	Excerpt        string `json:"excerpt"`
	Span           Span   `json:"span"`
	Issue          string `json:"issue"`
	Recommendation string `json:"recommendation"`
}

// Offensive is section C.
type Offensive struct {
	Score      float64    `json:"score"`    // 0..100, 100 is extreme
	Severity   string     `json:"severity"` // none, low, medium, high, critical
	Categories []string   `json:"categories"`
	Instances  []Instance `json:"instances"`
}

// Instance is one place of section C.
type Instance struct {
	Category  string `json:"category"`
	Excerpt   string `json:"excerpt"`
	Span      Span   `json:"span"`
	Severity  string `json:"severity"`
	Rationale string `json:"rationale"`
}

// Mention is a protected class that the text speaks of.
type Mention struct {
	Class   string `json:"class"`
	Context string `json:"context"` // neutral, positive, negative
	Excerpt string `json:"excerpt"`
	Span    Span   `json:"span"`
}

// Remediation is a suggested rewrite.
type Remediation struct {
	Issue            string `json:"issue"`
	OriginalExcerpt  string `json:"original_excerpt"`
	Span             Span   `json:"span"`
	SuggestedRewrite string `json:"suggested_rewrite"`
}

// Meta is filled by us, never by the model.
type Meta struct {
	Version     string `json:"version"`
	EvaluatedAt string `json:"evaluated_at"` // RFC 3339, UTC
	InputLength int    `json:"input_length"` // code points of the text that was given
}

const verdictVersion = "1.0"

// Span is [start, end).
type Span [2]uint32

// UnmarshalJSON takes what a model writes: numbers such as 12.0. One that is too large stands for the far end, since
// a model's span is only a hint of which occurrence of an excerpt it means.
func (s *Span) UnmarshalJSON(b []byte) error {
	var f [2]float64
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	for i := range f {
		s[i] = uint32(min(max(f[i], 0), math.MaxUint32))
	}
	return nil
}

// clean is the verdict on a text without issues, with scores of zero as seed 004 asks for the empty text.
func clean(summary string) *Verdict {
	v := &Verdict{
		Overall: Overall{Assessment: Compliant, Summary: summary},
		Bias:    Bias{Risk: None}, DEI: DEI{Risk: None}, Offensive: Offensive{Severity: None},
	}
	v.fill()
	return v
}

// fill makes empty arrays of absent ones, for the schema has no null.
func (v *Verdict) fill() {
	v.Bias.Findings = orEmpty(v.Bias.Findings)
	v.DEI.Violations = orEmpty(v.DEI.Violations)
	v.Offensive.Categories = orEmpty(v.Offensive.Categories)
	v.Offensive.Instances = orEmpty(v.Offensive.Instances)
	v.Mentioned = orEmpty(v.Mentioned)
	v.RedFlags = orEmpty(v.RedFlags)
	v.Remediations = orEmpty(v.Remediations)
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
