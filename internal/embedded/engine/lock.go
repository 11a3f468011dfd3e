package engine

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// lockPatience is how long Start waits for the engine of a parent that has just died.
const lockPatience = 5 * time.Second

// lock takes the data folder for this process. The child inherits the file, so the folder is free
// again only when parent and child are gone. The error names the folder and, if known, the holder.
func lock(ctx context.Context, l layout) (*os.File, error) {
	f, err := os.OpenFile(l.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for first := true; ; first = false {
		ok, err := tryLock(f)
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", l.dir, err)
		}
		if ok {
			_ = f.Truncate(0)
			_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
			if err != nil {
				_ = f.Close()
				return nil, fmt.Errorf("lock %s: %w", l.dir, err)
			}
			return f, nil
		}
		pid := holder(l)
		// A holder that is gone has left its child, which ends within about a second; who only looks, see held, lets go at once.
		if (first || pid != 0 && !alive(pid)) && sleep(ctx, 50*time.Millisecond) {
			continue
		}
		_ = f.Close()
		by := "another process"
		if pid != 0 {
			by = fmt.Sprintf("process %d", pid)
		}
		return nil, fmt.Errorf("data folder %s is in use by %s; stop it, or choose another folder", l.dir, by)
	}
}

// holder is the process that wrote its id into the lock file, 0 when unknown.
func holder(l layout) int {
	b, err := os.ReadFile(l.lock())
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
