// Package priority lets work that can wait step back where processors are short.
package priority

import "runtime"

// behind is the nice value of threads that stepped back, the same that the embedded engine gives its merges: one
// thread of ten is heard beside one that did not.
const behind = 10

// Lower makes the goroutine's thread yield to all others of the machine, until the goroutine ends: the thread, which
// only its goroutine runs on from now, ends with it. Where the system knows no priorities of threads it does nothing.
// It costs a new thread, some ten microseconds: for goroutines that work for milliseconds.
func Lower() {
	runtime.LockOSThread() // never unlocked: who lowered a thread may not raise it again
	lower()
}
