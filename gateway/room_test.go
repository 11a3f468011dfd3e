package gateway

import (
	"net/http"
	"sync"
	"testing"
)

// A client that asks 500 at once is answered, however long the provider takes: nothing is refused that would be served without us.
func TestManyAtOnce(t *testing.T) {
	const many = 500
	var arrived sync.WaitGroup
	arrived.Add(many)
	s := start(t, newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		arrived.Done()
		arrived.Wait()
		says(clean)(w, r)
	}).URL, nil)
	var calls sync.WaitGroup
	statuses := make([]int, many)
	for i := range statuses {
		calls.Go(func() {
			if statuses[i] = s.do(PathChat, prompt("hi", "")).status; statuses[i] != http.StatusOK {
				arrived.Done() // the others need not wait for it
			}
		})
	}
	calls.Wait()
	for i, status := range statuses {
		if status != http.StatusOK {
			t.Fatalf("call %d of %d at once: %d", i, many, status)
		}
	}
	if n := len(s.events()); n != many {
		t.Errorf("%d events", n)
	}
}

// A call that waits for a person leaves its place to others, as long as not too many wait.
func TestWhoWaitsHoldsNoPlace(t *testing.T) {
	g := &Gateway{room: newRoom(1)}
	var all []*exchange
	for range 2 {
		x := &exchange{g: g, caller: caller{tenant: "acme"}, place: g.room.inside}
		if !x.place.Enter("acme") {
			t.Fatal("no place")
		}
		x.stepOut()
		x.stepOut()
		all = append(all, x)
	}
	if all[0].place != g.room.outside || all[1].place != g.room.inside {
		t.Error("one is outside, and one kept its place")
	}
	for _, x := range all {
		x.place.Leave("acme")
	}
	if g.room.inside.Held()+g.room.outside.Held() != 0 {
		t.Errorf("%d and %d", g.room.inside.Held(), g.room.outside.Held())
	}
}
