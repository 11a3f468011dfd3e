package classifier

// channels is the width of both convolutions.
const channels = 64

// addRowsGo and axpyGo are the kernels in plain Go, for other processors and as the measure of the assembly.
// The conversion keeps the compiler from fusing: every processor gets the same bits.
func addRowsGo(out *[channels]float32, rows, x []float32) {
	for j, v := range x {
		if v == 0 {
			continue
		}
		row := rows[j*channels : (j+1)*channels]
		for c := range out {
			out[c] += float32(v * row[c])
		}
	}
}

func axpyGo(y []float32, a float32, x []float32) {
	for i, v := range x {
		y[i] += float32(a * v)
	}
}

// addTimes adds a*x to y for x of any length.
func addTimes(y []float32, a float32, x []float32) {
	n := len(x) &^ 7
	if n > 0 {
		axpy(&y[0], a, &x[0], n)
	}
	axpyGo(y[n:], a, x[n:])
}
