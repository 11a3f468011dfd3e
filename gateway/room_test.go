package gateway

import (
	"testing"
)

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
