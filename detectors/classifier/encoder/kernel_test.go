package encoder

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestKernels holds the assembly to the plain Go, bit by bit, on every set of instructions that the processor has.
func TestKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	floats := func(n int, size float32) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = (r.Float32()*2 - 1) * size
		}
		return out
	}
	check := func(name string, got, want []float32) {
		t.Helper()
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%s: number %d is %v, in plain Go %v", name, i, got[i], want[i])
			}
		}
	}
	for range 200 {
		n := 8 * (1 + r.IntN(48))
		x, y, a, b, c := floats(n, 30), floats(n, 30), floats(n, 2), floats(n, 2), floats(n, 2)
		lo, hi := bounds(x)
		wantLo, wantHi := boundsGo(x)
		if lo != wantLo || hi != wantHi {
			t.Fatalf("bounds %v %v, want %v %v", lo, hi, wantLo, wantHi)
		}
		got, want := make([]uint8, n), make([]uint8, n)
		quantise(got, x, 4.3, 120.5)
		quantiseGo(want, x, 4.3, 120.5)
		if !slices.Equal(got, want) {
			t.Fatalf("quantise %v, want %v", got, want)
		}
		acc := make([]int32, n)
		for i := range acc {
			acc[i] = r.Int32N(1<<24) - 1<<23
		}
		g, w := make([]float32, n), make([]float32, n)
		dequantise(g, acc, a, b, c, .003, 127)
		dequantiseGo(w, acc, a, b, c, .003, 127)
		check("dequantise", g, w)
		g, w = slices.Clone(x), slices.Clone(x)
		gelu(g)
		geluGo(w)
		check("gelu", g, w)
		g, w = slices.Clone(x), slices.Clone(x)
		addNorm(g, y, a, b)
		addNormGo(w, y, a, b)
		check("addNorm", g, w)
		g, w = slices.Clone(x), slices.Clone(x)
		softmax(g, .17)
		softmaxGo(w, .17)
		check("softmax", g, w)

		k := 4 * (1 + r.IntN(40))
		fx, fw := floats(tile*(k+8), 3), floats(k*wide, 3)
		g, w = make([]float32, tile*24), make([]float32, tile*24)
		matrixFloat(g, 24, fx, k+8, fw, k)
		matrixFloatGo(w, 24, fx, k+8, fw, k)
		check("matrixFloat", g, w)
		bytes, weights := make([]uint8, tile*(k+8)), make([]int8, k*column)
		for i := range bytes {
			bytes[i] = uint8(r.IntN(256))
		}
		for i := range weights {
			weights[i] = int8(r.IntN(256) - 128)
		}
		if r.IntN(4) == 0 { // sums that do not fit sixteen bits
			for i := range bytes {
				bytes[i] = 255
			}
			for i := range weights {
				weights[i] = -128
			}
		}
		gi, wi := make([]int32, tile*40), make([]int32, tile*40)
		matrixGo(wi, 40, bytes, k+8, weights, k)
		eachMatrix(func(name string, matrix func(y []int32, yStride int, x []uint8, stride int, w []int8, k int)) {
			matrix(gi, 40, bytes, k+8, weights, k)
			if !slices.Equal(gi, wi) {
				t.Fatalf("%s: %v, want %v", name, gi, wi)
			}
		})
	}
}

func TestExp(t *testing.T) {
	for x := float32(-87); x <= 87; x += .0137 {
		got, want := float64(exp(x)), math.Exp(float64(x))
		if d := math.Abs(got/want - 1); d > 4e-7 {
			t.Fatalf("exp(%v) = %v, want %v: off by %.1e", x, got, want, d)
		}
	}
}
