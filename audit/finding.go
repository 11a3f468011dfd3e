package audit

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Side tells which text of an interaction a finding stands in.
type Side string

// The two sides. Output is the response, input the prompt.
const (
	Output Side = "output"
	Input  Side = "input"
)

// Span is a range of code points of the original text, 0-based, [Start, End).
type Span struct {
	Start uint32 `json:"start"`
	End   uint32 `json:"end"`
}

// Slice cuts the span out of the text it was counted in; a span beyond the end gives what is there.
func (s Span) Slice(text string) string {
	from, to, n := len(text), len(text), uint32(0)
	for i := range text {
		if n == s.Start {
			from = i
		}
		if n == s.End {
			to = i
			break
		}
		n++
	}
	if from > to {
		return ""
	}
	return text[from:to]
}

// SpanOf turns byte offsets of text into a span of code points. Invalid UTF-8 counts one per byte,
// as ranging over the string does.
func SpanOf(text string, startByte, endByte int) Span {
	start := utf8.RuneCountInString(text[:startByte])
	return Span{uint32(start), uint32(start + utf8.RuneCountInString(text[startByte:endByte]))}
}

// Finding is one place where one rule saw something. It holds no text: the evidence is the span of
// the stored text and dies with it.
type Finding struct {
	Kind        string   // taxonomy key: charter.sex, safety.violence, gate.financial, terms.gender
	Rule        string   // id of the rule, stable
	RuleVersion string   // version of the pack that holds the rule
	Ground      Ground   // protected ground; "" outside the charter.* kinds
	Severity    Severity // "" for kinds without severity (gate, terms)
	Score       Score    // weight × multiplier
	Confidence  Score    // how sure the rule is that it means what it says; 0..1
	Side        Side
	Span        Span
	Abusive     bool   // slur, dehumanisation or threat: enters the toxicity score
	Entity      string // for personal data: its type, "CREDIT_CARD", "IBAN", …; else ""
}

// SortFindings orders findings by side (output first), start, end, rule.
func SortFindings(fs []Finding) {
	slices.SortFunc(fs, func(a, b Finding) int {
		if a.Side != b.Side {
			if a.Side == Output {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Span.End, b.Span.End), cmp.Compare(a.Rule, b.Rule))
	})
}

// Sum aggregates findings by the rule of seeds 000 and 001 with what contracts leave open: a rule
// counts once, and of overlapping findings of one ground (or category: the Kind) on one side only
// the strongest counts. Findings must be of one family; the sum may pass 1.
func Sum(fs []Finding) Score {
	if len(fs) == 0 {
		return 0
	}
	if len(fs) == 1 {
		return fs[0].Score
	}
	// Strongest first, so that a greedy pass keeps the strongest of each overlapping group.
	order := slices.Clone(fs)
	slices.SortStableFunc(order, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Rule, b.Rule))
	})
	var sum Score
	kept := order[:0:0]
next:
	for _, f := range order {
		for _, k := range kept {
			if k.Rule == f.Rule {
				continue next
			}
			if k.Kind == f.Kind && k.Side == f.Side && f.Span.Start < k.Span.End && k.Span.Start < f.Span.End {
				continue next
			}
		}
		kept = append(kept, f)
		sum += f.Score
	}
	return sum
}
