//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package client

import (
	"os"
	"syscall"
)

// lock takes a file for this process; the kernel gives it back when the process ends, however it ends.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
