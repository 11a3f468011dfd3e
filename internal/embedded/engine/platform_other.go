//go:build !(linux && amd64)

package engine

import (
	"os"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return nil }

func tryLock(*os.File) (bool, error) { return false, supported() }

func held(string) bool { return false }

func alive(int) bool { return false }

func runLocal(string, []string) error { return &libraryError{supported()} }
