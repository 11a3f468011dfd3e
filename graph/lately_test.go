package graph

import (
	"testing"
	"time"

	"github.com/evenhand/evenhand/store"
)

// Figures that name no window are of the last seven days, which end now.
func TestLately(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	early := now.AddDate(0, -1, 0)
	for name, c := range map[string]struct{ given, want store.Window }{
		"none":           {store.Window{}, store.Window{From: now.AddDate(0, 0, -7), To: now}},
		"a start":        {store.Window{From: early}, store.Window{From: early, To: now}},
		"an end":         {store.Window{To: early}, store.Window{From: early.AddDate(0, 0, -7), To: early}},
		"an end to come": {store.Window{To: now.AddDate(0, 0, 1)}, store.Window{From: now.AddDate(0, 0, -7), To: now.AddDate(0, 0, 1)}},
	} {
		if got := lately(c.given, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
