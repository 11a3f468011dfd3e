package broker

import (
	"testing"

	"golang.org/x/sys/unix"
)

// setLimit bounds the size of the files that a process may write.
func setLimit(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}
