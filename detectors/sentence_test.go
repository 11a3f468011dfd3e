package detectors

import (
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/detectors/normal"
)

func TestSentences(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{" \n ", nil},
		{"One. Two! Three? four", []string{"One.", "Two!", "Three?", "four"}},
		{"no capital. it is a sentence", []string{"no capital.", "it is a sentence"}},
		{"See e.g. the U.S. Senate, Dr. No and Mr. J. Smith vs. Fig. 3. Then go.", []string{"See e.g. the U.S. Senate, Dr. No and Mr. J. Smith vs. Fig. 3.", "Then go."}},
		{"She lives in the U.S. He does not.", []string{"She lives in the U.S.", "He does not."}},
		{"She loves art. Art. 21 bans it, max. 5 times at Inc. Magazine etc. They left.", []string{"She loves art.", "Art. 21 bans it, max. 5 times at Inc. Magazine etc.", "They left."}},
		{"Z.B. am 3. Mai, d.h. bald usw. Dann nicht.", []string{"Z.B. am 3. Mai, d.h. bald usw. Dann nicht."}},
		{"It costs 3.50 or 1,000.5 at example.com. Fine.", []string{"It costs 3.50 or 1,000.5 at example.com.", "Fine."}},
		{"Well... perhaps. Well... Perhaps", []string{"Well... perhaps.", "Well...", "Perhaps"}},
		{"Really?! Yes!!! \"Never.\" (So be it.) He left.", []string{"Really?!", "Yes!!!", "\"Never.\"", "(So be it.)", "He left."}},
		{"1. One item\n2. Another. More\n- a bullet\n|a cell|another|\n", []string{"1. One item", "2. Another.", "More", "a bullet", "a cell", "another"}},
		{"他们来了。我们走。", []string{"他们来了。", "我们走。"}},
		{strings.Repeat("word ", 200), []string{strings.TrimSpace(strings.Repeat("word ", 120)), strings.TrimSpace(strings.Repeat("word ", 80))}},
	} {
		form := normal.Of(tc.text)
		text := form.String()
		var got []string
		for _, s := range sentencesOf(text) {
			got = append(got, text[s.Start:s.End])
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q:\n got %q\nwant %q", tc.text, got, tc.want)
		}
	}
}

// A sentence around a place is the sentence that the place was cut into.
func TestSentenceAroundAgrees(t *testing.T) {
	const text = "One here... Two of Dr. No! \"Three.\" Well... four\n5. five e.g. six? Seven."
	for from := 0; from < len(text); {
		end := normal.SentenceEnd(text, from)
		middle := (from + end) / 2
		if f, e := normal.SentenceAround(text, middle, middle); strings.TrimSpace(text[f:e]) != strings.TrimSpace(text[from:end]) {
			t.Errorf("%q around %d, want %q", text[f:e], middle, text[from:end])
		}
		from = end
	}
}
