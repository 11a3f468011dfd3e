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
			few := make([]int8, len(some))
			for i := range few {
				few[i] = int8(r.IntN(256) - 128)
			}
			same("AddBytes", func(x []float32) { AddBytes(x, .37, few) }, func(x []float32) { addBytesGo(x, .37, few) })
			same("Max", func(x []float32) { Max(x, some) }, func(x []float32) { maxGo(x, some) })
			rows, k := Tile*(1+r.IntN(20)), 4*(1+r.IntN(40))
			if r.IntN(2) == 0 {
				k = 64 * (1 + r.IntN(8)) // what tiles take
			}
			fx, fw := floats(rows*(k+8), 3), floats(k*(Wide+8), 3)
			x = floats(rows*40, 30)
			acc, sum, scale, bias, units, zeros := sums(rows*Column), floats(Column, 2), floats(Column, 2), floats(Column, 2), floats(rows, .003), floats(rows, 127)
			same("Dequantise", func(x []float32) { Dequantise(x, 40, acc, rows, sum, scale, bias, units, zeros) },
				func(x []float32) { dequantiseGo(x, 40, acc, rows, sum, scale, bias, units, zeros) })
			same("Matrix", func(x []float32) { Matrix(x, 24, fx, k+8, rows, fw, Wide+8, k) }, func(x []float32) { matrixGo(x, 24, fx, k+8, rows, fw, Wide+8, k) })
			room, blocks := Up(rows, Room), 1+r.IntN(3)
			bytes, weights := make([]uint8, room*(k+8)), make([]int8, blocks*k*Column)
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
			got32 := sums(blocks * room * Column)
			want32 := slices.Clone(got32)
			MatrixInt8(got32, bytes, k+8, rows, weights, k, blocks)
			matrixInt8Go(want32, bytes, k+8, rows, weights, k, blocks)
			for b := range blocks {
				got, want := got32[b*room*Column:][:rows*Column], want32[b*room*Column:][:rows*Column]
				if !slices.Equal(got, want) {
					t.Fatalf("%s MatrixInt8: block %d of %d: %v, want %v", set, b, blocks, got, want)
				}
			}
		}
	}
}

func TestExp(t *testing.T) {
	for x := float32(-64); x <= 87; x += .0137 {
		got, want := float64(exp(x)), math.Exp(float64(x))
		if d := math.Abs(got/want - 1); d > 4e-7 {
			t.Fatalf("exp(%v) = %v, want %v: off by %.1e", x, got, want, d)
		}
	}
	for _, x := range []float32{-64.1, -87, -1e9} {
		if got, want := exp(x), exp(-64); got != want {
			t.Errorf("exp(%v) = %v, want that of -64, %v", x, got, want)
		}
	}
}
