package kernel

import (
	"sync"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// hasAMX asks Linux (5.16) for the use of the processor's tiles, which a process must do once. Not before they are needed: from then on
// threads must have larger stacks for signals, as those of Go are.
var hasAMX = sync.OnceValue(func() bool {
	if !hasVNNI || !cpu.X86.HasAMXTile || !cpu.X86.HasAMXInt8 {
		return false
	}
	const request, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, request, tileData, 0)
	return errno == 0
})
