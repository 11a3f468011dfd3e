//go:build !amd64

package kernel

// Sets lists the sets of instructions that the processor has kernels for.
func Sets() []string { return []string{"go"} }

// Use takes one of Sets from now on.
func Use(string) {}

// MatrixInt8: see kernel_amd64.go.
func MatrixInt8(acc []int32, x []uint8, stride, rows int, w []int8, k, blocks int) {
	matrixInt8Go(acc, x, stride, rows, w, k, blocks)
}

// Matrix: see kernel_amd64.go.
func Matrix(y []float32, yStride int, x []float32, stride, rows int, w []float32, wStride, k int) {
	matrixGo(y, yStride, x, stride, rows, w, wStride, k)
}

// Axpy: see kernel_amd64.go.
func Axpy(y []float32, a float32, x []float32) { axpyGo(y, a, x) }

// AddBytes: see kernel_amd64.go.
func AddBytes(y []float32, a float32, x []int8) { addBytesGo(y, a, x) }

// Max: see kernel_amd64.go.
func Max(y, x []float32) { maxGo(y, x) }

// Bounds: see kernel_amd64.go.
func Bounds(x []float32) (low, high float32) { return boundsGo(x) }

// Quantise: see kernel_amd64.go.
func Quantise(q []uint8, x []float32, inverse, offset float32) { quantiseGo(q, x, inverse, offset) }

// Dequantise: see kernel_amd64.go.
func Dequantise(y []float32, stride int, acc []int32, rows int, sums, scales, bias, units, zeros []float32) {
	dequantiseGo(y, stride, acc, rows, sums, scales, bias, units, zeros)
}

// GELU: see kernel_amd64.go.
func GELU(x []float32) { geluGo(x) }

// AddNorm: see kernel_amd64.go.
func AddNorm(x, y, gain, shift []float32) { addNormGo(x, y, gain, shift) }

// Softmax: see kernel_amd64.go.
func Softmax(x []float32, scale float32) { softmaxGo(x, scale) }
