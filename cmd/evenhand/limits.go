package main

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// Open files. The engine holds about 160 when idle and opens more for each query, 'up' itself about 105, each of them a
// process with the limit for itself. With fewer than the floor faults come late and look like others.
const (
	filesFloorUp  = 256
	filesFloorRun = 128
	filesComfort  = 4096
)

// openFiles is how many files this process may open. Go's runtime has raised the soft limit to the hard one at the
// start, in the engine's process too, so this is the hard one.
func openFiles() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return math.MaxUint64
	}
	return uint64(l.Cur) //nolint:unconvert // the types differ by platform
}

// openFilesOf is the same of a running process; where that cannot be read, of this one.
func openFilesOf(pid int) uint64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return openFiles()
	}
	_, after, _ := strings.Cut(string(b), "Max open files")
	if fields := strings.Fields(after); len(fields) > 0 {
		if n, err := strconv.ParseUint(fields[0], 10, 64); err == nil {
			return n
		}
	}
	return openFiles()
}

// diagnoseFiles judges a limit of open files.
func diagnoseFiles(limit uint64, embedded bool) diagnosis {
	const what = "open files"
	floor := uint64(filesFloorRun)
	if embedded {
		floor = filesFloorUp
	}
	mend := fmt.Sprintf("raise the hard limit to %d or more: ulimit -Hn, LimitNOFILE= of systemd, --ulimit nofile= of Docker", filesComfort)
	switch {
	case limit < floor:
		return diagnosis{"bad", what, fmt.Sprintf("a process may open %d files and needs at least %d; %s", limit, floor, mend)}
	case limit < filesComfort:
		return diagnosis{"warn", what, fmt.Sprintf("a process may open %d files, which many clients or queries at once may use up; %s", limit, mend)}
	}
	return diagnosis{"ok", what, fmt.Sprintf("%d may be open in a process", limit)}
}

// heedFiles refuses a start that cannot work for want of files, and warns of one that is tight.
func heedFiles(limit uint64, embedded bool, log *slog.Logger) error {
	switch d := diagnoseFiles(limit, embedded); d.State {
	case "bad":
		return fmt.Errorf("open files: %s", d.Says)
	case "warn":
		log.Warn("few open files are allowed", "detail", d.Says)
	}
	return nil
}

// operatorsLimit is what GOMEMLIMIT says, in bytes.
var operatorsLimit = debug.SetMemoryLimit(-1)

// brokerMB is added to the limit where the broker lives in this process.
const brokerMB = 300

// heapLimit is the soft limit of this process's heap, in bytes; the operator's GOMEMLIMIT holds where it is smaller.
func heapLimit(memoryMB int64, embedded bool) int64 {
	if embedded {
		memoryMB += brokerMB
	}
	return min(memoryMB<<20, operatorsLimit)
}
