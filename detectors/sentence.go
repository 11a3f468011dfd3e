package detectors

import (
	"strings"
	"unicode"

	"github.com/evenhand/evenhand/detectors/normal"
)

// sentencesOf cuts a normal text into sentences, see [normal.SentenceEnd].
func sentencesOf(text string) []Sentence {
	var out []Sentence
	for from := 0; from < len(text); {
		end := normal.SentenceEnd(text, from)
		part := text[from:end]
		trimmed := strings.TrimLeftFunc(part, unicode.IsSpace)
		start := from + len(part) - len(trimmed)
		if trimmed = strings.TrimRightFunc(trimmed, unicode.IsSpace); trimmed != "" {
			out = append(out, Sentence{start, start + len(trimmed)})
		}
		from = end
	}
	return out
}
