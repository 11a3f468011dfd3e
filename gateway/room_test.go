package gateway

import (
	"testing"
)

// The last places are for those who hold few; who waits for a person holds none.
func TestRoom(t *testing.T) {
	r := newRoom(16)
	n := 0
	for r.enter("acme") {
		n++
	}
	if n != 14 || !r.enter("beta") || !r.enter("gamma") || r.enter("delta") {
		t.Errorf("acme got %d of 16", n)
	}
	back := r.stepOut("acme")
	if r.enter("acme") || !r.enter("delta") {
		t.Error("the place of one who waits is not for others")
	}
	back()
	if r.in != 17 || r.waiting != 0 {
		t.Errorf("%+v", r)
	}
	for range 14 {
		r.leave("acme")
	}
	for _, name := range []string{"beta", "gamma", "delta"} {
		r.leave(name)
	}
	if r.in != 0 || len(r.of) != 0 {
		t.Errorf("%+v", r)
	}
	one := newRoom(1)
	if !one.enter("acme") || one.enter("acme") {
		t.Error("one place")
	}
	var kept []func()
	for range 3 {
		kept = append(kept, one.stepOut("acme"))
	}
	if one.waiting != 1 || one.in != 0 {
		t.Errorf("as many may wait as may be served: %+v", one)
	}
	for _, back := range kept {
		back()
	}
}
