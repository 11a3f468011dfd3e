package scan

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of the pages that a large table is put in.
const hugePage = 2 << 20

// newTable makes a table of n zeroes. A walk jumps about in it, and with pages of 4 KB most of its waiting would be
// for the addresses of pages; so a large one is laid out for pages of 2 MB, which the system is asked for
// (madvise(2), MADV_HUGEPAGE) and may refuse.
func newTable(n int) []uint32 {
	const each = int(unsafe.Sizeof(uint32(0)))
	if n*each < hugePage {
		return make([]uint32, n)
	}
	t := make([]uint32, n+2*hugePage/each)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(t)))%hugePage) / each
	size := (n*each + hugePage - 1) / hugePage * hugePage / each
	t = t[skip : skip+size : skip+size]
	_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t))), size*each), unix.MADV_HUGEPAGE)
	return t[:n]
}
