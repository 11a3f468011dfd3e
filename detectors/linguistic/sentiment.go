package linguistic

import "math"

// The figures of VADER (Hutto & Gilbert, ICWSM 2014), whose rules sentiment follows with a lexicon of ours.
const (
	boost     = 0.293 // of an intensifier right in front of the word
	flip      = -0.74 // of a negation within three words in front
	shout     = 0.292 // of each of up to four exclamation marks
	spread    = 15.0  // of the square under which a sum becomes -1..1
	beforeBut = 0.5
	afterBut  = 1.5
)

// fades weakens an intensifier by its distance.
var fades = [...]float64{1, 0.95, 0.9}

// sentimentOf is how a sentence sounds, -1..1: the valences of its words, each shifted by intensifiers and negations among
// the three words in front, those before "but" halved and those behind it half again as strong, the sum s made
// s/√(s²+15).
func sentimentOf(s *sentence) float64 {
	but := -1
	for i, w := range s.words {
		if w.entry.shift == turns {
			but = i
		}
	}
	sum := 0.0
	for i, w := range s.words {
		v := float64(w.entry.valence)
		if v == 0 {
			continue
		}
		for back := 1; back <= len(fades) && i-back >= 0; back++ {
			switch s.words[i-back].entry.shift {
			case strengthens:
				v += math.Copysign(boost*fades[back-1], v)
			case weakens:
				v -= math.Copysign(boost*fades[back-1], v)
			case negates:
				v *= flip
			}
		}
		switch {
		case but >= 0 && i < but:
			v *= beforeBut
		case but >= 0:
			v *= afterBut
		}
		sum += v
	}
	if sum != 0 {
		sum += math.Copysign(shout*float64(min(s.shouts, 4)), sum)
	}
	return sum / math.Sqrt(sum*sum+spread)
}

const (
	// strongDivergence is half the way from one end of the scale to the other less a third: in our sentences a text that
	// praises one group and runs down another has more, one that merely differs in tone less.
	strongDivergence = 0.35
	// fewestSentences of either group must speak, for one unlucky word is no pattern.
	fewestSentences = 2

	divergenceConfidence = 900_000 // see TestSentimentFindings
)

// diverging is the largest difference between two groups of one dimension.
type diverging struct {
	value      float64
	low, high  int // sentences of either group
	start, end int // the sentence that is hardest on the group that fares worst, in bytes of the original
}

func (d diverging) strong() bool {
	return d.value >= strongDivergence && d.low >= fewestSentences && d.high >= fewestSentences
}

// divergence is sentiment_divergence: with m(g) the mean of (sentimentOf+1)/2 over the sentences that name group g as a
// group ("women", not "she"), max m − min m over the groups of a dimension; of several dimensions the largest. A sentence
// that names two groups speaks of both. ok is false where no dimension has two such groups.
func divergence(t *told) (most diverging, ok bool) {
	for dim, groups := range t.groups {
		if groups == nil {
			continue
		}
		type account struct {
			sum   float64
			n     int
			worst float64
			at    *sentence
		}
		accounts := make([]account, len(groups))
		for i := range t.sentences {
			s := &t.sentences[i]
			value, known := 0.0, false
			counted := uint64(0)
			for _, m := range s.mentions {
				if m.dimension != dim || !m.many || counted&(1<<m.number) != 0 {
					continue
				}
				counted |= 1 << m.number
				if !known {
					value, known = (sentimentOf(s)+1)/2, true
				}
				a := &accounts[m.number]
				if a.n == 0 || value < a.worst {
					a.worst, a.at = value, s
				}
				a.sum, a.n = a.sum+value, a.n+1
			}
		}
		low, high := -1, -1
		mean := func(g int) float64 { return accounts[g].sum / float64(accounts[g].n) }
		for g := range accounts {
			if accounts[g].n == 0 {
				continue
			}
			if low < 0 || mean(g) < mean(low) {
				low = g
			}
			if high < 0 || mean(g) >= mean(high) {
				high = g
			}
		}
		if low < 0 || low == high {
			continue
		}
		if d := mean(high) - mean(low); !ok || d > most.value {
			most, ok = diverging{d, accounts[low].n, accounts[high].n, accounts[low].at.start, accounts[low].at.end}, true
		}
	}
	return most, ok
}
