package engine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// childAttr puts the child in a process group of its own, so that Ctrl-C reaches only the parent,
// which stops the child when it has drained; and has the kernel kill it when the thread that
// started it ends (the caller locks its goroutine to that thread).
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// tryLock takes an exclusive lock on the open file without waiting; ok is false when another has
// it. The lock belongs to the open file, so a child that inherits it keeps it too.
func tryLock(f *os.File) (ok bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// held tells whether a process holds the lock of [tryLock] on that file.
func held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// alive tells whether a process with that id exists.
func alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// runLocal runs `clickhouse local args...` out of the library and returns when its queries have
// ended. It can be called once in a process.
func runLocal(lib string, args []string) error {
	// From here on: the library's initialisation, and what a loader says went wrong, belong to one thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(lib, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return &libraryError{err}
	}
	var (
		setSignalHandlers func(int32)
		query             func(argc int32, argv unsafe.Pointer) unsafe.Pointer
		resultError       func(unsafe.Pointer) string
	)
	for name, fn := range map[string]any{
		"chdb_set_signal_handlers_enabled": &setSignalHandlers,
		"chdb_query_cmdline":               &query,
		"chdb_result_error":                &resultError,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return &libraryError{fmt.Errorf("is not the engine library: %w", err)}
		}
		purego.RegisterFunc(fn, symbol)
	}
	setSignalHandlers(0) // keep Go's: its runtime cannot live without its SIGSEGV and SIGURG handlers

	argv, pin := cStrings(append([]string{"clickhouse"}, args...))
	defer pin.Unpin()
	result := query(int32(len(args)+1), argv)
	if result == nil {
		return errors.New("the engine ended without a result")
	}
	if msg := resultError(result); msg != "" {
		return errors.New(msg)
	}
	return nil
}

// cStrings makes a NULL-terminated char*[] that stays where it is until Unpin.
func cStrings(args []string) (unsafe.Pointer, *runtime.Pinner) {
	pin := new(runtime.Pinner)
	ptrs := make([]*byte, len(args)+1)
	for i, a := range args {
		ptrs[i] = unsafe.SliceData(append([]byte(a), 0))
		pin.Pin(ptrs[i])
	}
	pin.Pin(&ptrs[0])
	return unsafe.Pointer(&ptrs[0]), pin
}
