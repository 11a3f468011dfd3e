package eval

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/evenhand/evenhand/detectors/classifier/dataset"
)

// Neighbours are sentences of texts in which nothing should be found: of 40 to 120 bytes, with a full stop.
func Neighbours(texts []dataset.Row) (out []string) {
	for i := range texts {
		for s := range strings.SplitAfterSeq(texts[i].Text, ". ") {
			if s = strings.TrimSpace(s); len(s) >= 40 && len(s) <= 120 && strings.HasSuffix(s, ".") && !strings.ContainsAny(s, "\n\t") {
				out = append(out, s)
			}
		}
	}
	return out
}

// Among gives rows whose texts stand between n sentences before and n behind, drawn by the text's own hash: what is said in the middle of a
// text is what detectors meet, and what sentences of labelled sets do not show. Labels stay: nothing is in the neighbours.
func Among(rows []dataset.Row, neighbours []string, n int) []dataset.Row {
	out := make([]dataset.Row, len(rows))
	for i := range rows {
		h := fnv.New64a()
		_, _ = h.Write([]byte(rows[i].Text))
		rng := rand.New(rand.NewPCG(h.Sum64(), 2))
		draw := func() []string {
			s := make([]string, n)
			for k := range s {
				s[k] = neighbours[rng.IntN(len(neighbours))]
			}
			return s
		}
		out[i] = rows[i]
		out[i].Text = strings.Join(append(append(draw(), rows[i].Text), draw()...), " ")
	}
	return out
}
