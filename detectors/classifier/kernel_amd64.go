package classifier

// addRows adds n rows of channels numbers, each times its x.
//
//go:noescape
func addRows(out *[channels]float32, rows *float32, x *float32, n int)

// axpy adds a*x to y; n, the number of both, is a multiple of 8.
//
//go:noescape
func axpy(y *float32, a float32, x *float32, n int)
