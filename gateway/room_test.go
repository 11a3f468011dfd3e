package gateway

import (
	"testing"
)

// The last places are for those who hold few.
func TestPlaces(t *testing.T) {
	r := newRoom(16)
	in := &r.inside
	n := 0
	for in.enter("acme") {
		n++
	}
	if n != 14 || !in.enter("beta") || !in.enter("gamma") || in.enter("delta") {
		t.Errorf("acme got %d of 16", n)
	}
	for range 14 {
		in.leave("acme")
	}
	in.leave("beta")
	in.leave("gamma")
	if in.in != 0 || len(in.of) != 0 {
		t.Errorf("%+v", in.of)
	}
	one := newRoom(1)
	if !one.inside.enter("acme") || one.inside.enter("acme") {
		t.Error("one place")
	}
}

// A call that waits for a person leaves its place to others, as long as not too many wait.
func TestWhoWaitsHoldsNoPlace(t *testing.T) {
	g := &Gateway{room: newRoom(1)}
	var all []*exchange
	for range 2 {
		x := &exchange{g: g, caller: caller{tenant: "acme"}, place: &g.room.inside}
		if !x.place.enter("acme") {
			t.Fatal("no place")
		}
		x.stepOut()
		x.stepOut()
		all = append(all, x)
	}
	if all[0].place != &g.room.outside || all[1].place != &g.room.inside {
		t.Error("one is outside, and one kept its place")
	}
	for _, x := range all {
		x.place.leave("acme")
	}
	if g.room.inside.in+g.room.outside.in != 0 {
		t.Errorf("%d and %d", g.room.inside.in, g.room.outside.in)
	}
}
