//go:build !linux

package scan

// newTable makes a table of n zeroes.
func newTable(n int) []uint32 { return make([]uint32, n) }
