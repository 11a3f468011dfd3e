//go:build !amd64

package encoder

func matrix(y []int32, yStride int, x []uint8, stride int, w []int8, k int) {
	matrixGo(y, yStride, x, stride, w, k)
}

func matrixFloat(y []float32, yStride int, x []float32, stride int, w []float32, k int) {
	matrixFloatGo(y, yStride, x, stride, w, k)
}

func bounds(x []float32) (low, high float32) { return boundsGo(x) }

func quantise(q []uint8, x []float32, inverse, offset float32) { quantiseGo(q, x, inverse, offset) }

func dequantise(y []float32, acc []int32, sums, scales, bias []float32, unit, zero float32) {
	dequantiseGo(y, acc, sums, scales, bias, unit, zero)
}

func gelu(x []float32) { geluGo(x) }

func addNorm(x, y, gain, shift []float32) { addNormGo(x, y, gain, shift) }

func softmax(x []float32, scale float32) { softmaxGo(x, scale) }
