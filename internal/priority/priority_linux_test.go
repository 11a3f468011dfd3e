package priority

import (
	"sync"
	"syscall"
	"testing"
)

// nice is the value of the calling thread.
func nice(t *testing.T) int {
	t.Helper()
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, syscall.Gettid())
	if err != nil {
		t.Fatal(err)
	}
	return 20 - raw // as the kernel gives it
}

func TestLowerEndsWithTheGoroutine(t *testing.T) {
	before := nice(t)
	for range 100 {
		var wg sync.WaitGroup
		wg.Go(func() {
			Lower()
			if got := nice(t); got != behind {
				t.Errorf("nice is %d", got)
			}
		})
		wg.Wait()
	}
	var wg sync.WaitGroup
	for range 50 { // no thread that others run on was left behind
		wg.Go(func() {
			if got := nice(t); got != before {
				t.Errorf("nice is %d of a thread that nobody lowered, %d before", got, before)
			}
		})
	}
	wg.Wait()
}
