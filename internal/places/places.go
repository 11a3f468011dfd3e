// Package places shares so many places between tenants, so that none shuts out the others: the last eighth, of four places on at least
// one, is for tenants that hold less than half of all, and who waits is let in by turns: of the tenants that wait the one that holds the
// fewest, and of several the one that was let in the longest ago. Cost: a lock, and as many steps as tenants wait.
package places

import (
	"context"
	"slices"
	"sync"
)

// Places are held by tenants. They are safe for concurrent use.
type Places struct {
	all int

	mu      sync.Mutex
	in      int
	of      map[string]int    // by tenant
	waiting map[string]*queue // none is empty
	turn    int64
}

// queue are those of a tenant who wait; their channels are closed when they are let in.
type queue struct {
	turn int64 // when it came or was let in last
	who  []chan struct{}
}

// New gives so many places.
func New(all int) *Places {
	return &Places{all: all, of: map[string]int{}, waiting: map[string]*queue{}}
}

// Enter takes a place; false where there is none for this tenant.
func (p *Places) Enter(tenant string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.enter(tenant)
}

func (p *Places) enter(tenant string) bool {
	last := p.all / 8
	if p.all >= 4 {
		last = max(1, last)
	}
	free := p.all - p.in
	if free <= 0 || free <= last && 2*p.of[tenant] >= p.all {
		return false
	}
	p.in++
	p.of[tenant]++
	return true
}

// Wait takes a place once there is one; it fails with ctx's error when that ends first.
func (p *Places) Wait(ctx context.Context, tenant string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	q := p.waiting[tenant]
	if q == nil && p.enter(tenant) { // others wait only for what is not theirs to take
		p.mu.Unlock()
		return nil
	}
	if q == nil {
		p.turn++
		q = &queue{turn: p.turn}
		p.waiting[tenant] = q
	}
	let := make(chan struct{})
	q.who = append(q.who, let)
	p.mu.Unlock()
	select {
	case <-let:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(q.who, let); i >= 0 {
		p.drop(tenant, q, i)
	} else {
		p.leave(tenant) // it was let in at that moment
	}
	return ctx.Err()
}

// Leave gives a place back.
func (p *Places) Leave(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave(tenant)
}

func (p *Places) leave(tenant string) {
	p.in--
	if p.of[tenant]--; p.of[tenant] == 0 {
		delete(p.of, tenant)
	}
	for p.in < p.all {
		next, first := "", (*queue)(nil)
		for t, q := range p.waiting {
			if first == nil || p.of[t] < p.of[next] || p.of[t] == p.of[next] && q.turn < first.turn {
				next, first = t, q
			}
		}
		if first == nil || !p.enter(next) { // who holds the fewest is refused the last
			return
		}
		p.turn++
		first.turn = p.turn
		close(first.who[0])
		p.drop(next, first, 0)
	}
}

func (p *Places) drop(tenant string, q *queue, i int) {
	if q.who = slices.Delete(q.who, i, i+1); len(q.who) == 0 {
		delete(p.waiting, tenant)
	}
}

// Held tells how many are taken.
func (p *Places) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.in
}

// Waiting tells how many wait.
func (p *Places) Waiting() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.waiting {
		n += len(q.who)
	}
	return n
}
