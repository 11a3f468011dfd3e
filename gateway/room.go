package gateway

import (
	"net/http"
	"sync"
	"time"
)

// room is how many calls are served at once. The last eighth is for tenants that hold less than half of it, so that one tenant does not
// shut out the others. Calls that wait for a person stand beside it, as many again.
type room struct {
	mu      sync.Mutex
	all     int
	in      int
	of      map[string]int // by tenant
	waiting int
}

func newRoom(all int) *room { return &room{all: all, of: map[string]int{}} }

// enter takes a place; false where there is none for this tenant.
func (r *room) enter(tenant string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := r.all - r.in
	if free <= 0 || free <= r.all/8 && 2*r.of[tenant] >= r.all {
		return false
	}
	r.in++
	r.of[tenant]++
	return true
}

func (r *room) leave(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in--
	if r.of[tenant]--; r.of[tenant] == 0 {
		delete(r.of, tenant)
	}
}

// stepOut frees the place of a call that does no work for a while; back takes one again, whether one is free or not.
func (r *room) stepOut(tenant string) (back func()) {
	r.mu.Lock()
	out := r.waiting < r.all
	if out {
		r.waiting++
	}
	r.mu.Unlock()
	if !out { // it keeps its place
		return func() {}
	}
	r.leave(tenant)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waiting--
		r.in++
		r.of[tenant]++
	}
}

const (
	slowestBody = time.Minute // for a request to come
	slowestRead = time.Minute // for a caller to take the next bytes
	atOnce      = 64 << 10
)

// patient writes to a caller, who may be slow but not stand still: who takes nothing holds a place of others.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func newPatient(w http.ResponseWriter) *patient {
	return &patient{w, http.NewResponseController(w)}
}

func (p *patient) Write(b []byte) (n int, err error) {
	for first := true; first || len(b) > 0; first = false {
		_ = p.control.SetWriteDeadline(time.Now().Add(slowestRead)) // where there is a connection
		m, err := p.ResponseWriter.Write(b[:min(len(b), atOnce)])
		if n += m; err != nil {
			return n, err
		}
		b = b[m:]
	}
	return n, nil
}

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *patient) done() { _ = p.control.SetWriteDeadline(time.Time{}) }
