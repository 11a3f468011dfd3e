//go:build failpoints

package failpoint

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// Enabled tells whether this binary can be ended at a point.
const Enabled = true

var (
	armed   = os.Getenv("FAILPOINT")
	skip, _ = strconv.ParseInt(os.Getenv("FAILPOINT_SKIP"), 10, 64)
	passed  atomic.Int64
)

// Hit ends the process when the point is the armed one and was passed often enough.
func Hit(name, of string) {
	if armed == "" {
		return
	}
	if of != "" {
		name += ":" + of
	}
	if name == armed && passed.Add(1) > skip {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way: nothing more happens here
	}
}
