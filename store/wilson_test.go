package store

import (
	"math"
	"testing"
)

// The reference values are the roots of |k/n - p| = z·sqrt(p(1-p)/n), found by bisection and not by the
// closed form under test.
func TestWilson(t *testing.T) {
	for _, tc := range []struct {
		k, n         uint64
		lower, upper float64
	}{
		{0, 0, 0, 1},
		{0, 1, 0, 0.793450},
		{1, 1, 0.206549, 1},
		{0, 10, 0, 0.277533},
		{10, 10, 0.722467, 1},
		{1, 10, 0.017876, 0.404150},
		{5, 10, 0.236593, 0.763407},
		{15, 50, 0.191036, 0.437504},
		{10, 100, 0.055229, 0.174366},
		{50, 100, 0.403832, 0.596168},
		{81, 263, 0.255289, 0.366210},
		{7, 5, 0.565518, 1}, // more than n counts as n
	} {
		lower, upper := Wilson(tc.k, tc.n)
		if math.Abs(lower-tc.lower) > 2e-6 || math.Abs(upper-tc.upper) > 2e-6 {
			t.Errorf("Wilson(%d, %d) = %.6f, %.6f; want %.6f, %.6f", tc.k, tc.n, lower, upper, tc.lower, tc.upper)
		}
	}
	r := RateOf(0, 0)
	if r.Rate != 0 || r.Lower != 0 || r.Upper != 1 {
		t.Errorf("RateOf(0, 0) = %+v", r)
	}
}
