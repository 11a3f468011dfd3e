// Package stats holds the statistics of alarms: the Wilson interval for display, the exact binomial
// tail for tests, the Benjamini–Hochberg procedure over many of them, a baseline shrunk to that of
// its neighbours, and a cumulative sum that finds small, lasting shifts.
//
// Counts are whole, rates are shares in [0, 1]. Everything is a pure function without allocation but
// for Adjust. Relative accuracy is 1e-9 or better for n up to 10^7, in the far tails too: see the tests,
// which compare with values of R's definitions computed in exact or 50-digit arithmetic.
package stats

import "math"

// Z95 is the two-sided 95 % quantile of the normal distribution.
const Z95 = 1.959963984540054

// Wilson gives the score interval of k in n at z standard deviations (Wilson 1927; recommended by
// Brown, Cai, DasGupta 2001). Without observations it is [0, 1].
func Wilson(k, n uint64, z float64) (lower, upper float64) {
	if n == 0 {
		return 0, 1
	}
	nf := float64(n)
	p, z2 := float64(k)/nf, z*z
	half := z * math.Sqrt(p*(1-p)/nf+z2/(4*nf*nf))
	mid, scale := p+z2/(2*nf), 1+z2/nf
	lower, upper = max(0, (mid-half)/scale), min(1, (mid+half)/scale)
	// At the ends the formula gives 0 and 1 but for rounding.
	if k == 0 {
		lower = 0
	}
	if k >= n {
		upper = 1
	}
	return lower, upper
}

// Shrunk is the rate of k in n drawn to the rate of its neighbours as if weight observations at that
// rate had been added; never below floor. With weight 0 and n 0 it is the neighbours' rate.
func Shrunk(k, n uint64, neighbours, weight, floor float64) float64 {
	if float64(n)+weight == 0 {
		return max(floor, neighbours)
	}
	return max(floor, (float64(k)+weight*neighbours)/(float64(n)+weight))
}
