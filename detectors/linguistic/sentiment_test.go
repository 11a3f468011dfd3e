package linguistic

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// lines gives the fields of a file's lines, parted by tabs; lines that begin with # are left out.
func lines(t testing.TB, name string) (out [][]string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			out = append(out, strings.Split(line, "\t"))
		}
	}
	return out
}

func sounds(l *lexicon, text string) float64 {
	var s sentence
	s.words, s.shouts = l.look(text, 0)
	return sentimentOf(&s)
}

// TestSentimentOfOurSentences measures the lexicon on sentences that were not used to write it: three classes, and how
// often good and bad are taken for each other, which is what makes a false divergence.
func TestSentimentOfOurSentences(t *testing.T) {
	l := parseWords(wordsFile)
	right, n, reversed := map[string]int{}, map[string]int{}, 0
	for _, f := range lines(t, "testdata/sentiment.tsv") {
		want, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		switch s := sounds(l, f[2]); {
		case s >= 0.05:
			got = 1
		case s <= -0.05:
			got = -1
		}
		n[f[0]]++
		if got == want {
			right[f[0]]++
		} else {
			t.Logf("%s: %d, want %d: %s", f[0], got, want, f[2])
		}
		if got*want < 0 {
			reversed++
		}
	}
	for _, part := range []string{"dev", "test"} {
		share := float64(right[part]) / float64(n[part])
		t.Logf("%s: %d of %d right (%.3f)", part, right[part], n[part], share)
		if share < 0.85 {
			t.Errorf("%s: %.3f right; want at least 0.85", part, share)
		}
	}
	if n["dev"]+n["test"] < 120 || reversed > 3 {
		t.Errorf("%d sentences, %d taken for the opposite", n["dev"]+n["test"], reversed)
	}
}
