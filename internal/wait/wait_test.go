package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenhand/evenhand/internal/wait"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !wait.For(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("waited for %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if wait.For(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("waited for %v", time.Since(began))
		}
	})
}

func TestBackoff(t *testing.T) {
	for fails, most := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 5: 1600 * time.Millisecond, 6: 2 * time.Second, 1000: 2 * time.Second} {
		for range 100 {
			if d := wait.Backoff(100*time.Millisecond, fails); d > most || d <= most/2 {
				t.Fatalf("%d failures: %v, want more than half of %v up to it", fails, d, most)
			}
		}
	}
}
