package priority

import "syscall"

// lower sets the thread's nice value. It may be refused (a sandbox): then the thread is as others are.
func lower() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), behind) }
