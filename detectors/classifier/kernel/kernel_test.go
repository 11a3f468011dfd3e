package kernel

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
	sums := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = r.Int32N(1<<24) - 1<<23
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
	defer Use(Sets()[0])
	for _, set := range Sets() {
		Use(set)
		for range 200 {
			n := 8 * (1 + r.IntN(48))
			x, y, a, b := floats(n, 30), floats(n, 30), floats(n, 2), floats(n, 2)
			lo, hi := Bounds(x)
			wantLo, wantHi := boundsGo(x)
			check(set+" Bounds", []float32{lo, hi}, []float32{wantLo, wantHi})
			got, want := make([]uint8, n), make([]uint8, n)
			Quantise(got, x, 4.3, 120.5)
			quantiseGo(want, x, 4.3, 120.5)
			if !slices.Equal(got, want) {
				t.Fatalf("%s Quantise: %v, want %v", set, got, want)
			}
			same := func(name string, f, plain func(x []float32)) {
				t.Helper()
				g, w := slices.Clone(x), slices.Clone(x)
				f(g)
				plain(w)
				check(set+" "+name, g, w)
			}
			same("GELU", GELU, geluGo)
			same("AddNorm", func(x []float32) { AddNorm(x, y, a, b) }, func(x []float32) { addNormGo(x, y, a, b) })
			same("Softmax", func(x []float32) { Softmax(x, .17) }, func(x []float32) { softmaxGo(x, .17) })
			some := y[:1+r.IntN(n)]
			same("Axpy", func(x []float32) { Axpy(x, .37, some) }, func(x []float32) { axpyGo(x, .37, some) })
			x = floats(Column, 30)
			acc, sum, scale, bias := sums(Column), floats(Column, 2), floats(Column, 2), floats(Column, 2)
			same("Dequantise", func(x []float32) { Dequantise(x, acc, sum, scale, bias, .003, 127) },
				func(x []float32) { dequantiseGo(x, acc, sum, scale, bias, .003, 127) })

			rows, k := Tile*(1+r.IntN(20)), 4*(1+r.IntN(40))
			if r.IntN(2) == 0 {
				k = 64 * (1 + r.IntN(6)) // what tiles take
			}
			fx, fw := floats(rows*(k+8), 3), floats(k*(Wide+8), 3)
			x = floats(rows*24, 30)
			same("Matrix", func(x []float32) { Matrix(x, 24, fx, k+8, rows, fw, Wide+8, k) }, func(x []float32) { matrixGo(x, 24, fx, k+8, rows, fw, Wide+8, k) })
			bytes, weights := make([]uint8, rows*(k+8)), make([]int8, k*Column)
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
			got32 := sums(rows * Column)
			want32 := slices.Clone(got32)
			MatrixInt8(got32, bytes, k+8, rows, weights, k)
			matrixInt8Go(want32, bytes, k+8, rows, weights, k)
			if !slices.Equal(got32, want32) {
				t.Fatalf("%s MatrixInt8: %v, want %v", set, got32, want32)
			}
		}
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
