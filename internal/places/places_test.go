package places

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// The last places are for those who hold few.
func TestPlaces(t *testing.T) {
	for all, want := range map[int]int{1: 1, 2: 2, 3: 3, 4: 3, 8: 7, 16: 14} {
		p := New(all)
		n := 0
		for p.Enter("acme") {
			n++
		}
		if n != want {
			t.Errorf("acme got %d of %d, want %d", n, all, want)
		}
		for i := n; i < all; i++ {
			if !p.Enter(fmt.Sprint("other", i)) {
				t.Errorf("of %d places %d are for nobody", all, all-i)
			}
		}
		if p.Enter("delta") {
			t.Errorf("%d places had one more", all)
		}
		for range n {
			p.Leave("acme")
		}
		for i := n; i < all; i++ {
			p.Leave(fmt.Sprint("other", i))
		}
		if p.Held() != 0 || len(p.of) != 0 {
			t.Errorf("%+v", p.of)
		}
	}
}

// Who waits is let in by turns, whoever came in a crowd.
func TestTurns(t *testing.T) {
	for _, tc := range []struct {
		all        int
		come, want string // tenants have letters
	}{
		{1, "aaaaabc", "aabcaaa"},
		{1, "aaaabbbb", "aabababb"},
		{2, "aaaaaabc", "aabacaaa"},
		{8, "aaaaaaaaaaaab", "aaaaaaabaaaaa"}, // the eighth place is kept for b
	} {
		synctest.Test(t, func(t *testing.T) {
			p := New(tc.all)
			var mu sync.Mutex
			var in []byte
			for _, tenant := range []byte(tc.come) {
				go func() {
					if err := p.Wait(t.Context(), string(tenant)); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					in = append(in, tenant)
				}()
				synctest.Wait()
			}
			for i := range tc.come { // who came first goes first
				mu.Lock()
				tenant := string(in[i])
				mu.Unlock()
				p.Leave(tenant)
				synctest.Wait()
			}
			if string(in) != tc.want || p.Held() != 0 || len(p.waiting) != 0 {
				t.Errorf("%d places, %s came: %s were let in, %d are held, %d wait", tc.all, tc.come, in, p.Held(), len(p.waiting))
			}
		})
	}
}

// Who goes while waiting holds nothing.
func TestWhoGoesHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		ctx, cancel := context.WithCancel(t.Context())
		if err := p.Wait(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			go func() {
				if err := p.Wait(ctx, "a"); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		p.Leave("a")
		if p.Held() != 0 || len(p.waiting) != 0 || p.Wait(ctx, "b") == nil {
			t.Errorf("%d held, %d wait", p.Held(), len(p.waiting))
		}
	})
}
