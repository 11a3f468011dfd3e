package audit

import (
	"math"
	"strconv"
)

// Score is a score, weight, multiplier or threshold in whole millionths: 0.3 is 300_000.
type Score int64

// One is the score 1.0.
const One Score = 1_000_000

// ScoreOf rounds a decimal to the nearest millionth.
func ScoreOf(f float64) Score { return Score(math.Round(f * float64(One))) }

// Float gives the decimal value, for the edges (JSON, pages) only.
func (s Score) Float() float64 { return float64(s) / float64(One) }

// Times multiplies two scores (weight × multiplier), rounding half away from zero.
func (s Score) Times(m Score) Score {
	p := int64(s) * int64(m)
	half := int64(One) / 2
	if p < 0 {
		half = -half
	}
	return Score((p + half) / int64(One))
}

// Capped gives min(1, s): values shown as scores, never the sum that is compared.
func (s Score) Capped() Score { return min(One, s) }

// String prints the shortest decimal, "0.3".
func (s Score) String() string { return strconv.FormatFloat(s.Float(), 'f', -1, 64) }

// MarshalJSON writes the decimal value.
func (s Score) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON reads a decimal value.
func (s *Score) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	*s = ScoreOf(f)
	return nil
}

// Severity is the level of a rule or finding, as seeds 000 and 001 name them.
type Severity string

// The four levels, weakest first.
const (
	Low      Severity = "LOW"      // stereotyping, mild generalizations
	Medium   Severity = "MEDIUM"   // differential treatment language
	High     Severity = "HIGH"     // discriminatory outcome language
	Critical Severity = "CRITICAL" // explicit slurs, hate speech, supremacy
)

// Severities lists the levels, weakest first.
var Severities = []Severity{Low, Medium, High, Critical}

// Weight is the level's contribution to the aggregate: 0.1, 0.3, 0.6, 1.0; 0 for an unknown level.
func (s Severity) Weight() Score {
	switch s {
	case Low:
		return 100_000
	case Medium:
		return 300_000
	case High:
		return 600_000
	case Critical:
		return 1_000_000
	}
	return 0
}

// Level orders severities: 0 unknown, LOW 1 … CRITICAL 4. It is the number stored.
func (s Severity) Level() uint8 {
	switch s {
	case Low:
		return 1
	case Medium:
		return 2
	case High:
		return 3
	case Critical:
		return 4
	}
	return 0
}

// TermsScore is seed 002's deterministic score: 0.15 off 1.0 for each distinct term, not below 0.
func TermsScore(distinctTerms int) Score { return max(0, One-150_000*Score(distinctTerms)) }
