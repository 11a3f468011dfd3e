package model

import (
	"context"
	"encoding/json"

	"github.com/evenhand/evenhand/audit"
)

// Judgement is what the judge said, in its words.
type Judgement struct {
	ID                    string
	Assessment            string
	Confidence            float64
	Summary               string
	RedFlags              []string
	SuggestedRemediations []*SuggestedRemediation
	Verdict               any
}

// SuggestedRemediation is a rewrite that the judge suggests.
type SuggestedRemediation struct {
	Issue, OriginalExcerpt, SuggestedRewrite string
	Start, End                               int
}

// Judgement is read of the texts that go with those of the interaction: who may not see them gets null.
func (a *Audit) Judgement(ctx context.Context) (*Judgement, error) {
	now, err := a.current(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range now {
		if v.Analyzer != audit.JudgeAnalyzer {
			continue
		}
		t, err := a.texts(ctx)
		if err != nil {
			return nil, err
		}
		return judgement(v.ResultID, t.Judge[v.ResultID]), nil
	}
	return nil, nil //nolint:nilnil // null: the judge was not asked
}

// judgement reads seed 004's JSON, nil where there is none.
func judgement(id audit.ID, words string) *Judgement {
	var v struct {
		Overall struct {
			Assessment, Summary string
			Confidence          float64
		}
		RedFlags     []string `json:"red_flags"`
		Remediations []struct {
			Issue   string
			Excerpt string `json:"original_excerpt"`
			Span    [2]int
			Rewrite string `json:"suggested_rewrite"`
		} `json:"suggested_remediations"`
	}
	if json.Unmarshal([]byte(words), &v) != nil {
		return nil
	}
	j := &Judgement{
		ID: id.String(), Assessment: v.Overall.Assessment, Confidence: v.Overall.Confidence, Summary: v.Overall.Summary,
		RedFlags: list(v.RedFlags), SuggestedRemediations: []*SuggestedRemediation{}, Verdict: json.RawMessage(words),
	}
	for _, r := range v.Remediations {
		j.SuggestedRemediations = append(j.SuggestedRemediations, &SuggestedRemediation{r.Issue, r.Excerpt, r.Rewrite, r.Span[0], r.Span[1]})
	}
	return j
}
