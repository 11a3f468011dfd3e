// Package kernel holds the arithmetic of the classifier's network and of its encoder: products of matrices, and what is done to rows of
// numbers. There is assembly for processors with AVX2, with AVX-512 and VNNI, and with AMX, and plain Go for all others.
//
// Sums of floats go in the same order everywhere and products are rounded before they are added (the conversions keep the
// compiler from fusing): every processor gives the same bits.
package kernel

import "math"

const (
	Tile   = 4   // rows of x that a matrix product takes at once: their number is a multiple of it
	Room   = 16  // rows that sums of products of bytes have room for: a multiple
	Wide   = 16  // Columns of a product of floats
	Column = 32  // Columns of a product of bytes
	depth  = 384 // inputs of a product of bytes at once: 12 KB of weights stay in the first cache for all rows
	lanes  = 8
)

// Up is n, or the next multiple.
func Up(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// constants of exp, GELU and layer norm, in the order in which the assembly numbers them.
var constants = [...]float32{
	-64, 87, 1.44269504, -0.693359375, 2.12194440e-4, // exp's range, 1/ln 2, and ln 2 in two parts
	1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, .5, 1, // its polynomial
	math.Float32frombits(127), // the exponent's offset, a whole number
	.044715, -1.5957691,       // GELU
	1e-12, // layer norm
}

// matrixInt8Go is MatrixInt8.
func matrixInt8Go(acc []int32, x []uint8, stride, rows int, w []int8, k, blocks int) {
	for block := range blocks {
		of, w := acc[block*Up(rows, Room)*Column:], w[block*k*Column:]
		for r := range rows {
			sum := of[r*Column:][:Column]
			clear(sum)
			for i := 0; i < k; i += 4 {
				a, b := x[r*stride+i:][:4], w[i*Column:][:4*Column]
				for n := range sum {
					sum[n] += int32(a[0])*int32(b[4*n]) + int32(a[1])*int32(b[4*n+1]) + int32(a[2])*int32(b[4*n+2]) + int32(a[3])*int32(b[4*n+3])
				}
			}
		}
	}
}

// matrixGo is Matrix.
func matrixGo(y []float32, yStride int, x []float32, stride, rows int, w []float32, wStride, k int) {
	for r := range rows {
		sum := y[r*yStride:][:Wide]
		for i := range k {
			a, b := x[r*stride+i], w[i*wStride:][:Wide]
			for n := range sum {
				sum[n] += float32(a * b[n])
			}
		}
	}
}

// axpyGo is Axpy.
func axpyGo(y []float32, a float32, x []float32) {
	for i, v := range x {
		y[i] += float32(a * v)
	}
}

// addBytesGo is AddBytes.
func addBytesGo(y []float32, a float32, x []int8) {
	for i, v := range x {
		y[i] += float32(a * float32(v))
	}
}

// maxGo is Max.
func maxGo(y, x []float32) {
	for i, v := range x {
		if v > y[i] {
			y[i] = v
		}
	}
}

// boundsGo gives the least and the greatest, zero among them.
func boundsGo(x []float32) (low, high float32) {
	for _, v := range x {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// quantiseGo writes x·inverse + offset, cut off, as bytes.
func quantiseGo(q []uint8, x []float32, inverse, offset float32) {
	for i, v := range x {
		q[i] = uint8(max(0, min(255, int32(float32(v*inverse)+offset))))
	}
}

// dequantiseGo is Dequantise.
func dequantiseGo(y []float32, stride int, acc []int32, rows int, sums, scales, bias, units, zeros []float32) {
	for r := range rows {
		for i, sum := range acc[r*Column:][:Column] {
			v := float32(sum) - float32(zeros[r]*sums[i])
			y[r*stride+i] = float32(float32(v*units[r])*scales[i]) + bias[i]
		}
	}
}

// exp is e^x by 2^n·e^r (Cephes' constants) with a polynomial of degree six, for −64 ≤ x ≤ 87. What is
// lower counts as −64: a part of e^−87 would be a denormal number, which processors take a hundred cycles for, and to a sum from one on neither adds anything.
func exp(x float32) float32 {
	x = min(max(x, -64), 87)
	n := float32(math.RoundToEven(float64(float32(x * 1.44269504))))
	r := x + float32(n*-0.693359375)
	r += float32(n * 2.12194440e-4)
	p := float32(1.0 / 720)
	for _, c := range [...]float32{1.0 / 120, 1.0 / 24, 1.0 / 6, .5, 1, 1} {
		p = float32(p*r) + c
	}
	return float32(p * math.Float32frombits(uint32(int32(n)+127)<<23))
}

// geluGo is x·σ(1.5957691·(x + 0.044715·x³)) (Hendrycks and Gimpel 2016), in place.
func geluGo(x []float32) {
	for i, v := range x {
		u := float32(float32(float32(float32(v*v)*v)*.044715)+v) * -1.5957691
		x[i] = v / (exp(float32(u)) + 1)
	}
}

// fold adds the lanes as the assembly does.
func fold(s *[lanes]float32) float32 {
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

// addNormGo is the layer norm of x + y, in x: (x − mean)/√(variance + 1e-12)·gain + shift.
func addNormGo(x, y, gain, shift []float32) {
	var s, q [lanes]float32
	for i := range x {
		x[i] += y[i]
		s[i%lanes] += x[i]
	}
	n := float32(len(x))
	mean := fold(&s) / n
	for i := range x {
		x[i] -= mean
		q[i%lanes] += float32(x[i] * x[i])
	}
	inverse := 1 / float32(math.Sqrt(float64(fold(&q)/n+1e-12)))
	for i := range x {
		x[i] = float32(float32(x[i]*inverse)*gain[i]) + shift[i]
	}
}

// softmaxGo turns x into e^((x − max)·scale), divided by their sum.
func softmaxGo(x []float32, scale float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var s [lanes]float32
	for i, v := range x {
		x[i] = exp(float32((v - top) * scale))
		s[i%lanes] += x[i]
	}
	inverse := 1 / fold(&s)
	for i := range x {
		x[i] = float32(x[i] * inverse)
	}
}

// AddDot adds x·y to sum, number by number; y may be longer. It is for training.
func AddDot(sum float32, x, y []float32) float32 {
	for i, v := range x {
		sum += float32(v * y[i])
	}
	return sum
}
