//go:build !amd64

package encoder

func eachMatrix(use func(name string, matrix func(y []int32, yStride int, x []uint8, stride int, w []int8, k int))) {
	use("go", matrix)
}
