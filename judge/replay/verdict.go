package replay

import (
	"encoding/json"
	"errors"

	"github.com/evenhand/evenhand/audit"
)

// outcomes are seed 004's assessments.
var outcomes = map[string]Outcome{"compliant": Passed, "needs_review": Review, "non_compliant": Failed}

// verdict is what is read of seed 004's JSON object.
type verdict struct {
	Overall struct{ Assessment, Summary string }
	Bias    struct {
		Score    float64
		Findings []struct {
			Type, Excerpt, Rationale string
			Class                    string `json:"protected_class"`
		}
	}
	DEI struct {
		Score      float64
		Violations []struct{ Guideline, Excerpt, Issue, Recommendation string }
	}
	Offensive struct {
		Score     float64
		Instances []struct{ Category, Excerpt, Rationale string }
	} `json:"offensive_language"`
	RedFlags     []string `json:"red_flags"`
	Remediations []struct {
		Issue   string
		Excerpt string `json:"original_excerpt"`
		Rewrite string `json:"suggested_rewrite"`
	} `json:"suggested_remediations"`
}

// FromVerdict reads a verdict of the Compliance Evaluator, as it gave it or as it is stored. The score is the lowest of what is
// left of 100 by bias and offensive language, and of inclusion's where that was violated: they are never averaged.
func FromVerdict(doc []byte) (*Check, error) {
	var v verdict
	if json.Unmarshal(doc, &v) != nil {
		return nil, audit.E(op, audit.KindInvalid, errors.New("the verdict is not seed 004's JSON"))
	}
	outcome, ok := outcomes[v.Overall.Assessment]
	if !ok {
		return nil, audit.E(op, audit.KindInvalid, errors.New("the verdict has no assessment"))
	}
	left := min(100-v.Bias.Score, 100-v.Offensive.Score)
	if len(v.DEI.Violations) > 0 {
		left = min(left, v.DEI.Score)
	}
	return &Check{Outcome: outcome, Score: audit.ScoreOf(min(max(left, 0), 100) / 100), Notes: v.notes()}, nil
}

// notes are the places that the verdict names, each with the rewrite that it suggests for it; the summary and its red
// flags where it names none.
func (v *verdict) notes() (notes []Note) {
	rewrite := map[string]string{}
	for _, r := range v.Remediations {
		rewrite[r.Excerpt] = r.Rewrite
	}
	for _, f := range v.Bias.Findings {
		issue := "bias, " + f.Type
		if f.Class != "" {
			issue += ", " + f.Class
		}
		notes = append(notes, Note{issue + ": " + f.Rationale, f.Excerpt, rewrite[f.Excerpt]})
	}
	for _, f := range v.Offensive.Instances {
		notes = append(notes, Note{"offensive language, " + f.Category + ": " + f.Rationale, f.Excerpt, rewrite[f.Excerpt]})
	}
	for _, f := range v.DEI.Violations {
		advice := f.Recommendation
		if r := rewrite[f.Excerpt]; r != "" {
			advice = r
		}
		notes = append(notes, Note{"inclusive language, " + f.Guideline + ": " + f.Issue, f.Excerpt, advice})
	}
	if len(notes) == 0 && v.Overall.Assessment != "compliant" {
		notes = append(notes, Note{Issue: v.Overall.Summary})
		for _, f := range v.RedFlags {
			notes = append(notes, Note{Issue: f})
		}
	}
	return notes
}
