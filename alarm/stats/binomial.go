package stats

import "math"

// Tail is P(X >= k) for X of n trials of probability p, exactly summed: R's pbinom(k-1, n, p,
// lower.tail = FALSE). p outside [0, 1] or not a number gives NaN.
func Tail(k, n uint64, p float64) float64 {
	switch {
	case math.IsNaN(p) || p < 0 || p > 1:
		return math.NaN()
	case k == 0:
		return 1
	case k > n || p == 0:
		return 0
	case p == 1:
		return 1
	}
	// The side beyond the mean is summed away from it, where every term is smaller than the one before.
	if float64(k) > float64(n)*p {
		return min(1, upper(k, n, p))
	}
	return max(0, 1-upper(n-k+1, n, 1-p)) // X < k: n-X of probability 1-p is at least n-k+1
}

// upper sums the mass at k and beyond, for k above the mean.
func upper(k, n uint64, p float64) float64 {
	odds := p / (1 - p)
	sum, term := 1.0, 1.0
	for i := k; i < n; i++ {
		term *= float64(n-i) / float64(i+1) * odds
		sum += term
		if term < sum*1e-17 {
			break
		}
	}
	return sum * Mass(k, n, p)
}

// Mass is P(X = k), R's dbinom, by Loader's saddle-point expansion (Loader 2000, "Fast and accurate
// computation of binomial probabilities"): the direct product and the logarithms of the gamma function
// lose digits for large n.
func Mass(k, n uint64, p float64) float64 {
	x, nf, q := float64(k), float64(n), 1-p
	switch {
	case k > n:
		return 0
	case p == 0 || p == 1:
		if (p == 0) == (k == 0) && (p == 1) == (k == n) {
			return 1
		}
		return 0
	case k == 0:
		return math.Exp(nf * math.Log1p(-p))
	case k == n:
		return math.Exp(nf * math.Log(p))
	}
	lc := stirling(nf) - stirling(x) - stirling(nf-x) - deviance(x, nf*p) - deviance(nf-x, nf*q)
	return math.Exp(lc) * math.Sqrt(nf/(2*math.Pi*x*(nf-x)))
}

// stirling is ln n! less Stirling's formula, for whole n from 1.
func stirling(n float64) float64 {
	if n < 16 {
		return stirlings[int(n)]
	}
	n2 := n * n
	return (1.0/12 - (1.0/360-(1.0/1260-(1.0/1680-1.0/(1188*n2))/n2)/n2)/n2) / n
}

// stirlings are the exact values below 16, to double precision; made by testdata/reference.py.
var stirlings = [16]float64{
	0, 0.08106146679532725822, 0.041340695955409294094, 0.027677925684998339149, 0.020790672103765093112,
	0.016644691189821192163, 0.013876128823070747999, 0.011896709945891770095, 0.010411265261972096497,
	0.0092554621827127329177, 0.0083305634333628712565, 0.007573675487951840795, 0.0069428401072095298657,
	0.0064089941880042070684, 0.0059513701127588477356, 0.005554733551962801371,
}

// deviance is x ln(x/m) + m - x without loss where x is near m.
func deviance(x, m float64) float64 {
	if math.Abs(x-m) >= 0.1*(x+m) {
		return x*math.Log(x/m) + m - x
	}
	v := (x - m) / (x + m)
	s := (x - m) * v
	ej := 2 * x * v
	for j := 1; j < 1000; j++ {
		ej *= v * v
		next := s + ej/float64(2*j+1)
		if next == s {
			break
		}
		s = next
	}
	return s
}
