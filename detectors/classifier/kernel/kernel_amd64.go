package kernel

import "golang.org/x/sys/cpu"

// avx2, vnni and amx say what is used of what the processor has; of amx see hasAMX, too.
var avx2, vnni, amx = cpu.X86.HasAVX2, hasVNNI, true

// hasVNNI is AVX-512 with VNNI: all kernels of 512 bits need it.
var hasVNNI = cpu.X86.HasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VNNI

// Sets lists the sets of instructions that the processor has kernels for, the fastest first; the last is plain Go.
func Sets() (out []string) {
	if hasAMX() {
		out = append(out, "amx")
	}
	if hasVNNI {
		out = append(out, "vnni")
	}
	if cpu.X86.HasAVX2 {
		out = append(out, "avx2")
	}
	return append(out, "go")
}

// Use takes one of Sets from now on, for tests: nothing may run meanwhile.
func Use(set string) { amx, vnni, avx2 = set == "amx", set == "amx" || set == "vnni", set != "go" }

// same holds the constants of the assembly, once for each lane.
var same = func() (out [len(constants)][lanes]float32) {
	for i, c := range constants {
		for n := range lanes {
			out[i][n] = c
		}
	}
	return out
}()

// MatrixInt8 multiplies rows of k bytes, stride apart, by blocks of packed weights: of each block for each four inputs the four weights of each of Column
// outputs. acc becomes their sums of products: of each block Column a row, for as many rows as if they were a multiple of Room, as x has them, too; what
// acc holds beyond rows means nothing. rows is a multiple of Tile, k one of four.
func MatrixInt8(acc []int32, x []uint8, stride, rows int, w []int8, k, blocks int) {
	if !avx2 {
		matrixInt8Go(acc, x, stride, rows, w, k, blocks)
		return
	}
	room := Up(rows, Room)
	_, _, _ = acc[blocks*room*Column-1], x[(room-1)*stride+k-1], w[blocks*k*Column-1]
	if amx && k%64 == 0 && hasAMX() {
		matrixAMX(&acc[0], &x[0], stride, &w[0], k/64, room/16, blocks)
		return
	}
	clear(acc[:blocks*room*Column])
	for b := range blocks {
		for at := 0; at < k; at += depth {
			addInt8(acc[b*room*Column:], x[at:], stride, rows, w[(b*k+at)*Column:], min(depth, k-at))
		}
	}
}

// addInt8 adds the products of k bytes a row and of a block to acc.
func addInt8(acc []int32, x []uint8, stride, rows int, w []int8, k int) {
	// While it multiplies, a call fetches half of as many weights as its own, of those that follow: half by turns.
	size := k * Column
	for r, half := 0, 0; r < rows; half = size/2 - half {
		acc, x, ahead := &acc[r*Column], &x[r*stride], size+half
		switch {
		case !vnni:
			matrixAVX2(acc, x, stride, &w[0], k/4, ahead)
			r += Tile
		case r+2*Tile <= rows:
			matrixVNNI8(acc, x, stride, &w[0], k/4, ahead)
			r += 2 * Tile
		default:
			matrixVNNI(acc, x, stride, &w[0], k/4, ahead)
			r += Tile
		}
	}
}

// Matrix multiplies rows of k floats, stride apart, by k rows of Wide weights, wStride apart, and adds the products to as many rows of y,
// yStride apart. rows is a multiple of Tile.
func Matrix(y []float32, yStride int, x []float32, stride, rows int, w []float32, wStride, k int) {
	if !avx2 {
		matrixGo(y, yStride, x, stride, rows, w, wStride, k)
		return
	}
	_, _, _ = y[(rows-1)*yStride+Wide-1], x[(rows-1)*stride+k-1], w[(k-1)*wStride+Wide-1]
	for r := 0; r < rows; r += Tile {
		if vnni {
			matrixFloat512(&y[r*yStride], 4*yStride, &x[r*stride], 4*stride, &w[0], 4*wStride, k)
			continue
		}
		matrixFloatAVX2(&y[r*yStride], 4*yStride, &x[r*stride], 4*stride, &w[0], 4*wStride, k)
	}
}

// Axpy adds a·x to y.
func Axpy(y []float32, a float32, x []float32) {
	n := 0
	if avx2 {
		if n = len(x) &^ (lanes - 1); n > 0 {
			_ = y[n-1]
			axpyAVX2(&y[0], a, &x[0], n)
		}
	}
	axpyGo(y[n:], a, x[n:])
}

// AddBytes adds a·x to y.
func AddBytes(y []float32, a float32, x []int8) {
	n := 0
	if avx2 {
		if n = len(x) &^ (lanes - 1); n > 0 {
			_ = y[n-1]
			addBytesAVX2(&y[0], a, &x[0], n)
		}
	}
	addBytesGo(y[n:], a, x[n:])
}

// Max makes each of y the greater one of it and of x.
func Max(y, x []float32) {
	n := 0
	if avx2 {
		if n = len(x) &^ (lanes - 1); n > 0 {
			_ = y[n-1]
			maxAVX2(&y[0], &x[0], n)
		}
	}
	maxGo(y[n:], x[n:])
}

// Bounds gives the least and the greatest, zero among them. The number of x is a multiple of 8.
func Bounds(x []float32) (low, high float32) {
	if !avx2 {
		return boundsGo(x)
	}
	return boundsAVX2(&x[0], len(x))
}

// Quantise writes x·inverse + offset, cut off, as bytes. The number of x is a multiple of 8.
func Quantise(q []uint8, x []float32, inverse, offset float32) {
	if !avx2 {
		quantiseGo(q, x, inverse, offset)
		return
	}
	_ = q[len(x)-1]
	quantiseAVX2(&q[0], &x[0], len(x), inverse, offset)
}

// Dequantise turns rows of Column sums of products back, into rows of y, stride apart: y = (acc − zero·sums)·unit·scales + bias, where each row has
// its own unit and zero.
func Dequantise(y []float32, stride int, acc []int32, rows int, sums, scales, bias, units, zeros []float32) {
	if !avx2 {
		dequantiseGo(y, stride, acc, rows, sums, scales, bias, units, zeros)
		return
	}
	const n = Column - 1
	_, _, _, _, _, _, _ = y[(rows-1)*stride+n], acc[rows*Column-1], sums[n], scales[n], bias[n], units[rows-1], zeros[rows-1]
	if vnni {
		dequantise512(&y[0], 4*stride, &acc[0], rows, &sums[0], &scales[0], &bias[0], &units[0], &zeros[0])
		return
	}
	dequantiseAVX2(&y[0], 4*stride, &acc[0], rows, &sums[0], &scales[0], &bias[0], &units[0], &zeros[0])
}

// GELU is x·σ(1.5957691·(x + 0.044715·x³)) (Hendrycks and Gimpel 2016), in place. The number of x is a multiple of 8.
func GELU(x []float32) {
	if !avx2 {
		geluGo(x)
		return
	}
	if vnni && len(x)%16 == 0 {
		gelu512(&x[0], len(x))
		return
	}
	geluAVX2(&x[0], len(x))
}

// AddNorm is the layer norm of x + y, in x: (x − mean)/√(variance + 1e-12)·gain + shift (Ba et al. 2016). The number of x is a multiple of 8.
func AddNorm(x, y, gain, shift []float32) {
	if !avx2 {
		addNormGo(x, y, gain, shift)
		return
	}
	n := len(x) - 1
	_, _, _ = y[n], gain[n], shift[n]
	addNormAVX2(&x[0], &y[0], &gain[0], &shift[0], len(x), float32(len(x)))
}

// Softmax turns x into e^((x − max)·scale), divided by their sum. The number of x is a multiple of 8.
func Softmax(x []float32, scale float32) {
	if !avx2 {
		softmaxGo(x, scale)
		return
	}
	if vnni && len(x)%16 == 0 {
		softmax512(&x[0], len(x), scale)
		return
	}
	softmaxAVX2(&x[0], len(x), scale)
}

// Strides are in bytes, lengths multiples of lanes.

//go:noescape
func matrixAMX(acc *int32, x *uint8, stride int, w *int8, k64, rows16, blocks int)

//go:noescape
func matrixVNNI(acc *int32, x *uint8, stride int, w *int8, k4, ahead int)

//go:noescape
func matrixVNNI8(acc *int32, x *uint8, stride int, w *int8, k4, ahead int)

//go:noescape
func matrixAVX2(acc *int32, x *uint8, stride int, w *int8, k4, ahead int)

//go:noescape
func matrixFloatAVX2(y *float32, yStride int, x *float32, stride int, w *float32, wStride, k int)

//go:noescape
func axpyAVX2(y *float32, a float32, x *float32, n int)

//go:noescape
func addBytesAVX2(y *float32, a float32, x *int8, n int)

//go:noescape
func maxAVX2(y, x *float32, n int)

//go:noescape
func boundsAVX2(x *float32, n int) (low, high float32)

//go:noescape
func quantiseAVX2(q *uint8, x *float32, n int, inverse, offset float32)

//go:noescape
func matrixFloat512(y *float32, yStride int, x *float32, stride int, w *float32, wStride, k int)

//go:noescape
func dequantiseAVX2(y *float32, stride int, acc *int32, rows int, sums, scales, bias, units, zeros *float32)

//go:noescape
func dequantise512(y *float32, stride int, acc *int32, rows int, sums, scales, bias, units, zeros *float32)

//go:noescape
func gelu512(x *float32, n int)

//go:noescape
func softmax512(x *float32, n int, scale float32)

//go:noescape
func geluAVX2(x *float32, n int)

//go:noescape
func addNormAVX2(x, y, gain, shift *float32, n int, size float32)

//go:noescape
func softmaxAVX2(x *float32, n int, scale float32)
