package compliance

import (
	"slices"
	"unicode"

	"github.com/evenhand/evenhand/audit"
)

// windows cuts a text into ranges of at most size code points that overlap by about overlap, at a line's, sentence's or
// word's end where there is one in the last quarter.
func windows(text []rune, size, overlap int) (ws []audit.Span) {
	for start := 0; ; {
		end := min(start+size, len(text))
		if end < len(text) {
			end = goodEnd(text, start+size-size/4, end)
		}
		ws = append(ws, audit.Span{Start: uint32(start), End: uint32(end)})
		if end == len(text) {
			return ws
		}
		start = end - overlap
		for i := start; i < end && overlap > 0; i++ { // to the begin of a word
			if unicode.IsSpace(text[i]) {
				start = i + 1
				break
			}
		}
	}
}

// goodEnd gives the last good end in (from, to], to itself where there is none.
func goodEnd(text []rune, from, to int) int {
	word, sentence := 0, 0
	for i := to; i > from; i-- {
		switch c := text[i-1]; {
		case c == '\n':
			return i
		case unicode.IsSpace(c):
			word = max(word, i)
			if i > 1 && unicode.Is(unicode.Sentence_Terminal, text[i-2]) {
				sentence = max(sentence, i)
			}
		case c == '。' || c == '！' || c == '？':
			sentence = max(sentence, i)
		}
	}
	switch {
	case sentence > 0:
		return sentence
	case word > 0:
		return word
	}
	return to
}

var (
	assessments = []string{Compliant, NeedsReview, NonCompliant}
	risks       = []string{None, "low", "moderate", "high"}
	grades      = []string{None, "low", "medium", "high", "critical"}
)

// worse is the later of two in an order.
func worse(order []string, a, b string) string {
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// merge makes one verdict of those of the windows: the strictest of each figure, the summary and confidence of the
// strictest window (the surest of several), and all that was found, each once: a model may name a place twice, and two
// windows what stands in their overlap.
func merge(all []*Verdict) *Verdict {
	out := Verdict{Overall: all[0].Overall, Bias: Bias{Risk: None}, DEI: DEI{Score: all[0].DEI.Score, Risk: None}, Offensive: Offensive{Severity: None}}
	for _, v := range all {
		a, b := slices.Index(assessments, out.Overall.Assessment), slices.Index(assessments, v.Overall.Assessment)
		if b > a || b == a && v.Overall.Confidence > out.Overall.Confidence {
			out.Overall = v.Overall
		}
		out.Bias.Score, out.Bias.Risk = max(out.Bias.Score, v.Bias.Score), worse(risks, out.Bias.Risk, v.Bias.Risk)
		out.DEI.Score, out.DEI.Risk = min(out.DEI.Score, v.DEI.Score), worse(risks, out.DEI.Risk, v.DEI.Risk)
		out.Offensive.Score, out.Offensive.Severity = max(out.Offensive.Score, v.Offensive.Score), worse(grades, out.Offensive.Severity, v.Offensive.Severity)
		out.Bias.Findings = union(out.Bias.Findings, v.Bias.Findings, func(a, b BiasFinding) bool { return a.Type == b.Type && a.Span == b.Span })
		out.DEI.Violations = union(out.DEI.Violations, v.DEI.Violations, func(a, b Violation) bool { return a.Guideline == b.Guideline && a.Span == b.Span })
		out.Offensive.Instances = union(out.Offensive.Instances, v.Offensive.Instances, func(a, b Instance) bool { return a.Category == b.Category && a.Span == b.Span })
		out.Mentioned = union(out.Mentioned, v.Mentioned, func(a, b Mention) bool { return a.Class == b.Class && a.Span == b.Span })
		out.RedFlags = union(out.RedFlags, v.RedFlags, func(a, b string) bool { return a == b })
		out.Remediations = union(out.Remediations, v.Remediations, func(a, b Remediation) bool { return a.Span == b.Span })
	}
	out.fill()
	return &out
}

// union adds to a what of b is not in it.
func union[T any](a, b []T, same func(a, b T) bool) []T {
	for _, x := range b {
		if !slices.ContainsFunc(a, func(y T) bool { return same(x, y) }) {
			a = append(a, x)
		}
	}
	return a
}
