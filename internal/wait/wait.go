// Package wait holds how retries wait: for a time that a context may cut short, longer with each failure.
package wait

import (
	"context"
	"math/rand/v2"
	"time"
)

// For waits for d; false when ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// longest bounds Backoff.
const longest = 2 * time.Second

// Backoff is first, doubled with each failure after the first one up to 2 s, less a random part of up to a half.
func Backoff(first time.Duration, fails int) time.Duration {
	d := min(first<<min(fails-1, 10), longest)
	return d - time.Duration(rand.Int64N(int64(d)/2))
}
