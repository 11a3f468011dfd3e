package store_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/store"
)

func TestReplays(t *testing.T) {
	f := newFixture(t)
	f.keepUnmerged()
	n := 0
	round := func(tenant, given string) {
		n++
		for range 2 { // delivered twice
			f.exec("INSERT INTO {{db}}.interactions (tenant_id, event_day, event_id, content_digest, version, given_id, event_ts, sort_ts) VALUES (?, toDate(?), ?, ?, 1, ?, ?, ?)",
				tenant, noon.Format("2006-01-02"), uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n)), fmt.Sprintf("%032d", n), given, noon, noon)
		}
	}
	round("acme", "replay/o1/r1/1/failed")
	round("acme", "replay/o1/r1/2/passed")
	round("acme", "replay/o1/r2/1/unchecked") // again, another run
	round("acme", "replay/o2/r3/1/review")
	round("acme", "replay/mine")
	round("acme", "")
	round("beta", "replay/o1/r1/1/passed")
	week := store.Window{From: noon.AddDate(0, 0, -3), To: noon.AddDate(0, 0, 1)}
	for name, tc := range map[string]struct {
		of   *store.Figures
		w    store.Window
		want store.Replays
	}{
		"one tenant": {&f.WithTenant("acme").Figures, week, store.Replays{Runs: 3, Mended: 1, Rounds: 4, Unchecked: 1}},
		"all":        {f.AllTenants(), week, store.Replays{Runs: 4, Mended: 2, Rounds: 5, Unchecked: 1}},
		"nothing":    {f.AllTenants(), store.Window{From: noon.AddDate(0, 0, -3), To: noon.AddDate(0, 0, -2)}, store.Replays{}},
	} {
		if got, err := tc.of.Replays(t.Context(), tc.w); err != nil || got != tc.want {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}
