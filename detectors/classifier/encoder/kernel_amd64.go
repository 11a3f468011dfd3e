package encoder

import "golang.org/x/sys/cpu"

// avx2 and vnni say what the processor has; the tests switch them off.
var (
	avx2 = cpu.X86.HasAVX2
	vnni = avx2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VNNI
)

// same holds the constants of the assembly, once for each lane.
var same = func() (out [len(constants)][lanes]float32) {
	for i, c := range constants {
		for n := range lanes {
			out[i][n] = c
		}
	}
	return out
}()

func matrix(y []int32, yStride int, x []uint8, stride int, w []int8, k int) {
	_, _, _ = y[(tile-1)*yStride+column-1], x[(tile-1)*stride+k-1], w[k*column-1]
	switch {
	case vnni:
		matrixVNNI(&y[0], 4*yStride, &x[0], stride, &w[0], k/4)
	case avx2:
		matrixAVX2(&y[0], 4*yStride, &x[0], stride, &w[0], k/4)
	default:
		matrixGo(y, yStride, x, stride, w, k)
	}
}

func matrixFloat(y []float32, yStride int, x []float32, stride int, w []float32, k int) {
	if !avx2 {
		matrixFloatGo(y, yStride, x, stride, w, k)
		return
	}
	_, _, _ = y[(tile-1)*yStride+wide-1], x[(tile-1)*stride+k-1], w[k*wide-1]
	matrixFloatAVX2(&y[0], 4*yStride, &x[0], 4*stride, &w[0], k)
}

func bounds(x []float32) (low, high float32) {
	if !avx2 {
		return boundsGo(x)
	}
	return boundsAVX2(&x[0], len(x))
}

func quantise(q []uint8, x []float32, inverse, offset float32) {
	if !avx2 {
		quantiseGo(q, x, inverse, offset)
		return
	}
	_ = q[len(x)-1]
	quantiseAVX2(&q[0], &x[0], len(x), inverse, offset)
}

func dequantise(y []float32, acc []int32, sums, scales, bias []float32, unit, zero float32) {
	if !avx2 {
		dequantiseGo(y, acc, sums, scales, bias, unit, zero)
		return
	}
	n := len(y) - 1
	_, _, _, _ = acc[n], sums[n], scales[n], bias[n]
	dequantiseAVX2(&y[0], &acc[0], &sums[0], &scales[0], &bias[0], len(y), unit, zero)
}

func gelu(x []float32) {
	if !avx2 {
		geluGo(x)
		return
	}
	geluAVX2(&x[0], len(x))
}

func addNorm(x, y, gain, shift []float32) {
	if !avx2 {
		addNormGo(x, y, gain, shift)
		return
	}
	n := len(x) - 1
	_, _, _ = y[n], gain[n], shift[n]
	addNormAVX2(&x[0], &y[0], &gain[0], &shift[0], len(x), float32(len(x)))
}

func softmax(x []float32, scale float32) {
	if !avx2 {
		softmaxGo(x, scale)
		return
	}
	softmaxAVX2(&x[0], len(x), scale)
}

// Strides are in bytes, lengths multiples of lanes.

//go:noescape
func matrixVNNI(y *int32, yStride int, x *uint8, stride int, w *int8, k4 int)

//go:noescape
func matrixAVX2(y *int32, yStride int, x *uint8, stride int, w *int8, k4 int)

//go:noescape
func matrixFloatAVX2(y *float32, yStride int, x *float32, stride int, w *float32, k int)

//go:noescape
func boundsAVX2(x *float32, n int) (low, high float32)

//go:noescape
func quantiseAVX2(q *uint8, x *float32, n int, inverse, offset float32)

//go:noescape
func dequantiseAVX2(y *float32, acc *int32, sums, scales, bias *float32, n int, unit, zero float32)

//go:noescape
func geluAVX2(x *float32, n int)

//go:noescape
func addNormAVX2(x, y, gain, shift *float32, n int, size float32)

//go:noescape
func softmaxAVX2(x *float32, n int, scale float32)
