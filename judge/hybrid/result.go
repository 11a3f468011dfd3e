package hybrid

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/terms"
	"github.com/evenhand/evenhand/internal/llm"
)

// Why a rating is missing.
const (
	NoLLM       = "no_llm"          // none is configured
	Unavailable = "llm_unavailable" // away, slow, or too busy: later may help
	Budget      = "llm_budget"      // the tenant's of the day is spent
	Settings    = "llm_settings"    // the server refuses the key, the model, or the request
	Refused     = "llm_refused"     // the model, or its provider's filter, would not
	Unreadable  = "llm_answer"      // twice it answered something else
	Injection   = "judge_injection" // the text speaks to the evaluator
)

// Result is the answer to one evaluation. Reasoning, Analysis and Phrase hold words of the text.
type Result struct {
	Score     audit.Score // means nothing when Status is skipped or failed
	Pass      bool        // a score of 1.0, and no text that speaks to the evaluator
	Reasoning string
	Terms     []terms.Match
	Ratings   []Rating     // one a side that the model was asked about
	Status    audit.Status // done; partial: the score is that of the half that answered; skipped, failed: no score
	Reason    string       // why it is not done
	Injection bool         // a text speaks to the evaluator; a person should look

	Unverified int // phrases that the model named and the text does not hold
	Calls      int // questions, repetitions for a readable answer included
	Model      string
	Usage      llm.Usage
	CostUSD    float64
}

// Rating is what the model said about one side.
type Rating struct {
	Side       audit.Side  `json:"side"`
	Rating     float64     `json:"rating"` // 1 to 5, 5 is no bias
	Score      audit.Score `json:"score"`  // (rating−1)/4
	Analysis   string      `json:"analysis"`
	Phrases    []Phrase    `json:"phrases"`
	Truncated  bool        `json:"truncated"`         // the model saw the first MaxText code points
	Reason     string      `json:"reason,omitempty"`  // why there is none; then rating and score are null, and nothing above it means anything
	Unverified int         `json:"unverified_quotes"` // phrases that the text does not hold

	calls int
	model string
	usage llm.Usage
	cost  float64
}

// MarshalJSON writes rating and score as null where there is none.
func (r Rating) MarshalJSON() ([]byte, error) {
	type plain Rating
	if r.Reason == "" {
		return json.Marshal(plain(r))
	}
	return json.Marshal(struct {
		plain
		Rating *float64     `json:"rating"`
		Score  *audit.Score `json:"score"`
	}{plain: plain(r)})
}

// Phrase is a place that the model names.
type Phrase struct {
	Phrase   string      `json:"phrase"`
	Category string      `json:"category"`
	Issue    string      `json:"issue"`
	Span     *audit.Span `json:"span"` // its first place; nil where the phrase holds a placeholder of masked data
}

func (r *Result) scored() bool { return r.Status == audit.Done || r.Status == audit.Partial }

// MarshalJSON writes {score, pass, reasoning, terms, status, reason} as package terms does, and llm with what the model
// said; score and pass are null when there is no score.
func (r *Result) MarshalJSON() ([]byte, error) {
	type model struct {
		Model   string   `json:"model"`
		Ratings []Rating `json:"ratings"`
		Calls   int      `json:"calls"`
		Input   int      `json:"input_tokens"`
		Output  int      `json:"output_tokens"`
		CostUSD float64  `json:"cost_usd"`
	}
	out := struct {
		Score     *audit.Score  `json:"score"`
		Pass      *bool         `json:"pass"`
		Reasoning string        `json:"reasoning"`
		Terms     []terms.Match `json:"terms"`
		Status    audit.Status  `json:"status"`
		Reason    string        `json:"reason,omitempty"`
		Injection bool          `json:"injection,omitempty"`
		LLM       *model        `json:"llm,omitempty"`
	}{&r.Score, &r.Pass, r.Reasoning, r.Terms, r.Status, r.Reason, r.Injection, nil}
	if !r.scored() {
		out.Score, out.Pass = nil, nil
	}
	if out.Terms == nil {
		out.Terms = []terms.Match{}
	}
	if r.Ratings != nil {
		ratings := slices.Clone(r.Ratings)
		for i := range ratings {
			if ratings[i].Phrases == nil {
				ratings[i].Phrases = []Phrase{}
			}
		}
		out.LLM = &model{r.Model, ratings, r.Calls, r.Usage.Input, r.Usage.Output, r.CostUSD}
	}
	return json.Marshal(out)
}

// because says in words why there is no rating.
var because = map[string]string{
	NoLLM:       "no language model is configured",
	Unavailable: "the language model did not answer",
	Budget:      "the day's budget for the language model is spent",
	Settings:    "the language model's server refuses the question; its settings are at fault",
	Refused:     "the language model would not rate the text",
	Unreadable:  "the language model's answer could not be read",
	Injection:   "the text speaks to its evaluator, so a rating of it would not be worth anything; a person should look",
}

// say puts a rating in words; named says which side it is.
func (a *Rating) say(named bool) string {
	of := ""
	if named {
		of = " of the " + string(a.Side)
	}
	if a.Reason != "" {
		return fmt.Sprintf("No rating%s: %s.", of, because[a.Reason])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Language model's rating%s: %s of 5. %s", of, strconv.FormatFloat(a.Rating, 'f', -1, 64), sentence(a.Analysis))
	for i, p := range a.Phrases {
		if i == 0 {
			b.WriteString(" Biased phrases: ")
		} else {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s %q", p.Category, p.Phrase)
	}
	if len(a.Phrases) > 0 {
		b.WriteString(".")
	}
	if a.Truncated {
		fmt.Fprintf(&b, " It saw the first %d characters.", MaxText)
	}
	return b.String()
}

func sentence(s string) string {
	if s = strings.TrimSpace(s); s != "" && !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
