package stats

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// reference are values computed by testdata/reference.py in exact fractions or with 50 digits and more.
type reference struct {
	Tail, Wilson, BH [][]any
}

func references(t *testing.T) (r reference) {
	t.Helper()
	b, err := os.ReadFile("testdata/reference.json")
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func num(v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	f, err := strconv.ParseFloat(v.(string), 64)
	if err != nil {
		return math.NaN()
	}
	return f
}

// near is within 1e-9 of want, relatively.
func near(got, want float64) bool { return got == want || math.Abs(got-want) <= 1e-9*math.Abs(want) }

func TestTailEqualsReference(t *testing.T) {
	for _, c := range references(t).Tail {
		k, n, p, want := uint64(num(c[0])), uint64(num(c[1])), num(c[2]), num(c[3])
		if got := Tail(k, n, p); !near(got, want) {
			t.Errorf("P(X >= %d) of %d at %v: %.15g, want %.15g (%.1e)", k, n, p, got, want, got/want-1)
		}
	}
}

// Published: R's help of binom.test has 682 of 925 at 3/4, two-sided p 0.3825; BOX of critical counts:
// against 0.5 %, p < 1e-4 needs k >= 4 of 30, 6 of 100, 11 of 500, 25 of 2000.
func TestTailPublished(t *testing.T) {
	lower := 1 - Tail(683, 925, 0.75)
	var far float64 // the two-sided test adds the outcomes beyond that are no likelier
	for k := uint64(694); k <= 925; k++ {
		if Mass(k, 925, 0.75) <= Mass(682, 925, 0.75)*(1+1e-7) {
			far += Mass(k, 925, 0.75)
		}
	}
	if math.Abs(lower+far-0.3825) > 5e-5 {
		t.Errorf("binom.test(682, 925, 3/4): %.6f", lower+far)
	}
	for _, c := range []struct{ k, n uint64 }{{4, 30}, {6, 100}, {11, 500}, {25, 2000}} {
		if Tail(c.k, c.n, 0.005) >= 1e-4 || Tail(c.k-1, c.n, 0.005) < 1e-4 {
			t.Errorf("%d of %d is not the first below 1e-4: %g, %g", c.k, c.n, Tail(c.k, c.n, 0.005), Tail(c.k-1, c.n, 0.005))
		}
	}
}

func TestTailAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		k, n uint64
		p    float64
		want float64
	}{{0, 0, 0.5, 1}, {0, 10, 0, 1}, {1, 10, 0, 0}, {10, 10, 1, 1}, {11, 10, 1, 0}, {1, 0, 0.5, 0}, {10, 10, 0.5, 1.0 / 1024}} {
		if got := Tail(c.k, c.n, c.p); !near(got, c.want) {
			t.Errorf("P(X >= %d) of %d at %v: %v, want %v", c.k, c.n, c.p, got, c.want)
		}
	}
	for _, p := range []float64{-0.1, 1.1, math.NaN()} {
		if !math.IsNaN(Tail(1, 2, p)) {
			t.Errorf("%v is no probability", p)
		}
	}
}

// The sum in exact fractions, for whatever n, k and p.
func TestTailIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 120).Draw(t, "n")
		k := rapid.Uint64Range(0, n).Draw(t, "k")
		p := rapid.Float64Range(1e-6, 1-1e-6).Draw(t, "p")
		x := new(big.Rat).SetFloat64(p)
		y := new(big.Rat).Sub(big.NewRat(1, 1), x)
		sum, power := new(big.Rat), func(b *big.Rat, e uint64) *big.Rat {
			i := new(big.Int).SetUint64(e)
			return new(big.Rat).SetFrac(new(big.Int).Exp(b.Num(), i, nil), new(big.Int).Exp(b.Denom(), i, nil))
		}
		for i := k; i <= n; i++ {
			term := new(big.Rat).SetInt(new(big.Int).Binomial(int64(n), int64(i)))
			sum.Add(sum, term.Mul(term, new(big.Rat).Mul(power(x, i), power(y, n-i))))
		}
		want, _ := sum.Float64()
		if got := Tail(k, n, p); !near(got, want) {
			t.Fatalf("P(X >= %d) of %d at %v: %v, want %v", k, n, p, got, want)
		}
	})
}

func TestWilsonEqualsReference(t *testing.T) {
	for _, c := range references(t).Wilson {
		k, n, z := uint64(num(c[0])), uint64(num(c[1])), num(c[2])
		lower, upper := Wilson(k, n, z)
		if !near(lower, num(c[3])) || !near(upper, num(c[4])) {
			t.Errorf("Wilson(%d, %d, %v) = %.12f, %.12f, want %v, %v", k, n, z, lower, upper, c[3], c[4])
		}
	}
}

// Published: Newcombe 1998 (Statistics in Medicine 17:857), table I, method 3.
func TestWilsonPublished(t *testing.T) {
	for _, c := range []struct {
		k, n         uint64
		lower, upper float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}, {29, 29, 0.8830, 1}, {0, 0, 0, 1}} {
		lower, upper := Wilson(c.k, c.n, Z95)
		if math.Abs(lower-c.lower) > 5e-5 || math.Abs(upper-c.upper) > 5e-5 {
			t.Errorf("Wilson(%d, %d) = %.4f, %.4f, want %.4f, %.4f", c.k, c.n, lower, upper, c.lower, c.upper)
		}
	}
}

func TestAdjustEqualsReference(t *testing.T) {
	for _, c := range references(t).BH {
		var p []float64
		for _, v := range c[0].([]any) {
			p = append(p, num(v))
		}
		for i, got := range Adjust(p) {
			if want := num(c[1].([]any)[i]); !near(got, want) {
				t.Errorf("%v: adjusted[%d] = %v, want %v", p, i, got, want)
			}
		}
	}
}

// Published: Benjamini and Hochberg 1995, section 3.2: of 15 tests q = 5 % rejects the first four.
func TestAdjustPublished(t *testing.T) {
	p := []float64{.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262, .5719, .6528, .7590, 1}
	rejected := 0
	for _, a := range Adjust(p) {
		if a <= 0.05 {
			rejected++
		}
	}
	if rejected != 4 || len(Adjust(nil)) != 0 {
		t.Errorf("%d are rejected", rejected)
	}
}

func TestAdjustFollowsPermutations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 40).Draw(t, "p")
		order := rapid.Permutation(seq(len(p))).Draw(t, "order")
		q := make([]float64, len(p))
		for i, j := range order {
			q[i] = p[j]
		}
		a, b := Adjust(p), Adjust(q)
		for i, j := range order {
			if b[i] != a[j] || a[j] < p[j] || a[j] > 1 {
				t.Fatalf("%v: %v against %v", p, a, b)
			}
		}
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func TestShrunk(t *testing.T) {
	for _, c := range []struct {
		k, n                      uint64
		neighbours, weight, floor float64
		want                      float64
	}{{10, 1000, 0.02, 200, 0.002, 14.0 / 1200}, {0, 0, 0.02, 200, 0.002, 0.02}, {0, 10000, 0, 200, 0.002, 0.002}, {5, 100, 0.5, 0, 0, 0.05}, {0, 0, 0.3, 0, 0.1, 0.3}} {
		if got := Shrunk(c.k, c.n, c.neighbours, c.weight, c.floor); !near(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// One hit at p0 0.5 % against 1.5 % adds ln 3, one miss takes ln(0.995/0.985).
func TestCusum(t *testing.T) {
	c := NewCusum(0.005, 0.015)
	if got, want := c.Step(0, 1, 1), math.Log(3); !near(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := c.Step(1, 2, 102), 1+2*math.Log(3)-100*math.Log(0.995/0.985); !near(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := c.Step(0.5, 0, 1000); got != 0 {
		t.Errorf("below zero: %v", got)
	}
}

func FuzzTail(f *testing.F) {
	f.Add(uint64(3), uint64(480), 0.005)
	f.Fuzz(func(t *testing.T, k, n uint64, p float64) {
		n %= 1 << 24
		if got := Tail(k, n, p); p >= 0 && p <= 1 && !(got >= 0 && got <= 1) {
			t.Errorf("P(X >= %d) of %d at %v is %v", k, n, p, got)
		}
	})
}

func BenchmarkTail(b *testing.B) {
	for b.Loop() {
		Tail(12, 480, 0.005)
	}
}

func TestAdjustDoesNotChangeItsArgument(t *testing.T) {
	p := []float64{0.5, 0.1, 0.3}
	Adjust(p)
	if !slices.Equal(p, []float64{0.5, 0.1, 0.3}) {
		t.Error(p)
	}
}
