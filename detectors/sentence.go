package detectors

import (
	"strings"
	"unicode"

	"github.com/evenhand/evenhand/detectors/normal"
)

// usualSentence is a length, in bytes, that most texts' sentences have or exceed.
const usualSentence = 64

// sentencesOf cuts a normal text into sentences, see [normal.SentenceEnd].
func sentencesOf(text string) []Sentence {
	out := make([]Sentence, 0, (len(text)+usualSentence-1)/usualSentence)
	for from := 0; from < len(text); {
		end := normal.SentenceEnd(text, from)
		trimmed := strings.TrimRightFunc(text[from:end], unicode.IsSpace)
		to := from + len(trimmed)
		if trimmed = strings.TrimLeftFunc(trimmed, unicode.IsSpace); trimmed != "" {
			out = append(out, Sentence{to - len(trimmed), to})
		}
		from = end
	}
	return out
}
