package store

import "math"

// z95 is the two-sided 95 % quantile of the normal distribution.
const z95 = 1.959963984540054

// Wilson gives the 95 % score interval of a rate of k in n (Wilson 1927; Brown, Cai, DasGupta 2001).
// Without observations nothing is known: [0, 1].
func Wilson(k, n uint64) (lower, upper float64) {
	if n == 0 {
		return 0, 1
	}
	k = min(k, n)
	p, m, z2 := float64(k)/float64(n), float64(n), z95*z95
	centre := p + z2/(2*m)
	half := z95 * math.Sqrt(p*(1-p)/m+z2/(4*m*m))
	lower, upper = (centre-half)/(1+z2/m), (centre+half)/(1+z2/m)
	if k == 0 {
		lower = 0 // exactly, where rounding would leave 1e-17
	}
	if k == n {
		upper = 1
	}
	return lower, upper
}

// Rate is k of n with its 95 % Wilson interval.
type Rate struct {
	K     uint64  `json:"k"`
	N     uint64  `json:"n"`
	Rate  float64 `json:"rate"` // 0 when n is 0
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
}

// RateOf makes the rate of k in n.
func RateOf(k, n uint64) Rate {
	r := Rate{K: k, N: n}
	if n > 0 {
		r.Rate = float64(k) / float64(n)
	}
	r.Lower, r.Upper = Wilson(k, n)
	return r
}
