//go:build !amd64

package classifier

import "unsafe"

func addRows(out *[channels]float32, rows *float32, x *float32, n int) {
	addRowsGo(out, unsafe.Slice(rows, n*channels), unsafe.Slice(x, n))
}

func axpy(y *float32, a float32, x *float32, n int) {
	axpyGo(unsafe.Slice(y, n), a, unsafe.Slice(x, n))
}
