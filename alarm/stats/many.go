package stats

import (
	"math"
	"slices"
)

// Adjust gives the p-values adjusted for their number by Benjamini and Hochberg (1995), in the order
// given: R's p.adjust(p, "BH"). Rejecting those at most q keeps the expected share of false ones
// among the rejected at most q. p is not changed.
func Adjust(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(p))
	least := 1.0
	for rank := len(p); rank > 0; rank-- {
		i := order[rank-1]
		least = min(least, p[i]*(float64(len(p))/float64(rank)))
		out[i] = least
	}
	return out
}

// Cusum is the cumulative sum of log-likelihood ratios of Bernoulli trials for the rate P1 against P0
// (Page 1954; Reynolds and Stoumbos 1999). It finds shifts that are small and last.
type Cusum struct{ hit, miss float64 }

// NewCusum looks for p1 where p0 is usual; 0 < p0 < p1 < 1.
func NewCusum(p0, p1 float64) Cusum {
	return Cusum{hit: math.Log(p1 / p0), miss: math.Log1p(-p1) - math.Log1p(-p0)}
}

// Step adds k hits of n trials to the sum s, which never falls below 0.
func (c Cusum) Step(s float64, k, n uint64) float64 {
	return max(0, s+float64(k)*c.hit+float64(n-k)*c.miss)
}
