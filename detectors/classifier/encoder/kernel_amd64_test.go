package encoder

// eachMatrix runs the byte kernel with each set of instructions that the processor has.
func eachMatrix(use func(name string, matrix func(y []int32, yStride int, x []uint8, stride int, w []int8, k int))) {
	a, v := avx2, vnni
	defer func() { avx2, vnni = a, v }()
	if v {
		use("vnni", matrix)
	}
	if vnni = false; a {
		use("avx2", matrix)
	}
	avx2 = false
	use("go", matrix)
}
